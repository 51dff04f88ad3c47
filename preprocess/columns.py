"""Columns of numbers that grow: what the index of typed predicates scans."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

_NO_SLOTS: Slots = np.empty(0, np.int64)


def slots_of(numbers: array[int] | tuple[()]) -> Slots:
    """An array's numbers, not copied: use it before the array grows."""
    return np.frombuffer(numbers, np.int64) if numbers else _NO_SLOTS


class Table:
    """A number of columns, and rows that are only ever added."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._data: Floats = np.empty((width, 64))
        self.rows = 0

    def add(self, values: list[float]) -> int:
        """Append a row and return its number."""
        if self.rows == self._data.shape[1]:
            self._data = np.concatenate([self._data, np.empty_like(self._data)], axis=1)
        self._data[:, self.rows] = values
        self.rows += 1
        return self.rows - 1

    def column(self, number: int) -> Floats:
        """One column, down to the last row."""
        column: Floats = self._data[number, : self.rows]
        return column

    def rows_at(self, numbers: Slots) -> Floats:
        """Some rows, side by side."""
        return self._data[:, numbers]


class SortedColumn:
    """Numbers and their slots, in order but for a short tail that is searched as it is."""

    def __init__(self) -> None:
        self._values: Floats = np.empty(0)
        self._slots: Slots = _NO_SLOTS
        self._tail: array[float] = array("d")
        self._tail_slots: array[int] = array("q")

    def add(self, value: float, slot: int) -> None:
        """Take in one number."""
        self._tail.append(value)
        self._tail_slots.append(slot)
        if len(self._tail) > 1024 + len(self._values) // 16:
            self._merge()

    def _merge(self) -> None:
        values = np.concatenate([self._values, np.frombuffer(self._tail)])
        slots = np.concatenate([self._slots, slots_of(self._tail_slots)])
        order = np.argsort(values, kind="stable")
        self._values, self._slots = values[order], slots[order]
        self._tail, self._tail_slots = array("d"), array("q")

    def _bounds(self, first: float, last: float) -> tuple[int, int]:
        start: Any = np.searchsorted(self._values, first, "left")
        end: Any = np.searchsorted(self._values, last, "right")
        return int(start), int(end)

    def count(self, first: float, last: float) -> int:
        """At most so many numbers are in [first, last]."""
        start, end = self._bounds(first, last)
        return end - start + len(self._tail)

    def between(self, first: float, last: float) -> Slots:
        """The slots of the numbers in [first, last]."""
        start, end = self._bounds(first, last)
        if not self._tail:
            return self._slots[start:end]
        tail = np.frombuffer(self._tail)
        recent = slots_of(self._tail_slots)[(tail >= first) & (tail <= last)]
        return np.concatenate([self._slots[start:end], recent])
