"""The publisher end: numbers publications and repeats each until it is answered.

The rendezvous point takes each number once, so a publication that was repeated, or whose
acknowledgement was lost, is still published once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from routing import messages
from routing.api import Accepted, Address, Config, Effect, Publish, Refused
from routing.errors import ProtocolError
from routing.rendezvous import sign

#: Publications of one client that may wait their turn.
BACKLOG_MAX = 10_000


@dataclass(slots=True)
class _Outstanding:
    message: messages.Publish
    ticket: int
    again_at: float


@dataclass(slots=True)
class _Client:
    """One client's publications to one namespace."""

    number: int = 0
    outstanding: dict[int, _Outstanding] = field(default_factory=dict)
    backlog: deque[Publish] = field(default_factory=deque)


class PublisherEnd:
    """The local publishers of one namespace at one router."""

    def __init__(
        self,
        host: Address,
        incarnation: int,
        config: Config,
        emit: Callable[[Effect], None],
        ask: Callable[[messages.RequestMessage, float], None],
    ) -> None:
        self._host = host
        self._incarnation = incarnation
        self._config = config
        self._emit = emit
        self._ask = ask
        self._clients: dict[str, _Client] = {}
        #: Whose publications wait for an answer; none is repeated before `_quiet_until`.
        self._waiting: set[str] = set()
        self._quiet_until = 0.0

    def publish(self, event: Publish, now: float) -> None:
        """Send a publication, or let it wait until the window has room."""
        client = self._clients.setdefault(event.client, _Client())
        if len(client.backlog) >= BACKLOG_MAX:
            raise ProtocolError(
                f"{event.client!r} has {BACKLOG_MAX} publications waiting to be acknowledged"
            )
        client.backlog.append(event)
        self._send(client, now)

    def answered(self, ack: messages.PublishAck | messages.PublishAcks, now: float) -> None:
        """Tell the client, once, what became of its publications."""
        client = self._clients.get(ack.publisher)
        if client is None or ack.incarnation != self._incarnation:
            return
        if isinstance(ack, messages.PublishAcks):
            for number, position in ack.placed:
                self._settle(client, ack, number, position, "")
        else:
            self._settle(client, ack, ack.number, ack.position, ack.refusal, ack.code)
        if not client.outstanding:
            self._waiting.discard(ack.publisher)
        self._send(client, now)

    def _settle(
        self,
        client: _Client,
        ack: messages.PublishAck | messages.PublishAcks,
        number: int,
        position: int,
        refusal: str,
        code: messages.Refusal = messages.Refusal.NONE,
    ) -> None:
        done = client.outstanding.pop(number, None)
        if done is None:
            return
        if code:
            ticket = done.ticket
            self._emit(Refused(ack.publisher, ack.namespace, refusal, ticket=ticket, code=code))
        else:
            self._emit(Accepted(ack.publisher, ack.namespace, done.ticket, position))

    def tick(self, now: float) -> None:
        """Repeat what has not been answered in time."""
        if not self._waiting or now < self._quiet_until:
            return
        times: list[float] = []
        for name in sorted(self._waiting):
            for waiting in list(self._clients[name].outstanding.values()):
                if waiting.again_at <= now:
                    waiting.again_at = now + self._config.retry
                    self._ask(waiting.message, now)
                times.append(waiting.again_at)
        self._quiet_until = min(times, default=now)

    def next_timeout(self) -> float | None:
        """When the next repetition may be due."""
        return self._quiet_until if self._waiting else None

    def _send(self, client: _Client, now: float) -> None:
        while client.backlog and self._has_room(client):
            event = client.backlog.popleft()
            client.number += 1
            message = self._message(event, client.number)
            again_at = now + self._config.retry
            self._quiet_until = min(self._quiet_until, again_at) if self._waiting else again_at
            self._waiting.add(event.client)
            client.outstanding[client.number] = _Outstanding(message, event.ticket, again_at)
            self._ask(message, now)

    def _has_room(self, client: _Client) -> bool:
        """The window spans numbers, not publications: the rendezvous point remembers so many."""
        # Numbers enter in order and stay where they are when repeated: the first is the oldest.
        oldest = next(iter(client.outstanding), client.number + 1)
        return client.number + 1 - oldest < self._config.window

    def _message(self, event: Publish, number: int) -> messages.Publish:
        message = messages.Publish(
            event.namespace,
            (),
            event.client,
            self._host,
            self._incarnation,
            number,
            -1 if event.version is None else event.version,
            event.nodes,
            event.body,
            b"",
            event.trace,
        )
        return replace(message, tag=sign(event.key, message)) if event.key else message
