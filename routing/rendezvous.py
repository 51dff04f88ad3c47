"""The rendezvous point: the root of a namespace's tree, and the authority on its graph.

It numbers publications, keeps them in its log, answers requests for sequence numbers and for
what was lost, and turns away publishers that are not on its access list (Kulik 2004, sections
3.4.6, 3.4.9 and 6.1).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace

import msgpack  # type: ignore[import-untyped]

from routing.batch import Batch, Row
from routing.messages import (
    Placed,
    Publications,
    Publish,
    PublishAck,
    PublishAcks,
    RecoverReply,
    RecoverRequest,
    Refusal,
    SequenceReply,
    SequenceRequest,
)
from routing.payload import NUMBERS_MAX, pack
from routing.publications import unbundle
from routing.store import Entry, Store
from routing.trace import pack_traces

_TAG_BYTES = 16
#: A reply to a recovery is sent once it has so many bytes of payload, or has cost a look at so
#: many entries: it must fit into a frame, and others wait meanwhile.
_RECOVER_BYTES = 1 << 20
_SCAN_MAX = 10_000
#: Sampled publications whose trace contexts are kept.
_TRACES_MAX = 10_000


def sign(key: bytes, message: Publish) -> bytes:
    """The tag that proves who published this; empty without a key."""
    if not key:
        return b""
    signed = (
        message.namespace,
        message.publisher,
        message.host,
        message.incarnation,
        message.number,
        message.version,
        message.nodes,
        message.body,
    )
    return hmac.digest(key, msgpack.packb(signed), "sha256")[:_TAG_BYTES]


class RendezvousPoint:
    """The authority behind one namespace's table."""

    def __init__(self, store: Store, recover_batch: int) -> None:
        self.store = store
        self._recover_batch = recover_batch
        #: By position; a restart forgets them, which costs a trace its end and nothing else.
        self._traces: dict[int, bytes] = {}

    # -- publications --------------------------------------------------------------------

    def publish(self, message: Publish) -> tuple[PublishAck, Entry | None]:
        """Accept a publication once; the entry is there only the first time."""
        source = (message.publisher, message.host)
        position = self.store.settled(source, message.incarnation, message.number)
        if position is not None:
            return _ack(message, position), None
        code, refusal = self._refusal(message)
        if code:
            return _ack(message, 0, refusal, code), None
        lowest = tuple(sorted(self.store.graph.low(message.nodes)))
        numbers = [(node, self.store.numbers.get(node, 0) + 1) for node in lowest]
        payload = pack(numbers, message.body)
        entry = self.store.append(source, message.incarnation, message.number, lowest, payload)
        if message.trace:
            entry = replace(entry, trace=message.trace)
            self._remember(entry)
        return _ack(message, entry.position), entry

    def _remember(self, entry: Entry) -> None:
        """Keep the context of a sampled publication, for whoever loses and recovers it."""
        self._traces[entry.position] = entry.trace
        if len(self._traces) > _TRACES_MAX:
            del self._traces[next(iter(self._traces))]

    def publish_all(
        self, message: Publications
    ) -> tuple[list[PublishAck | PublishAcks], list[Entry]]:
        """Accept many, one by one: one answer for all that are in the log, one for each refusal."""
        placed: list[Placed] = []
        answers: list[PublishAck | PublishAcks] = []
        entries: list[Entry] = []
        # All are taken apart before any is accepted: one that is malformed changes nothing.
        for each in list(unbundle(message)):
            ack, entry = self.publish(each)
            if ack.code:
                answers.append(ack)
            else:
                placed.append(Placed(ack.number, ack.position))
            if entry is not None:
                entries.append(entry)
        if placed:
            one = message
            answers.append(
                PublishAcks(one.namespace, one.path, one.publisher, one.incarnation, tuple(placed))
            )
        return answers, entries

    def _refusal(self, message: Publish) -> tuple[Refusal, str]:
        """Why a publication cannot be accepted, for programs and for people."""
        store = self.store
        if store.access is not None:
            key = store.access.get(message.publisher)
            if not key or not hmac.compare_digest(sign(key, message), message.tag):
                reason = f"publisher {message.publisher!r} is not on the access list"
                return Refusal.NO_ACCESS, reason
        unknown = [node for node in message.nodes if node not in store.graph]
        if unknown:
            return Refusal.UNKNOWN_NODE, f"node {min(unknown)} is not in the content graph"
        if 0 <= message.version < store.inserted:
            old, new = message.version, store.inserted
            return Refusal.OLD_VERSION, f"the nodes come from graph version {old}, older than {new}"
        if len(message.nodes) > NUMBERS_MAX:
            reason = f"{len(message.nodes)} nodes are more than a header can hold"
            return Refusal.TOO_MANY_NODES, reason
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
        size = 0
        while through < upto and len(rows) < self._recover_batch and size < _RECOVER_BYTES:
            through += 1
            entry = store.entry(through)
            covering = store.covering(entry.nodes)
            if not covering.isdisjoint(wanted):
                rows.append((tuple(sorted(covering)), entry.position, entry.payload))
                size += len(entry.payload)
        return RecoverReply(
            request.namespace,
            request.path,
            request.request,
            store.first,
            through,
            Batch.of(rows, self._contexts(rows)),
        )

    def _contexts(self, rows: Sequence[Row]) -> bytes:
        traces = self._traces
        if not traces:
            return b""
        found = ((row, traces.get(position)) for row, (_, position, _) in enumerate(rows))
        return pack_traces((row, context) for row, context in found if context is not None)


def _ack(
    message: Publish, position: int, refusal: str = "", code: Refusal = Refusal.NONE
) -> PublishAck:
    return PublishAck(
        message.namespace,
        message.path,
        message.publisher,
        message.incarnation,
        message.number,
        position,
        refusal,
        code,
    )
