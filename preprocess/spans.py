"""Sets of values of one type: sorted, disjoint, half-open spans [first, end).

Every type here has a next value (for texts: the text with a zero character behind it), so that
each comparison, range, list and prefix is a set of half-open spans, and equal sets are equal
tuples. Containment is decided exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

Span = tuple[Any, Any]
Spans = tuple[Span, ...]

_FIRST = itemgetter(0)


class Top:
    """The end that lies behind every text."""

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __ge__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return other is self

    def __repr__(self) -> str:
        return "TOP"


TOP = Top()


def normal(spans: Iterable[Span]) -> Spans:
    """The one way to write a union of spans."""
    result: list[Span] = []
    for first, end in sorted((span for span in spans if span[0] < span[1]), key=_FIRST):
        if result and first <= result[-1][1]:
            if end > result[-1][1]:
                result[-1] = (result[-1][0], end)
        else:
            result.append((first, end))
    return tuple(result)


def union(a: Spans, b: Spans) -> Spans:
    """What is in either."""
    return normal(a + b)


def intersection(a: Spans, b: Spans) -> Spans:
    """What is in both."""
    return normal(
        (max(one[0], other[0]), min(one[1], other[1]))
        for one in a
        for other in b
        if one[0] < other[1] and other[0] < one[1]
    )


def contains(spans: Spans, value: Any) -> bool:
    """Whether a value is in one of the spans."""
    i = bisect_right(spans, value, key=_FIRST) - 1
    return i >= 0 and value < spans[i][1]


def within(a: Spans, b: Spans) -> bool:
    """Whether all of a is in b: each span lies in one, for those of b do not touch."""
    for first, end in a:
        i = bisect_right(b, first, key=_FIRST) - 1
        if i < 0 or b[i][1] < end:
            return False
    return True
