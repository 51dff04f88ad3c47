"""Makes the spans of one host: which contexts come in with a message, and which go out instead.

A router keeps contexts with their notifications and does nothing else with them. Around each
message that carries any, the host calls `Tracer.hop`: every context that came in becomes the
parent of a span of this host, and what goes out carries the context of that span. Control messages
(subscription, sequence numbers, graph set-up, unsubscription, rejection) belong to whatever caused
them. What time makes a host send again hangs below a span of its own, so that each attempt is seen.

Unsampled messages cost one look at an empty column.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from actors.telemetry.export import Exporter
from actors.telemetry.options import Tracing
from actors.telemetry.spans import Span, hop_of, new_child, new_trace
from routing.api import Deliver, Effect, Notification, Send
from routing.batch import unpack_u32
from routing.messages import (
    GraphSetup,
    Message,
    Notify,
    Publish,
    RecoverReply,
    Reject,
    Resubscribe,
    SequenceReply,
    SequenceRequest,
    Subscribe,
    Unsubscribe,
    UnsubscribeAck,
)
from routing.trace import replace_traces

#: Spans that a host keeps for whoever asks.
RECENT_MAX = 4096
#: Subscribers that a delivery names; the rest are counted.
_NAMED_MAX = 16
_GAP_MAX = 1 << 62

_BATCHED = (Notify, Publish, RecoverReply)
_CAUSAL = (
    *(SequenceRequest, SequenceReply, Subscribe, Resubscribe, GraphSetup),
    *(Reject, Unsubscribe, UnsubscribeAck),
)
_OPERATIONS: dict[type, str] = {
    Publish: "submit",
    Notify: "forward",
    RecoverReply: "recover",
    SequenceRequest: "ask numbers",
    SequenceReply: "tell numbers",
    Subscribe: "subscribe",
    Resubscribe: "subscribe",
    GraphSetup: "set up",
    Reject: "reject",
    Unsubscribe: "unsubscribe",
    UnsubscribeAck: "release",
}
_NONE: dict[int, bytes] = {}


def contexts_of(message: Message) -> dict[int, bytes]:
    """The contexts that a message carries, by row; almost always none."""
    if isinstance(message, _BATCHED):
        return message.batch.contexts() if message.batch.traces else _NONE
    context: bytes = getattr(message, "trace", b"")
    return {0: context} if context else _NONE


@dataclass(slots=True)
class _Work:
    """A span that ends with the turn."""

    context: bytes
    parent: bytes
    operation: str
    namespace: str
    start_ns: int
    attributes: dict[str, Any]
    clients: list[str] = field(default_factory=list)


class Tracer:
    """The spans of one host; `hop` and `finish` belong to its loop, the rest to any thread."""

    def __init__(self, service: str, options: Tracing) -> None:
        self.service = service
        self.options = options
        self.recent: deque[Span] = deque(maxlen=RECENT_MAX)
        self.made = 0
        self.exporter = Exporter(service, options.endpoint) if options.endpoint else None
        self._random = random.Random()  # noqa: S311
        #: Per namespace, publications to be passed over before the next one that is sampled.
        self._passed: dict[str, int] = {}
        self._works: list[_Work] = []
        self._deliveries: dict[tuple[bytes, int], _Work] = {}

    # -- roots ---------------------------------------------------------------------------

    def root(self, namespace: str, sample: bool | None) -> bytes:
        """The context of a new subscription or unsubscription; empty if it is not sampled."""
        return self.roots(namespace, 1, sample).get(0, b"")

    def roots(self, namespace: str, count: int, sample: bool | None) -> dict[int, bytes]:
        """The contexts of those of so many publications that are sampled, by their index."""
        if sample is None:
            ratio = self.options.ratio_of(namespace)
            chosen: Sequence[int] = self._draw(namespace, ratio, count) if ratio else ()
        else:
            chosen = range(count) if sample else ()
        return {index: new_trace() for index in chosen}

    def _draw(self, namespace: str, ratio: float, count: int) -> list[int]:
        """Which of so many are sampled: what is drawn is how many are passed over, not each one.

        Two publishers at once may both go by the same draw; that is as good as any other.
        """
        chosen: list[int] = []
        left = self._passed.get(namespace, -1)
        if left < 0:
            left = self._gap(ratio)
        while left < count:
            chosen.append(left)
            left += 1 + self._gap(ratio)
        self._passed[namespace] = left - count
        return chosen

    def _gap(self, ratio: float) -> int:
        """Failures before the first success, each of them with this chance."""
        if ratio == 1.0:
            return 0
        return int(min(math.log(1.0 - self._random.random()) / math.log1p(-ratio), _GAP_MAX))

    def note(self, span: Span) -> None:
        """Keep a finished span, and have it exported."""
        self.made += 1
        self.recent.append(span)
        if self.exporter is not None:
            self.exporter.offer(span)

    # -- hops ----------------------------------------------------------------------------

    def hop(
        self,
        message: Message,
        contexts: dict[int, bytes],
        about: dict[str, Any],
        handle: Callable[[], list[Effect]],
    ) -> list[Effect]:
        """Handle a message that carries contexts; its effects carry those of this host's spans."""
        start_ns = time.time_ns()
        renewed = {old: new_child(old) for old in contexts.values()}
        operation, namespace = _OPERATIONS[type(message)], getattr(message, "namespace", "")
        # Copies of a notification share its context: the first stands for all.
        for old, row in {old: row for row, old in reversed(contexts.items())}.items():
            shown = about | _about(message, row, renewed[old])
            self._works.append(_Work(renewed[old], old, operation, namespace, start_ns, shown))
        effects = handle()
        cause = next(iter(renewed.values())) if isinstance(message, _CAUSAL) else b""
        return [self._renew(effect, renewed, cause) for effect in effects]

    def caused(self, effects: list[Effect], context: bytes) -> list[Effect]:
        """The effects of a local client's sampled request."""
        return [self._renew(effect, {}, context) for effect in effects]

    def repeated(self, effects: list[Effect]) -> list[Effect]:
        """The effects of time: a sampled publication that goes out again has a span for that."""
        renewed: dict[bytes, bytes] = {}
        for effect in effects:
            message = effect.message if isinstance(effect, Send) else None
            if isinstance(message, Publish):
                for context in contexts_of(message).values():
                    renewed[context] = self._repeat(message.namespace, context)
        return [self._renew(effect, renewed, b"") for effect in effects] if renewed else effects

    def _repeat(self, namespace: str, old: bytes) -> bytes:
        context = new_child(old)
        about = {"messaging.f3.hop": hop_of(context)}
        self._works.append(_Work(context, old, "repeat", namespace, time.time_ns(), about))
        return context

    def _renew(self, effect: Effect, renewed: dict[bytes, bytes], cause: bytes) -> Effect:
        if isinstance(effect, Send):
            return Send(effect.dst, _renewed(effect.message, renewed, cause))
        if isinstance(effect, Deliver) and effect.notification.trace:
            note = effect.notification
            context = self._delivery(effect.client, note, renewed)
            return Deliver(effect.client, replace(note, trace=context))
        return effect

    def _delivery(self, client: str, note: Notification, renewed: dict[bytes, bytes]) -> bytes:
        """One span for all deliveries of a notification at this host."""
        parent = renewed.get(note.trace, note.trace)
        work = self._deliveries.get((parent, note.position))
        if work is None:
            about = {"messaging.f3.position": note.position}
            context, start_ns = new_child(parent), time.time_ns()
            work = _Work(context, parent, "deliver", note.namespace, start_ns, about)
            self._deliveries[parent, note.position] = work
            self._works.append(work)
        work.clients.append(client)
        return work.context

    def finish(self) -> None:
        """The turn is over: its effects are performed."""
        if not self._works:
            return
        end_ns = time.time_ns()
        for work in self._works:
            self.note(_finished(work, end_ns))
        self._works.clear()
        self._deliveries.clear()

    # -- the end -------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """How many spans were made, exported and dropped, and what is wrong."""
        shown: dict[str, Any] = {"spans": self.made, "endpoint": self.options.endpoint}
        return shown if self.exporter is None else shown | self.exporter.status()

    def close(self) -> None:
        """Export what is left, for a moment; then let go."""
        if self.exporter is not None:
            self.exporter.close()


def _finished(work: _Work, end_ns: int) -> Span:
    attributes = work.attributes
    if work.clients:
        attributes["messaging.f3.subscribers"] = len(work.clients)
        attributes["messaging.f3.subscriber"] = ", ".join(work.clients[:_NAMED_MAX])
    return Span(
        work.context[:16],
        work.context[16:24],
        work.parent[16:24],
        work.operation,
        work.namespace,
        work.start_ns,
        end_ns,
        attributes,
    )


def _renewed(message: Message, renewed: dict[bytes, bytes], cause: bytes) -> Message:
    """A message with the contexts of this host's spans."""
    if isinstance(message, _BATCHED):
        if not message.batch.traces or not renewed:
            return message
        traces = replace_traces(message.batch.traces, renewed)
        return replace(message, batch=replace(message.batch, traces=traces))
    if isinstance(message, _CAUSAL):
        context = renewed.get(message.trace, cause or message.trace)
    else:
        return message
    return message if context == message.trace else replace(message, trace=context)


def _about(message: Message, row: int, context: bytes) -> dict[str, Any]:
    """What is worth knowing of one sampled message."""
    about: dict[str, Any] = {"messaging.f3.hop": hop_of(context)}
    if isinstance(message, _BATCHED):
        offsets = unpack_u32(message.batch.header_offsets)
        about["messaging.batch.message_count"] = len(message.batch)
        about["messaging.f3.header_size"] = offsets[row + 1] - offsets[row]
        if not isinstance(message, Publish):
            about["messaging.f3.position"] = message.batch.position(row)
    elif isinstance(message, Subscribe | Unsubscribe):
        about["messaging.f3.header_size"] = len(message.nodes)
    return about
