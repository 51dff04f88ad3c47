"""Which boxes a notification has to look at: access predicates, and runs of narrow demands.

Each box is filed under the one of its demands that the fewest notifications will meet and that a
hash can find (the access predicates of Le Subscribe, which Kulik 2004, section 6.3, points to):

    few values        a bucket for each
    prefix, suffix    a bucket for the (first, last) characters
    substring         a bucket for its first three characters
    anything else     one bucket for all such boxes

What is filed together is compared at once. Where that is much, it is sorted by a second demand:
see `Bucket`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator

import numpy as np

from preprocess.columns import Floats, Slots, Table, slots_of
from preprocess.constraints import Constraint, common_prefix, listed
from preprocess.kinds import Kind, String
from preprocess.predicates import Box, Values

#: A demand for more values than this is not filed under each of them.
_POINTS_MAX = 8
#: Characters of prefixes, suffixes and parts that are looked at.
_EDGE_MAX = 8
_GRAM = 3
#: A pile of more boxes than this is sorted; so is one of an eighth of what is sorted already.
_PILE_MAX = 512
_PILE_SHARE = 8
#: Runs of one attribute, boxes that are worth a run, and demands that are too wide for any.
_RUNS_MAX = 4
_RUN_MIN = 64
_WIDE = 0.5
#: Widths without an exponent: two to the power of these is zero, and infinity.
_POINT_EXPONENT, _OPEN_EXPONENT = -1200, 1200

Key = tuple[Hashable, ...]


class Access:
    """Buckets by key, and what notifications have to probe."""

    def __init__(self, kinds: dict[str, Kind], bounds: Table) -> None:
        """`bounds` has, by slot, the negated lowest numbers of a box and its highest ones."""
        self._kinds = kinds
        self._bounds = bounds
        self._buckets: dict[Key, Bucket] = {}
        #: Lengths in use of prefixes, suffixes and parts, by attribute.
        self._lengths: dict[str, dict[str, set[int]]] = {
            form: {name: set() for name in kinds} for form in ("prefix", "suffix", "part")
        }
        self._distinct: dict[str, int] = dict.fromkeys(kinds, 0)

    def add(self, box: Box, numbers: list[float], slot: int) -> None:
        """File a box and its bounds under its most selective demand."""
        best: tuple[float, list[Key]] = (1.0, [()])
        for name, demand in box:
            option = self._option(name, self._kinds[name], demand)
            if option[0] < best[0]:
                best = option
        for key in best[1]:
            bucket = self._buckets.get(key)
            if bucket is None:
                self._note(key)
                bucket = self._buckets[key] = Bucket(self._bounds)
            bucket.add(numbers, slot)

    def _note(self, key: Key) -> None:
        """Remember what notifications have to probe."""
        if not key:
            return
        name, form, what = str(key[0]), str(key[1]), key[2]
        if form == "is":
            self._distinct[name] += 1
        else:
            self._lengths[form][name].add(len(str(what)))

    def _option(self, name: str, kind: Kind, demand: Constraint) -> tuple[float, list[Key]]:
        """The share of notifications that would meet this demand, and the keys to file it under."""
        points = few_points(kind, demand)
        if points:
            share = len(points) / (2 + self._distinct[name])
            return share, [(name, "is", point) for point in points]
        if isinstance(kind, String):
            return self._text_option(name, demand)
        return 1.0, [()]

    def _text_option(self, name: str, demand: Constraint) -> tuple[float, list[Key]]:
        prefix = common_prefix(demand.spans)[:_EDGE_MAX]
        part = max(demand.parts, key=len, default="")[:_GRAM]
        options = (
            (prefix, (name, "prefix", prefix)),
            (demand.suffix[-_EDGE_MAX:], (name, "suffix", demand.suffix[-_EDGE_MAX:])),
            (part, (name, "part", part)),
        )
        text, key = max(options, key=lambda option: len(option[0]))
        return 0.5 ** len(text), [key] if text else [()]

    def reached(self, values: Values, point: Floats) -> list[Slots]:
        """Every slot whose bounds are nowhere below the point; it belongs to these values."""
        found: list[Slots] = []
        for key in self._probes(values):
            bucket = self._buckets.get(key)
            if bucket is not None:
                bucket.reached(point, found)
        return found

    def _probes(self, values: Values) -> Iterator[Key]:
        yield ()
        for name, value in values.items():
            if self._distinct[name]:
                yield (name, "is", value)
            if isinstance(value, str):
                yield from self._text_probes(name, value)

    def _text_probes(self, name: str, value: str) -> Iterator[Key]:
        lengths = self._lengths
        for length in lengths["prefix"][name]:
            if length <= len(value):
                yield (name, "prefix", value[:length])
        for length in lengths["suffix"][name]:
            if length <= len(value):
                yield (name, "suffix", value[-length:])
        for n in lengths["part"][name]:
            for gram in {value[i : i + n] for i in range(len(value) - n + 1)}:
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


class Bucket:
    """Boxes under one key: a pile, and runs in which they are sorted by one narrow demand each.

    Within a run all boxes are narrower than its width in its attribute, so that those which hold
    a value v begin between v - width and v: they lie side by side.
    """

    def __init__(self, bounds: Table) -> None:
        self._table = bounds
        self._runs: list[Run] = []
        self._sorted: Slots = slots_of(())
        self._clear()

    def _clear(self) -> None:
        """An empty pile."""
        self._pile: Floats = np.empty((self._table.width, 4))
        self._slots: Slots = np.empty(4, np.int64)
        self._count = 0

    def add(self, bounds: list[float], slot: int) -> None:
        """Take in one box."""
        count = self._count
        if count == len(self._slots):
            self._pile = np.concatenate([self._pile, self._pile], axis=1)
            self._slots = np.concatenate([self._slots, self._slots])
        self._pile[:, count] = bounds
        self._slots[count] = slot
        self._count += 1
        if count >= _PILE_MAX + len(self._sorted) // _PILE_SHARE:
            self._sort()

    def _sort(self) -> None:
        """Turn pile and runs into new runs."""
        self._sorted = np.concatenate([self._sorted, self._slots[: self._count]])
        self._runs = list(_runs(self._table.rows_at(self._sorted), self._sorted))
        self._clear()

    def reached(self, point: Floats, found: list[Slots]) -> None:
        """Add the slots whose bounds are nowhere below the point."""
        for run in self._runs:
            run.reached(point, found)
        count = self._count
        if count:
            inside = (self._pile[:, :count] >= point).all(axis=0)
            found.append(self._slots[:count][inside])


class Run:
    """Boxes side by side; with an attribute, in the order of their lowest numbers in it."""

    def __init__(self, bounds: Floats, slots: Slots, attribute: int | None, width: float) -> None:
        self._attribute = attribute
        self._width = width
        if attribute is not None:
            order = np.argsort(-bounds[attribute], kind="stable")
            bounds, slots = bounds[:, order], slots[order]
            self._firsts: Floats = -bounds[attribute]
        #: Bounds that no box here has are not compared; nor are first ones, which the order tells.
        rows = [i for i in range(len(bounds)) if i != attribute and np.isfinite(bounds[i]).any()]
        self._rows = np.array(rows, np.int64)
        self._bounds: Floats = np.ascontiguousarray(bounds[self._rows])
        self._slots = slots

    def reached(self, point: Floats, found: list[Slots]) -> None:
        """Add the slots whose bounds are nowhere below the point."""
        bounds, slots = self._bounds, self._slots
        if self._attribute is not None:
            value = -float(point[self._attribute, 0])
            if not math.isfinite(value):  # what all of these demand is missing
                return
            start = self._firsts.searchsorted(value - self._width)
            end = self._firsts.searchsorted(value, "right")
            if start == end:
                return
            bounds, slots = bounds[:, start:end], slots[start:end]
        found.append(slots[(bounds >= point[self._rows]).all(axis=0)])


def _runs(bounds: Floats, slots: Slots) -> Iterator[Run]:
    """Runs of boxes that are narrow in the same attribute and not very differently so."""
    half = len(bounds) // 2
    with np.errstate(over="ignore", invalid="ignore"):
        widths = bounds[half:] + bounds[:half]
    shares = np.array([_shares(-bounds[i], bounds[half + i], widths[i]) for i in range(half)])
    choice = shares.argmin(axis=0)
    choice[shares.min(axis=0) >= _WIDE] = half
    rest = [np.flatnonzero(choice == half)]
    for attribute in range(half):
        some = np.flatnonzero(choice == attribute)
        for width, among in _similar(widths[attribute][some]):
            chosen = some[among]
            if len(chosen) < _RUN_MIN:
                rest.append(chosen)
            else:
                yield Run(bounds[:, chosen], slots[chosen], attribute, width)
    others = np.concatenate(rest)
    if len(others):
        yield Run(bounds[:, others], slots[others], None, 0.0)


def _shares(lows: Floats, highs: Floats, widths: Floats) -> Floats:
    """Roughly, which share of values each of the demands for one attribute holds.

    Half of all ends lie between their quartiles, whatever the others are like (open ends are
    far away): twice that distance stands for where values come from.
    """
    present = np.isfinite(highs)
    if not present.any():
        return np.full(len(lows), np.inf)
    distinct = len(np.unique(lows[present]))
    ends = np.concatenate([lows[present], highs[present]])
    first, third = np.quantile(ends, (0.25, 0.75), method="nearest")
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        extent = 2 * (third - first)
        shares = np.nan_to_num(widths / extent, nan=0.0) + 1 / distinct
    return np.where(present, shares, np.inf)


def _similar(widths: Floats) -> Iterator[tuple[float, Slots]]:
    """Positions of widths of the same magnitude, and a width that is more than any of theirs."""
    if not len(widths):
        return
    exponents = np.where(widths > 0, np.frexp(widths)[1], _POINT_EXPONENT)
    exponents[np.isinf(widths)] = _OPEN_EXPONENT
    parts = np.arange(1, _RUNS_MAX + 1) / _RUNS_MAX
    edges = np.unique(np.quantile(exponents, parts, method="nearest"))
    group = np.searchsorted(edges, exponents)
    for i, edge in enumerate(edges):
        with np.errstate(over="ignore", under="ignore"):
            yield float(np.ldexp(1.0, int(edge))), np.flatnonzero(group == i)
