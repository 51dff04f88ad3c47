"""Active subscriptions: each topic is a program (Kulik 2004, section 3.3).

Programs cannot be compared, so their content graph is flat, and a notification is shown to every
one of them. They travel by name: each preprocessor has to know the same programs, for code is
never taken from the network.
"""

from __future__ import annotations

from collections.abc import Callable

from preprocess.errors import LanguageError
from preprocess.forms import named, shown
from preprocess.language import Index, Language
from routing.content_graph import ContentGraph, NodeId

Predicate = Callable[[object], bool]


class Active(Language[str, object]):
    """Python predicates under names."""

    name = "active"

    def __init__(self) -> None:
        self._predicates: dict[str, Predicate] = {}
        #: By name, how often a predicate raised instead of answering, and what it raised last.
        self.failures: dict[str, tuple[int, Exception]] = {}

    def add(self, name: str, predicate: Predicate) -> None:
        """Make a predicate known; a name keeps its meaning for good."""
        if self._predicates.setdefault(name, predicate) is not predicate:
            raise LanguageError("the name stands for another predicate", repr(name))

    def parse(self, subscription: object) -> str:
        """The name, or a pair of JSON or XML: {"predicate": "name"}."""
        if isinstance(subscription, str) and subscription in self._predicates:
            return subscription
        names = (named(subscription, "predicate") or {}).get("predicate", [subscription])
        if len(names) != 1 or not isinstance(names[0], str) or names[0] not in self._predicates:
            raise LanguageError("not the name of a predicate known here", shown(subscription))
        return names[0]

    def parse_notification(self, notification: object) -> object:
        return notification

    def covers(self, a: str, b: str) -> bool:
        return a == b

    def matches(self, topic: str, notification: object) -> bool:
        """What the predicate says; one that raises has not asked for the notification."""
        try:
            return bool(self._predicates[topic](notification))
        except Exception as error:
            count, _ = self.failures.get(topic, (0, error))
            self.failures[topic] = (count + 1, error)
            return False

    def text(self, topic: str) -> str:
        return topic

    def index(self, graph: ContentGraph) -> Index[str, object]:
        return FlatIndex(self, graph)


class FlatIndex(Index[str, object]):
    """No order, no pruning: every topic is tested."""

    def matching(self, notification: object) -> set[NodeId]:
        matches = self.language.matches
        return {node for node, topic in self.topics.items() if matches(topic, notification)}

    def lowest(self, notification: object) -> list[NodeId]:
        return list(self.matching(notification))

    def above(self, topic: str) -> set[NodeId]:
        return set()

    def below(self, topic: str) -> set[NodeId]:
        return set()
