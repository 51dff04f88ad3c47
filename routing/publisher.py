"""The publisher end: numbers publications and repeats them until they are answered.

The rendezvous point takes each number once, so a publication that was repeated, or whose
acknowledgement was lost, is still published once. What is published together, and what has
waited together for room, travels together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from routing import messages
from routing.api import Accepted, Address, Config, Effect, Publication, Publish, Refused
from routing.batch import EMPTY, Batch
from routing.errors import ProtocolError
from routing.publications import pack, sign
from routing.trace import pack_traces

#: Publications of one client that may wait their turn.
BACKLOG_MAX = 10_000
#: A message is closed when it has so many publications, or bytes of bodies.
_TOGETHER_MAX = 256
_TOGETHER_BYTES = 128 << 10


@dataclass(slots=True)
class _Sent:
    """Publications that were sent in one message, and wait for their answers."""

    message: messages.Publish
    number: int
    count: int
    ticket: int
    again_at: float
    #: The numbers without an answer, once others have one.
    left: set[int] | None = None

    def answer(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Those numbers that had no answer until now, as (number, how many)."""
        first, end = max(first, self.number), min(end, self.number + self.count)
        if self.left is None:
            if (first, end) == (self.number, self.number + self.count):
                self.left = set()
                yield first, self.count
                return
            self.left = set(range(self.number, self.number + self.count))
        for number in range(first, end):
            if number in self.left:
                self.left.remove(number)
                yield number, 1


@dataclass(slots=True)
class _Client:
    """One client's publications to one namespace."""

    number: int = 0
    #: By their first number, which rises.
    outstanding: dict[int, _Sent] = field(default_factory=dict)
    backlog: deque[Publish] = field(default_factory=deque)
    waiting: int = 0


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
        """Send publications, or let them wait until the window has room."""
        client = self._clients.setdefault(event.client, _Client())
        if client.waiting + len(event.publications) > BACKLOG_MAX:
            raise ProtocolError(
                f"{event.client!r} has {client.waiting} publications waiting to be acknowledged, "
                f"and no more than {BACKLOG_MAX} may"
            )
        if event.publications:
            client.waiting += len(event.publications)
            client.backlog.append(event)
            self._send(client, now)

    # -- answers -------------------------------------------------------------------------

    def answered(self, reply: messages.PublishAck | messages.PublishRefusal, now: float) -> None:
        """Tell the client, once, what became of its publications."""
        client = self._clients.get(reply.publisher)
        if client is None or reply.incarnation != self._incarnation:
            return
        name, namespace = reply.publisher, reply.namespace
        if isinstance(reply, messages.PublishAck):
            for number, position, count in reply.placed:
                for ticket, offset, so_many in self._settle(client, number, count):
                    at = position + offset
                    self._emit(Accepted(name, namespace, ticket, at, so_many))
        else:
            for ticket, _, _ in self._settle(client, reply.number, 1):
                self._emit(Refused(name, namespace, reply.reason, ticket=ticket, code=reply.code))
        if not client.outstanding:
            self._waiting.discard(name)
        self._send(client, now)

    def _settle(self, client: _Client, number: int, count: int) -> list[tuple[int, int, int]]:
        """Numbers are answered: (ticket, how far from the first number, how many) of each run."""
        end, found, done = number + count, [], []
        for sent in client.outstanding.values():
            if sent.number >= end:
                break
            if sent.number + sent.count > number:
                for first, so_many in sent.answer(number, end):
                    found.append((sent.ticket + first - sent.number, first - number, so_many))
                if not sent.left:
                    done.append(sent.number)
        for first in done:
            del client.outstanding[first]
        return found

    # -- time ----------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Repeat what has not been answered in time."""
        if not self._waiting or now < self._quiet_until:
            return
        times: list[float] = []
        for name in sorted(self._waiting):
            for sent in list(self._clients[name].outstanding.values()):
                if sent.again_at <= now:
                    sent.again_at = now + self._config.retry
                    self._ask(sent.message, now)
                times.append(sent.again_at)
        self._quiet_until = min(times, default=now)

    def next_timeout(self) -> float | None:
        """When the next repetition may be due."""
        return self._quiet_until if self._waiting else None

    # -- sending -------------------------------------------------------------------------

    def _send(self, client: _Client, now: float) -> None:
        while client.backlog:
            room = self._room(client)
            if room <= 0:
                return
            event = self._take(client, room)
            number, client.number = client.number + 1, client.number + len(event.publications)
            message = self._message(event, number)
            again_at = now + self._config.retry
            self._quiet_until = min(self._quiet_until, again_at) if self._waiting else again_at
            self._waiting.add(event.client)
            count = len(event.publications)
            client.outstanding[number] = _Sent(message, number, count, event.ticket, again_at)
            self._ask(message, now)

    def _room(self, client: _Client) -> int:
        """The window spans numbers, not publications: the rendezvous point remembers so many."""
        oldest = next(iter(client.outstanding), client.number + 1)
        return self._config.window - (client.number + 1 - oldest)

    @staticmethod
    def _take(client: _Client, room: int) -> Publish:
        """The next publications that fit into one message."""
        event = client.backlog.popleft()
        count = _fitting(event.publications, min(room, _TOGETHER_MAX))
        client.waiting -= count
        if count == len(event.publications):
            return event
        rest = event.publications[count:]
        later = replace(event, publications=rest, ticket=event.ticket + count)
        client.backlog.appendleft(later)
        return replace(event, publications=event.publications[:count])

    def _message(self, event: Publish, number: int) -> messages.Publish:
        version = -1 if event.version is None else event.version
        fields = (event.namespace, (), event.client, self._host, self._incarnation, version)
        empty = messages.Publish(*fields, EMPTY)
        rows = (
            (nodes, at, pack(sign(event.key, empty, at, nodes, body), body))
            for at, (nodes, body, _) in enumerate(event.publications, start=number)
        )
        contexts = ((row, each.trace) for row, each in enumerate(event.publications) if each.trace)
        return messages.Publish(*fields, Batch.of(rows, pack_traces(contexts)))


def _fitting(publications: Sequence[Publication], most: int) -> int:
    """How many of them one message holds; one at least."""
    size = 0
    for count, each in enumerate(publications[:most]):
        size += len(each.body)
        if size > _TOGETHER_BYTES and count:
            return count
    return min(most, len(publications))
