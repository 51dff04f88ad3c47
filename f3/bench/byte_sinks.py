"""Sinks for the brokers of others: connections whose bytes are counted, in one process.

All deliveries of a system have the same length, so a count of bytes is a count of deliveries,
and a sink takes no more of the machine than receiving does. The connections are made, and
subscribed, by whoever starts this process.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time

from f3.bench.children import Answer, Master, Tally
from f3.bench.load import NEIGHBORS
from f3.bench.stamps import Samples

_BUFFER = 256 << 10


class ByteSinks:
    """Counts per connection, and when the last byte came."""

    def __init__(self, master: Master, tally: Tally, connections: list[socket.socket]) -> None:
        self._master, self._tally = master, tally
        self._samples: Samples | None = None
        self._buffer = bytearray(_BUFFER)
        self._ready = selectors.DefaultSelector()
        self._ready.register(master.fd, selectors.EVENT_READ, None)
        for k, connection in enumerate(connections):
            self._ready.register(connection, selectors.EVENT_READ, k)

    def run(self) -> None:
        """Until the benchmark goes away."""
        while True:
            for key, _ in self._ready.select():
                if key.data is not None:
                    self._read(key.fileobj, key.data)  # type: ignore[arg-type]
                elif not self._master.serve(self):
                    return

    def _read(self, connection: socket.socket, k: int) -> None:
        size = connection.recv_into(self._buffer)
        if not size:
            raise ConnectionError(f"connection {k} was closed by the broker: slow consumer?")
        counts, now = self._tally.counts, time.monotonic_ns()
        counts[NEIGHBORS] = now
        counts[k] += size
        if self._samples is not None:
            self._samples.look(k, bytes(memoryview(self._buffer)[:size]), now)

    # -- commands ------------------------------------------------------------------------

    def watch(self) -> None:
        """Look for stamps from now on."""
        self._samples = Samples()

    def samples(self) -> Answer:
        """What was found; look no more."""
        assert self._samples is not None
        found, self._samples = self._samples, None
        return found.summary()


def main(fd: str, tally: str, *connections: str) -> None:
    """Take over connections by their numbers."""
    sockets = [socket.socket(fileno=int(number)) for number in connections]
    ByteSinks(Master(int(fd)), Tally(NEIGHBORS + 1, int(tally)), sockets).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
