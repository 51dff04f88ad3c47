"""A table without a graph: nodes, and which neighbour wants which.

What content-list forwarding (Kulik 2004, section 3.4.3) and multicast with one identifier per
topic (section 4.1.1) have in common.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from routing.batch import Header
from routing.content_graph import ContentGraph, NodeId
from routing.messages import Setup
from routing.table import Neighbor, Table


class FlatTable(Table):
    """Nodes and who wants them; a header goes, as it is, to whoever wants a node of it."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes: set[NodeId] = set()

    def insert(self, setup: Setup) -> None:
        self._nodes.add(setup.node)

    def remove(self, node: NodeId) -> None:
        self._nodes.discard(node)

    def setups(self, node: NodeId, neighbor: Neighbor) -> list[Setup]:
        return [Setup(node, (), ())]

    def route(self, header: Header) -> dict[Neighbor, Header]:
        due = {neighbor for node in header for neighbor in self.subscribers(node)}
        return dict.fromkeys(sorted(due), header)

    def covering(self, header: Header) -> AbstractSet[NodeId]:
        return self._nodes.intersection(header)

    def unknown(self, header: Header) -> list[NodeId]:
        return []  # a header names nodes that nobody asked for, too

    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        return [Setup(node, (), ())]

    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        """Every node that covers the notification."""
        return tuple(sorted(graph.covering(lowest)))

    def size(self) -> dict[str, int]:
        return {"nodes": len(self._nodes), **super().size()}

    def check(self) -> None:
        super().check()
        assert self._subscribers.keys() <= self._nodes
