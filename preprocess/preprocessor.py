"""Preprocessors: messages in, content-graph node IDs out (Kulik 2004, section 3.4.4).

A `Preprocessor` is a language, a content graph and an index over its topics. As it stands it is
static: it knows the topics it was given, and no others. What makes it grow is a change from the
authority over the graph (see `replica`), applied here in the authority's order.

`version` counts the changes: a header is exact for the graph of that version, and the rendezvous
point refuses one from before its latest insertion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

from preprocess.errors import UnknownTopicError
from preprocess.language import Index, Language, N, T
from routing.content_graph import ContentGraph, NodeId
from routing.errors import ProtocolError


class Header(NamedTuple):
    """The lowest nodes that match a notification, and the graph version that says so."""

    nodes: tuple[NodeId, ...]
    version: int


@dataclass(frozen=True, slots=True)
class Inserted:
    """A topic has entered the graph, as its `version`-th change."""

    version: int
    node: NodeId
    topic: str
    parents: tuple[NodeId, ...]
    children: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """A node has left the graph, as its `version`-th change."""

    version: int
    node: NodeId


Change = Inserted | Removed


class ReplicaGraph(ContentGraph):
    """A graph whose nodes are placed by an index, or were checked by the rendezvous point.

    Checking them here again would walk through all ancestors of each new node.
    """

    def _check_insertion(self, node: NodeId, above: set[NodeId], below: set[NodeId]) -> None:
        if node in self:
            raise ProtocolError(f"node {node} is in the graph already")


class Preprocessor(Generic[T, N]):
    """Looks up topics and headers in a graph that it holds a copy of."""

    def __init__(self, language: Language[T, N], version: int = 0) -> None:
        self.language = language
        self.graph: ContentGraph = ReplicaGraph()
        self.index: Index[T, N] = language.index(self.graph)
        self.version = version
        self.nodes: dict[T, NodeId] = {}

    # -- looking up ----------------------------------------------------------------------

    def subscription(self, subscription: object) -> NodeId:
        """The node of a subscription; UnknownTopicError if the graph has none."""
        topic = self.language.parse(subscription)
        node = self.nodes.get(topic)
        if node is None:
            text = self.language.text(topic)
            raise UnknownTopicError(
                f"{self.language.name} topic {text} is not among the {len(self.nodes)} topics "
                "of this content graph"
            )
        return node

    def notification(self, notification: object) -> Header:
        """The header of a notification."""
        lowest = self.index.lowest(self.language.parse_notification(notification))
        if len(lowest) > 1:
            lowest.sort()
        return Header(tuple(lowest), self.version)

    def notifications(
        self, notifications: Sequence[object]
    ) -> tuple[list[tuple[NodeId, ...]], int]:
        """The nodes of many notifications, and the graph version; faster than one by one."""
        parsed = self.language.parse_notifications(notifications)
        return self.index.lowest_of(parsed), self.version

    # -- changing ------------------------------------------------------------------------

    def place(self, topic: T, node: NodeId) -> Inserted:
        """Where a new topic would go, as the next change."""
        parents, children = self.index.position(topic)
        return Inserted(
            self.version + 1,
            node,
            self.language.text(topic),
            tuple(sorted(parents)),
            tuple(sorted(children)),
        )

    def apply(self, change: Change) -> None:
        """Take over the next change of the graph; ProtocolError if it is not the next."""
        if change.version != self.version + 1:
            raise ProtocolError(f"change {change.version} does not follow version {self.version}")
        if isinstance(change, Removed):
            self._remove(change.node)
        else:
            self.insert(self.language.parse(change.topic), change)
        self.version = change.version

    def load(self, topics: Iterable[tuple[NodeId, object]]) -> None:
        """Insert many topics under given IDs, each at its place; equal topics are refused."""
        for node, subscription in topics:
            topic = self.language.parse(subscription)
            self.insert(topic, self.place(topic, node))
            self.version += 1

    def adopt(self, rows: Iterable[tuple[NodeId, object, Collection[NodeId]]]) -> None:
        """Take over a finished graph: nodes, topics and parents; only where there is none yet.

        Edges are believed if the language agrees that they cover; missing ones are not noticed.
        """
        if self.nodes:
            raise ProtocolError(f"there is a graph of {len(self.nodes)} topics already")
        parse, parents = self.language.parse, {}
        for node, subscription, above in rows:
            parents[node] = above
            topic = parse(subscription)
            if self.nodes.setdefault(topic, node) != node:
                raise self._known(topic, node)
        self.graph = ReplicaGraph.of_parents(parents)
        self.index = self.language.index(self.graph)
        for topic, node in self.nodes.items():
            self.index.insert(topic, node)
        self._check_edges()
        self.version += len(self.nodes)

    def _check_edges(self) -> None:
        topics, covers = self.index.topics, self.language.covers
        for node, topic in topics.items():
            for parent in self.graph.parents(node):
                if not covers(topics[parent], topic):
                    text = self.language.text(topic)
                    raise ProtocolError(f"node {parent} does not cover node {node}: {text}")

    def _known(self, topic: T, node: NodeId) -> ProtocolError:
        known, text = self.nodes[topic], self.language.text(topic)
        return ProtocolError(f"node {node} has the topic of node {known}: {text}")

    def insert(self, topic: T, change: Inserted) -> None:
        """Take a topic in at the place that a change gives it."""
        if topic in self.nodes:
            raise self._known(topic, change.node)
        self.graph.insert(change.node, change.parents, change.children)
        self.index.insert(topic, change.node)
        self.nodes[topic] = change.node

    def _remove(self, node: NodeId) -> None:
        topic = self.index.topics.get(node)
        if topic is None:
            raise ProtocolError(f"node {node} is not in the graph, so it cannot be removed")
        self.index.remove(topic, node)
        self.graph.remove(node)
        del self.nodes[topic]
