"""Which filters a message matches, by brute force: every constraint on a name that it has.

Knows nothing of indexes, counters or selectivity. For `experiments.study_siena`, whose tables are
too large to go through in plain Python; words are compared once, all with all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.opponents import Filters, Messages, Op
from experiments.work import Bools, Ints

#: What the message gives, and what the constraint wants.
Compare = Callable[[NDArray[np.str_], NDArray[np.str_]], Bools]
_STRING: dict[int, Compare] = {
    Op.EQUAL: lambda given, wanted: given == wanted,
    Op.PREFIX: lambda given, wanted: np.strings.startswith(given, wanted),
    Op.SUFFIX: lambda given, wanted: np.strings.endswith(given, wanted),
    Op.SUBSTRING: lambda given, wanted: np.strings.find(given, wanted) >= 0,
    Op.LESS: lambda given, wanted: given < wanted,
    Op.GREATER: lambda given, wanted: given > wanted,
}


class BruteForce:
    """All constraints, by name."""

    def __init__(self, filters: Filters, words: list[str]) -> None:
        ends: Ints = filters.offsets.astype(np.int64)
        sizes: Ints = ends[1:] - ends[:-1]
        order = np.argsort(filters.name, kind="stable")
        self._ends = np.searchsorted(filters.name[order], np.arange(filters.name.max() + 2))
        self._op, self._value = filters.op[order], filters.value[order]
        self._filter = np.repeat(np.arange(len(sizes)), sizes)[order]
        self._sizes, self._interface = sizes, filters.interface
        self._words = tuple(words)

    def counts(self, messages: Messages) -> list[int]:
        """Per message, how many interfaces are due it."""
        found = []
        for start, end in zip(messages.offsets[:-1], messages.offsets[1:], strict=True):
            met = np.zeros(len(self._sizes), dtype=np.int64)
            for at in range(int(start), int(end)):
                which = self._satisfied(
                    int(messages.name[at]), bool(messages.is_string[at]), int(messages.value[at])
                )
                met += np.bincount(which, minlength=len(met))
            found.append(len(np.unique(self._interface[met == self._sizes])))
        return found

    def _satisfied(self, name: int, is_string: bool, value: int) -> Ints:
        """The filters with a constraint that this attribute satisfies, once for each."""
        if name + 1 >= len(self._ends):
            return np.zeros(0, dtype=np.int64)
        here = slice(self._ends[name], self._ends[name + 1])
        ops, wanted = self._op[here], self._value[here]
        satisfied = (
            self._by_word(value, ops, wanted) if is_string else _by_integer(value, ops, wanted)
        )
        return self._filter[here][satisfied]

    def _by_word(self, given: int, ops: NDArray[np.uint8], wanted: NDArray[np.int32]) -> Bools:
        satisfied = np.zeros(len(ops), dtype=np.bool_)
        for op in _STRING:
            mine = ops == op
            satisfied[mine] = _compared(self._words, op)[given][wanted[mine]]
        return satisfied


def _by_integer(given: int, ops: NDArray[np.uint8], wanted: NDArray[np.int32]) -> Bools:
    equal = (ops == Op.INT_EQUAL) & (wanted == given)
    less = (ops == Op.INT_LESS) & (wanted > given)
    greater = (ops == Op.INT_GREATER) & (wanted < given)
    satisfied: Bools = equal | less | greater
    return satisfied


@lru_cache(maxsize=6)
def _compared(words: tuple[str, ...], op: int) -> Bools:
    """Whether a message's word (row) satisfies a constraint with another one (column)."""
    each = np.array(words)
    return _STRING[op](each[:, None], each[None, :])
