"""Publishers: named sources of publications, acknowledged or not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Protocol

from actors.answers import Room, promise, wait, wait_async
from actors.member import BODY_MAX
from actors.telemetry.roots import Note, root_span
from routing.api import NodeId, Publish

if TYPE_CHECKING:
    from actors.client import Client

Item = tuple[tuple[NodeId, ...], bytes]
"""The nodes and the body of a publication."""

#: Publications of one client host that may wait for their acknowledgement, and of one command.
OUTSTANDING_MAX = 4096
_AT_ONCE = 256


class Pending(Protocol):
    """Publications that wait for their answers; `index` counts from their first ticket."""

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        """One of them is in the log, or is not."""


class _One:
    """A single publication."""

    def __init__(self, future: Future[int]) -> None:
        self._future = future

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        if error is None:
            self._future.set_result(position)
        else:
            self._future.set_exception(error)


class _Many:
    """Publications with one answer: all positions, or the first failure."""

    def __init__(self, future: Future[list[int]], count: int) -> None:
        self._future = future
        self._positions = [0] * count
        self._left = count

    def part(self, start: int) -> Pending:
        """The publications from here on."""
        return _Part(self, start)

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        self._positions[index] = position
        self._left -= 1
        if error is not None and not self._future.done():
            self._future.set_exception(error)
        elif not self._left and not self._future.done():
            self._future.set_result(self._positions)


class _Part:
    def __init__(self, many: _Many, start: int) -> None:
        self._many, self._start = many, start

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        self._many.settle(self._start + index, position, error)


class _Traced:
    """Publications of which some are sampled: their root spans end with their answers."""

    def __init__(self, pending: Pending, notes: dict[int, Note]) -> None:
        self._pending, self._notes = pending, notes

    def settle(self, index: int, position: int, error: Exception | None) -> None:
        note = self._notes.pop(index, None)
        if note is not None:
            note(error)
        self._pending.settle(index, position, error)


class Tickets:
    """What a client host has published and not heard of yet."""

    def __init__(self, why_late: Callable[[], str]) -> None:
        self._why_late = why_late
        self._room = Room(OUTSTANDING_MAX)
        self._lock = threading.Lock()
        self._last = 0
        self._pending: dict[int, tuple[Pending, int]] = {}

    def open(self, count: int, pending: Pending, timeout: float) -> int:
        """Tickets that follow each other, the first of them; TimeoutError if too much waits."""
        if not self._room.take(count, timeout):
            raise TimeoutError(
                f"{OUTSTANDING_MAX} publications have waited {timeout} s for their "
                f"acknowledgement: {self._why_late()}"
            )
        with self._lock:
            first = self._last + 1
            self._last += count
        for index in range(count):
            self._pending[first + index] = (pending, index)
        return first

    def settle(self, ticket: int, position: int = 0, error: Exception | None = None) -> None:
        """A publication is in the log, or is not; in the host's thread."""
        found = self._pending.pop(ticket, None)
        if found is None:
            return
        self._room.give(1)
        pending, index = found
        pending.settle(index, position, error)

    def fail(self, error: Exception) -> None:
        """No answer will come."""
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
    ) -> Future[int]:
        """Publish without waiting for the log; blocks only while too much is on its way.

        Whoever does not care what becomes of it may drop the future. `sample` forces or forbids
        a trace; `since_ns` is when its preprocessing began, for a span of its own.
        """
        future = promise(int)
        items = [(tuple(nodes), body)]
        self._publish(namespace, items, version, timeout, _One(future), sample, since_ns)
        return future

    def send_many(
        self,
        namespace: str,
        publications: Iterable[tuple[Iterable[NodeId], bytes]],
        *,
        version: int | None = None,
        timeout: float = 10.0,
    ) -> Future[list[int]]:
        """Publish (nodes, body) each, at less cost than one by one; done with their positions."""
        items = [(tuple(nodes), body) for nodes, body in publications]
        future: Future[list[int]] = Future()
        future.set_running_or_notify_cancel()
        many = _Many(future, len(items))
        if not items:
            future.set_result([])
        for start in range(0, len(items), _AT_ONCE):
            some = items[start : start + _AT_ONCE]
            self._publish(namespace, some, version, timeout, many.part(start))
        return future

    def _publish(
        self,
        namespace: str,
        items: list[Item],
        version: int | None,
        timeout: float,
        pending: Pending,
        sample: bool | None = None,
        since_ns: int | None = None,
    ) -> None:
        self._client.check_namespace(namespace)
        longest = max(len(body) for _, body in items)
        if longest > BODY_MAX:
            raise ValueError(f"a body of {longest} bytes is longer than {BODY_MAX}")
        traces = self._sampled(namespace, len(items), sample)
        if traces:
            tracer = self._client.host.tracer
            begin = partial(root_span, tracer, "publish", namespace, since_ns=since_ns)
            pending = _Traced(pending, {index: begin(trace=t) for index, t in traces.items()})
        first = self._client.tickets.open(len(items), pending, timeout)
        name, key = self.name, self._key
        events = [
            Publish(name, namespace, nodes, body, first + n, key, version, traces.get(n, b""))
            for n, (nodes, body) in enumerate(items)
        ]
        self._client.publish(events)

    def _sampled(self, namespace: str, count: int, sample: bool | None) -> dict[int, bytes]:
        """The contexts of those of so many publications that are to be traced."""
        tracer = self._client.host.tracer
        if not sample and (sample is False or not tracer.options.ratio_of(namespace)):
            return {}
        drawn = ((index, tracer.root(namespace, sample)) for index in range(count))
        return {index: trace for index, trace in drawn if trace}

    def publish(
        self,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        *,
        version: int | None = None,
        timeout: float = 10.0,
        sample: bool | None = None,
        since_ns: int | None = None,
    ) -> int:
        """Publish; returns the position in the log once it is there. RefusedError, TimeoutError."""
        send = partial(self.send, version=version, timeout=timeout)
        future = send(namespace, nodes, body, sample=sample, since_ns=since_ns)
        return wait(future, timeout, self._client.why_late)

    async def publish_async(
        self,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        *,
        version: int | None = None,
        timeout: float = 10.0,
    ) -> int:
        """`publish` for coroutines."""
        loop = asyncio.get_running_loop()
        send = partial(self.send, namespace, nodes, body, version=version, timeout=timeout)
        future = await loop.run_in_executor(None, send)
        return await wait_async(future, timeout, self._client.why_late)
