"""What graphs of nodes without meaning have in common (Kulik 2004, section 4.4.1).

A topic is a node, and asks for itself and for what it covers; a notice is about one of the lowest
nodes. Which node covers which is the business of the kinds that derive from this.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.kinds import Codes
from workloads.kinds.lookup import DENSE_LIMIT, DenseKind, Flags
from workloads.randomness import Choice, Draws, Ints
from workloads.schema import limited


@dataclass(frozen=True)
class GraphSize:
    """Size of a graph; Zipf exponents over its nodes and its lowest nodes, by their numbers."""

    nodes: int = limited(1, DENSE_LIMIT)
    depth: int = limited(1, DENSE_LIMIT)
    degree: int = limited(1, DENSE_LIMIT)
    skew: float = limited(0, 10, 0.0)
    notice_skew: float = limited(0, 10, 0.0)


class AbstractKind(DenseKind):
    """Subscriptions to nodes, numbered from the top."""

    def __init__(self, parameters: GraphSize, lowest: Ints) -> None:
        super().__init__(parameters)
        self._lowest = lowest
        self._wanted = Choice(parameters.nodes, parameters.skew)
        self._said = Choice(len(lowest), parameters.notice_skew)

    def topics(self, draws: Draws) -> Codes:
        """Any node."""
        return self._wanted.pick(draws.uniform("node"))

    def notices(self, draws: Draws) -> Codes:
        """One of the lowest nodes."""
        return self._lowest[self._said.pick(draws.uniform("node"))]

    def matches(self, topics: Codes, notices: Codes) -> Flags:
        """A node asks for itself and for what it covers."""
        same: Flags = topics[:, None] == notices[None, :]
        return self.covers(topics, notices) | same
