"""Multicast with overlapping identifiers (Kulik 2004, section 4.1.1, Figure 4-1).

Every topic has one identifier, which says nothing of how topics relate. A notification carries
one identifier, so the rendezvous point makes a copy for each topic that it is relevant to and
that anybody is subscribed to. A host hands each notification to a client once, however many
copies come.
"""

from __future__ import annotations

from routing.batch import Header
from routing.content_graph import ContentGraph
from routing.flat import FlatTable
from routing.registry import register
from routing.router import TreeRouter


class OverlappingTable(FlatTable):
    """One identifier per topic, one copy of a notification per identifier."""

    def root_headers(self, graph: ContentGraph, lowest: Header) -> list[Header]:
        return [(node,) for node in self.root_header(graph, lowest) if node in self._nodes]


class OverlappingRouter(TreeRouter):
    """A router of multicast groups that do not know of each other."""

    table = OverlappingTable


register("overlapping-id", OverlappingRouter)
