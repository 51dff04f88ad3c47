"""What a rendezvous point must not forget: its content graph, its numbers and its log.

The log is bounded. What it has dropped is reported as lost to whoever asks for it, never passed
over in silence. This store lives in memory; the simulator keeps it across a router's restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routing.content_graph import ContentGraph, NodeId, check_node
from routing.errors import ProtocolError

Source = tuple[str, str]
"""(publisher, host): whoever numbers publications."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One publication in the log."""

    position: int
    nodes: tuple[NodeId, ...]
    payload: bytes


@dataclass(slots=True)
class _Settled:
    """Positions of a source's latest publications, of its newest life."""

    incarnation: int
    positions: dict[int, int]


class Store:
    """The durable state of one rendezvous point, in memory."""

    def __init__(
        self,
        capacity: int = 100_000,
        window: int = 64,
        access: Mapping[str, bytes] | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a log needs room for one notification at least, not {capacity}")
        self.graph = ContentGraph()
        #: Publishers and their keys; None lets everybody publish (Kulik 2004, section 6.1).
        self.access = access
        #: Counts the changes of the graph; `inserted` is the count at the last insertion.
        self.version = 0
        self.inserted = 0
        #: Per node, how many publications had it among their lowest nodes.
        self.numbers: dict[NodeId, int] = {}
        self.first = 1
        self.last = 0
        self._capacity = capacity
        self._window = window
        self._log: dict[int, Entry] = {}
        self._settled: dict[Source, _Settled] = {}
        #: Removed nodes that entries of the log may name: their parents, and the last position.
        self._retired: set[NodeId] = set()
        self._removed: dict[NodeId, tuple[tuple[NodeId, ...], int]] = {}

    # -- the graph -----------------------------------------------------------------------

    def insert_node(
        self, node: NodeId, parents: Iterable[NodeId], children: Iterable[NodeId]
    ) -> None:
        """Add a node; ProtocolError where it has no such place, or had one before.

        An identifier is never used again: routers far away may still know its old place.
        """
        check_node(node)
        if node in self._retired:
            raise ProtocolError(f"node {node} was removed; identifiers are not used twice")
        self.graph.insert(node, parents, children)
        self.version += 1
        self.inserted = self.version

    def remove_node(self, node: NodeId) -> None:
        """Take a node out, and remember what covered it for as long as the log names it."""
        parents = tuple(sorted(self.graph.parents(node))) if node in self.graph else ()
        self.graph.remove(node)
        self._removed[node] = (parents, self.last)
        self._retired.add(node)
        self.numbers.pop(node, None)
        self.version += 1

    def covering(self, nodes: Iterable[NodeId]) -> set[NodeId]:
        """The nodes of the graph that cover a header, also one from before a removal."""
        present: set[NodeId] = set()
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node in self.graph:
                present.add(node)
            else:
                stack.extend(self._removed.get(node, ((), 0))[0])
        return self.graph.covering(present)

    # -- the log -------------------------------------------------------------------------

    def settled(self, source: Source, incarnation: int, number: int) -> int | None:
        """The position of a publication that was accepted before; 0 for one of an earlier time."""
        known = self._settled.get(source)
        if known is None or incarnation > known.incarnation:
            return None
        if incarnation < known.incarnation:
            return 0
        if number in known.positions:
            return known.positions[number]
        newest = max(known.positions)
        return 0 if number <= newest - self._window else None

    def append(
        self,
        source: Source,
        incarnation: int,
        number: int,
        nodes: tuple[NodeId, ...],
        payload: bytes,
    ) -> Entry:
        """Accept a publication: the next position, and one more for each of its nodes."""
        self.last += 1
        entry = Entry(self.last, nodes, payload)
        self._log[self.last] = entry
        for node in nodes:
            self.numbers[node] = self.numbers.get(node, 0) + 1
        self._settle(source, incarnation, number)
        self._trim()
        return entry

    def entry(self, position: int) -> Entry:
        """The entry at a position between `first` and `last`."""
        return self._log[position]

    def _settle(self, source: Source, incarnation: int, number: int) -> None:
        known = self._settled.get(source)
        if known is None or incarnation > known.incarnation:
            known = self._settled[source] = _Settled(incarnation, {})
        known.positions[number] = self.last
        if len(known.positions) > 2 * self._window:
            newest = max(known.positions)
            known.positions = {
                n: p for n, p in known.positions.items() if n > newest - self._window
            }

    def _trim(self) -> None:
        while self.last - self.first >= self._capacity:
            del self._log[self.first]
            self.first += 1
        if self._removed:
            self._removed = {
                node: (parents, last)
                for node, (parents, last) in self._removed.items()
                if last >= self.first
            }
