"""Publishers: named sources of publications, acknowledged or not.

Whoever publishes leaves it with `Outgoing`; the host's loop takes what has gathered since it last
looked and gives it to the router in one event. So publications share messages when there are
many, and leave at once when there are few.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from actors.answers import Receipt, Room, late
from actors.inbox import ClosedError
from actors.member import BODY_MAX
from actors.telemetry.roots import Note, root_span
from routing.api import NodeId, Publication, Publish

if TYPE_CHECKING:
    from actors.client import Client
    from actors.host import RouterHost

#: Publications of one client host that may wait for their acknowledgement, and of one event.
OUTSTANDING_MAX = 4096
_AT_ONCE = 256


class Pending:
    """Publications that wait for their answers."""

    __slots__ = ("first",)

    #: The ticket of the first of them.
    first: int

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        """One of them, counted from the first, is in the log, or is not."""
        raise AssertionError


class _One(Pending):
    __slots__ = ("_receipt",)

    def __init__(self, receipt: Receipt[int]) -> None:
        self._receipt = receipt

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        self._receipt.settle(position, error)


class _Many:
    """Publications with one answer: all positions, or the first failure."""

    def __init__(self, receipt: Receipt[list[int]], count: int) -> None:
        self._receipt = receipt
        self._positions = [0] * count
        self._left = count

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        self._positions[index] = position
        self._left -= 1
        if error is not None or not self._left:
            self._receipt.settle(self._positions, error)


class _Part(Pending):
    """Those of many that begin here."""

    __slots__ = ("_many", "_start")

    def __init__(self, many: _Many, start: int) -> None:
        self._many, self._start = many, start

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        self._many.settle(self._start + index, position, error)


class _Traced(Pending):
    """Publications of which some are sampled: their root spans end with their answers."""

    __slots__ = ("_notes", "_pending")

    def __init__(self, pending: Pending, notes: dict[int, Note]) -> None:
        self._pending, self._notes = pending, notes

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        note = self._notes.pop(index, None)
        if note is not None:
            note(error)
        self._pending.settle(index, position, error)


class Origin(NamedTuple):
    """What publications must have in common to share an event."""

    publisher: str
    namespace: str
    key: bytes
    version: int | None


class Outgoing:
    """What a client host publishes: gathered until its loop looks, kept until it is answered."""

    def __init__(self, host: RouterHost, why_late: Callable[[], str]) -> None:
        self._host, self._why_late = host, why_late
        self._room = Room(OUTSTANDING_MAX)
        #: What receipts wait for; told once for many answers.
        self.answered = threading.Condition()
        self._lock = threading.Lock()
        self._last = 0
        self._pending: dict[int, Pending] = {}
        self._gathered: deque[tuple[Origin, int, list[Publication]]] = deque()
        self._posted = False

    def add(
        self, origin: Origin, items: list[Publication], pending: Pending, timeout: float
    ) -> None:
        """Have these published; TimeoutError if too much waits to be acknowledged."""
        if not self._room.take(len(items), timeout):
            raise TimeoutError(
                f"{OUTSTANDING_MAX} publications have waited {timeout} s for their "
                f"acknowledgement: {self._why_late()}"
            )
        with self._lock:
            ticket = self._last + 1
            self._last += len(items)
            pending.first = ticket
            for each in range(ticket, ticket + len(items)):
                self._pending[each] = pending
            self._gathered.append((origin, ticket, items))
            idle, self._posted = not self._posted, True
        if idle:
            self._host.post(self._publish)
        if not self._host.running:
            self.fail(ClosedError("the client is closed"))

    # -- in the host's thread --------------------------------------------------------------

    def _publish(self) -> None:
        self._posted = False  # before looking: whoever adds something from now on posts again
        for origin, ticket, items in self._together():
            name, namespace, key, version = origin
            self._host.take(Publish(name, namespace, tuple(items), ticket, key, version))

    def _together(self) -> Iterator[tuple[Origin, int, list[Publication]]]:
        """What has gathered, joined as far as it may travel together."""
        gathered = self._gathered
        while gathered:
            origin, ticket, items = gathered.popleft()
            while gathered and len(items) < _AT_ONCE:
                other, following, more = gathered[0]
                if other != origin or following != ticket + len(items):
                    break
                items.extend(more)
                gathered.popleft()
            yield origin, ticket, items

    def settle(
        self, ticket: int, position: int = 0, count: int = 1, error: Exception | None = None
    ) -> None:
        """So many publications from this ticket on are in the log, or are not."""
        settled = 0
        for each in range(ticket, ticket + count):
            pending = self._pending.pop(each, None)
            if pending is not None:
                settled += 1
                pending.settle(each - pending.first, position + each - ticket, error)
        with self.answered:
            self.answered.notify_all()
        self._room.give(settled)

    def fail(self, error: Exception) -> None:
        """No answer will come."""
        self._posted = False
        for ticket in list(self._pending):
            self.settle(ticket, error=error)


class Publisher:
    """A named source of publications."""

    def __init__(self, client: Client, name: str, key: bytes) -> None:
        self._client = client
        self.name = name
        self._key = key

    def send(
        self,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        *,
        version: int | None = None,
        timeout: float = 10.0,
        sample: bool | None = None,
        since_ns: int | None = None,
        then: Callable[[], None] | None = None,
    ) -> Receipt[int]:
        """Publish without waiting for the log; blocks only while too much is on its way.

        Whoever does not care what becomes of it may drop the receipt. `sample` forces or forbids
        a trace; `since_ns` is when its preprocessing began, for a span of its own; `then` is
        called in the host's thread when there is an answer.
        """
        receipt: Receipt[int] = Receipt(self._client.outgoing.answered, then)
        items = [Publication(tuple(nodes), body)]
        self._publish(namespace, items, version, timeout, _One(receipt), sample, since_ns)
        return receipt

    def send_many(
        self,
        namespace: str,
        publications: Iterable[tuple[Iterable[NodeId], bytes]],
        *,
        version: int | None = None,
        timeout: float = 10.0,
    ) -> Receipt[list[int]]:
        """Publish (nodes, body) each, at less cost than one by one; done with their positions."""
        items = [Publication(tuple(nodes), body) for nodes, body in publications]
        receipt: Receipt[list[int]] = Receipt(self._client.outgoing.answered)
        many = _Many(receipt, len(items))
        if not items:
            receipt.settle([], None)
        for start in range(0, len(items), _AT_ONCE):
            some = items[start : start + _AT_ONCE]
            self._publish(namespace, some, version, timeout, _Part(many, start))
        return receipt

    def _publish(
        self,
        namespace: str,
        items: list[Publication],
        version: int | None,
        timeout: float,
        pending: Pending,
        sample: bool | None = None,
        since_ns: int | None = None,
    ) -> None:
        self._client.check_namespace(namespace)
        longest = max([len(each.body) for each in items])
        if longest > BODY_MAX:
            raise ValueError(f"a body of {longest} bytes is longer than {BODY_MAX}")
        tracer = self._client.host.tracer
        traces = tracer.roots(namespace, len(items), sample)
        if traces:
            begin = partial(root_span, tracer, "publish", namespace, since_ns=since_ns)
            pending = _Traced(pending, {index: begin(trace=t) for index, t in traces.items()})
            for index, trace in traces.items():
                items[index] = items[index]._replace(trace=trace)
        origin = Origin(self.name, namespace, self._key, version)
        self._client.outgoing.add(origin, items, pending, timeout)

    def publish(
        self,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        *,
        timeout: float = 10.0,
        **options: Any,
    ) -> int:
        """`send`, and wait: its position once it is in the log. RefusedError, TimeoutError."""
        receipt = self.send(namespace, nodes, body, timeout=timeout, **options)
        try:
            return receipt.result(timeout)
        except TimeoutError:
            raise late(timeout, self._client.why_late) from None

    async def publish_async(
        self,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        *,
        timeout: float = 10.0,
        **options: Any,
    ) -> int:
        """`publish` for coroutines."""
        loop, answered = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended before the answer
                loop.call_soon_threadsafe(answered.set)

        send = partial(self.send, namespace, nodes, body, timeout=timeout, then=wake, **options)
        receipt = await loop.run_in_executor(None, send)
        try:
            await asyncio.wait_for(answered.wait(), timeout)
        except TimeoutError:
            raise late(timeout, self._client.why_late) from None
        return receipt.result(0)
