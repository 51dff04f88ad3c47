"""A link to one neighbour: two ZeroMQ sockets, one for each direction.

What arrives comes from a PULL socket that this side binds for this neighbour alone; what leaves
goes into a PUSH socket that connects to the other side's. A PULL socket never sends, so a stranger
who finds the port gets nothing out; with keys (`actors.security`) nothing in either. A socket of
its own for each neighbour lets the host stop reading from one and not from another.

The link is up while the PUSH socket is connected; its monitor tells, and heartbeats find a hung
machine. Each side watches what it sends: after any new connection frames of its own may be lost,
and its router sees to it that both sides start over. The PULL socket's monitor only counts who
calls and who is let in; a stranger's coming and going cannot disturb the link.
All methods belong to the one thread that owns the sockets.
"""

from __future__ import annotations

import errno
import selectors
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import zmq
from zmq.utils.monitor import recv_monitor_message

from actors.frames import FRAME_BYTES, FRAME_BYTES_MAX, Outbox
from actors.security import Keys
from routing.messages import Message, Notify, Resubscribe, ResubscribeAck

Context = zmq.Context[zmq.Socket[bytes]]
Socket = zmq.Socket[bytes]

_RECONNECT_MS, _RECONNECT_MAX_MS = 20, 500
_HANDSHAKE_MS = 5000
_CONNECT_SECONDS = 5.0
#: Frames in a socket's own queue, and bytes in the kernel's: enough to keep it busy; the rest
#: waits where it is counted.
_SOCKET_FRAMES = 4
_SOCKET_BYTES = 512 << 10

_ARRIVED = zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
_CONNECTED = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
#: What was queued longer than this before a link came up is not worth sending any more.
_STALE_NS = 1_000_000_000


class LinkError(OSError):
    """A socket cannot be had: which address, and why."""


class Kind(Enum):
    """What is at the other end, which decides what happens when the link is full."""

    #: Hold back whatever would add to it, up to the publisher.
    ROUTER = "router"
    #: Drop its notifications, and count them: it finds them in the log when it catches up.
    HOST = "host"


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Bounds and times, the same for all links of a host."""

    #: Where sockets are bound: loopback, or the machine's own address.
    interface: str = "127.0.0.1"
    #: Ports to choose from; None for any free one.
    ports: range | None = None
    #: What may wait for a link before it is full.
    bytes_max: int = 4 << 20
    messages_max: int = 20_000
    heartbeat: float = 1.0
    #: Silence after which a connection is given up.
    timeout: float = 3.0


class Link:
    """The link to one neighbour."""

    def __init__(
        self,
        neighbor: str,
        kind: Kind,
        context: Context,
        options: LinkOptions,
        keys: Keys | None = None,
    ) -> None:
        self.neighbor = neighbor
        self.kind = kind
        self.outbox = Outbox(options.bytes_max, options.messages_max)
        self.counts: Counter[str] = Counter()
        #: Whether this side's frames leave: what the router has been told.
        self.up = False
        #: Whether the socket took no more when it was last tried.
        self.blocked = False
        #: When the socket last took a frame or had nothing to take; and when the link went down.
        self.progress_at = 0.0
        self.down_since: float | None = None
        self.target: tuple[str, bytes] | None = None
        self._connecting_since = 0.0
        #: Whether the socket was closed under a link that may have been up.
        self.replaced = False
        self._context, self._options, self._keys = context, options, keys
        self.pull = self._socket(zmq.PULL)
        if keys is not None:
            self.pull.zap_domain = neighbor.encode()
            self.pull.curve_server = True
            self.pull.curve_secretkey = keys.secret
        self.pull_monitor = self.pull.get_monitor_socket(_ARRIVED)
        try:
            self.endpoint = _bind(self.pull, options)
        except LinkError:
            _close(self.pull, self.pull_monitor)
            raise
        self.push: Socket | None = None
        self.push_monitor: Socket | None = None

    def _socket(self, kind: int) -> Socket:
        options = self._options
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.sndhwm = socket.rcvhwm = _SOCKET_FRAMES
        socket.sndbuf = socket.rcvbuf = _SOCKET_BYTES
        socket.maxmsgsize = FRAME_BYTES_MAX + FRAME_BYTES
        socket.heartbeat_ivl = round(1000 * options.heartbeat)
        socket.heartbeat_timeout = round(1000 * options.timeout)
        socket.handshake_ivl = _HANDSHAKE_MS
        socket.reconnect_ivl = _RECONNECT_MS
        socket.reconnect_ivl_max = _RECONNECT_MAX_MS
        # Frames are for the connection that is there, never for one to come.
        socket.immediate = True
        return socket

    # -- connecting ----------------------------------------------------------------------

    def connect(self, endpoint: str, public: bytes) -> None:
        """Send to this address from now on; whoever is there has this key (empty: none).

        Harmless where that is so already; only a socket that has tried in vain for long is
        replaced, since ZeroMQ gives up after some failures of a handshake.
        """
        fresh = self.up or time.monotonic() < self._connecting_since + _CONNECT_SECONDS
        if self.target == (endpoint, public) and fresh:
            return
        self._close_push()
        self.target = (endpoint, public)
        self._connecting_since = time.monotonic()
        self.push = self._socket(zmq.PUSH)
        if self._keys is not None:
            self.push.curve_serverkey = public
            self.push.curve_publickey = self._keys.public
            self.push.curve_secretkey = self._keys.secret
        self.push_monitor = self.push.get_monitor_socket(_CONNECTED)
        try:
            self.push.connect(endpoint)
        except zmq.ZMQError as error:
            self._close_push()
            raise LinkError(f"cannot connect to {endpoint!r} ({self.neighbor}): {error}") from None

    def _close_push(self) -> None:
        if self.push is not None:
            _close(self.push, self.push_monitor)
        self.push = self.push_monitor = self.target = None
        self.blocked = False
        self.replaced = True

    def observe(self, now_ns: int) -> list[bool]:
        """What has happened to the link since the last time: true for up, false for down."""
        for event in _events(self.pull_monitor):
            admitted = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            self.counts["callers_admitted" if admitted else "callers"] += 1
        news: list[bool] = []
        if self.replaced:
            self.replaced = False
            if self._went_down():
                news.append(False)
        for event in () if self.push_monitor is None else _events(self.push_monitor):
            if self._went_down():
                news.append(False)
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._came_up(now_ns)
                news.append(True)
        return news

    def _went_down(self) -> bool:
        if not self.up:
            return False
        self.up = self.blocked = False
        self.counts["messages_cleared"] += self.outbox.clear()
        return True

    def _came_up(self, now_ns: int) -> None:
        self.up = True
        self.counts["connections"] += 1
        self.counts["messages_cleared"] += self.outbox.drop_before(now_ns - _STALE_NS)

    # -- frames --------------------------------------------------------------------------

    def send(self, message: Message, now_ns: int) -> None:
        """Queue a message, or count why not.

        While the link is down a little is kept: the other side may have been quicker to connect.
        """
        if isinstance(message, Notify) and self._drops():
            self.counts["notifications_dropped"] += len(message.batch)
        elif not self.up and self.outbox.full:
            self.counts["messages_unsent"] += 1
        else:
            before = self.outbox.bytes
            if not self.outbox.put(message, now_ns):
                self.counts["messages_oversized"] += 1
            elif isinstance(message, Resubscribe | ResubscribeAck):
                self.counts["refresh_bytes"] += self.outbox.bytes - before

    def _drops(self) -> bool:
        """Whether a notification has to go; what keeps sessions in step never does."""
        held_back = self.kind is Kind.ROUTER and self.up
        return self.outbox.overfull if held_back else self.outbox.full

    def flush(self, now: float) -> None:
        """Give the socket frames until it takes no more."""
        while self.outbox and self.up and self.push is not None:
            if not int(self.push.get(zmq.EVENTS)) & zmq.POLLOUT:
                self.blocked = True
                return
            frame, messages = self.outbox.take()
            try:
                self.push.send(frame, zmq.DONTWAIT)
            except zmq.Again:
                # The connection has ended since the look: lost, like all that was on it.
                self.counts["messages_cleared"] += messages
                self.blocked = True
                return
            self.counts["frames_sent"] += 1
            self.counts["messages_sent"] += messages
            self.counts["bytes_sent"] += len(frame)
            self.progress_at = now
        self.blocked = False
        self.progress_at = now

    def receive(self) -> bytes | None:
        """The next frame, if one is there."""
        try:
            frame = self.pull.recv(zmq.DONTWAIT)
        except zmq.Again:
            return None
        self.counts["frames_received"] += 1
        self.counts["bytes_received"] += len(frame)
        return frame

    def close(self) -> None:
        """Let the neighbour go."""
        self._close_push()
        _close(self.pull, self.pull_monitor)


class Monitors:
    """The monitors of many links behind one descriptor, so that a turn need not poll each.

    A ZeroMQ socket's own descriptor tells of news until they are looked at; `Link.observe` looks
    until there are none, and nobody else reads a monitor.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, links: Iterable[Link]) -> int:
        """Watch the monitors of these links and no others; the descriptor to wait for."""
        self._selector.close()
        self._selector = selectors.DefaultSelector()
        for link in links:
            for monitor in (link.pull_monitor, link.push_monitor):
                if monitor is not None:
                    self._selector.register(int(monitor.get(zmq.FD)), selectors.EVENT_READ)
        return self._selector.fileno()

    def close(self) -> None:
        """Watch nothing any more."""
        self._selector.close()


def _bind(socket: Socket, options: LinkOptions) -> str:
    for port in options.ports or (0,):
        endpoint = f"tcp://{options.interface}:{port or '*'}"
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            if error.errno == errno.EADDRINUSE and options.ports:
                continue
            raise LinkError(f"cannot bind {endpoint}: {error}") from None
        return str(socket.get_string(zmq.LAST_ENDPOINT)).rstrip("\0")
    assert options.ports
    first, last = options.ports[0], options.ports[-1]
    raise LinkError(
        f"every port from {first} to {last} of {options.interface} is in use: give a wider range"
    )


def _events(monitor: Socket) -> list[int]:
    events = []
    while int(monitor.events) & zmq.POLLIN:
        events.append(int(recv_monitor_message(monitor, zmq.DONTWAIT)["event"]))
    return events


def _close(socket: Socket, monitor: Socket | None) -> None:
    socket.disable_monitor()
    if monitor is not None:
        monitor.close(0)
    socket.close(0)
