"""Abstract graphs of varying depth: a forest of complete trees, the last of them cut short.

Kulik 2004, section 4.4.1 and Table 4.8 (the text has 1024 nodes, the table 516 topics). With
1024 nodes and degree 2, depth 1 gives 1024 single nodes and depth 10 one tree of 1023 nodes and a
single one. Nodes are numbered tree by tree, level by level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workloads.errors import ScenarioError
from workloads.kinds import Codes
from workloads.kinds.abstract import AbstractKind, GraphSize
from workloads.kinds.lookup import Flags
from workloads.randomness import Ints


@dataclass(frozen=True)
class Parameters(GraphSize):
    """Nodes for one complete tree at least."""

    def __post_init__(self) -> None:
        if self.tree_size > self.nodes:
            raise ScenarioError(
                f"content: a tree of depth {self.depth} and degree {self.degree} has more than "
                f"the {self.nodes} nodes there are; choose more nodes or less depth"
            )

    @property
    def tree_size(self) -> int:
        """Nodes of one complete tree, counted only until they are too many."""
        size, level = 0, 1
        for _ in range(self.depth):
            size += level
            level *= self.degree
            if size > self.nodes:
                break
        return size


class Kind(AbstractKind):
    """Subscriptions to nodes of a forest, notices about leaves."""

    parameter_type = Parameters
    parameters: Parameters

    def __init__(self, parameters: Parameters) -> None:
        self._tree = parameters.tree_size
        self._degree = parameters.degree
        nodes = np.arange(parameters.nodes)
        super().__init__(parameters, np.setdiff1d(nodes, self._parent(nodes)))

    def covers(self, above: Codes, below: Codes) -> Flags:
        """Whether a node is met on the way from another to its root."""
        met = np.zeros((len(above), len(below)), dtype=np.bool_)
        on_path = below
        for _ in range(self.parameters.depth - 1):
            on_path = self._parent(on_path)
            met |= above[:, None] == on_path[None, :]
        return met

    def text(self, codes: Codes) -> pa.Array:
        """Such as "tree 0 node 14"."""
        tree, node = (pa.array(part).cast(pa.string()) for part in np.divmod(codes, self._tree))
        return pc.binary_join_element_wise("tree ", tree, " node ", node, "")

    def _parent(self, nodes: Codes) -> Ints:
        """The parent of each node, -1 above a root."""
        tree, place = np.divmod(nodes, self._tree)
        above = tree * self._tree + (place - 1) // self._degree
        return np.where((nodes < 0) | (place == 0), -1, above)
