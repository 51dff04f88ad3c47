"""F3's forwarding table, compiled: what LabelTable does, at memory speed (sources in `native/`).

Content graph and output labels (Kulik 2004, sections 3.4.5 to 3.4.8) are compact arrays in C++;
this class gives them the interface of `routing.table`. LabelTable is the reference: the two agree
on every result and every ProtocolError, except that this one refuses identifiers of more than 32
bits at once, and the removal of a node that still has subscribers.

Importing this module is an ImportError where the compiled part was not built.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from graphlib import TopologicalSorter

from routing._native import Table as CompiledTable
from routing.batch import Batch, Header
from routing.content_graph import ContentGraph, NodeId
from routing.messages import Setup
from routing.table import Neighbor, Routed, Table


class NativeTable(Table):
    """LabelTable's compiled twin."""

    def __init__(self) -> None:
        super().__init__()
        self._table = CompiledTable()
        # Straight into compiled code: the call below costs as much as most subscriptions do.
        self.attach = self._table.attach  # type: ignore[method-assign, assignment]

    def label(self, node: NodeId, neighbor: Neighbor) -> AbstractSet[NodeId]:
        """o(node, neighbor): empty where the neighbour wants nothing of the node."""
        return self._table.label(node, neighbor)

    # -- changes -------------------------------------------------------------------------

    def insert(self, setup: Setup) -> None:
        self._table.insert(*setup)

    def remove(self, node: NodeId) -> None:
        self._table.remove(node)

    def subs(self, neighbor: Neighbor) -> AbstractSet[NodeId]:
        return self._table.subs(neighbor)

    def subscribers(self, node: NodeId) -> AbstractSet[Neighbor]:
        return self._table.subscribers(node)

    def neighbors(self) -> AbstractSet[Neighbor]:
        """Whoever is subscribed to anything."""
        return self._table.neighbors()

    def attach(self, node: NodeId, neighbor: Neighbor) -> None:
        self._table.attach(node, neighbor)

    def detach(self, node: NodeId, neighbor: Neighbor) -> None:
        self._table.detach(node, neighbor)

    def setups(self, node: NodeId, neighbor: Neighbor) -> list[Setup]:
        return [Setup(node, *self._table.position(node, neighbor))]

    # -- notifications -------------------------------------------------------------------

    def route(self, header: Header) -> dict[Neighbor, Header]:
        return self._table.route(header)

    def route_batch(self, batch: Batch) -> Routed:
        """Whatever a neighbour's batch has in common with the whole one is the same object."""
        return self._table.route_batch(batch)

    def covering(self, header: Header) -> AbstractSet[NodeId]:
        return self._table.covering(header)

    def unknown(self, header: Header) -> list[NodeId]:
        return self._table.unknown(header)

    # -- at the rendezvous point ---------------------------------------------------------

    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        parents, children = graph.position(node, _Nodes(self._table))
        return [Setup(node, tuple(sorted(parents)), tuple(sorted(children)))]

    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        """The order among nodes of the table is that of the graph, so the table reduces it."""
        if not self._table.unknown(lowest):
            return self._table.lowest(lowest)
        return self._table.lowest(graph.covering(lowest))

    # -- for experiments and tests -------------------------------------------------------

    @property
    def graph(self) -> ContentGraph:
        """A copy of the content graph."""
        return _graph({node: (above, below) for node, above, below, _ in self._table.dump()})

    def size(self) -> dict[str, int]:
        nodes, edges, subscriptions, labels = self._table.size()
        return {"nodes": nodes, "edges": edges, "subscriptions": subscriptions, "labels": labels}

    def bytes(self) -> int:
        """All memory that the table has reserved, remembered headers included."""
        return self._table.bytes()

    def check(self) -> None:
        """Assert the label invariant by its definition, and that no memory is lost."""
        dump, graph = self._table.dump(), self.graph
        held: dict[Neighbor, set[NodeId]] = {}
        for node, _, _, labels in dump:
            for neighbor in labels:
                held.setdefault(neighbor, set())
                if neighbor in self.subscribers(node):
                    held[neighbor].add(node)
        for node, _, _, labels in dump:
            covering = graph.covering((node,))
            expected = {i: tuple(sorted(graph.low(covering & held[i]))) for i in held}
            assert labels == {i: o for i, o in expected.items() if o}, f"labels of node {node}"
        assert self.size()["subscriptions"] == sum(map(len, held.values()))
        assert self._table.accounts(), "blocks of memory or bits of holders have gone astray"


class _Nodes(AbstractSet[NodeId]):
    """The nodes of a table, as a set."""

    def __init__(self, table: CompiledTable) -> None:
        self._table = table

    def __contains__(self, node: object) -> bool:
        return isinstance(node, int) and self._table.contains(node)

    def __iter__(self) -> Iterator[NodeId]:
        return (node for node, *_ in self._table.dump())

    def __len__(self) -> int:
        return self._table.size()[0]


def _graph(edges: dict[NodeId, tuple[Header, Header]]) -> ContentGraph:
    """The graph with these parents, asserting that it is reduced and has these children."""
    graph = ContentGraph()
    for node in TopologicalSorter({n: parents for n, (parents, _) in edges.items()}).static_order():
        graph.insert(node, edges[node][0], ())
    graph.check()
    for node, (_, children) in edges.items():
        assert graph.children(node) == set(children), f"children of node {node}"
    return graph
