"""Unicast (Kulik 2004, section 4.1.1): a copy of a notification for each subscriber's host.

A host asks for a topic under an identifier of its own, the topic below the host's number, so the
rendezvous point knows who wants what, and routers know the way to each host. A copy is addressed
to one host and names all topics for which that host is due it.

A host's number has 16 bits and is drawn from its address. Two hosts with the same number share
copies until their ways part: everybody still receives exactly what was asked for. A topic has 16
bits as well, so larger graphs need another protocol.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from zlib import crc32

from routing.batch import Header
from routing.content_graph import ContentGraph, NodeId
from routing.errors import ProtocolError
from routing.flat import FlatTable
from routing.registry import register
from routing.router import TreeRouter
from routing.table import Neighbor

_BITS = 16
_TOPIC_MAX = (1 << _BITS) - 1


class UnicastTable(FlatTable):
    """Topics of hosts, and the way to each."""

    def identifier(self, topic: NodeId, host: str) -> NodeId:
        if topic > _TOPIC_MAX:
            raise ProtocolError(f"unicast numbers topics up to {_TOPIC_MAX}: {topic} is too large")
        return (crc32(host.encode()) & _TOPIC_MAX) << _BITS | topic

    def topic(self, node: NodeId) -> NodeId:
        return node & _TOPIC_MAX

    def route(self, header: Header) -> dict[Neighbor, Header]:
        due: dict[Neighbor, list[NodeId]] = {}
        for node in header:
            for neighbor in self.subscribers(node):
                due.setdefault(neighbor, []).append(node)
        return {neighbor: tuple(due[neighbor]) for neighbor in sorted(due)}

    def covering(self, header: Header) -> AbstractSet[NodeId]:
        return {self.topic(node) for node in self._nodes.intersection(header)}

    def root_headers(self, graph: ContentGraph, lowest: Header) -> list[Header]:
        relevant = graph.covering(lowest)
        copies: dict[int, list[NodeId]] = {}
        for node in sorted(self._subscribers):
            if self.topic(node) in relevant:
                copies.setdefault(node >> _BITS, []).append(node)
        return [tuple(copy) for copy in copies.values()]


class UnicastRouter(TreeRouter):
    """A router that passes each copy on towards the one host that it is for."""

    table = UnicastTable


register("unicast", UnicastRouter)
