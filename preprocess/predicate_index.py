"""An index for boxes of typed attributes.

Every demand has a lowest and a highest number (`Kind.scale`), which decide it where the demand is
one span of numbers or short texts, and otherwise leave the decision to the box itself. Missing
demands reach from -inf to inf, and all others are finite, so a missing value needs no case of its
own: it counts as inf. Lowest numbers are negated, so that a box holds a point if none of its
bounds is below the point's. `predicate_access` finds those boxes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from preprocess.columns import Floats, Slots, SortedColumn, Table, slots_of
from preprocess.constraints import Constraint
from preprocess.kinds import Kind, String
from preprocess.language import Index
from preprocess.predicate_access import Access, few_points
from preprocess.predicates import Box, Boxes, Predicates, Values, box_covers, box_holds
from routing.content_graph import ContentGraph, NodeId

#: The node of a slot whose topic was removed.
_GONE = -1


class PredicateIndex(Index[Boxes, Values]):
    """Finds the boxes that hold a notification, cover a box or are covered by it."""

    language: Predicates

    def __init__(self, language: Predicates, graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._number = {name: i for i, name in enumerate(language.kinds)}
        self._clear()

    def _clear(self) -> None:
        #: By slot, the negated lowest numbers of a box, then the highest ones.
        self._bounds = Table(2 * len(self._number))
        self._boxes: list[Box] = []
        self._node: array[int] = array("q")
        self._exact: array[int] = array("b")
        self._slots: dict[NodeId, list[int]] = {}
        self._access = Access(self.language.kinds, self._bounds)
        #: Per attribute, the lowest numbers of all demands.
        self._sorted = {name: SortedColumn() for name in self._number}
        #: Per attribute and value, the boxes of whose values it is the first.
        self._first: dict[tuple[str, object], array[int]] = {}
        self._stale = 0
        #: Whether any topic has several boxes, so that a node can be found more than once.
        self._united = False

    # -- changes -------------------------------------------------------------------------

    def insert(self, topic: Boxes, node: NodeId) -> None:
        super().insert(topic, node)
        self._file(topic, node)

    def _file(self, topic: Boxes, node: NodeId) -> None:
        self._slots[node] = [self._file_box(box, node) for box in topic]
        self._united = self._united or len(topic) > 1

    def _file_box(self, box: Box, node: NodeId) -> int:
        slot = len(self._boxes)
        numbers, exact = self._numbers(box)
        for name, demand in box:
            self._sorted[name].add(-numbers[self._number[name]], slot)
            points = few_points(self.language.kinds[name], demand)
            if points:
                self._first.setdefault((name, points[0]), array("q")).append(slot)
        self._bounds.add(numbers)
        self._boxes.append(box)
        self._node.append(node)
        self._exact.append(exact)
        self._access.add(box, numbers, slot)
        return slot

    def _numbers(self, box: Box) -> tuple[list[float], bool]:
        """The bounds of a box, and whether they decide what it holds."""
        width, exact = len(self._number), True
        numbers = [math.inf] * (2 * width)
        for name, demand in box:
            i = self._number[name]
            low, numbers[width + i], sure = bounds(self.language.kinds[name], demand)
            numbers[i] = -low
            exact = exact and sure
        return numbers, exact

    def remove(self, topic: Boxes, node: NodeId) -> None:
        """Rows stay behind and belong to no node, until they are as many as the others."""
        super().remove(topic, node)
        for slot in self._slots.pop(node):
            self._node[slot] = _GONE
            self._stale += 1
        if 2 * self._stale > len(self._boxes):
            self._clear()
            for other, boxes in self.topics.items():
                self._file(boxes, other)

    # -- looking up ----------------------------------------------------------------------

    def matching(self, notification: Values) -> set[NodeId]:
        return set(self._found(notification).tolist())

    def lowest(self, notification: Values) -> list[NodeId]:
        nodes = self._found(notification)
        if self._inner:
            return self.low(set(nodes.tolist()))
        nodes.sort()
        found: list[NodeId] = nodes.tolist()
        return found

    def _found(self, notification: Values) -> Slots:
        """Every node that matches, once."""
        found = self._access.reached(notification, self._point(notification))
        if not found:
            return slots_of(())
        slots = np.concatenate(found)
        exact = np.frombuffer(self._exact, np.bool_)[slots]
        if not exact.all():
            boxes = self._boxes
            sure = [slot for slot in slots[~exact].tolist() if box_holds(boxes[slot], notification)]
            slots = np.concatenate([slots[exact], np.array(sure, np.int64)])
        nodes = slots_of(self._node)[slots]
        if self._stale:
            nodes = nodes[nodes != _GONE]
        return np.unique(nodes) if self._united else nodes

    def _point(self, values: Values) -> Floats:
        """What the bounds of a box must reach to hold the values."""
        kinds = self.language.kinds
        point = [
            kinds[name].scale(values[name]) if name in values else math.inf for name in self._number
        ]
        return np.array([*(-number for number in point), *point])[:, None]

    def above(self, topic: Boxes) -> set[NodeId]:
        """Whatever covers a box holds each value in it, and its bounds are no narrower."""
        box = min(topic, key=repr) if len(topic) > 1 else next(iter(topic))
        topics, covers = self.topics, self.language.covers
        return {node for node in self._around(box) if covers(topics[node], topic)}

    def _around(self, box: Box) -> AbstractSet[NodeId]:
        """A superset of the nodes that cover a box."""
        witness = {name: _witness(demand) for name, demand in box}
        if not box_holds(box, witness):
            return self.topics.keys()
        point = np.array(self._numbers(box)[0])[:, None]
        slots = np.concatenate([slots_of(()), *self._access.reached(witness, point)])
        return set(slots_of(self._node)[slots].tolist()) - {_GONE}

    def below(self, topic: Boxes) -> set[NodeId]:
        found: set[NodeId] = set()
        for box in topic:
            slots = self._inside(box)
            found.update(map(self._node.__getitem__, slots))
        topics, covers = self.topics, self.language.covers
        if len(topic) == 1:
            return {n for n in found if len(topics[n]) == 1 or covers(topic, topics[n])}
        return {node for node in found if covers(topic, topics[node])}

    def _inside(self, box: Box) -> list[int]:
        """The slots of boxes within a box."""
        slots = self._narrowest(box)
        for name, demand in box:
            i = self._number[name]
            low, high, _ = bounds(self.language.kinds[name], demand)
            slots = slots[self._bounds.column(len(self._number) + i)[slots] <= high]
            slots = slots[self._bounds.column(i)[slots] <= -low]
        boxes = self._boxes
        return [
            slot
            for slot in slots.tolist()
            if self._node[slot] != _GONE and box_covers(box, boxes[slot])
        ]

    def _narrowest(self, box: Box) -> Slots:
        """A superset of the slots within a box, by whichever demand leaves the fewest."""
        if not box:
            return np.arange(len(self._boxes), dtype=np.int64)
        best: Slots | None = None
        fewest = math.inf
        span = ("", 0.0, 0.0)
        for name, demand in box:
            kind = self.language.kinds[name]
            points = few_points(kind, demand)
            if points:
                lists = [self._first.get((name, point)) for point in points]
                chosen = [slots_of(numbers) for numbers in lists if numbers]
                count = sum(map(len, chosen))
                if count < fewest:
                    fewest, best = count, np.concatenate([slots_of(array("q")), *chosen])
            low, high, _ = bounds(kind, demand)
            count = self._sorted[name].count(low, high)
            if count < fewest:
                fewest, best, span = count, None, (name, low, high)
        return self._sorted[span[0]].between(*span[1:]) if best is None else best


def bounds(kind: Kind, demand: Constraint) -> tuple[float, float, bool]:
    """The lowest and highest number of a demand, and whether these two decide it."""
    first, end = demand.spans[0][0], demand.spans[-1][1]
    one = len(demand.spans) == 1 and demand.plain
    if isinstance(kind, String):
        return _text_bounds(kind, first, end, one)
    last = kind.before(end)
    low, high = kind.scale(first), kind.scale(last)
    sure = (first == kind.bottom or _alone(first)) and (end == kind.top or _alone(last))
    return low, high, one and sure


def _alone(value: float) -> bool:
    """Whether no other value of its type has the same number: not so for very large integers."""
    return isinstance(value, float) or abs(value) < 2**53


def _text_bounds(kind: String, first: str, end: Any, one: bool) -> tuple[float, float, bool]:
    low = kind.scale(first)
    if not isinstance(end, str):
        return low, kind.scale(end), one and _short(first)
    if end == first + "\0":
        return low, low, one and _short(first)
    if _short(end):
        return low, kind.scale(end) - 1, one and _short(first)
    return low, kind.scale(end), False


def _short(text: str) -> bool:
    """Whether a text has a number to itself."""
    return len(text.encode()) <= 6


def _witness(demand: Constraint) -> object:
    """A value that meets a demand, as far as that is easy to say."""
    first = demand.spans[0][0]
    return first if demand.plain else first + "".join(demand.parts) + demand.suffix
