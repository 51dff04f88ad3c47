"""Tables of integers that numpy probes for many keys at once: hashed, or dense where keys are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: What a key that is not there is worth.
ABSENT = -2

_EMPTY = -1
#: Multiplying by 2**64 over the golden ratio spreads neighbours (Knuth's multiplicative hashing).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


#: A dense table has at most so many places, and at most so many for each entry.
_DENSE_MAX = 1 << 26
_DENSE_SHARE = 32


def table_of(entries: Mapping[int, int], bits: int) -> KeyTable:
    """A table for keys of so many bits, 63 at most."""
    if 1 << bits <= min(_DENSE_MAX, 1024 + _DENSE_SHARE * len(entries)):
        return DenseTable(entries, bits)
    return HashTable(entries)


class KeyTable(ABC):
    """Keys and their values."""

    @abstractmethod
    def put(self, key: int, value: int) -> None:
        """Add or change one entry."""

    @abstractmethod
    def get(self, keys: Ints) -> Ints:
        """The values of many keys, ABSENT for those that are not there."""

    @abstractmethod
    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        """Which of many keys are there, as positions among them, and their values."""


class DenseTable(KeyTable):
    """A place for every key."""

    def __init__(self, entries: Mapping[int, int], bits: int) -> None:
        self._values: Ints = np.full(1 << bits, ABSENT, np.int64)
        keys = np.fromiter(entries.keys(), np.int64, len(entries))
        self._values[keys] = np.fromiter(entries.values(), np.int64, len(entries))

    def put(self, key: int, value: int) -> None:
        self._values[key] = value

    def get(self, keys: Ints) -> Ints:
        return self._values.take(keys)

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        values = self._values.take(keys)
        there = np.flatnonzero(values != ABSENT)
        return there, values[there]


class HashTable(KeyTable):
    """Open addressing, at most half full."""

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
        slot = int(self._slots(np.array([key], np.int64))[0])
        while self._keys[slot] not in (key, _EMPTY):
            slot = (slot + 1) & self._mask
        self._count += self._keys[slot] == _EMPTY
        self._keys[slot], self._values[slot] = key, value
        if 2 * self._count > self._mask:
            used = self._keys != _EMPTY
            self._fill(self._keys[used], self._values[used])

    def get(self, keys: Ints) -> Ints:
        values = np.full(len(keys), ABSENT, np.int64)
        there, found = self.find(keys)
        values[there] = found
        return values

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
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
