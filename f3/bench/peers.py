"""The brokers that people use today, under the load of `f3 bench router`.

Each is its Debian server, started on loopback with a free port and as little configuration as it
takes, and stopped again. Source and sinks speak its protocol over plain sockets, many messages in
one write, so that the server and not a client library is the limit. Two encodings of
attribute-value content:

    wildcards  a subscription is one pattern. A sink gets a notification once for each of its
               patterns that matches (Mosquitto: once in all), and has to drop the copies.
    exact      a subscription is every notification that it matches, listed one by one, which is
               possible because this space has 15,625 of them. A sink gets each once.

Ranges, as in the traffic scenario, have no pattern in any of the three, and other attributes
than names of a fixed, small set have no finite list of notifications.
"""

from __future__ import annotations

import selectors
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from f3.bench.children import WAIT_SECONDS, BenchError, Child, Tally, Usage, free_port, stop
from f3.bench.load import NEIGHBORS, Counts, Load
from f3.bench.stamps import PLAIN, stamped
from f3.bench.system import Row, System

ENCODINGS = ("wildcards", "exact")
_READ = 256 << 10


class Broker(System):
    """A server of others: how it is started, and what its protocol looks like."""

    server: ClassVar[str]
    separator: ClassVar[str]
    any_value: ClassVar[str]
    #: What the server's answer to the last subscription ends with.
    ready: ClassVar[bytes] = b""

    def __init__(self, load: Load, encoding: str) -> None:
        self.load, self.encoding = load, encoding
        self._topics = self._wanted()
        self._chunks: list[bytes] = []
        self._folder = tempfile.TemporaryDirectory(prefix="f3-bench-")
        self._port = free_port()
        self._process = subprocess.Popen(  # noqa: S603
            self.command(Path(self._folder.name), self._port),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.usage = Usage(self._process.pid)
        self.tally = Tally(NEIGHBORS + 1)
        self._sockets: list[socket.socket] = []
        try:
            self._source = self._connect()
            self._sockets = [self._connect() for _ in range(NEIGHBORS)]
            for each in (self._source, *self._sockets):
                _pump(each, self.hello(), len(self.welcome), self.welcome)
            for each in (self._source, *self._sockets):
                self.settle(each)
            self._source.setblocking(True)
        except BaseException:
            self.close()
            raise

    # -- what a broker is ----------------------------------------------------------------

    welcome: ClassVar[bytes] = b""

    @abstractmethod
    def command(self, folder: Path, port: int) -> list[str]:
        """How the server is started."""

    def hello(self) -> bytes:
        """What a client says first."""
        return b""

    def settle(self, connection: socket.socket) -> None:
        """Whatever else a new client has to go through."""

    @abstractmethod
    def subscription(self, number: int, topic: str) -> bytes:
        """The command that subscribes."""

    @abstractmethod
    def confirmation(self, topics: list[str]) -> int:
        """How many bytes the server answers to these subscriptions."""

    def last(self) -> bytes:
        """What follows the last subscription."""
        return b""

    @abstractmethod
    def publication(self, topic: str, body: bytes) -> bytes:
        """The command that publishes."""

    @abstractmethod
    def delivery_bytes(self) -> int:
        """The length of every delivery."""

    # -- the encoding --------------------------------------------------------------------

    def topic(self, values: tuple[int, ...]) -> str:
        """A point or a pattern of the space."""
        return self.separator.join(["n", *(str(v) if v else self.any_value for v in values)])

    def _wanted(self) -> list[list[str]]:
        if self.encoding == "wildcards":
            topics = self.load.scenario.topics
            return [[self.topic(topics[node]) for node in held] for held in self.load.held]
        points = [(self.topic(p), mask) for p, mask in self.load.points()]
        return [[p for p, mask in points if mask >> i & 1] for i in range(NEIGHBORS)]

    @property
    def filters(self) -> int:
        return sum(map(len, self._topics))

    def expected(self) -> Counts:
        return self.load.matches if self.encoding == "wildcards" else self.load.due

    # -- running -------------------------------------------------------------------------

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                found = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_SECONDS)
            except ConnectionRefusedError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise BenchError(f"{self.server} does not listen") from None
                time.sleep(0.01)
                continue
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found

    def subscribe(self) -> None:
        for connection, topics in zip(self._sockets, self._topics, strict=True):
            commands = b"".join(self.subscription(n, t) for n, t in enumerate(topics))
            _pump(connection, commands + self.last(), self.confirmation(topics), self.ready)
            connection.setblocking(True)
        numbers = [connection.fileno() for connection in self._sockets]
        fds = [self.tally.fd, *numbers]
        self.sinks = Child("f3.bench.byte_sinks", str(self.tally.fd), *map(str, numbers), fds=fds)

    def prepare(self, chunk: int) -> None:
        topics = [self.topic(self.load.topic(k)) for k in range(len(self.load.notifications))]
        published = {topic: self.publication(topic, PLAIN) for topic in set(topics)}
        self._chunks = [
            b"".join([published[topic] for topic in topics[first : first + chunk]])
            for first in range(0, len(topics) - chunk + 1, chunk)
        ]

    def send(self, chunk: int) -> None:
        self._source.sendall(self._chunks[chunk])

    def send_stamped(self, notification: int) -> None:
        topic = self.topic(self.load.topic(notification))
        self._source.sendall(self.publication(topic, stamped()))

    def received(self) -> list[int]:
        size = self.delivery_bytes()
        return [count // size for count in self.tally.counts[:NEIGHBORS]]

    def check(self) -> None:
        rests = np.array(self.tally.counts[:NEIGHBORS]) % self.delivery_bytes()
        if rests.any():
            raise BenchError(f"{self.name} sent something else than deliveries")

    def details(self) -> Row:
        return {"server": shutil.which(self.server)}

    def close(self) -> None:
        if hasattr(self, "sinks"):
            self.sinks.close()
        for connection in (getattr(self, "_source", None), *self._sockets):
            if connection is not None:
                connection.close()
        stop(self._process)
        self.tally.close()
        self._folder.cleanup()


class Nats(Broker):
    """nats-server: subjects of tokens, `*` for any one."""

    name, server, separator, any_value = "nats", "nats-server", ".", "*"
    welcome = ready = b"PONG\r\n"

    def command(self, folder: Path, port: int) -> list[str]:
        # No PING while sinks only count bytes.
        conf = folder / "nats.conf"
        conf.write_text(f'host: "127.0.0.1"\nport: {port}\nping_interval: "1h"\n')
        return ["nats-server", "-c", str(conf)]

    def hello(self) -> bytes:
        return b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n'

    def settle(self, connection: socket.socket) -> None:
        """A second or two after a client has come, the server measures how far away it is."""
        _pump(connection, b"", len(b"PING\r\n"), b"PING\r\n")
        _pump(connection, b"PONG\r\n", 0, b"")

    def subscription(self, number: int, topic: str) -> bytes:
        return b"SUB %s %06d\r\n" % (topic.encode(), number)

    def confirmation(self, topics: list[str]) -> int:
        return len(self.ready)

    def last(self) -> bytes:
        return b"PING\r\n"

    def publication(self, topic: str, body: bytes) -> bytes:
        return b"PUB %s %d\r\n%s\r\n" % (topic.encode(), len(body), body)

    def delivery_bytes(self) -> int:
        topic = self.topic((1,) * 6).encode()
        return len(b"MSG %s %06d %d\r\n%s\r\n" % (topic, 0, len(PLAIN), PLAIN))


class Redis(Broker):
    """redis-server: channels, or patterns in which `?` is any one character."""

    name, server, separator, any_value = "redis", "redis-server", ".", "?"

    def command(self, folder: Path, port: int) -> list[str]:
        options = {"port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        options |= {"dir": str(folder), "daemonize": "no"}
        told = [part for key, value in options.items() for part in (f"--{key}", str(value))]
        return ["redis-server", *told]

    def _verb(self) -> bytes:
        return b"PSUBSCRIBE" if self.encoding == "wildcards" else b"SUBSCRIBE"

    def subscription(self, number: int, topic: str) -> bytes:
        return _resp(self._verb(), topic.encode())

    def confirmation(self, topics: list[str]) -> int:
        verb = self._verb().lower()
        return sum(
            len(b"*3\r\n" + _bulk(verb) + _bulk(topic.encode()) + b":%d\r\n" % (k + 1))
            for k, topic in enumerate(topics)
        )

    def publication(self, topic: str, body: bytes) -> bytes:
        return _resp(b"PUBLISH", topic.encode(), body)

    def send(self, chunk: int) -> None:
        super().send(chunk)
        self.look_after()

    def look_after(self) -> None:
        """Take in the answers to publications: how many received each."""
        while _readable(self._source):
            self._source.recv(_READ)

    def delivery_bytes(self) -> int:
        topic = self.topic((1,) * 6).encode()
        if self.encoding == "wildcards":
            return len(_resp(b"pmessage", topic, topic, PLAIN))
        return len(_resp(b"message", topic, PLAIN))


class Mosquitto(Broker):
    """mosquitto: MQTT 3.1.1 at QoS 0; levels, `+` for any one."""

    name, server, separator, any_value = "mosquitto", "mosquitto", "/", "+"
    welcome = b"\x20\x02\x00\x00"

    def command(self, folder: Path, port: int) -> list[str]:
        # Without the last line it drops what a sink cannot take at once.
        conf = folder / "mosquitto.conf"
        conf.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
            "log_type none\nset_tcp_nodelay true\nmax_queued_messages 0\n"
        )
        return ["mosquitto", "-c", str(conf)]

    def hello(self) -> bytes:
        return _mqtt(0x10, _mqtt_text(b"MQTT") + b"\x04\x02\x00\x00" + _mqtt_text(b""))

    def subscription(self, number: int, topic: str) -> bytes:
        identifier = struct.pack(">H", number % 65535 + 1)
        return _mqtt(0x82, identifier + _mqtt_text(topic.encode()) + b"\0")

    def confirmation(self, topics: list[str]) -> int:
        return 5 * len(topics)

    def publication(self, topic: str, body: bytes) -> bytes:
        return _mqtt(0x30, _mqtt_text(topic.encode()) + body)

    def expected(self) -> Counts:
        """Copies of one message to one client are dropped by the server."""
        return self.load.due

    def delivery_bytes(self) -> int:
        return len(self.publication(self.topic((1,) * 6), PLAIN))


BROKERS: dict[str, type[Broker]] = {kind.name: kind for kind in (Nats, Redis, Mosquitto)}


# -- protocols -----------------------------------------------------------------------------------


def _bulk(word: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(word), word)


def _resp(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(map(_bulk, words))


def _mqtt_text(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def _mqtt(kind: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    return bytes([kind]) + bytes(length) + content


def _readable(connection: socket.socket) -> bool:
    with selectors.DefaultSelector() as ready:
        ready.register(connection, selectors.EVENT_READ)
        return bool(ready.select(0))


def _pump(connection: socket.socket, commands: bytes, answer: int, end: bytes) -> None:
    """Send commands, and read so many bytes of answers, the last of which are these."""
    connection.setblocking(False)
    view, tail, left = memoryview(commands), b"", answer
    deadline = time.monotonic() + WAIT_SECONDS
    with selectors.DefaultSelector() as ready:
        ready.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while view or left > 0 or not tail.endswith(end):
            if time.monotonic() > deadline:
                raise BenchError(f"a broker did not answer within {WAIT_SECONDS:.0f} s")
            if not view:
                ready.modify(connection, selectors.EVENT_READ)
            for _, events in ready.select(1.0):
                if events & selectors.EVENT_WRITE and view:
                    view = view[connection.send(view[:_READ]) :]
                if events & selectors.EVENT_READ:
                    data = connection.recv(_READ)
                    if not data:
                        raise BenchError("a broker closed a connection")
                    left -= len(data)
                    tail = (tail + data)[-64:]
