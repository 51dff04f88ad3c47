"""The compiled systems that F3's compiled table is timed against (sources in `native/` here).

`Lists` is a hash table from identifiers to sets of neighbours: content-list forwarding and
disjunctive identifiers (Kulik 2004, sections 3.4.3 and 4.1.1). `Siena` is the extended counting
algorithm with the multi-operator string index and the selectivity table (Carzaniga and Wolf
2003, Figures 4, 6 and 7). Both find the neighbours of each notification; `gather` then makes the
batch that each neighbour is sent, as F3's table does.

Importing this is an ImportError where the compiled part was not built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from experiments._opponents import Lists as Lists
from experiments._opponents import Siena as Siena
from experiments._opponents import gather as gather


class Op(IntEnum):
    """Operators of constraints; a constraint `x < 5` is met by values below 5."""

    INT_EQUAL = 0
    INT_LESS = 1
    INT_GREATER = 2
    EQUAL = 3
    PREFIX = 4
    SUFFIX = 5
    SUBSTRING = 6
    LESS = 7
    GREATER = 8


@dataclass
class Filters:
    """Filters as columns: filter k of interface[k] has constraints offsets[k] to offsets[k + 1]."""

    interface: NDArray[np.uint32]
    offsets: NDArray[np.uint32]
    name: NDArray[np.uint32]
    op: NDArray[np.uint8]
    value: NDArray[np.int32]

    def add_to(self, siena: Siena) -> None:
        """Put all filters into a table."""
        siena.add(*(column.tobytes() for column in vars(self).values()))


@dataclass
class Messages:
    """Messages as columns: message k has attributes offsets[k] to offsets[k + 1]."""

    offsets: NDArray[np.uint32]
    name: NDArray[np.uint32]
    is_string: NDArray[np.uint8]
    value: NDArray[np.int32]

    def columns(self) -> tuple[bytes, bytes, bytes, bytes]:
        """As the compiled part takes them."""
        return (
            self.offsets.tobytes(),
            self.name.tobytes(),
            self.is_string.tobytes(),
            self.value.tobytes(),
        )


def offsets_of(sizes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Where each of the things of these sizes begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)
