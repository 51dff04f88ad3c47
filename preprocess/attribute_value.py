"""Attribute-value subscriptions with wildcards (Kulik 2004, sections 3.3, 3.5.3 and 4.1).

A subscription is a set of pairs, and holds every notification that has them all. The wildcard *
stands for any value or none, so a pair with it says nothing and is left out: {"a": "1", "b": "*"}
and {"a": "1"} are the same topic. Values are texts: 5, "5" and XML's 5 are equal; 5 and 5.0 are
not. Typed comparisons are in `predicates`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable

from preprocess.errors import LanguageError
from preprocess.forms import EQUAL, VALUE_MAX, conjunction, scalar_text
from preprocess.language import Index, Language
from preprocess.subsets import SetIndex
from routing.content_graph import ContentGraph

WILDCARD = "*"

Pair = tuple[str, str]
Pairs = frozenset[Pair]


class AttributeValue(Language[Pairs, Pairs]):
    """Sets of attribute-value pairs; fewer pairs cover more."""

    name = "attribute-value"

    def parse(self, subscription: object) -> Pairs:
        return frozenset(pair for pair in self._pairs(subscription) if pair[1] != WILDCARD)

    def parse_notification(self, notification: object) -> Pairs:
        if type(notification) is dict and _plain(notification):
            return frozenset(notification.items())
        pairs = frozenset(self._pairs(notification))
        for name, value in pairs:
            if value == WILDCARD:
                raise LanguageError("a notification has no wildcards", f"attribute {name!r}")
        return pairs

    def covers(self, a: Pairs, b: Pairs) -> bool:
        return a <= b

    def matches(self, topic: Pairs, notification: Pairs) -> bool:
        return topic <= notification

    def text(self, topic: Pairs) -> str:
        return json.dumps(dict(sorted(topic)), ensure_ascii=False)

    def index(self, graph: ContentGraph) -> Index[Pairs, Pairs]:
        return PairIndex(self, graph)

    def _pairs(self, source: object) -> list[Pair]:
        found: dict[str, str] = {}
        for name, operator, value, position in conjunction(source):
            if operator != EQUAL:
                raise LanguageError(f"only {EQUAL} is known, not {operator!r}", position)
            text = scalar_text(value, position)
            if found.setdefault(name, text) != text:
                first = found[name]
                raise LanguageError(
                    f"{name!r} cannot be both {first!r} and {text!r}: this can match nothing",
                    position,
                )
        return list(found.items())


class PairIndex(SetIndex[Pair]):
    """Pairs with the same attribute exclude one another."""

    def family(self, atom: Pair) -> Hashable:
        return atom[0]


def _plain(notification: dict[object, object]) -> bool:
    """Whether nothing needs to be converted or refused."""
    for name, value in notification.items():
        if type(name) is not str or type(value) is not str:
            return False
        if value == WILDCARD or not name or len(value) > VALUE_MAX:
            return False
    return True
