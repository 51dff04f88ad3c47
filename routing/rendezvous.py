"""The rendezvous point: the root of a namespace's tree, and the authority on its graph.

It numbers publications, keeps them in its log, answers requests for sequence numbers and for
what was lost, and turns away publishers that are not on its access list (Kulik 2004, sections
3.4.6, 3.4.9 and 6.1).
"""

from __future__ import annotations

import hmac

from routing.batch import Batch, Row
from routing.messages import (
    Placed,
    Publish,
    PublishAck,
    PublishRefusal,
    RecoverReply,
    RecoverRequest,
    Refusal,
    SequenceReply,
    SequenceRequest,
)
from routing.payload import NUMBERS_MAX, pack
from routing.publications import Signed, sign, unpack
from routing.store import Entry, Store
from routing.trace import pack_traces

#: A reply to a recovery is sent once it has so many bytes of payload, or has cost a look at so
#: many entries: it must fit into a frame, and others wait meanwhile.
_RECOVER_BYTES = 1 << 20
_SCAN_MAX = 10_000
#: Headers whose lowest nodes are kept.
_HEADERS_MAX = 50_000


class RendezvousPoint:
    """The authority behind one namespace's table."""

    def __init__(self, store: Store, recover_batch: int) -> None:
        self.store = store
        self._recover_batch = recover_batch
        #: The lowest nodes of headers, as long as the graph is at this version.
        self._headers: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._headers_version = 0

    # -- publications --------------------------------------------------------------------

    def publish(self, message: Publish) -> tuple[list[PublishAck | PublishRefusal], list[Entry]]:
        """Accept publications, each once: the answers, and the entries that are new."""
        placed: list[Placed] = []
        answers: list[PublishAck | PublishRefusal] = []
        entries: list[Entry] = []
        store, incarnation = self.store, message.incarnation
        source = (message.publisher, message.host)
        to = (message.namespace, message.path, message.publisher, incarnation)
        # All are taken apart before any is accepted: one that is malformed changes nothing.
        for each in list(unpack(message)):
            position = store.settled(source, incarnation, each.number)
            if position is None:
                code, reason = self._refusal(message, each)
                if code:
                    answers.append(PublishRefusal(*to, each.number, reason, code))
                    continue
                entries.append(self._append(source, incarnation, each))
                position = store.last
            _place(placed, each.number, position)
        if placed:
            answers.append(PublishAck(*to, tuple(placed)))
        return answers, entries

    def _append(self, source: tuple[str, str], incarnation: int, each: Signed) -> Entry:
        store, lowest = self.store, self._headers[each.nodes]
        numbers = [(node, store.numbers.get(node, 0) + 1) for node in lowest]
        payload = pack(numbers, each.body)
        return store.append(source, incarnation, each.number, lowest, payload, each.trace)

    def _refusal(self, message: Publish, each: Signed) -> tuple[Refusal, str]:
        """Why a publication cannot be accepted, for programs and for people."""
        store = self.store
        if store.access is not None:
            key = store.access.get(message.publisher)
            tag = sign(key or b"", message, each.number, each.nodes, each.body)
            if not key or not hmac.compare_digest(tag, each.tag):
                reason = f"publisher {message.publisher!r} is not on the access list"
                return Refusal.NO_ACCESS, reason
        if 0 <= message.version < store.inserted:
            old, new = message.version, store.inserted
            return Refusal.OLD_VERSION, f"the nodes come from graph version {old}, older than {new}"
        return self._bad_header(each.nodes)

    def _bad_header(self, nodes: tuple[int, ...]) -> tuple[Refusal, str]:
        """What is wrong with a header; the lowest nodes of a right one are kept."""
        graph, headers = self.store.graph, self._headers
        if self._headers_version != self.store.version or len(headers) >= _HEADERS_MAX:
            headers.clear()
            self._headers_version = self.store.version
        if nodes in headers:
            return Refusal.NONE, ""
        unknown = [node for node in nodes if node not in graph]
        if unknown:
            return Refusal.UNKNOWN_NODE, f"node {min(unknown)} is not in the content graph"
        if len(nodes) > NUMBERS_MAX:
            return Refusal.TOO_MANY_NODES, f"{len(nodes)} nodes are more than a header can hold"
        headers[nodes] = tuple(sorted(graph.low(nodes)))
        return Refusal.NONE, ""

    # -- loss detection and recovery -----------------------------------------------------

    def sequence(self, request: SequenceRequest) -> SequenceReply:
        """The numbers of a node and its descendants: what a subscriber will see the next of."""
        graph, numbers = self.store.graph, self.store.numbers
        node = request.node
        tracked = {node, *graph.descendants(node)} if node in graph else set()
        found = tuple(sorted((node, numbers[node]) for node in tracked if node in numbers))
        return SequenceReply(
            request.namespace, request.path, request.request, self.store.last, found
        )

    def recover(self, request: RecoverRequest) -> RecoverReply:
        """What the log still has of a range, for these nodes; as much as fits into one reply."""
        store, wanted = self.store, frozenset(request.nodes)
        upto = min(request.upto, store.last)
        through = max(min(request.after, upto), store.first - 1)
        upto = min(upto, through + _SCAN_MAX)
        rows: list[Row] = []
        traces: list[tuple[int, bytes]] = []
        size = 0
        while through < upto and len(rows) < self._recover_batch and size < _RECOVER_BYTES:
            through += 1
            entry = store.entry(through)
            covering = store.covering(entry.nodes)
            if not covering.isdisjoint(wanted):
                if entry.trace:
                    traces.append((len(rows), entry.trace))
                rows.append((tuple(sorted(covering)), entry.position, entry.payload))
                size += len(entry.payload)
        return RecoverReply(
            request.namespace,
            request.path,
            request.request,
            store.first,
            through,
            Batch.of(rows, pack_traces(traces)),
        )


def _place(placed: list[Placed], number: int, position: int) -> None:
    """Add a publication to those before it, in their run where it follows them."""
    if placed:
        last = placed[-1]
        if (number, position) == (last.number + last.length, last.position + last.length):
            placed[-1] = last._replace(length=last.length + 1)
            return
    placed.append(Placed(number, position))
