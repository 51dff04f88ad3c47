"""Publishers and subscribers in a user's process.

A client host is itself a router: one with local clients and a single neighbour, its edge router.
So a subscription is in force, and a publication in the log, by the same rules as everywhere else,
and a client survives the restart of its edge router like any neighbour (`actors.edge`).
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from actors.answers import RefusedError, pass_on_failure, promise
from actors.edge import ClientHost, Elsewhere
from actors.inbox import ClosedError
from actors.member import Plan
from actors.publisher import Outgoing, Publisher
from actors.subscriber import Overflow, Subscriber
from actors.telemetry.roots import root_request
from actors.wiring import Ask
from routing.api import (
    Accepted,
    Confirmed,
    Deliver,
    Effect,
    NodeId,
    Notification,
    Refused,
    Report,
    Subscribe,
    Unsubscribe,
)
from routing.errors import ProtocolError

_log = logging.getLogger("f3")


class Client(ClientHost):
    """The publishers and subscribers of one process; a context manager."""

    def __init__(
        self,
        plan: Plan,
        edge: str,
        ask: Ask,
        incarnation: int,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        super().__init__(plan, edge, ask, incarnation, elsewhere)
        #: (namespace, first, last): positions that the log had dropped before they were recovered.
        self.lost: deque[tuple[str, int, int]] = deque(maxlen=1000)
        self._subscribers: dict[str, Subscriber] = {}
        self._crowded: set[str] = set()
        self._lock = threading.Lock()
        self._hopes: dict[tuple[str, str, NodeId], list[Future[None]]] = {}
        self.outgoing = Outgoing(self.host, self.why_late)

    # -- life ----------------------------------------------------------------------------

    def close(self) -> None:
        """Leave; whoever still waits for something is told so."""
        super().close()
        for subscriber in list(self._subscribers.values()):
            subscriber.inbox.close()
        gone = ClosedError("the client was closed before there was an answer")
        self.outgoing.fail(gone)
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

    def check_namespace(self, namespace: str) -> None:
        """ProtocolError for a namespace that nobody here knows."""
        if namespace not in self.plan.next_hop:
            known = ", ".join(sorted(self.plan.next_hop))
            raise ProtocolError(f"unknown namespace {namespace!r} (known here: {known})")

    # -- requests ------------------------------------------------------------------------

    def subscribe(
        self, name: str, namespace: str, node: NodeId, sample: bool | None = None
    ) -> Future[None]:
        """Ask for a node; done when the subscription is in force."""
        self.check_namespace(namespace)
        hope = promise(type(None))
        key = (name, namespace, node)
        trace, end = root_request(self.host.tracer, "subscribe", namespace, sample)
        hope.add_done_callback(end)
        self.host.submit(partial(self._subscribe, key, hope, trace)).add_done_callback(
            partial(pass_on_failure, hope)
        )
        return hope

    def _subscribe(self, key: tuple[str, str, NodeId], hope: Future[None], trace: bytes) -> None:
        self._hopes.setdefault(key, []).append(hope)
        try:
            self.host.take(Subscribe(*key), trace)
        except ProtocolError:
            self._hopes[key].remove(hope)
            raise

    def unsubscribe(
        self, name: str, namespace: str, node: NodeId, sample: bool | None = None
    ) -> Future[None]:
        """Give a node up; done when nothing more is delivered for it."""
        trace, end = root_request(self.host.tracer, "unsubscribe", namespace, sample)
        event = Unsubscribe(name, namespace, node)
        done = self.host.submit(partial(self.host.take, event, trace))
        done.add_done_callback(end)
        return done

    # -- what the router does ------------------------------------------------------------

    def _observe(self, effect: Effect) -> None:
        """In the host's thread."""
        match effect:
            case Deliver(client, notification):
                subscriber = self._subscribers.get(client)
                if subscriber is not None:
                    subscriber.offer(notification)
            case Accepted(_, _, ticket, position, count):
                self.outgoing.settle(ticket, position, count)
            case Confirmed(client, namespace, node):
                for hope in self._hopes.pop((client, namespace, node), ()):
                    hope.set_result(None)
            case Refused():
                self._refused(effect)
            case Report("lost", fields):
                self.lost.append((fields["namespace"], fields["first"], fields["last"]))
                _log.warning("notifications were lost for good: %s", dict(fields))

    def _refused(self, refused: Refused) -> None:
        error = RefusedError(refused.reason, refused.code)
        if refused.ticket is not None:
            self.outgoing.settle(refused.ticket, error=error)
            return
        assert refused.node is not None
        hopes = self._hopes.pop((refused.client, refused.namespace, refused.node), ())
        for hope in hopes:
            hope.set_exception(error)
        subscriber = self._subscribers.get(refused.client)
        if not hopes and subscriber is not None:
            subscriber.withdrawn[refused.namespace, refused.node] = refused.reason

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
