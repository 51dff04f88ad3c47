"""Topics from a hierarchy: the common part of keyword ontologies and type hierarchies.

A topic is a choice of keywords, any of which will do ("Boston or New York", Kulik 2004, Figure
3-22), and a notification carries one or more. A keyword stands for itself and all below it; of
the keywords of a topic only the highest are kept, so topics of equal meaning are equal.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable

from preprocess.errors import LanguageError
from preprocess.forms import TERMS_MAX, from_json, named, shown, text_of
from preprocess.language import Index, Language
from routing.content_graph import ContentGraph, NodeId

Keywords = frozenset[str]


class Hierarchy(Language[Keywords, Keywords]):
    """A notification is parsed to the keywords that hold it: its own and all above them."""

    @abstractmethod
    def up(self, keyword: str) -> Keywords:
        """The keyword and all above it; LanguageError if it is unknown."""

    def topic(self, keywords: Iterable[str]) -> Keywords:
        """The canonical topic for any of these keywords."""
        chosen = frozenset(keywords)
        if not chosen:
            raise LanguageError("a topic without keywords can match nothing")
        if len(chosen) > TERMS_MAX:
            raise LanguageError(f"{len(chosen)} keywords are more than {TERMS_MAX}")
        return frozenset(word for word in chosen if len(self.up(word) & chosen) == 1)

    def covers(self, a: Keywords, b: Keywords) -> bool:
        return all(not a.isdisjoint(self.up(keyword)) for keyword in b)

    def matches(self, topic: Keywords, notification: Keywords) -> bool:
        return not topic.isdisjoint(notification)

    def text(self, topic: Keywords) -> str:
        return json.dumps(sorted(topic), ensure_ascii=False)

    def index(self, graph: ContentGraph) -> Index[Keywords, Keywords]:
        return HierarchyIndex(self, graph)


def names(source: object, key: str) -> list[str]:
    """One name, a list of them, a list in JSON, or pairs with this key: <s><key>name</key></s>."""
    pairs = named(source, key)
    if pairs is not None:
        source = pairs.get(key, [])
    elif isinstance(source, str | bytes):
        source = text_of(source).strip()
        source = from_json(source) if source[:1] in ("[", '"') else source
        source = [source] if isinstance(source, str) else source
    if not isinstance(source, list | tuple | set | frozenset):
        raise LanguageError(f"a name or a list of names expected, not {shown(source)}")
    for name in source:
        if not isinstance(name, str):
            raise LanguageError(f"a name is a text, not {shown(name)}")
    return list(source)


class HierarchyIndex(Index[Keywords, Keywords]):
    """Per keyword, the nodes that name it, and the nodes that name it or one below it."""

    def __init__(self, language: Hierarchy, graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._up = language.up
        self._naming: defaultdict[str, set[NodeId]] = defaultdict(set)
        self._under: defaultdict[str, set[NodeId]] = defaultdict(set)

    def insert(self, topic: Keywords, node: NodeId) -> None:
        super().insert(topic, node)
        for keyword in topic:
            self._naming[keyword].add(node)
            for above in self._up(keyword):
                self._under[above].add(node)

    def remove(self, topic: Keywords, node: NodeId) -> None:
        super().remove(topic, node)
        for keyword in topic:
            self._discard(self._naming, keyword, node)
            for above in self._up(keyword):
                self._discard(self._under, above, node)

    def _discard(self, lists: dict[str, set[NodeId]], keyword: str, node: NodeId) -> None:
        nodes = lists.get(keyword, set())
        nodes.discard(node)
        if not nodes:
            lists.pop(keyword, None)

    def matching(self, notification: Keywords) -> set[NodeId]:
        found: set[NodeId] = set()
        for keyword in notification & self._naming.keys():
            found |= self._naming[keyword]
        return found

    def above(self, topic: Keywords) -> set[NodeId]:
        choices = [self.matching(self._up(keyword)) for keyword in topic]
        return set.intersection(*choices)

    def below(self, topic: Keywords) -> set[NodeId]:
        found: set[NodeId] = set()
        for keyword in topic & self._under.keys():
            found |= self._under[keyword]
        topics, covers = self.topics, self.language.covers
        return {node for node in found if len(topics[node]) == 1 or covers(topic, topics[node])}
