"""A router and its links, run by one loop in one thread.

The loop does for real what `sim.network` does in virtual time: it waits for frames, link events,
commands and the router's next time-out, hands each to `Router.handle`, and performs the effects.
Nothing else touches the router or the sockets; other threads leave commands in a queue and wake
the loop. This module knows nothing of Ray.

Order within a turn: links that came or went, commands, frames, time. The effects of a whole turn
are performed together. At a rendezvous point they wait for the store's commit before: nothing is
acknowledged or sent on that a crash could make undone, and one commit serves a whole turn.

Back pressure. While a link to a router is full, nothing is read from where its traffic comes:
from upstream, and at the rendezvous point from everywhere; so is every link while the one
upstream is full. Waiting goes up the tree, over its root and down again, never in a circle.
Trees of several rendezvous points may cross; a link that makes no headway for `stall` seconds is
therefore emptied and starts over, and what was lost is recovered from the log.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import zmq

from actors.commands import Command, Commands
from actors.frames import messages_of, queued_at
from actors.link import Kind, Link, LinkOptions, Monitors
from actors.measure import Durations, Spared, process
from actors.memory import keep_memory
from actors.security import Gatekeeper, Keys
from actors.telemetry.options import Tracing
from actors.telemetry.tracer import Tracer, contexts_of
from routing.api import Effect, Event, LinkDown, LinkUp, Received, Report, Router, Send, Start, Tick
from routing.errors import ProtocolError
from routing.messages import Message, Notify, Publish
from routing.store import Store

Observer = Callable[[Effect], None]

#: What one turn takes in before it performs the effects.
_TURN_BYTES = 256 << 10
_TURN_FRAMES = 256
_TURN_COMMANDS = 1024
#: Kinds of reports that are counted apart.
_REPORTS_MAX = 100
#: The longest a turn waits when nothing at all is due.
_IDLE = 1.0
#: Between two looks at links that may stand still or be long gone.
_LOOK = 0.1


class HostStoppedError(RuntimeError):
    """The host has been stopped, or has failed; says which."""


class Attachment(NamedTuple):
    """Where a neighbour must send to, and the key it will find there (empty: none)."""

    endpoint: str
    public: bytes


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Bounds and times of a host."""

    link: LinkOptions = field(default_factory=LinkOptions)
    #: Seconds without headway after which a full link is emptied.
    stall: float = 10.0
    #: Seconds after which a host of clients that has gone is forgotten.
    forget: float = 30.0
    tracing: Tracing = field(default_factory=Tracing)


class RouterHost:
    """One router on real links."""

    def __init__(
        self,
        address: str,
        make_router: Callable[[], Router],
        options: HostOptions | None = None,
        keys: Keys | None = None,
        observe: Observer | None = None,
    ) -> None:
        self.address = address
        self.options = options or HostOptions()
        self.keys = keys
        self.counts: Counter[str] = Counter()
        self.reports: Counter[str] = Counter()
        #: In microseconds, per frame: from its sender's queue to here, and until all is done.
        self.waits = Durations()
        self.hops = Durations()
        #: Notifications, or publications, in a message that can bring several.
        self.batches = Durations()
        self.tracer = Tracer(address, self.options.tracing)
        #: What whoever runs the host wants in its status.
        self.about: dict[str, Any] = {}
        #: What ended the loop, if it was not asked to end.
        self.failure: BaseException | None = None
        #: A client host sets this while its clients cannot take more: nothing is read then.
        self.paused = False
        self._store: Store | None = None
        self._make_router = make_router
        self._state = Spared(lambda: self.router.state_size())
        self._observe = observe
        self._links: dict[str, Link] = {}
        self._commands = Commands()
        self._effects: list[Effect] = []
        self._frames: list[int] = []
        self._stopping = False
        self._ended = threading.Event()
        #: Set whenever a link has come or gone.
        self.links_changed = threading.Event()
        self._now = 0.0
        #: When the router wants a Tick; and when links are next looked after.
        self._due: float | None = None
        self._look_at = 0.0
        #: What is polled while nobody is held back; empty after a change of links.
        self._all_sockets: list[tuple[Any, int]] = []
        #: What tells of links that come and go.
        self._monitors = Monitors()
        self._news = -1
        self._thread = threading.Thread(target=self._run, name=f"f3 {address}", daemon=True)

    # -- from other threads --------------------------------------------------------------

    def start(self) -> RouterHost:
        """Begin; returns at once."""
        self._thread.start()
        return self

    def stop(self, timeout: float = 5.0) -> None:
        """End the loop and close every socket; harmless if it has ended."""
        self._stopping = True
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"host {self.address!r} did not stop within {timeout} s")

    def join(self) -> None:
        """Wait until the loop has ended."""
        self._thread.join()

    @property
    def running(self) -> bool:
        """Whether the loop goes on."""
        return self._thread.is_alive() and not self._stopping

    def submit(self, command: Command) -> Future[Any]:
        """Run a command in the loop; its result is there once its effects are performed."""
        future = self._commands.submit(command)
        if self._ended.is_set():
            self._commands.fail(self._why_stopped())
        return future

    def post(self, command: Command) -> None:
        """Run a command in the loop that cannot fail, and of which nobody wants to hear."""
        self._commands.post(command)

    def event(self, event: Event) -> Future[Any]:
        """Give the router an event; ProtocolError if it is a request that cannot be met."""
        return self.submit(lambda: self.take(event))

    def attach(
        self, neighbor: str, endpoint: str, public: bytes, kind: Kind, timeout: float = 5.0
    ) -> Attachment:
        """Link up with a neighbour that listens there; returns where this side listens for it."""
        future = self.submit(lambda: self._attach(neighbor, endpoint, public, kind))
        found: Attachment = future.result(timeout)
        return found

    def listen(self, neighbor: str, kind: Kind, timeout: float = 5.0) -> Attachment:
        """Where this side listens for a neighbour whose address is not known yet."""
        return self.attach(neighbor, "", b"", kind, timeout)

    def detach(self, neighbor: str, timeout: float = 5.0) -> None:
        """Close the link to a neighbour, if there is one."""
        self.submit(lambda: self._detach(neighbor)).result(timeout)

    def links_up(self) -> dict[str, bool]:
        """Per neighbour, whether its link works; a snapshot that any thread may take."""
        return {name: link.up for name, link in list(self._links.items())}

    def status(self, timeout: float = 5.0) -> dict[str, Any]:
        """Everything worth showing."""
        found: dict[str, Any] = self.submit(self._status).result(timeout)
        return found

    def wake(self) -> None:
        """Have the loop look up."""
        self._commands.wake()

    # -- the loop ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._open()
            while not self._stopping:
                self._turn()
        except BaseException as error:
            self.failure = error
        finally:
            self._stopping = True
            self._close()

    def _open(self) -> None:
        keep_memory()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._gatekeeper = None if self.keys is None else Gatekeeper(self._context, self.counts)
        self._now = time.monotonic()
        self.router = self._make_router()
        self._store = self.router.view.store
        self.take(Start())
        self._perform()
        if self.tracer.exporter is not None:
            self.tracer.exporter.watch(self.status, self.options.tracing.metrics_period)

    def _turn(self) -> None:
        ready = self._wait()
        self._now = time.monotonic()
        if self._gatekeeper is not None:
            self._gatekeeper.answer()
        self._observe_links(ready)
        if self._now >= self._look_at:
            self._look_at = self._now + _LOOK
            for link in list(self._links.values()):
                self._look_after(link)
        self._commands.run(_TURN_COMMANDS, woken=self._commands.wakeup in ready)
        for link in list(self._links.values()):
            if link.pull in ready:
                self._read(link)
        self._due = self.router.next_timeout()
        if self._due is not None and self._due <= self._now:
            self._effects += self.tracer.repeated(self.router.handle(Tick(), self._now))
            self._due = self.router.next_timeout()
        self._perform()

    def _wait(self) -> set[Any]:
        """Wait until something is due; returns the sockets with something to read."""
        if not self._all_sockets:
            self._news = self._monitors.watch(self._links.values())
            self._all_sockets = self._sockets(set())
        held = self._held_back()
        blocked = [link.push for link in self._links.values() if link.blocked]
        wanted = self._all_sockets
        if held or blocked:
            wanted = self._sockets(held) + [(push, zmq.POLLOUT) for push in blocked]
        return {found for found, _ in zmq.zmq_poll(wanted, self._patience())}

    def _sockets(self, held: set[str]) -> list[tuple[Any, int]]:
        """Whatever may have something to read, but for neighbours that are held back."""
        wanted: list[tuple[Any, int]] = [
            (self._commands.wakeup, zmq.POLLIN),
            (self._news, zmq.POLLIN),
        ]
        if self._gatekeeper is not None:
            wanted.append((self._gatekeeper.socket, zmq.POLLIN))
        for link in self._links.values():
            if link.neighbor not in held:
                wanted.append((link.pull, zmq.POLLIN))
        return wanted

    def _patience(self) -> int:
        """Milliseconds until something is due of itself."""
        if self._commands:
            return 0
        left = _IDLE if self._due is None else min(_IDLE, self._due - time.monotonic())
        return max(0, -int(-1000 * left // 1))

    def take(self, event: Event, trace: bytes = b"") -> None:
        """Give the router an event; for commands, which run in the loop.

        What it causes belongs to the trace with that context, if there is one.
        """
        effects = self.router.handle(event, self._now)
        self._effects += self.tracer.caused(effects, trace) if trace else effects

    def _take_message(self, link: Link, message: Message, queued_ns: int) -> None:
        contexts = contexts_of(message)
        if not contexts:
            self.take(Received(link.neighbor, message))
            return
        about = {
            "messaging.f3.from": link.neighbor,
            "messaging.f3.queue_wait_us": max(0, (time.time_ns() - queued_ns) // 1000),
            "messaging.f3.queue_size": sum(each.outbox.messages for each in self._links.values()),
        }
        event = Received(link.neighbor, message)
        handle = partial(self.router.handle, event, self._now)
        self._effects += self.tracer.hop(message, contexts, about, handle)

    # -- what comes in -------------------------------------------------------------------

    def _observe_links(self, ready: set[Any]) -> None:
        for link in list(self._links.values()):
            if link.replaced or self._news in ready:
                for up in link.observe(time.time_ns()):
                    self._tell(link, up)

    def _tell(self, link: Link, up: bool) -> None:
        link.down_since = None if up else self._now
        link.progress_at = self._now
        self.links_changed.set()
        self.take(LinkUp(link.neighbor) if up else LinkDown(link.neighbor))

    def _look_after(self, link: Link) -> None:
        """Empty a link that stands still; forget a client host that is long gone."""
        if link.blocked and self._now > link.progress_at + self.options.stall:
            self.counts["stalls"] += 1
            link.counts["messages_cleared"] += link.outbox.clear()
            if link.up:
                self._tell(link, False)
                self._tell(link, True)
        gone = 0.0 if link.down_since is None else self._now - link.down_since
        if link.kind is Kind.HOST and gone > self.options.forget:
            self._detach(link.neighbor)

    def _read(self, link: Link) -> None:
        """Take in what waits on a link, up to what a turn should hold."""
        size = 0
        for _ in range(_TURN_FRAMES):
            frame = link.receive()
            if frame is None:
                return
            self._read_frame(link, frame)
            size += len(frame)
            if size > _TURN_BYTES:
                return

    def _read_frame(self, link: Link, frame: bytes) -> None:
        try:
            queued_ns = queued_at(frame)
            self._frames.append(queued_ns)
            self.waits.add((time.time_ns() - queued_ns) / 1000)
            for message in messages_of(frame):
                link.counts["messages_received"] += 1
                if isinstance(message, Notify | Publish):
                    self.batches.add(len(message.batch))
                self._take_message(link, message, queued_ns)
        except ProtocolError as error:
            link.counts["frames_bad"] += 1
            self.counts["frames_bad"] += 1
            self._report_bad_frame(f"bad frame: {error}"[:100])

    def _report_bad_frame(self, reason: str) -> None:
        """Count a reason; strangers choose what it says, so only so many are told apart."""
        known = reason in self.reports or len(self.reports) < _REPORTS_MAX
        self.reports[reason if known else "bad frame: for other reasons"] += 1

    def _held_back(self) -> set[str]:
        """The neighbours not to read from now, because what they send would only wait."""
        if self.paused:
            return set(self._links)
        full = {
            name
            for name, link in self._links.items()
            if link.kind is Kind.ROUTER and link.up and link.outbox.full
        }
        if not full:
            return full
        self.counts["turns_held_back"] += 1
        if self._store is not None:
            return set(self._links)
        upstream = set(self.router.view.next_hop.values())
        return set(self._links) - full if full & upstream else upstream - full

    # -- what goes out -------------------------------------------------------------------

    def _perform(self) -> None:
        if self._store is not None:
            self._store.advance(time.time())
            self._store.commit()
        effects, self._effects = self._effects, []
        now_ns = time.time_ns()
        for effect in effects:
            if isinstance(effect, Send):
                self._send(effect, now_ns)
            else:
                self._show(effect)
        for link in self._links.values():
            if link.outbox:
                link.flush(self._now)
        self._finish()

    def _send(self, effect: Send, now_ns: int) -> None:
        link = self._links.get(effect.dst)
        if link is None:
            self.counts["messages_unroutable"] += 1
        else:
            link.send(effect.message, now_ns)

    def _show(self, effect: Effect) -> None:
        if isinstance(effect, Report):
            self.reports[effect.name] += int(effect.fields.get("deliveries", 1))
        if self._observe is not None:
            self._observe(effect)

    def _finish(self) -> None:
        """Tell whoever waits; time the frames of this turn."""
        if self._frames:
            now_ns = time.time_ns()
            for queued_ns in self._frames:
                self.hops.add((now_ns - queued_ns) / 1000)
            self._frames.clear()
        self.tracer.finish()
        self._commands.finish()

    # -- commands ------------------------------------------------------------------------

    def _attach(self, neighbor: str, endpoint: str, public: bytes, kind: Kind) -> Attachment:
        if neighbor == self.address:
            raise ProtocolError(f"{neighbor!r} cannot be its own neighbour")
        self._all_sockets = []
        link = self._links.get(neighbor)
        if link is None:
            link = Link(neighbor, kind, self._context, self.options.link, self.keys)
            link.down_since = self._now
            self._links[neighbor] = link
        if self._gatekeeper is not None and public:
            self._gatekeeper.allow(neighbor, public)
        if endpoint:
            link.connect(endpoint, public)
        return Attachment(link.endpoint, b"" if self.keys is None else self.keys.public)

    def _detach(self, neighbor: str) -> None:
        link = self._links.pop(neighbor, None)
        if link is None:
            return
        self._all_sockets = []
        if link.up:
            self.take(LinkDown(neighbor))
        link.close()
        if self._gatekeeper is not None:
            self._gatekeeper.forget(neighbor)

    def _status(self) -> dict[str, Any]:
        return {
            "address": self.address,
            "incarnation": self.router.view.incarnation,
            "links": {name: _link_status(link) for name, link in sorted(self._links.items())},
            "next_hop": dict(self.router.view.next_hop),
            "state": self._state.get(),
            "counts": dict(self.counts),
            "reports": dict(self.reports),
            "hop_us": self.hops.summary(),
            "wait_us": self.waits.summary(),
            "batch_size": self.batches.summary(),
            "buckets": {
                "hop_us": self.hops.buckets(),
                "wait_us": self.waits.buckets(),
                "batch_size": self.batches.buckets(),
            },
            "telemetry": self.tracer.status(),
            **self.about,
            "process": process(),
        }

    # -- the end -------------------------------------------------------------------------

    def _close(self) -> None:
        for link in self._links.values():
            link.close()
        if self._gatekeeper is not None:
            self._gatekeeper.close()
        self._monitors.close()
        self._context.destroy(linger=0)
        if self._store is not None:
            self._store.close()
        self._ended.set()
        self._commands.fail(self._why_stopped())
        self._commands.close()
        self.tracer.close()

    def _why_stopped(self) -> HostStoppedError:
        if self.failure is None:
            return HostStoppedError(f"host {self.address!r} has stopped")
        return HostStoppedError(f"host {self.address!r} has failed: {self.failure!r}")


def _link_status(link: Link) -> dict[str, Any]:
    return {
        "up": link.up,
        "kind": link.kind.value,
        "queued_messages": link.outbox.messages,
        "queued_bytes": link.outbox.bytes,
        "capacity_messages": link.outbox.messages_max,
        "capacity_bytes": link.outbox.bytes_max,
        **dict(link.counts),
    }
