"""Routers that minimise graphs: F3's set-up without its labels (Kulik 2004, 3.4.3, Figure 3-15).

Routers hold the part of the content graph that they are subscribed to and walk it upward for
every notification.
"""

from __future__ import annotations

from collections.abc import Collection

from routing.batch import Header
from routing.content_graph import NodeId
from routing.registry import register
from routing.router import TreeRouter
from routing.table import GraphTable, Neighbor


class MinimalTable(GraphTable):
    """Finds neighbours and their headers in the superset graph of each notification."""

    def route(self, header: Header) -> dict[Neighbor, Header]:
        superset = self.covering(header)
        headers: dict[Neighbor, set[NodeId]] = {}
        above: dict[Neighbor, set[NodeId]] = {}
        for node in self._lowest_first(superset):
            for neighbor in self.subscribers(node):
                if node not in above.setdefault(neighbor, set()):
                    headers.setdefault(neighbor, set()).add(node)
                    above[neighbor] |= self.graph.ancestors(node)
        return {i: tuple(sorted(headers[i])) for i in sorted(headers)}

    def _lowest_first(self, superset: Collection[NodeId]) -> list[NodeId]:
        """Every node before its ancestors: a breadth-first walk may meet one too early."""
        return self.graph.topological(superset)[::-1]


class MinimalGraphRouter(TreeRouter):
    """A router that walks a minimal graph."""

    table = MinimalTable


register("minimal-graph", MinimalGraphRouter)
