"""A hash table of integers that numpy probes for many keys at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: What a key that is not there is worth.
ABSENT = -2

_EMPTY = -1
#: Multiplying by 2**64 over the golden ratio spreads neighbours (Knuth's multiplicative hashing).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class KeyTable:
    """Keys of 63 bits and their values: open addressing, at most half full."""

    def __init__(self, entries: Mapping[int, int]) -> None:
        self._fill(
            np.fromiter(entries.keys(), np.int64, len(entries)),
            np.fromiter(entries.values(), np.int64, len(entries)),
        )

    def _fill(self, keys: Ints, values: Ints) -> None:
        """Place all keys at once: in each round, those that find their slot empty."""
        size = max(8, 1 << (2 * len(keys)).bit_length())
        self._shift = np.uint64(64 - size.bit_length() + 1)
        self._mask = size - 1
        self._keys: Ints = np.full(size, _EMPTY, np.int64)
        self._values: Ints = np.full(size, ABSENT, np.int64)
        self._count = len(keys)
        slots = self._slots(keys)
        while len(keys):
            free = self._keys[slots] == _EMPTY
            self._keys[slots[free]] = keys[free]
            placed = self._keys[slots] == keys
            self._values[slots[placed]] = values[placed]
            keys, values = keys[~placed], values[~placed]
            slots = (slots[~placed] + 1) & self._mask

    def _slots(self, keys: Ints) -> Ints:
        spread = keys.view(np.uint64) * _SPREAD
        spread >>= self._shift
        return spread.view(np.int64)

    def put(self, key: int, value: int) -> None:
        """Add or change one entry."""
        slot = int(self._slots(np.array([key], np.int64))[0])
        while self._keys[slot] not in (key, _EMPTY):
            slot = (slot + 1) & self._mask
        self._count += self._keys[slot] == _EMPTY
        self._keys[slot], self._values[slot] = key, value
        if 2 * self._count > self._mask:
            used = self._keys != _EMPTY
            self._fill(self._keys[used], self._values[used])

    def get(self, keys: Ints) -> Ints:
        """The values of many keys, ABSENT for those that are not there."""
        values = np.full(len(keys), ABSENT, np.int64)
        there, found = self.find(keys)
        values[there] = found
        return values

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        """Which of many keys are there, as positions among them, and their values."""
        slots = self._slots(keys)
        met = self._keys.take(slots)
        rest = np.flatnonzero(met != _EMPTY)
        met, slots, sought = met[rest], slots[rest], keys[rest]
        there, found = [], []
        while len(rest):
            same = met == sought
            there.append(rest[same])
            found.append(self._values.take(slots[same]))
            other = ~same
            slots = (slots[other] + 1) & self._mask
            met = self._keys.take(slots)
            onward = met != _EMPTY
            rest, sought = rest[other][onward], sought[other][onward]
            met, slots = met[onward], slots[onward]
        if not there:
            return rest, rest
        return np.concatenate(there), np.concatenate(found)
