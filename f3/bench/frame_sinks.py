"""Sinks for a router: ten neighbours in one process, on real links (`actors.link`).

To the router they are routers downstream: each opens a session, subscribes, refreshes it every
second, and counts what it is sent. Of a batch they read the columns of numbers and positions, and
not the rest, so that the router and not they are the limit. A number that does not follow the
last one is an error: nothing may be lost or doubled.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import zmq

from actors.link import Kind, Link, LinkOptions
from actors.memory import keep_memory
from f3.bench.children import WAIT_SECONDS, Answer, BenchError, Master, Tally
from f3.bench.load import NEIGHBORS
from f3.bench.stamps import Samples
from routing import messages, wire
from routing.digest import NodeSet

NAMESPACE = "source"
_NOTIFY = 9
_FRAME_HEAD = 11
_LENGTH = struct.Struct("<I")
_BUNCH = 1000
_REFRESH_SECONDS = 1.0


class Sink:
    """One neighbour."""

    def __init__(self, k: int, context: zmq.Context[zmq.Socket[bytes]], tally: Tally) -> None:
        self.k = k
        self.link = Link("router", Kind.ROUTER, context, LinkOptions())
        self.greeted = False
        self.set_up = 0
        self._counts = tally.counts
        self._held = NodeSet()
        self._session = (time.time_ns(), 1)
        self._sent = self._received = self._notified = 0

    # -- what goes out -------------------------------------------------------------------

    def subscribe(self, nodes: list[int], held: NodeSet) -> None:
        """Open a session, and ask for everything in it."""
        self._held = held
        self._refresh(NodeSet(), listed=True)
        for first in range(0, len(nodes), _BUNCH):
            self._sent += 1
            some = tuple(nodes[first : first + _BUNCH])
            self._send(messages.Subscribe(NAMESPACE, self._session, self._sent, some))

    def refresh(self) -> None:
        """Say that the session lives."""
        if self._sent:
            self._refresh(self._held)

    def _refresh(self, held: NodeSet, listed: bool = False) -> None:
        session, sent, received = self._session, self._sent, self._received
        self._send(messages.Resubscribe(NAMESPACE, session, sent, received, held.digest(), listed))

    def _send(self, message: messages.Message) -> None:
        self.link.send(message, time.time_ns())

    # -- what comes in -------------------------------------------------------------------

    def read(self, frame: bytes) -> None:
        """Take a frame apart."""
        at = _FRAME_HEAD
        while at < len(frame):
            at = self._read_message(frame, at)

    def _read_message(self, frame: bytes, at: int) -> int:
        head, at = _part(frame, at)
        if head[1] != _NOTIFY:
            self._take(wire.decode((head,)))
            return at
        _, namespace, _, number, (_, _, positions, *_) = msgpack.unpackb(head)
        if namespace == NAMESPACE:
            self._count(number, np.frombuffer(positions, np.uint64))
        (size,) = _LENGTH.unpack_from(frame, at)
        return at + _LENGTH.size + int(size)

    def _count(self, number: int, positions: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> None:
        if number != self._notified + 1:
            raise BenchError(f"sink {self.k}: number {number} after {self._notified}")
        self._notified += len(positions)
        self._counts[NEIGHBORS] = time.monotonic_ns()
        self._counts[NEIGHBORS + 1 + self.k] += int(positions.sum())
        self._counts[self.k] += len(positions)

    def _take(self, message: messages.Message) -> None:
        if getattr(message, "namespace", NAMESPACE) != NAMESPACE:
            return  # of another network, which had this port before and calls it still
        match message:
            case messages.Hello():
                self.greeted = True
            case messages.GraphSetup():
                self.set_up += len(message.setups)
                self._received = message.number
            case messages.ResubscribeAck(ok=True):
                self._received = message.number
            case _:
                raise BenchError(f"sink {self.k}: unexpected {message}")


class FrameSinks:
    """All of them."""

    def __init__(self, master: Master, tally: Tally) -> None:
        self._master = master
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sinks = [Sink(k, context, tally) for k in range(NEIGHBORS)]
        self._samples: Samples | None = None
        self._refresh_at = 0.0
        self._goes_on = True

    def run(self) -> None:
        """Until the benchmark goes away."""
        while self._goes_on:
            self._turn()

    def _turn(self, commands: bool = True) -> None:
        wanted: list[tuple[Any, int]] = [(self._master.fd, zmq.POLLIN)] if commands else []
        wanted += [(sink.link.pull, zmq.POLLIN) for sink in self._sinks]
        wanted += [(s.link.push, zmq.POLLOUT) for s in self._sinks if s.link.blocked]
        ready: dict[Any, int] = dict(zmq.zmq_poll(wanted, 100))
        now = time.monotonic()
        self._read([sink for sink in self._sinks if sink.link.pull in ready])
        for sink in self._sinks:
            if now > self._refresh_at:
                sink.link.observe(time.time_ns())
                sink.refresh()
            sink.link.flush(now)
        if now > self._refresh_at:
            self._refresh_at = now + _REFRESH_SECONDS
        if self._master.fd in ready:
            self._goes_on = self._master.serve(self)

    def _read(self, ready: list[Sink]) -> None:
        """One frame of each who has one; all are there before any is taken apart."""
        frames = [(sink, sink.link.receive(), time.monotonic_ns()) for sink in ready]
        for sink, frame, now_ns in frames:
            assert frame is not None
            if self._samples is not None:
                self._samples.look(sink.k, frame, now_ns)
            sink.read(frame)

    # -- commands ------------------------------------------------------------------------

    def listen(self) -> Answer:
        """Where each neighbour waits for the router."""
        return {"endpoints": [sink.link.endpoint for sink in self._sinks]}

    def connect(self, endpoints: list[str]) -> None:
        """Link up with the router; returns once it has greeted every neighbour."""
        for sink, endpoint in zip(self._sinks, endpoints, strict=True):
            sink.link.connect(endpoint, b"")
        self._until(self._linked)

    def _linked(self) -> bool:
        for sink in self._sinks:
            sink.link.observe(time.time_ns())
        return all(sink.link.up and sink.greeted for sink in self._sinks)

    def subscribe(self, held: list[list[int]]) -> None:
        """Subscribe; returns once every node is set up."""
        sets = list(map(NodeSet, held))  # which takes a while, and sessions must not wait
        for sink, nodes, own in zip(self._sinks, held, sets, strict=True):
            sink.subscribe(nodes, own)
        self._until(lambda: all(s.set_up == len(n) for s, n in zip(self._sinks, held, strict=True)))

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise BenchError(f"the sinks waited in vain for {WAIT_SECONDS:.0f} s")
            self._turn(commands=False)

    def watch(self) -> None:
        """Look for stamps from now on."""
        self._samples = Samples()

    def samples(self) -> Answer:
        """What was found; look no more."""
        assert self._samples is not None
        found, self._samples = self._samples, None
        return found.summary()


def _part(frame: bytes, at: int) -> tuple[bytes, int]:
    (size,) = _LENGTH.unpack_from(frame, at)
    at += _LENGTH.size
    return frame[at : at + size], at + size


def main(fd: str, tally: str) -> None:
    """Run sinks that take commands from there."""
    keep_memory()
    FrameSinks(Master(int(fd)), Tally(2 * NEIGHBORS + 1, int(tally))).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
