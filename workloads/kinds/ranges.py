"""Traffic alerts: stretches of a road between two exits, and notices about stretches.

Kulik 2004, section 4.1.1. Topics are ordered by containment, but a notice matches every stretch
that it overlaps, so its header is the set of lowest topics that overlap it, not its own stretch.
The code of exits low to high is low * exits + high. Not here: ranges over several attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workloads.kinds import Codes, ContentKind, Order, Pairs
from workloads.randomness import Choice, Draws, Ints
from workloads.schema import limited


@dataclass(frozen=True)
class Parameters:
    """Exits on the road; whether a stretch may be one exit; Zipf exponents over the exits.

    With one-exit stretches the two ends are drawn independently, so that a one-exit stretch is
    half as likely as another; without them the ends are two different exits.
    """

    exits: int = limited(2, 2_000)
    one_exit: bool = True
    skew: float = limited(0, 10, 0.0)
    notice_skew: float = limited(0, 10, 0.0)


class Kind(ContentKind):
    """Subscriptions to stretches of road, notices of trouble on others."""

    parameter_type = Parameters
    parameters: Parameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._exits = parameters.exits
        self._wanted = Choice(parameters.exits, parameters.skew)
        self._troubled = Choice(parameters.exits, parameters.notice_skew)

    def topics(self, draws: Draws) -> Codes:
        """The stretch between two random exits."""
        return self._stretch(self._wanted, draws)

    def notices(self, draws: Draws) -> Codes:
        """The stretch between two random exits."""
        return self._stretch(self._troubled, draws)

    def order(self, topics: Codes) -> Order:
        """Containment among the stretches."""
        return _Containment(topics, self._exits)

    def text(self, codes: Codes) -> pa.Array:
        """Such as "exits 3 to 7"."""
        low, high = (pa.array(ends).cast(pa.string()) for ends in np.divmod(codes, self._exits))
        return pc.binary_join_element_wise("exits ", low, " to ", high, "")

    def _stretch(self, choice: Choice, draws: Draws) -> Ints:
        one = choice.pick(draws.uniform("one"))
        if self.parameters.one_exit:
            other = choice.pick(draws.uniform("other"))
        else:
            other = choice.pick_other(draws.uniform("other"), one)
        return np.minimum(one, other) * self._exits + np.maximum(one, other)


class _Containment(Order):
    """Stretches on a grid of (low, high): lowest ones are the corners of a staircase on it."""

    def __init__(self, topics: Codes, exits: int) -> None:
        self._exits = exits
        self._topics = topics
        self._low, self._high = np.divmod(topics, exits)
        self._at: NDArray[np.int32] = np.full((exits, exits), -1, dtype=np.int32)
        self._at[self._low, self._high] = np.arange(len(topics), dtype=np.int32)
        # next_high[low, high]: the smallest subscribed end >= high of a stretch from low.
        ends = np.where(self._at >= 0, np.arange(exits, dtype=np.int32), np.int32(exits))
        none = np.full((exits, 1), exits, dtype=np.int32)
        reverse = np.concatenate([ends, none], axis=1)[:, ::-1]
        self._next_high = np.minimum.accumulate(reverse, axis=1)[:, ::-1]

    def parents(self, start: int, stop: int) -> Pairs:
        """The smallest stretches that contain each one."""
        children, parents = self._staircase(
            self._low[start:stop], self._high[start:stop], proper=True
        )
        return children + start, parents

    def headers(self, notices: Codes) -> Pairs:
        """The smallest stretches that overlap each notice: start at or before its last exit."""
        low, high = np.divmod(notices, self._exits)
        return self._staircase(high, low, proper=False)

    def _staircase(self, start: Ints, floor: Ints, proper: bool) -> Pairs:
        """The minimal stretches that start at `start` or before and end at `floor` or after.

        Walking to earlier starts, a stretch is minimal if it ends before all that were met: those
        start later, so one that ended no later would lie within it. A proper walk leaves out
        the stretch (start, floor) itself.
        """
        best = np.full(len(start), self._exits, dtype=np.int64)
        rows: list[Ints] = []
        found: list[Ints] = []
        for step in range(int(start.max(initial=-1)) + 1):
            row = np.flatnonzero((start >= step) & (best > floor))
            low = start[row] - step
            beyond = floor[row] + (1 if proper and step == 0 else 0)
            high = self._next_high[low, np.maximum(beyond, low)].astype(np.int64)
            lower = high < best[row]
            best[row[lower]] = high[lower]
            rows.append(row[lower])
            found.append(self._at[low[lower], high[lower]].astype(np.int64))
        return _joined(rows), _joined(found)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
