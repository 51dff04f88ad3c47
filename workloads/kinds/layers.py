"""Abstract graphs of varying degree: equal layers, each node over `degree` nodes of the next.

Kulik 2004, section 4.4.1 and Table 4.7. Node p of a layer covers nodes p to p + degree - 1 of the
layer below, around the corner, so every inner node has as many parents as children. The text lets
the degree grow to 50 while the table stops at 10; 100 nodes in 5 layers allow 20.
The code is layer * width + place.
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


@dataclass(frozen=True)
class Parameters(GraphSize):
    """Nodes that make whole layers, wide enough for the degree."""

    def __post_init__(self) -> None:
        if self.nodes % self.depth:
            raise ScenarioError(
                f"content: {self.nodes} nodes do not make {self.depth} equal layers; "
                "choose nodes as a multiple of depth"
            )
        if self.degree > self.width:
            raise ScenarioError(
                f"content: a degree of {self.degree} does not fit: a layer has only "
                f"{self.width} nodes (nodes / depth)"
            )

    @property
    def width(self) -> int:
        """Nodes in a layer."""
        return self.nodes // self.depth


class Kind(AbstractKind):
    """Subscriptions to nodes of a layered graph, notices about the last layer."""

    parameter_type = Parameters
    parameters: Parameters

    def __init__(self, parameters: Parameters) -> None:
        self._width = parameters.width
        super().__init__(parameters, np.arange(parameters.nodes)[-self._width :])

    def covers(self, above: Codes, below: Codes) -> Flags:
        """Whether a path leads down: l layers below it reaches l * (degree - 1) places on."""
        layer, place = np.divmod(above[:, None], self._width)
        lower, other = np.divmod(below[None, :], self._width)
        reach = (lower - layer) * (self.parameters.degree - 1)
        return (lower > layer) & ((other - place) % self._width <= reach)

    def text(self, codes: Codes) -> pa.Array:
        """Such as "layer 2 place 14"."""
        layer, place = (pa.array(part).cast(pa.string()) for part in np.divmod(codes, self._width))
        return pc.binary_join_element_wise("layer ", layer, " place ", place, "")
