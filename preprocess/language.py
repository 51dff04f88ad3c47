"""What a subscription language is, and the index that any language has for nothing.

A language turns what applications say into topics, and decides between topics and notifications
(Kulik 2004, sections 3.3 and 3.5.3: the functions of a SubscriptionObject). Three laws bind it:

    covers is a partial order: a covers a; what a covers covers what a covers; two topics that
    cover each other are equal (so topics are canonical: equal meaning, as far as the language
    decides it, gives equal topics);
    covering implies matching: where a covers b, a matches whatever b matches;
    read(text(topic)) == topic: texts are how topics travel between preprocessors.

An index finds, among the topics in a content graph, the lowest that match a notification and
the place of a new topic. `GraphIndex` needs nothing but the three functions: it is the thesis's
breadth-first search (6.3). Languages that know their topics bring faster ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

from routing.content_graph import ContentGraph, NodeId

T = TypeVar("T", bound=Hashable)
"""Topics of a language."""
N = TypeVar("N")
"""Notifications of a language, parsed."""

Position = tuple[set[NodeId], set[NodeId]]
"""Parents and children of a topic that is not in the graph yet."""


class Language(ABC, Generic[T, N]):
    """Parses, orders and matches; has no state that changes what a topic means."""

    #: How the language is called in commands and reports.
    name: str

    @abstractmethod
    def parse(self, subscription: object) -> T:
        """The canonical topic; LanguageError for what does not parse or can match nothing."""

    @abstractmethod
    def parse_notification(self, notification: object) -> N:
        """What the language looks at in a notification; LanguageError if it does not parse."""

    def parse_notifications(self, notifications: Sequence[object]) -> Sequence[N]:
        """Many notifications, parsed."""
        return [self.parse_notification(notification) for notification in notifications]

    @abstractmethod
    def covers(self, a: T, b: T) -> bool:
        """Whether topic a holds all that topic b holds."""

    @abstractmethod
    def matches(self, topic: T, notification: N) -> bool:
        """Whether the topic holds the notification."""

    @abstractmethod
    def text(self, topic: T) -> str:
        """A text that parses to the same topic."""

    def index(self, graph: ContentGraph) -> Index[T, N]:
        """An empty index for the topics of a graph."""
        return GraphIndex(self, graph)


class Index(ABC, Generic[T, N]):
    """The topics of a content graph, arranged for looking up.

    Whatever matches a notification or covers a topic is closed upwards, and whatever a topic
    covers is closed downwards. So the lowest of the former are those without a child among them,
    and the highest of the latter those without a parent among them.
    """

    def __init__(self, language: Language[T, N], graph: ContentGraph) -> None:
        self.language = language
        self.graph = graph
        self.topics: dict[NodeId, T] = {}
        #: Nodes that have, or once had, children.
        self._inner: set[NodeId] = set()

    def insert(self, topic: T, node: NodeId) -> None:
        """Take note of a topic that has just entered the graph."""
        self.topics[node] = topic
        self._inner |= self.graph.parents(node)
        if self.graph.children(node):
            self._inner.add(node)

    def remove(self, topic: T, node: NodeId) -> None:
        """Forget a topic that is about to leave the graph."""
        del self.topics[node]
        self._inner.discard(node)
        self._inner |= self.graph.parents(node)

    @abstractmethod
    def matching(self, notification: N) -> AbstractSet[NodeId]:
        """Every node that matches a notification."""

    @abstractmethod
    def above(self, topic: T) -> AbstractSet[NodeId]:
        """Every node that covers a topic which is not in the graph."""

    @abstractmethod
    def below(self, topic: T) -> AbstractSet[NodeId]:
        """Every node that a topic covers which is not in the graph."""

    def lowest(self, notification: N) -> list[NodeId]:
        """The header of a notification: the lowest nodes that match it."""
        return self.low(self.matching(notification))

    def lowest_of(self, notifications: Sequence[N]) -> list[tuple[NodeId, ...]]:
        """The headers of many notifications, each sorted."""
        return [tuple(sorted(self.lowest(notification))) for notification in notifications]

    def position(self, topic: T) -> Position:
        """Where a new topic belongs: its lowest ancestors and highest descendants."""
        return set(self.low(self.above(topic))), self.high(self.below(topic))

    def low(self, nodes: AbstractSet[NodeId]) -> list[NodeId]:
        """The lowest of nodes that are closed upwards."""
        if len(nodes) < 2:
            return list(nodes)
        children = self.graph.children
        inner = nodes & self._inner
        covering = {node for node in inner if not children(node).isdisjoint(nodes)}
        return list(nodes - covering if covering else nodes)

    def high(self, nodes: AbstractSet[NodeId]) -> set[NodeId]:
        """The highest of nodes that are closed downwards."""
        parents = self.graph.parents
        return {node for node in nodes if parents(node).isdisjoint(nodes)}


class GraphIndex(Index[T, N]):
    """Breadth-first search from the roots (Kulik 2004, section 6.3), for any language."""

    def __init__(self, language: Language[T, N], graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._roots: set[NodeId] = set()

    def insert(self, topic: T, node: NodeId) -> None:
        super().insert(topic, node)
        self._roots -= self.graph.children(node)
        if not self.graph.parents(node):
            self._roots.add(node)

    def remove(self, topic: T, node: NodeId) -> None:
        super().remove(topic, node)
        self._roots.discard(node)
        self._roots.update(c for c in self.graph.children(node) if len(self.graph.parents(c)) == 1)

    def matching(self, notification: N) -> set[NodeId]:
        language, topics = self.language, self.topics
        found: set[NodeId] = set()
        rejected: set[NodeId] = set()
        level: Iterable[NodeId] = self._roots
        while level:
            below: set[NodeId] = set()
            for node in level:
                if language.matches(topics[node], notification):
                    found.add(node)
                    below |= self.graph.children(node)
                else:
                    rejected.add(node)
            level = below - found - rejected
        return found

    def above(self, topic: T) -> set[NodeId]:
        language, topics = self.language, self.topics
        found: set[NodeId] = set()
        stack = list(self._roots)
        while stack:
            node = stack.pop()
            if node not in found and language.covers(topics[node], topic):
                found.add(node)
                stack.extend(self.graph.children(node))
        return found

    def position(self, topic: T) -> Position:
        parents = self.low(self.above(topic))
        return set(parents), self.high(self._below(topic, parents))

    def below(self, topic: T) -> set[NodeId]:
        return self._below(topic, self.low(self.above(topic)))

    def _below(self, topic: T, parents: list[NodeId]) -> set[NodeId]:
        """Everything covered is below everything that covers: one such is enough to start at."""
        language, topics, children = self.language, self.topics, self.graph.children
        stack = list(children(min(parents)) if parents else self._roots)
        seen: set[NodeId] = set(stack)
        found: set[NodeId] = set()
        while stack:
            node = stack.pop()
            if node in found or language.covers(topic, topics[node]):
                found.add(node)
                found |= children(node)
            fresh = children(node) - seen
            seen |= fresh
            stack.extend(fresh)
        return found

    def take_over(self, other: Index[T, N]) -> None:
        """Index the topics of another index over the same graph."""
        self.topics = dict(other.topics)
        self._inner = {node for node in self.graph if self.graph.children(node)}
        self._roots = {node for node in self.graph if not self.graph.parents(node)}
