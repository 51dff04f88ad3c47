"""Ways to find and order topics that several content kinds share."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from workloads.errors import ScenarioError
from workloads.kinds import Codes, ContentKind, Order, Pairs
from workloads.randomness import Ints

#: Code spaces up to this size get a table, 256 MB at most; larger ones are searched.
TABLE_LIMIT = 2**26
#: A dense order holds a matrix of this many rows and columns at most.
DENSE_LIMIT = 5_000

Flags = NDArray[np.bool_]


class Lookup:
    """From a code to its index among sorted topics, -1 where it is not one of them."""

    def __init__(self, topics: Codes, space: int | None = None) -> None:
        self._topics = topics
        self._table: NDArray[np.int32] | None = None
        if space is not None and space <= TABLE_LIMIT:
            self._table = np.full(space, -1, dtype=np.int32)
            self._table[topics] = np.arange(len(topics), dtype=np.int32)

    def __call__(self, codes: Codes) -> Ints:
        if self._table is not None:
            return self._table[codes].astype(np.int64)
        if not len(self._topics):
            return np.full(codes.shape, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._topics, codes), len(self._topics) - 1)
        return np.where(self._topics[at] == codes, at, -1).astype(np.int64)


class DenseKind(ContentKind):
    """A kind that says what covers and what matches, pair by pair; for thousands of topics."""

    @abstractmethod
    def covers(self, above: Codes, below: Codes) -> Flags:
        """A matrix: whether topic above[i] strictly covers topic below[j]."""

    @abstractmethod
    def matches(self, topics: Codes, notices: Codes) -> Flags:
        """A matrix: whether topics[i] asks for notices[j]; whatever covers a match matches too."""

    def order(self, topics: Codes) -> Order:
        """The order by comparing all pairs, refused beyond what memory bears."""
        if len(topics) > DENSE_LIMIT:
            raise ScenarioError(
                f"{len(topics):,} topics are too many to compare pair by pair "
                f"(at most {DENSE_LIMIT:,}): choose fewer nodes"
            )
        return _DenseOrder(self, topics)


class _DenseOrder(Order):
    """A covering matrix; an edge, or a header's node, is redundant where a lower one stands in."""

    def __init__(self, kind: DenseKind, topics: Codes) -> None:
        self._kind = kind
        self._topics = topics
        self._covers = kind.covers(topics, topics).astype(np.float32)

    def parents(self, start: int, stop: int) -> Pairs:
        """Ancestors that cover no other ancestor of the same topic."""
        parents, children = np.nonzero(self._lowest(self._covers[:, start:stop] > 0))
        return children + start, parents

    def headers(self, notices: Codes) -> Pairs:
        """Matching topics that cover no other topic that matches; equal notices worked out once."""
        distinct, which = np.unique(notices, return_inverse=True)
        lowest = self._lowest(self._kind.matches(self._topics, distinct))
        topics, rows = np.nonzero(lowest[:, which])
        return rows, topics

    def _lowest(self, members: Flags) -> Flags:
        """Per column, the members that cover no other member."""
        lower_too = (self._covers @ members.astype(np.float32)) > 0
        return members & ~lower_too
