"""Numeric ranges with overlap semantics: the traffic alerts of Kulik 2004, section 4.1.

A topic is a closed stretch of a line, and so is a notification. Stretches are ordered by
containment and match by overlap; the header of a notification is the set of lowest topics that
overlap it, not its own stretch.
"""

from __future__ import annotations

import json
import math
import re
import sys
from bisect import bisect_left, bisect_right, insort
from typing import Any

from preprocess.errors import LanguageError
from preprocess.forms import from_json, named, shown, text_of
from preprocess.language import Index, Language, Position
from routing.content_graph import ContentGraph, NodeId

#: 5..12, 5 to 12, exits 5 to 12
_ENDS = re.compile(r"(?:[a-z]+ +)?(\S+?)(?:\.\.| +to +)(\S+)")

#: Whole numbers beyond this are refused as infinite ones are.
_LARGEST = sys.float_info.max

Number = int | float
Range = tuple[Number, Number]
"""(first, last), both of them in it."""


class Ranges(Language[Range, Range]):
    """Stretches: (5, 12), [5, 12], "5..12", "exits 5 to 12", or 7 for (7, 7).

    As pairs: {"first": 5, "last": 12}, <jam first="5" last="12"/>.
    """

    name = "ranges"

    def parse(self, subscription: object) -> Range:
        return self._range(subscription)

    def parse_notification(self, notification: object) -> Range:
        return self._range(notification)

    def covers(self, a: Range, b: Range) -> bool:
        return a[0] <= b[0] and b[1] <= a[1]

    def matches(self, topic: Range, notification: Range) -> bool:
        return topic[0] <= notification[1] and notification[0] <= topic[1]

    def text(self, topic: Range) -> str:
        return json.dumps(topic)

    def index(self, graph: ContentGraph) -> Index[Range, Range]:
        return RangeIndex(self, graph)

    def _range(self, source: object) -> Range:
        pairs = named(source, "first", "last")
        if pairs is not None:
            source = [_end(pairs, "first"), _end(pairs, "last")]
        elif isinstance(source, str | bytes):
            source = _from_text(text_of(source).strip())
        if not isinstance(source, list | tuple):
            source = (source, source)
        if len(source) != 2:
            raise LanguageError(f"a range has two ends, not {len(source)}")
        first, last = _number(source[0], "the first end"), _number(source[1], "the last end")
        if first > last:
            raise LanguageError(f"a range from {first} to {last} can match nothing")
        return (first, last)


def _from_text(text: str) -> object:
    found = _ENDS.fullmatch(text)
    return [from_json(end) for end in found.groups()] if found else from_json(text)


def _end(pairs: dict[str, list[Any]], name: str) -> object:
    """One end of a range from pairs; XML has texts only."""
    values = pairs.get(name, [])
    if len(values) != 1:
        raise LanguageError(f"one number expected, not {len(values)}", f"attribute {name!r}")
    return from_json(values[0]) if isinstance(values[0], str) else values[0]


def _number(value: object, position: str) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise LanguageError(f"a finite number expected, not {shown(value)}", position)
    return value


class RangeIndex(Index[Range, Range]):
    """Per first end, the last ends in order; what is wanted lies on a staircase.

    Going through the first ends in one direction, a range is lowest (or highest) exactly if its
    last end is better than all before. The walk ends where no better one is possible.
    """

    def __init__(self, language: Language[Range, Range], graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._firsts: list[Number] = []
        self._lasts: dict[Number, list[Number]] = {}
        self._nodes: dict[Range, NodeId] = {}

    def insert(self, topic: Range, node: NodeId) -> None:
        super().insert(topic, node)
        self._nodes[topic] = node
        first, last = topic
        if first not in self._lasts:
            self._lasts[first] = []
            insort(self._firsts, first)
        insort(self._lasts[first], last)

    def remove(self, topic: Range, node: NodeId) -> None:
        super().remove(topic, node)
        del self._nodes[topic]
        first, last = topic
        lasts = self._lasts[first]
        del lasts[bisect_left(lasts, last)]
        if not lasts:
            del self._lasts[first]
            del self._firsts[bisect_left(self._firsts, first)]

    def lowest(self, notification: Range) -> list[NodeId]:
        return self._tightest(notification[1], notification[0])

    def position(self, topic: Range) -> Position:
        return set(self._tightest(*topic)), self._widest(*topic)

    def _tightest(self, start: Number, reach: Number) -> list[NodeId]:
        """Lowest among the ranges that begin at or before `start` and end at or after `reach`."""
        firsts, lasts, nodes = self._firsts, self._lasts, self._nodes
        found: list[NodeId] = []
        best: Number = math.inf
        for i in range(bisect_right(firsts, start) - 1, -1, -1):
            first = firsts[i]
            ends = lasts[first]
            if ends[-1] < reach:
                continue
            last = ends[bisect_left(ends, reach)]
            if last < best:
                found.append(nodes[first, last])
                if last == reach:
                    break
                best = last
        return found

    def _widest(self, first: Number, last: Number) -> set[NodeId]:
        """Highest among the ranges within (first, last)."""
        firsts, lasts, nodes = self._firsts, self._lasts, self._nodes
        found: set[NodeId] = set()
        best: Number = -math.inf
        for i in range(bisect_left(firsts, first), bisect_right(firsts, last)):
            ends = lasts[firsts[i]]
            if ends[0] > last:
                continue
            end = ends[bisect_right(ends, last) - 1]
            if end > best:
                found.add(nodes[firsts[i], end])
                if end == last:
                    break
                best = end
        return found

    def matching(self, notification: Range) -> set[NodeId]:
        return self.graph.covering(self.lowest(notification))

    def above(self, topic: Range) -> set[NodeId]:
        return self.graph.covering(self._tightest(*topic))

    def below(self, topic: Range) -> set[NodeId]:
        highest = self._widest(*topic)
        return highest.union(*map(self.graph.descendants, highest))
