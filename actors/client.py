"""Publishers and subscribers in a user's process.

A client host is itself a router: one with local clients and a single neighbour, its edge router.
So a subscription is in force, and a publication in the log, by the same rules as everywhere else,
and a client survives the restart of its edge router like any neighbour.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import Literal, TypeVar

from actors.inbox import ClosedError, Inbox
from actors.member import BODY_MAX, Plan
from actors.wiring import Ask, Wiring
from routing.api import (
    Accepted,
    Confirmed,
    Deliver,
    Effect,
    NodeId,
    Notification,
    Publish,
    Refused,
    Report,
    Subscribe,
    Unsubscribe,
)
from routing.errors import ProtocolError

Overflow = Literal["wait", "drop"]
"""A subscriber's queue is full: read no more until it is not, or drop its oldest and count it."""

T = TypeVar("T")

_log = logging.getLogger("f3")

#: Publications of one client host that may wait for their acknowledgement.
OUTSTANDING_MAX = 1024


class RefusedError(RuntimeError):
    """The rendezvous point has refused a subscription or a publication; the text says why."""


class Client:
    """The publishers and subscribers of one process; a context manager."""

    def __init__(self, plan: Plan, edge: str, ask: Ask, incarnation: int) -> None:
        self.plan = plan
        #: (namespace, first, last): positions that the log had dropped before they were recovered.
        self.lost: deque[tuple[str, int, int]] = deque(maxlen=1000)
        self._subscribers: dict[str, Subscriber] = {}
        self._crowded: set[str] = set()
        self._lock = threading.Lock()
        self._hopes: dict[tuple[str, str, NodeId], list[Future[None]]] = {}
        self._tickets: dict[int, Future[int]] = {}
        self._ticket = itertools.count(1)
        self._room = threading.BoundedSemaphore(OUTSTANDING_MAX)
        self.host = plan.host(incarnation, observe=self._observe)
        self._wiring = Wiring(self.host, {edge: ask})

    # -- life ----------------------------------------------------------------------------

    def start(self, timeout: float = 30.0) -> Client:
        """Link up with the edge router."""
        self.host.start()
        self._wiring.start()
        try:
            self._wiring.wait(timeout)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Leave; whoever still waits for something is told so."""
        self._wiring.stop()
        self.host.stop()
        for subscriber in list(self._subscribers.values()):
            subscriber.inbox.close()
        gone = ClosedError("the client was closed before there was an answer")
        for ticket in list(self._tickets):
            self._settle(ticket, error=gone)
        for hope in itertools.chain(*self._hopes.values()):
            hope.set_exception(gone)
        self._hopes.clear()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- users ---------------------------------------------------------------------------

    def publisher(self, name: str, key: bytes = b"") -> Publisher:
        """A publisher; `key` is its secret where a namespace has an access list."""
        return Publisher(self, name, key)

    def subscriber(
        self,
        name: str,
        on_notification: Callable[[Notification], None] | None = None,
        capacity: int = 10_000,
        overflow: Overflow = "wait",
    ) -> Subscriber:
        """A subscriber, whose notifications go to a callback (in the host's thread) or a queue."""
        if name in self._subscribers:
            raise ValueError(f"this client has a subscriber {name!r} already")
        if capacity < 1 or overflow not in ("wait", "drop"):
            raise ValueError(f"a queue of {capacity} with overflow {overflow!r} is none")
        made = Subscriber(self, name, on_notification, capacity, overflow)
        self._subscribers[name] = made
        return made

    def _check(self, namespace: str) -> None:
        if namespace not in self.plan.next_hop:
            known = ", ".join(sorted(self.plan.next_hop))
            raise ProtocolError(f"unknown namespace {namespace!r} (known here: {known})")

    # -- requests ------------------------------------------------------------------------

    def subscribe(self, name: str, namespace: str, node: NodeId) -> Future[None]:
        """Ask for a node; done when the subscription is in force."""
        self._check(namespace)
        hope = _promise(type(None))
        key = (name, namespace, node)
        self.host.submit(partial(self._subscribe, key, hope)).add_done_callback(
            partial(_pass_on_failure, hope)
        )
        return hope

    def _subscribe(self, key: tuple[str, str, NodeId], hope: Future[None]) -> None:
        self._hopes.setdefault(key, []).append(hope)
        try:
            self.host.take(Subscribe(*key))
        except ProtocolError:
            self._hopes[key].remove(hope)
            raise

    def publish(
        self,
        name: str,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        key: bytes,
        version: int | None,
        timeout: float,
    ) -> Future[int]:
        """Publish; done with its position when the publication is in the log."""
        self._check(namespace)
        if len(body) > BODY_MAX:
            raise ValueError(f"a body of {len(body)} bytes is longer than {BODY_MAX}")
        if not self._room.acquire(timeout=timeout):
            raise TimeoutError(
                f"{OUTSTANDING_MAX} publications have waited {timeout} s for their "
                f"acknowledgement: {self.why_late()}"
            )
        ticket = next(self._ticket)
        future = _promise(int)
        self._tickets[ticket] = future
        self.host.post(Publish(name, namespace, tuple(nodes), body, ticket, key, version))
        if not self.host.running:
            self._settle(ticket, error=ClosedError("the client is closed"))
        return future

    # -- what the router does ------------------------------------------------------------

    def _observe(self, effect: Effect) -> None:
        """In the host's thread."""
        match effect:
            case Deliver(client, notification):
                subscriber = self._subscribers.get(client)
                if subscriber is not None:
                    subscriber.offer(notification)
            case Accepted(_, _, ticket, position):
                self._settle(ticket, position)
            case Confirmed(client, namespace, node):
                for hope in self._hopes.pop((client, namespace, node), ()):
                    hope.set_result(None)
            case Refused():
                self._refused(effect)
            case Report("lost", fields):
                self.lost.append((fields["namespace"], fields["first"], fields["last"]))
                _log.warning("notifications were lost for good: %s", dict(fields))

    def _refused(self, refused: Refused) -> None:
        error = RefusedError(refused.reason)
        if refused.ticket is not None:
            self._settle(refused.ticket, error=error)
            return
        assert refused.node is not None
        hopes = self._hopes.pop((refused.client, refused.namespace, refused.node), ())
        for hope in hopes:
            hope.set_exception(error)
        subscriber = self._subscribers.get(refused.client)
        if not hopes and subscriber is not None:
            subscriber.withdrawn[refused.namespace, refused.node] = refused.reason

    def _settle(self, ticket: int, position: int = 0, error: Exception | None = None) -> None:
        future = self._tickets.pop(ticket, None)
        if future is None:
            return
        self._room.release()
        if error is None:
            future.set_result(position)
        else:
            future.set_exception(error)

    def crowded(self, name: str, full: bool) -> None:
        """A subscriber's queue is full, or no longer: read on only while none is."""
        with self._lock:
            (self._crowded.add if full else self._crowded.discard)(name)
            self.host.paused = bool(self._crowded)
        self.host.wake()

    def why_late(self) -> str:
        """What may keep an answer from coming."""
        if self._crowded:
            return f"the queue of {', '.join(sorted(self._crowded))} is full: read from it"
        down = [name for name, up in self.host.links_up().items() if not up]
        return f"no link to {', '.join(down)}" if down else "no answer from the rendezvous point"

    def forget(self, name: str) -> None:
        """A subscriber has been closed."""
        self._subscribers.pop(name, None)
        self.crowded(name, False)


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
    ) -> Future[int]:
        """Publish without waiting for the log; blocks only while too much is on its way.

        Whoever does not care what becomes of it may drop the future.
        """
        return self._client.publish(self.name, namespace, nodes, body, self._key, version, timeout)

    def publish(
        self,
        namespace: str,
        nodes: Iterable[NodeId],
        body: bytes,
        *,
        version: int | None = None,
        timeout: float = 10.0,
    ) -> int:
        """Publish; returns the position in the log once it is there. RefusedError, TimeoutError."""
        future = self.send(namespace, nodes, body, version=version, timeout=timeout)
        return _wait(self._client, future, timeout)

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
        return await _wait_async(self._client, future, timeout)


class Subscriber:
    """A named receiver of notifications: iterate over it, or give it a callback."""

    def __init__(
        self,
        client: Client,
        name: str,
        on_notification: Callable[[Notification], None] | None,
        capacity: int,
        overflow: Overflow,
    ) -> None:
        self._client = client
        self.name = name
        self.inbox: Inbox[Notification] = Inbox()
        #: Notifications dropped because the queue was full; callbacks that raised.
        self.dropped = 0
        self.failed = 0
        #: Subscriptions that ended because their node was removed: the reason for each.
        self.withdrawn: dict[tuple[str, NodeId], str] = {}
        self._callback = on_notification
        self._capacity = capacity
        self._overflow = overflow
        self._full = False

    # -- subscriptions -------------------------------------------------------------------

    def subscribe(self, namespace: str, node: NodeId, timeout: float = 10.0) -> None:
        """Returns once whatever is published from now on will come; RefusedError, TimeoutError."""
        _wait(self._client, self._client.subscribe(self.name, namespace, node), timeout)

    async def subscribe_async(self, namespace: str, node: NodeId, timeout: float = 10.0) -> None:
        """`subscribe` for coroutines."""
        future = self._client.subscribe(self.name, namespace, node)
        await _wait_async(self._client, future, timeout)

    def unsubscribe(self, namespace: str, node: NodeId, timeout: float = 10.0) -> None:
        """Nothing more comes for the node."""
        event = Unsubscribe(self.name, namespace, node)
        _wait(self._client, self._client.host.event(event), timeout)

    async def unsubscribe_async(self, namespace: str, node: NodeId, timeout: float = 10.0) -> None:
        """`unsubscribe` for coroutines."""
        event = Unsubscribe(self.name, namespace, node)
        await _wait_async(self._client, self._client.host.event(event), timeout)

    # -- notifications -------------------------------------------------------------------

    def get(self, timeout: float | None = None) -> Notification:
        """The next notification; TimeoutError if none comes in time."""
        notification = self.inbox.get(timeout)
        self._got()
        return notification

    async def get_async(self) -> Notification:
        """`get` for coroutines."""
        notification = await self.inbox.get_async()
        self._got()
        return notification

    def __iter__(self) -> Iterator[Notification]:
        """Every notification, until the subscriber or its client is closed."""
        while True:
            try:
                yield self.get()
            except ClosedError:
                return

    async def __aiter__(self) -> AsyncIterator[Notification]:
        while True:
            try:
                yield await self.get_async()
            except ClosedError:
                return

    def close(self) -> None:
        """End iteration. Subscriptions stay until they are withdrawn or the client is closed."""
        self.inbox.close()
        self._client.forget(self.name)

    def offer(self, notification: Notification) -> None:
        """In the host's thread: pass a notification to whoever waits for it."""
        if self._callback is not None:
            self._call(notification)
            return
        self.inbox.put(notification)
        if len(self.inbox) <= self._capacity:
            return
        if self._overflow == "drop":
            self.inbox.drop_oldest()
            self.dropped += 1
        elif not self._full:
            self._full = True
            self._client.crowded(self.name, True)

    def _call(self, notification: Notification) -> None:
        assert self._callback is not None
        try:
            self._callback(notification)
        except Exception:
            self.failed += 1
            _log.exception("the callback of subscriber %r has failed", self.name)

    def _got(self) -> None:
        if self._full and len(self.inbox) <= self._capacity // 2:
            self._full = False
            self._client.crowded(self.name, False)


def _promise(_: type[T]) -> Future[T]:
    """A future that a coroutine's cancellation cannot cancel: its answer comes all the same."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    return future


def _pass_on_failure(hope: Future[None], done: Future[object]) -> None:
    error = done.exception()
    if error is not None and not hope.done():
        hope.set_exception(error)


def _wait(client: Client, future: Future[T], timeout: float) -> T:
    try:
        return future.result(timeout)
    except FutureTimeoutError:
        raise TimeoutError(f"not done after {timeout} s: {client.why_late()}") from None


async def _wait_async(client: Client, future: Future[T], timeout: float) -> T:
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), timeout)
    except TimeoutError:
        raise TimeoutError(f"not done after {timeout} s: {client.why_late()}") from None
