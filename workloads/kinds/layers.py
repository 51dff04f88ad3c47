"""Abstract graphs of varying degree: equal layers, each node over `degree` nodes of the next.

Kulik 2004, section 4.4.1 and Table 4.7. Node p of a layer covers nodes p to p + degree - 1 of the
layer below, around the corner, so every inner node has as many parents as children. The text lets
the degree grow to 50 while the table stops at 10; 100 nodes in 5 layers allow 20.
A notice is about one node of the last layer. The code is layer * width + place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workloads.errors import ScenarioError
from workloads.kinds import Codes
from workloads.kinds.lookup import DENSE_LIMIT, DenseKind, Flags
from workloads.randomness import Choice, Draws
from workloads.schema import limited


@dataclass(frozen=True)
class Parameters:
    """Size of the graph; Zipf exponents over the nodes, the top layer being most asked for."""

    nodes: int = limited(1, DENSE_LIMIT)
    depth: int = limited(1, DENSE_LIMIT)
    degree: int = limited(1, DENSE_LIMIT)
    skew: float = limited(0, 10, 0.0)
    notice_skew: float = limited(0, 10, 0.0)

    def __post_init__(self) -> None:
        if self.nodes % self.depth:
            raise ScenarioError(
                f"content: {self.nodes} nodes do not make {self.depth} equal layers; "
                "choose nodes as a multiple of depth"
            )
        if self.degree > self.nodes // self.depth:
            raise ScenarioError(
                f"content: a degree of {self.degree} does not fit: a layer has only "
                f"{self.nodes // self.depth} nodes (nodes / depth)"
            )


class Kind(DenseKind):
    """Subscriptions to nodes of a layered graph."""

    parameter_type = Parameters
    parameters: Parameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._width = parameters.nodes // parameters.depth
        self._wanted = Choice(parameters.nodes, parameters.skew)
        self._said = Choice(self._width, parameters.notice_skew)

    def topics(self, draws: Draws) -> Codes:
        """Any node."""
        return self._wanted.pick(draws.uniform("node"))

    def notices(self, draws: Draws) -> Codes:
        """A node of the last layer."""
        last = self._width * (self.parameters.depth - 1)
        return last + self._said.pick(draws.uniform("node"))

    def covers(self, above: Codes, below: Codes) -> Flags:
        """Whether a path leads down: l layers below it reaches l * (degree - 1) places on."""
        layer, place = np.divmod(above[:, None], self._width)
        lower, other = np.divmod(below[None, :], self._width)
        reach = (lower - layer) * (self.parameters.degree - 1)
        return (lower > layer) & ((other - place) % self._width <= reach)

    def matches(self, topics: Codes, notices: Codes) -> Flags:
        """A node asks for itself and for what it covers."""
        same: Flags = topics[:, None] == notices[None, :]
        return self.covers(topics, notices) | same

    def text(self, codes: Codes) -> pa.Array:
        """Such as "layer 2 place 14"."""
        layer, place = (pa.array(part).cast(pa.string()) for part in np.divmod(codes, self._width))
        return pc.binary_join_element_wise("layer ", layer, " place ", place, "")
