"""Multicast with disjunctive identifiers (Kulik 2004, section 4.1.1, Figure 4-2).

Notifications fall into disjoint categories, each with an identifier: the nodes that can be the
lowest one. A subscription to a topic becomes the list of all categories that it covers, the topic
itself and its descendants; the rendezvous point, which is the subscription service, sends that
list with the set-up. Routers know which neighbour wants which category, and a notification
carries the identifier of its own (several, where the graph gives it several lowest nodes).

A list is drawn up once, when a topic is set up, so the graph must be complete before anybody
subscribes: the rendezvous point refuses insertions from then on. Removals do no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from routing.batch import Header
from routing.content_graph import ContentGraph, NodeId
from routing.messages import Setup
from routing.registry import register
from routing.router import TreeRouter
from routing.table import Neighbor, Table


class DisjunctiveTable(Table):
    """Categories, the topics that cover them, and who wants them."""

    fixed_graph = True

    def __init__(self) -> None:
        super().__init__()
        self._categories: dict[NodeId, tuple[NodeId, ...]] = {}
        self._topics: dict[NodeId, set[NodeId]] = {}
        #: Per category, for how many topics each neighbour wants it.
        self._wanted: dict[NodeId, Counter[Neighbor]] = {}

    def insert(self, setup: Setup) -> None:
        self._categories[setup.node] = categories = (setup.node, *setup.children)
        for category in categories:
            self._topics.setdefault(category, set()).add(setup.node)

    def remove(self, node: NodeId) -> None:
        for category in self._categories.pop(node):
            topics = self._topics[category]
            topics.discard(node)
            if not topics:
                del self._topics[category]

    def attach(self, node: NodeId, neighbor: Neighbor) -> None:
        super().attach(node, neighbor)
        for category in self._categories[node]:
            self._wanted.setdefault(category, Counter())[neighbor] += 1

    def detach(self, node: NodeId, neighbor: Neighbor) -> None:
        super().detach(node, neighbor)
        for category in self._categories[node]:
            wanted = self._wanted[category]
            wanted[neighbor] -= 1
            if not wanted[neighbor]:
                del wanted[neighbor]
                if not wanted:
                    del self._wanted[category]

    def setups(self, node: NodeId, neighbor: Neighbor) -> list[Setup]:
        return [Setup(node, (), self._categories[node][1:])]

    def route(self, header: Header) -> dict[Neighbor, Header]:
        due = {neighbor for category in header for neighbor in self._wanted.get(category, ())}
        return dict.fromkeys(sorted(due), header)

    def covering(self, header: Header) -> AbstractSet[NodeId]:
        return {topic for category in header for topic in self._topics.get(category, ())}

    def unknown(self, header: Header) -> list[NodeId]:
        return []  # of several categories, some may concern nobody here

    def root_setups(self, graph: ContentGraph, node: NodeId) -> list[Setup]:
        return [Setup(node, (), tuple(sorted(graph.descendants(node))))]

    def root_header(self, graph: ContentGraph, lowest: Header) -> Header:
        return lowest

    def categories(self) -> AbstractSet[NodeId]:
        """Every identifier in the table."""
        return self._topics.keys()

    def size(self) -> dict[str, int]:
        return {
            "nodes": len(self._categories),
            "categories": len(self._topics),
            "entries": sum(map(len, self._wanted.values())),
            **super().size(),
        }

    def check(self) -> None:
        super().check()
        pairs = {(c, topic) for topic, ids in self._categories.items() for c in ids}
        assert pairs == {(c, topic) for c, topics in self._topics.items() for topic in topics}
        wanted: dict[NodeId, Counter[Neighbor]] = {}
        for neighbor, nodes in self._subs.items():
            for node in nodes:
                for category in self._categories[node]:
                    wanted.setdefault(category, Counter())[neighbor] += 1
        assert wanted == self._wanted


class DisjunctiveRouter(TreeRouter):
    """A router of disjoint multicast groups."""

    table = DisjunctiveTable


register("disjunctive-id", DisjunctiveRouter)
