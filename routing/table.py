"""Forwarding tables: what a router knows of one namespace (Kulik 2004, section 3.4.5).

`Table` is what a protocol needs of any table; `GraphTable` holds a content graph of the nodes
subscribed to; `LabelTable` is F3's, with output labels worked out when subscriptions change:

    o(v,i) = low(({v} + A(v)) & subs(i))   for every node v and every neighbour i

so that forwarding only looks labels up. Sections and figures are the thesis's; where its
pseudo-code is not exact, the comment says what is.
"""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from routing.batch import Batch, Header, pack_u32, unpack_u32
from routing.content_graph import ContentGraph, NodeId
from routing.errors import ProtocolError
from routing.messages import Setup

Neighbor = str

_Route = tuple[list[tuple[Neighbor, bytes]], bool]
"""Who is due a header, with which header each; and whether the table lacks a node of it."""

_NOBODY: frozenset[Neighbor] = frozenset()
_NOTHING: frozenset[NodeId] = frozenset()

#: Headers whose route is remembered, at the most.
_ROUTES_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class Routed:
    """A batch taken apart: per neighbour, what it is due."""

    batches: dict[Neighbor, Batch]
    #: Notifications with a node that should be in the table and is not.
    unknown: int


class Table(ABC):
    """One namespace's table at one router."""

    #: Whether every router holds the whole content graph, and hears of each new node.
    whole_graph = False
    #: Whether the content graph must be complete before anybody subscribes.
    fixed_graph = False

    def __init__(self) -> None:
        #: Headers routed since the last change of the table.
        self._routes: dict[bytes, _Route] = {}
        self._subs: dict[Neighbor, set[NodeId]] = {}
        self._subscribers: dict[NodeId, set[Neighbor]] = {}

    # -- nodes ---------------------------------------------------------------------------

    @abstractmethod
    def insert(self, setup: Setup) -> None:
        """Take a node in where the set-up places it; ProtocolError, and no change, if it cannot."""

    @abstractmethod
    def remove(self, node: NodeId) -> None:
        """Let a node go that nobody is subscribed to."""

    def learn(self, setup: Setup) -> list[Neighbor]:
        """Take in a node that was not asked for; returns the neighbours to tell of it.

        Only tables that hold whole graphs do this (`whole_graph`).
        """
        raise ProtocolError(f"node {setup.node} was set up and not asked for")

    def opening(self, neighbor: Neighbor) -> list[Setup]:
        """What a neighbour is told of the graph at the beginning of a session."""
        return []

    # -- identifiers on the tree ---------------------------------------------------------

    def identifier(self, topic: NodeId, host: str) -> NodeId:
        """What a host asks its tree for when a client wants a topic; ProtocolError if nothing."""
        return topic

    def topic(self, node: NodeId) -> NodeId:
        """The topic that an identifier stands for."""
        return node

    # -- subscriptions -------------------------------------------------------------------

    def subs(self, neighbor: Neighbor) -> AbstractSet[NodeId]:
        """subs(i): the nodes that the neighbour is subscribed to."""
        return self._subs.get(neighbor, _NOTHING)

    def neighbors(self) -> AbstractSet[Neighbor]:
        """Whoever is subscribed to anything."""
        return self._subs.keys()

    def subscribers(self, node: NodeId) -> AbstractSet[Neighbor]:
        """The neighbours that are subscribed to the node itself."""
        return self._subscribers.get(node, _NOBODY)

    def attach(self, node: NodeId, neighbor: Neighbor) -> None:
        """Subscribe the neighbour to a node of the table."""
        self._routes.clear()
        self._subs.setdefault(neighbor, set()).add(node)
        self._subscribers.setdefault(node, set()).add(neighbor)

    def detach(self, node: NodeId, neighbor: Neighbor) -> None:
        """End the neighbour's subscription to the node."""
        self._routes.clear()
        held, holders = self._subs[neighbor], self._subscribers[node]
        held.remove(node)
        holders.remove(neighbor)
        if not held:
            del self._subs[neighbor]
        if not holders:
            del self._subscribers[node]

    @abstractmethod
    def setups(self, node: NodeId, neighbor: Neighbor) -> list[Setup]:
        """What to tell a neighbour that is about to be subscribed to the node (Figure 3-24)."""

    # -- notifications -------------------------------------------------------------------

    @abstractmethod
    def route(self, header: Header) -> dict[Neighbor, Header]:
        """The neighbours that are due a notification and the header for each, both sorted."""

    def route_batch(self, batch: Batch) -> Routed:
        """Route many notifications; per neighbour, those that are due with their headers.

        The answer for a header is a function of the table alone, so it is remembered, as bytes,
        until the table changes.
        """
        due: dict[Neighbor, tuple[list[int], list[bytes]]] = {}
        unknown = 0
        for row, header in enumerate(batch.headers()):
            routed, strange = self._remembered(header)
            unknown += strange
            for neighbor, rewritten in routed:
                rows, headers = due.setdefault(neighbor, ([], []))
                rows.append(row)
                headers.append(rewritten)
        return Routed({i: batch.select(*chosen) for i, chosen in due.items()}, unknown)

    def _remembered(self, header: bytes) -> _Route:
        route = self._routes.get(header)
        if route is None:
            if len(self._routes) >= _ROUTES_MAX:
                self._routes.clear()
            nodes = tuple(unpack_u32(header))
            routed = [(i, pack_u32(nodes)) for i, nodes in self.route(nodes).items()]
            route = self._routes[header] = (routed, bool(self.unknown(nodes)))
        return route

    @abstractmethod
    def covering(self, header: Header) -> AbstractSet[NodeId]:
        """The nodes of the table that cover the notification."""

    @abstractmethod
    def unknown(self, header: Header) -> list[NodeId]:
        """Nodes of a header that should be here and are not."""

    # -- at the rendezvous point ---------------------------------------------------------

    @abstractmethod
    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        """What the rendezvous point's own table needs to be told to hold a node of the graph."""

    @abstractmethod
    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        """The header with which a notification enters the rendezvous point's own table."""

    def root_headers(self, graph: ContentGraph, lowest: Header) -> list[Header]:
        """The headers of all copies that leave the rendezvous point; mostly there is one."""
        return [self.root_header(graph, lowest)]

    # -- for experiments and tests -------------------------------------------------------

    def size(self) -> dict[str, int]:
        """Entries by kind."""
        return {"subscriptions": sum(map(len, self._subs.values()))}

    def bytes(self) -> int:
        """Memory in use: here that of every object that the table alone refers to."""
        seen: set[int] = set()
        stack: list[object] = [vars(self)]
        total = 0
        while stack:
            item = stack.pop()
            if id(item) not in seen and not isinstance(item, type):
                seen.add(id(item))
                total += sys.getsizeof(item)
                stack.extend(gc.get_referents(item))
        return total

    def check(self) -> None:
        """Assert that both indexes of subscriptions agree."""
        pairs = {(node, i) for i, nodes in self._subs.items() for node in nodes}
        assert pairs == {(n, i) for n, holders in self._subscribers.items() for i in holders}


class GraphTable(Table):
    """A table with the content graph of the nodes that the router is subscribed to."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = ContentGraph()

    def insert(self, setup: Setup) -> None:
        # Linking goes both ways and drops the edges from the parents straight to the children.
        self.graph.insert(*setup)
        self._routes.clear()

    def remove(self, node: NodeId) -> None:
        self.graph.remove(node)
        self._routes.clear()

    def setups(self, node: NodeId, neighbor: Neighbor) -> list[Setup]:
        return [_setup(node, self.graph, self.subs(neighbor))]

    def covering(self, header: Header) -> AbstractSet[NodeId]:
        return self.graph.covering(node for node in header if node in self.graph)

    def unknown(self, header: Header) -> list[NodeId]:
        return [node for node in header if node not in self.graph]

    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        return [_setup(node, graph, self.graph.nodes())]

    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        return tuple(sorted(graph.low(graph.covering(lowest) & self.graph.nodes())))

    def size(self) -> dict[str, int]:
        return {"nodes": len(self.graph), "edges": self.graph.edges(), **super().size()}

    def check(self) -> None:
        super().check()
        self.graph.check()
        assert all(node in self.graph for node in self._subscribers)


class LabelTable(GraphTable):
    """F3's table: every node carries its output labels (Figures 3-18 and 3-29)."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: dict[NodeId, dict[Neighbor, set[NodeId]]] = {}

    def label(self, node: NodeId, neighbor: Neighbor) -> AbstractSet[NodeId]:
        """o(node, neighbor): empty where the neighbour wants nothing of the node."""
        return self._labels[node].get(neighbor, _NOTHING)

    # -- changes -------------------------------------------------------------------------

    def insert(self, setup: Setup) -> None:
        super().insert(setup)
        self._labels[setup.node] = self._inherited(setup)

    def remove(self, node: NodeId) -> None:
        super().remove(node)
        del self._labels[node]

    def attach(self, node: NodeId, neighbor: Neighbor) -> None:
        if node in self.subs(neighbor):
            return
        super().attach(node, neighbor)
        self._label_descendants(node, neighbor)
        self._labels[node][neighbor] = {node}

    def detach(self, node: NodeId, neighbor: Neighbor) -> None:
        super().detach(node, neighbor)
        for each in self._affected(node, neighbor):
            self._merge_parent_labels(each, neighbor)

    def _inherited(self, setup: Setup) -> dict[Neighbor, set[NodeId]]:
        """The labels of a node that enters: the lowest of its parents' labels.

        The union alone is not enough: one parent's label may be an ancestor of another's.
        """
        union: dict[Neighbor, set[NodeId]] = {}
        for parent in setup.parents:
            for neighbor, label in self._labels[parent].items():
                union.setdefault(neighbor, set()).update(label)
        return {neighbor: self.graph.low(label) for neighbor, label in union.items()}

    def _label_descendants(self, node: NodeId, neighbor: Neighbor) -> None:
        """Put the node into the labels of all descendants with nothing lower in them.

        Every descendant must be looked at, also where a label exists already: it may name
        something that has nothing to do with this node.
        """
        below = self.graph.descendants(node)
        replaced = self.label(node, neighbor)
        for each in below:
            label = self._labels[each].setdefault(neighbor, set())
            if label.isdisjoint(below):
                label -= replaced
                label.add(node)

    def _affected(self, node: NodeId, neighbor: Neighbor) -> list[NodeId]:
        """Where the node is in the neighbour's label, parents first.

        Wherever it is, it is on every path down to there as well.
        """
        labels = self._labels
        return self.graph.below_in_order(node, lambda d: node in labels[d].get(neighbor, ()))

    def _merge_parent_labels(self, node: NodeId, neighbor: Neighbor) -> None:
        """The label of a node that the neighbour is not subscribed to, from its parents'."""
        union: set[NodeId] = set()
        for parent in self.graph.parents(node):
            union |= self.label(parent, neighbor)
        if union:
            self._labels[node][neighbor] = self.graph.low(union)
        else:
            del self._labels[node][neighbor]

    # -- notifications -------------------------------------------------------------------

    def route(self, header: Header) -> dict[Neighbor, Header]:
        """Figure 3-18: every neighbour with a label is due, subscribed to the node or not."""
        union: dict[Neighbor, set[NodeId]] = {}
        for node in header:
            for neighbor, label in self._labels.get(node, {}).items():
                union.setdefault(neighbor, set()).update(label)
        return {i: self._minimal(union[i]) for i in sorted(union)}

    def _minimal(self, label: Collection[NodeId]) -> Header:
        """Labels of several nodes may cover one another: only the lowest make the header."""
        return tuple(sorted(self.graph.low(label)))

    # -- for experiments and tests -------------------------------------------------------

    def size(self) -> dict[str, int]:
        labels = sum(len(o) for by in self._labels.values() for o in by.values())
        return {**super().size(), "labels": labels}

    def check(self) -> None:
        """Assert the label invariant by its definition."""
        super().check()
        assert set(self._labels) == set(self.graph)
        for node, by in self._labels.items():
            covering = self.graph.covering((node,))
            expected = {i: self.graph.low(covering & held) for i, held in self._subs.items()}
            assert by == {i: o for i, o in expected.items() if o}, f"labels of node {node}"


def whole(graph: ContentGraph) -> list[Setup]:
    """Every node of a graph, told parents first."""
    return [Setup(node, tuple(sorted(graph.parents(node))), ()) for node in graph.topological()]


def _setup(node: NodeId, graph: ContentGraph, held: AbstractSet[NodeId]) -> Setup:
    parents, children = graph.position(node, held)
    return Setup(node, tuple(sorted(parents)), tuple(sorted(children)))
