"""What a rendezvous point must not forget: its content graph, its numbers and its log.

The log is bounded. What it has dropped is reported as lost to whoever asks for it, never passed
over in silence. This store lives in memory; the simulator keeps it across a router's restart.
One that lives on disk has the same methods and the same answers.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from routing.content_graph import ContentGraph, NodeId, check_node
from routing.errors import ProtocolError

Source = tuple[str, str]
"""(publisher, host): whoever numbers publications."""

SOURCES_MAX = 100_000
"""Sources whose latest publications are remembered. Beyond that, those that were silent for longest
are forgotten: if one of them repeats a publication after so long, it is published again."""


class Entry(NamedTuple):
    """One publication in the log."""

    position: int
    nodes: tuple[NodeId, ...]
    payload: bytes
    #: Its trace context, if it is sampled: whoever loses and recovers it goes on with the trace.
    trace: bytes = b""


Run = tuple[int, int, int]
"""(number, position, count): publications whose numbers and positions follow each other."""


def add_run(runs: list[Run], number: int, position: int, count: int = 1) -> None:
    """Add a run to others with other numbers, to the last of them where it follows that."""
    if runs:
        first, start, so_far = runs[-1]
        if (number, position) == (first + so_far, start + so_far):
            runs[-1] = (first, start, so_far + count)
            return
    runs.append((number, position, count))


@dataclass(slots=True)
class Settled:
    """Positions of a source's latest publications, of its newest life."""

    incarnation: int
    #: In the order of their numbers.
    runs: list[Run] = field(default_factory=list)
    #: The greatest number, and the greatest position.
    newest: int = 0
    last: int = 0

    def position(self, number: int) -> int | None:
        """The position of a number."""
        at = bisect_right(self.runs, (number, inf)) - 1
        if at >= 0:
            first, position, count = self.runs[at]
            if number < first + count:
                return position + number - first
        return None

    def add(self, number: int, position: int, window: int, count: int = 1) -> None:
        """Remember numbers that are new; those before the window are not asked for any more."""
        runs = self.runs
        if number > self.newest:
            add_run(runs, number, position, count)
        else:
            insort(runs, (number, position, count))
        self.newest = max(self.newest, number + count - 1)
        self.last = max(self.last, position + count - 1)
        while runs[0][0] + runs[0][2] <= self.newest - window + 1:
            del runs[0]


class Log:
    """The entries by position, and when each came; they enter at the end and leave in order."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Entry, float]] = {}

    def append(self, entry: Entry, now: float) -> None:
        """Keep the newest entry."""
        self._entries[entry.position] = (entry, now)

    def entry(self, position: int) -> Entry:
        """An entry that is still there."""
        return self._entries[position][0]

    def oldest(self, position: int) -> tuple[int, float]:
        """The size of the oldest entry's payload, and when it came; it is at this position."""
        entry, came = self._entries[position]
        return len(entry.payload), came

    def drop(self, position: int) -> None:
        """Forget the oldest entry, the one at this position."""
        del self._entries[position]


class Store:
    """The durable state of one rendezvous point, in memory.

    The log keeps at most `capacity` entries and `bytes_max` bytes of payloads, but always the
    newest entry, and nothing that came `age_max` seconds ago. Changes are durable after `commit`.
    """

    def __init__(
        self,
        capacity: int = 100_000,
        window: int = 64,
        access: Mapping[str, bytes] | None = None,
        *,
        bytes_max: int | None = None,
        age_max: float | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a log needs room for one notification at least, not {capacity}")
        if (bytes_max is not None and bytes_max < 1) or (age_max is not None and age_max <= 0):
            raise ValueError(f"a log cannot be bounded by {bytes_max} bytes and {age_max} seconds")
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
        #: Bytes of the payloads in the log, and the latest time heard of.
        self.bytes = 0
        self.now = 0.0
        self._capacity = capacity
        self._bytes_max = bytes_max
        self._age_max = age_max
        self._window = window
        self._log = Log()
        #: Whoever published last comes last.
        self._settled: dict[Source, Settled] = {}
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
        if number <= known.newest - self._window:
            return 0
        return known.position(number)

    def append(
        self,
        source: Source,
        incarnation: int,
        number: int,
        nodes: tuple[NodeId, ...],
        payload: bytes,
        trace: bytes = b"",
    ) -> Entry:
        """Accept a publication: the next position, and one more for each of its nodes."""
        self.last += 1
        entry = Entry(self.last, nodes, payload, trace)
        self._log.append(entry, self.now)
        self.bytes += len(payload)
        for node in nodes:
            self.numbers[node] = self.numbers.get(node, 0) + 1
        self._settle(source, incarnation, number)
        self._trim()
        return entry

    def entry(self, position: int) -> Entry:
        """The entry at a position between `first` and `last`; KeyError for any other."""
        if not self.first <= position <= self.last:
            raise KeyError(position)
        return self._log.entry(position)

    def advance(self, now: float) -> None:
        """Tell the time, and let go of what is too old.

        Seconds of a clock that goes on while the rendezvous point is down; if it steps back,
        time stands still.
        """
        self.now = max(self.now, now)
        if self._age_max is not None:
            while self.first <= self.last and self._oldest_came() <= self.now - self._age_max:
                self._drop()
            self._trim_removed()

    def set_access(self, access: Mapping[str, bytes] | None) -> None:
        """Replace the access list; None lets everybody publish."""
        self.access = access

    def commit(self) -> None:
        """Make every change so far durable; what depends on them may be sent out after this."""

    def close(self) -> None:
        """Let go of whatever the store lives in; what was not committed is given up."""

    def _settle(self, source: Source, incarnation: int, number: int) -> None:
        known = self._settled.pop(source, None)
        if known is None or incarnation > known.incarnation:
            known = Settled(incarnation)
        known.add(number, self.last, self._window)
        self._settled[source] = known
        if len(self._settled) > SOURCES_MAX:
            self._forget_source(next(iter(self._settled)))

    def _forget_source(self, source: Source) -> None:
        """Whoever has been silent for longest while very many others published."""
        del self._settled[source]

    def _trim(self) -> None:
        limit = self._bytes_max
        while self.last - self.first >= self._capacity or (
            limit is not None and self.bytes > limit and self.first < self.last
        ):
            self._drop()
        self._trim_removed()

    def _oldest_came(self) -> float:
        return self._log.oldest(self.first)[1]

    def _drop(self) -> None:
        self.bytes -= self._log.oldest(self.first)[0]
        self._log.drop(self.first)
        self.first += 1

    def _trim_removed(self) -> None:
        """Forget removed nodes that no entry can name; they are in the order of their removal."""
        while self._removed:
            node, (_, last) = next(iter(self._removed.items()))
            if last >= self.first:
                break
            del self._removed[node]
