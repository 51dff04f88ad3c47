"""Content-list forwarding (Kulik 2004, section 3.4.3, Figures 3-7 and 3-8).

A notification's header lists every node that covers it, and never changes; routers know which
neighbour wants which node, and nothing of the graph.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from routing.batch import Header
from routing.content_graph import ContentGraph, NodeId
from routing.messages import Setup
from routing.registry import register
from routing.router import TreeRouter
from routing.table import Neighbor, Table


class ListTable(Table):
    """Nodes and who wants them."""

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
        return []  # a list names nodes that nobody asked for, too

    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        return [Setup(node, (), ())]

    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        return tuple(sorted(graph.covering(lowest)))

    def size(self) -> dict[str, int]:
        return {"nodes": len(self._nodes), **super().size()}

    def check(self) -> None:
        super().check()
        assert self._subscribers.keys() <= self._nodes


class ContentListRouter(TreeRouter):
    """A router without graphs."""

    table = ListTable


register("content-list", ContentListRouter)
