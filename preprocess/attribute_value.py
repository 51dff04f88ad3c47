"""Attribute-value subscriptions with wildcards (Kulik 2004, sections 3.3, 3.5.3 and 4.1).

A subscription is a set of pairs, and holds every notification that has them all. The wildcard *
stands for any value or none, so a pair with it says nothing and is left out: {"a": "1", "b": "*"}
and {"a": "1"} are the same topic. Values are texts: 5, "5" and XML's 5 are equal; 5 and 5.0 are
not. Typed comparisons are in `predicates`.

Besides Python, JSON and XML there is a short form: a0=2 a3=1, or the word anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from sys import intern
from typing import cast

from preprocess.errors import LanguageError
from preprocess.forms import EQUAL, TERMS_MAX, VALUE_MAX, conjunction, scalar_text, text_of
from preprocess.language import Index, Language
from routing.content_graph import ContentGraph

WILDCARD = "*"

Pair = tuple[str, str]
Pairs = frozenset[Pair]
Values = dict[str, str]

ANYTHING = "anything"

_TEXT = frozenset((str,))
_OPENINGS = ("{", "[", "<", "")


class AttributeValue(Language[Pairs, Values]):
    """Sets of attribute-value pairs; fewer pairs cover more."""

    name = "attribute-value"

    def parse(self, subscription: object) -> Pairs:
        simple = type(subscription) is dict and _texts(subscription) and _small(subscription)
        found = cast(Values, subscription) if simple else self._pairs(subscription)
        # The same few texts in very many topics: one copy of each will do.
        pairs = found.items()
        return frozenset((intern(n), intern(v)) for n, v in pairs if v != WILDCARD)

    def parse_notification(self, notification: object) -> Values:
        if type(notification) is dict and _plain(notification):
            return notification
        values = self._pairs(notification)
        for name, value in values.items():
            if value == WILDCARD:
                raise LanguageError("a notification has no wildcards", f"attribute {name!r}")
        return values

    def parse_notifications(self, notifications: Sequence[object]) -> Sequence[Values]:
        """Plain objects go as they are to the index, which looks at all values at once."""
        if set(map(type, notifications)) <= {dict}:
            return cast("Sequence[Values]", notifications)
        return super().parse_notifications(notifications)

    def covers(self, a: Pairs, b: Pairs) -> bool:
        return a <= b

    def matches(self, topic: Pairs, notification: Values) -> bool:
        return topic <= notification.items()

    def text(self, topic: Pairs) -> str:
        return json.dumps(dict(sorted(topic)), ensure_ascii=False)

    def index(self, graph: ContentGraph) -> Index[Pairs, Values]:
        from preprocess.pairs import PairIndex

        return PairIndex(self, graph)

    def _pairs(self, source: object) -> Values:
        if isinstance(source, str | bytes):
            text = text_of(source).strip()
            source = text if text[:1] in _OPENINGS else _from_short(text)
        found: Values = {}
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
        return found


def _from_short(text: str) -> Values:
    """The pairs of a short form."""
    found: Values = {}
    words = [] if text == ANYTHING else text.split()
    for word in words:
        name, equal, value = word.partition(EQUAL)
        if not name or not equal or not value:
            raise LanguageError(f"name=value expected, not {word[:60]!r}", repr(word[:60]))
        if name in found:
            raise LanguageError("named twice", f"attribute {name!r}")
        found[name] = value
    return found


def _plain(notification: dict[object, object]) -> bool:
    """Whether nothing needs to be converted or refused."""
    return _texts(notification) and WILDCARD not in notification.values()


def _texts(pairs: dict[object, object]) -> bool:
    """Whether all names and values are texts already."""
    return _TEXT.issuperset(map(type, pairs.values())) and _TEXT.issuperset(map(type, pairs))


def _small(pairs: Values) -> bool:
    """Whether a subscription is within all limits."""
    longest = max(map(len, pairs.values()), default=0)
    return len(pairs) < TERMS_MAX and longest <= VALUE_MAX and "" not in pairs
