"""An index for boxes of typed attributes.

Each box is filed under the one of its demands that the fewest notifications will meet (the access
predicates of Le Subscribe, which Kulik 2004, section 6.3, points to), and is looked at only by
notifications that meet it:

    few values        a hash bucket for each
    a bounded span    one or two cells of a power-of-two size: a value probes one cell a size
    prefix, suffix    a bucket for the (first, last) characters
    substring         a bucket for its first three characters
    anything else     all boxes that demand something of this attribute

What is filed together is compared at once: every demand has a lowest and a highest number
(`Kind.scale`), which decide it where the demand is one span of numbers or short texts, and
otherwise leave the decision to the box itself. Missing demands reach from -inf to inf, and all
others are finite, so a missing value needs no case of its own: it counts as inf. Lowest numbers
are negated, so that a box holds a point if none of its bounds is below the point's.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from preprocess.columns import Bucket, Floats, Slots, SortedColumn, Table, slots_of
from preprocess.constraints import Constraint, common_prefix, listed
from preprocess.kinds import Kind, String
from preprocess.language import Index
from preprocess.predicates import Box, Boxes, Predicates, Values, box_covers, box_holds
from routing.content_graph import ContentGraph, NodeId

#: A demand for more values than this is not filed under each of them.
_POINTS_MAX = 8
#: Characters of prefixes and suffixes that are looked at.
_EDGE_MAX = 8
_GRAM = 3
_BEYOND = 1 << 1100
#: The node of a slot whose topic was removed.
_GONE = -1

Key = tuple[Hashable, ...]


class PredicateIndex(Index[Boxes, Values]):
    """Finds the boxes that hold a notification, cover a box or are covered by it."""

    language: Predicates

    def __init__(self, language: Predicates, graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._number = {name: i for i, name in enumerate(language.kinds)}
        self._clear()

    def _clear(self) -> None:
        width = len(self._number)
        self._low, self._high = Table(width), Table(width)
        self._boxes: list[Box] = []
        self._node: array[int] = array("q")
        self._exact: array[int] = array("b")
        self._slots: dict[NodeId, list[int]] = {}
        self._access = _Access(self.language.kinds)
        #: Per attribute, the lowest numbers of all demands.
        self._sorted = {name: SortedColumn() for name in self._number}
        #: Per attribute and value, the boxes of whose values it is the first.
        self._first: dict[tuple[str, object], array[int]] = {}
        self._stale = 0

    # -- changes -------------------------------------------------------------------------

    def insert(self, topic: Boxes, node: NodeId) -> None:
        super().insert(topic, node)
        self._file(topic, node)

    def _file(self, topic: Boxes, node: NodeId) -> None:
        self._slots[node] = [self._file_box(box, node) for box in topic]

    def _file_box(self, box: Box, node: NodeId) -> int:
        low, high, exact = [-math.inf] * len(self._number), [math.inf] * len(self._number), True
        slot = len(self._boxes)
        for name, demand in box:
            i = self._number[name]
            kind = self.language.kinds[name]
            low[i], high[i], sure = bounds(kind, demand)
            exact = exact and sure
            self._sorted[name].add(low[i], slot)
            points = few_points(kind, demand)
            if points:
                self._first.setdefault((name, points[0]), array("q")).append(slot)
        self._low.add(low)
        self._high.add(high)
        self._boxes.append(box)
        self._node.append(node)
        self._exact.append(exact)
        self._access.add(box, [*(-number for number in low), *high], slot)
        return slot

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
        slots = self._access.reached(notification, self._point(notification))
        if not len(slots):
            return set()
        exact = np.frombuffer(self._exact, np.bool_)[slots]
        found: set[NodeId] = set(slots_of(self._node)[slots[exact]].tolist())
        for slot in slots[~exact].tolist():
            if box_holds(self._boxes[slot], notification):
                found.add(self._node[slot])
        found.discard(_GONE)
        return found

    def _point(self, values: Values) -> Floats:
        """What the bounds of a box must reach to hold the values."""
        kinds = self.language.kinds
        point = [
            kinds[name].scale(values[name]) if name in values else math.inf for name in self._number
        ]
        return np.array([*(-number for number in point), *point])[:, None]

    def above(self, topic: Boxes) -> set[NodeId]:
        """Whatever covers a box holds each value in it; one will do to find the candidates."""
        box = min(topic, key=repr)
        witness = {name: _witness(demand) for name, demand in box}
        candidates = self.matching(witness) if box_holds(box, witness) else set(self.topics)
        topics, covers = self.topics, self.language.covers
        return {node for node in candidates if covers(topics[node], topic)}

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
            slots = slots[self._high.column(i)[slots] <= high]
            slots = slots[self._low.column(i)[slots] >= low]
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


class _Access:
    """Which slots a notification has to look at."""

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self._kinds = kinds
        self._buckets: dict[Key, Bucket] = {}
        #: Sizes of cells in use, and lengths of prefixes and suffixes, by attribute.
        self._sizes: dict[str, set[int]] = {name: set() for name in kinds}
        self._prefixes: dict[str, set[int]] = {name: set() for name in kinds}
        self._suffixes: dict[str, set[int]] = {name: set() for name in kinds}
        self._distinct: dict[str, int] = dict.fromkeys(kinds, 0)
        self._extent: dict[str, tuple[float, float]] = {}

    def add(self, box: Box, numbers: list[float], slot: int) -> None:
        """File a box and its bounds under its most selective demand."""
        best: tuple[float, list[Key]] = (math.inf, [()])
        for name, demand in box:
            option = self._option(name, self._kinds[name], demand)
            if option[0] < best[0]:
                best = option
        for key in best[1]:
            if key not in self._buckets:
                self._note(key)
                self._buckets[key] = Bucket(len(numbers))
            self._buckets[key].add(numbers, slot)

    def _note(self, key: Key) -> None:
        """Remember what notifications have to probe."""
        if len(key) < 3:
            return
        name, form, what = str(key[0]), key[1], key[2]
        if form == "is":
            self._distinct[name] += 1
        elif form == "cell":
            assert isinstance(what, int)
            self._sizes[name].add(what)
        elif form == "prefix":
            self._prefixes[name].add(len(str(what)))
        elif form == "suffix":
            self._suffixes[name].add(len(str(what)))

    def _option(self, name: str, kind: Kind, demand: Constraint) -> tuple[float, list[Key]]:
        """How many notifications would meet this demand, and the keys to file it under."""
        points = few_points(kind, demand)
        if points:
            share = len(points) / (2 + self._distinct[name])
            return share, [(name, "is", point) for point in points]
        if isinstance(kind, String):
            return self._text_option(name, demand)
        low, high, _ = bounds(kind, demand)
        if kind.open and (demand.spans[0][0] == kind.bottom or demand.spans[-1][1] == kind.top):
            return 1.0, [(name, "any")]
        first, last = self._extent.get(name, (low, high))
        first, last = self._extent[name] = (min(first, low), max(last, high))
        size = _cell_size(low, high)
        share = min(1.0, (math.ldexp(1.0, size) + high - low) / (last - first + 1.0))
        cells = sorted({_cell(low, size), _cell(high, size)})
        return share, [(name, "cell", size, cell) for cell in cells]

    def _text_option(self, name: str, demand: Constraint) -> tuple[float, list[Key]]:
        prefix = common_prefix(demand.spans)[:_EDGE_MAX]
        part = max(demand.parts, key=len, default="")[:_GRAM]
        options = (
            (prefix, (name, "prefix", prefix)),
            (demand.suffix[-_EDGE_MAX:], (name, "suffix", demand.suffix[-_EDGE_MAX:])),
            (part, (name, "part", part)),
        )
        text, key = max(options, key=lambda option: len(option[0]))
        if not text:
            return 1.0, [(name, "any")]
        return 0.5 ** len(text), [key]

    def reached(self, values: Values, point: Floats) -> Slots:
        """Every slot whose bounds hold the values."""
        buckets = self._buckets
        found = [buckets[key].reached(point) for key in self._probes(values) if key in buckets]
        return np.concatenate(found) if found else slots_of(array("q"))

    def _probes(self, values: Values) -> Iterator[Key]:
        yield ()
        for name, value in values.items():
            kind = self._kinds[name]
            yield (name, "any")
            yield (name, "is", value)
            if isinstance(kind, String):
                yield from self._text_probes(name, value)
            elif self._sizes[name]:
                scaled = kind.scale(value)
                for size in self._sizes[name]:
                    yield (name, "cell", size, _cell(scaled, size))

    def _text_probes(self, name: str, value: str) -> Iterator[Key]:
        for length in self._prefixes[name]:
            if length <= len(value):
                yield (name, "prefix", value[:length])
        for length in self._suffixes[name]:
            if length <= len(value):
                yield (name, "suffix", value[-length:])
        grams = {value[i : i + n] for n in range(1, _GRAM + 1) for i in range(len(value) - n + 1)}
        for gram in grams:
            yield (name, "part", gram)


def few_points(kind: Kind, demand: Constraint) -> list[object]:
    """The values of a demand for a few of them; empty for any other."""
    spans = demand.spans
    if len(spans) > _POINTS_MAX or not demand.plain:
        return []
    if isinstance(kind, String):
        return list(listed(spans) or ())
    if all(end == kind.after(first) for first, end in spans):
        return [first for first, _ in spans]
    return []


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


def _cell_size(low: float, high: float) -> int:
    """The exponent of the smallest cells of which the two ends are in the same or neighbours."""
    size = math.frexp(min(high - low, sys.float_info.max))[1]
    while _cell(high, size) - _cell(low, size) > 1:
        size += 1
    return size


def _cell(value: float, size: int) -> int:
    try:
        return math.floor(math.ldexp(value, -size))
    except OverflowError:
        # Beyond every span of this size: floats so far out are further apart than that.
        return _BEYOND if value > 0 else -_BEYOND
