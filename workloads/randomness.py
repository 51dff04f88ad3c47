"""Random numbers that depend on a seed and a row, and on nothing else.

A job may cut its rows into any number of partitions, in any order: each number is a hash of
(seed, stream, column, row), so the same row always meets the same fate. The hash is SplitMix64
(Steele, Lea and Flood 2014) with the row as its counter and a key per column as its seed.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


def split_mix(key: int, counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The counter-th output (from 0) of a SplitMix64 generator that was seeded with the key."""
    state = (counter + np.uint64(1)) * _GAMMA + np.uint64(key)
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


class Draws:
    """One row of independent random columns for each row number; columns go by name."""

    def __init__(self, seed: int, stream: str, rows: Ints) -> None:
        self._seed = seed
        self._stream = stream
        self._rows = rows.astype(np.uint64)

    def __len__(self) -> int:
        return len(self._rows)

    def bits(self, column: str) -> NDArray[np.uint64]:
        """64 random bits a row."""
        name = f"{self._seed}/{self._stream}/{column}".encode()
        key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
        return split_mix(key, self._rows)

    def uniform(self, column: str) -> Floats:
        """A number in [0, 1) a row."""
        return (self.bits(column) >> np.uint64(11)).astype(np.float64) * _TO_UNIT

    def below(self, limit: int, column: str) -> Ints:
        """A whole number in [0, limit) a row; the bias is under limit / 2**53."""
        return (self.uniform(column) * limit).astype(np.int64)


class Choice:
    """A choice among n things: item i has a weight of 1 / (i + 1) ** skew (Zipf; 0 is even)."""

    def __init__(self, n: int, skew: float) -> None:
        weights = np.arange(1, n + 1, dtype=np.float64) ** -skew
        self.probabilities: Floats = weights / weights.sum()
        self._ends = np.cumsum(self.probabilities)
        self._ends[-1] = 1.0

    def pick(self, uniform: Floats) -> Ints:
        """The items that these numbers in [0, 1) stand for."""
        return np.searchsorted(self._ends, uniform, side="right").astype(np.int64)

    def pick_other(self, uniform: Floats, taken: Ints) -> Ints:
        """Items other than the taken ones, with the weights that the rest have among themselves."""
        share = self.probabilities[taken]
        point = uniform * (1.0 - share)
        start = self._ends[taken] - share
        point = np.where(point >= start, point + share, point)
        other = self.pick(np.minimum(point, np.nextafter(1.0, 0.0)))
        # Rounding can land on the rim of the gap that was left for the taken item.
        rim = np.where(taken + 1 < len(self._ends), taken + 1, taken - 1)
        return np.where(other == taken, rim, other)
