"""Routers that store graphs (Kulik 2004, section 3.4.3, Figures 3-11 and 3-12).

Every router on a tree holds the whole content graph and hears of each node that joins it.
Headers name the lowest nodes and never change; routers walk the graph upward to find neighbours.
"""

from __future__ import annotations

from routing.batch import Header
from routing.content_graph import ContentGraph, NodeId
from routing.errors import ProtocolError
from routing.messages import Setup
from routing.registry import register
from routing.router import TreeRouter
from routing.table import GraphTable, Neighbor, whole


class StoredTable(GraphTable):
    """The whole graph, and who wants which node of it."""

    whole_graph = True

    def __init__(self) -> None:
        super().__init__()
        #: Neighbours that were given the graph and hear of new nodes.
        self._told: set[Neighbor] = set()

    def insert(self, setup: Setup) -> None:
        if setup.node not in self.graph:
            raise ProtocolError(f"node {setup.node} is not in the graph that was told")

    def remove(self, node: NodeId) -> None:
        """Nothing: the node stays in the graph."""

    def learn(self, setup: Setup) -> list[Neighbor]:
        if setup.node not in self.graph:
            super().insert(setup)
            return sorted(self._told)
        # Nodes that were missed while the link was down may stand above known ones.
        news = [self.graph.link(parent, setup.node) for parent in setup.parents]
        if not any(news):
            return []
        self._routes.clear()
        return sorted(self._told)

    def opening(self, neighbor: Neighbor) -> list[Setup]:
        self._told.add(neighbor)
        return whole(self.graph)

    def setups(self, node: NodeId, neighbor: Neighbor) -> list[Setup]:
        return [Setup(node, (), ())]

    def route(self, header: Header) -> dict[Neighbor, Header]:
        due = {i for node in self.covering(header) for i in self.subscribers(node)}
        return dict.fromkeys(sorted(due), header)

    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        return [Setup(node, (), ())]

    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        return lowest


class StoredGraphRouter(TreeRouter):
    """A router that holds whole graphs."""

    table = StoredTable


register("stored-graph", StoredGraphRouter)
