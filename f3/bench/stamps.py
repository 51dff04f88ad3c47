"""Bodies that say when they were sent, and the sinks' look-out for them.

The stamp is found by its mark, so that sinks need not understand what surrounds it: the same for
every system. The clock is the machine's, so source and sinks share it.
"""

from __future__ import annotations

import struct
import time

from f3.bench.load import BODY_BYTES

MARK = b"\xf3stamp\xf3\0"
_STAMP = struct.Struct("<8sQ")
PLAIN = b"x" * BODY_BYTES


def stamped() -> bytes:
    """A body that is sent now."""
    return _STAMP.pack(MARK, time.monotonic_ns()).ljust(BODY_BYTES, b"x")


class Samples:
    """Microseconds from sending to seeing, of every copy of every stamped body."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._left: dict[int, bytes] = {}

    def look(self, connection: int, data: bytes, now: int) -> None:
        """Find the stamps in what arrived then; they may be cut in two."""
        data = self._left.pop(connection, b"") + data
        at = data.find(MARK)
        seen = 0
        while at >= 0 and at + _STAMP.size <= len(data):
            _, sent = _STAMP.unpack_from(data, at)
            self._taken.append((now - sent) / 1000)
            seen = at + _STAMP.size
            at = data.find(MARK, seen)
        self._left[connection] = data[max(seen, len(data) - _STAMP.size + 1) :]

    def summary(self) -> dict[str, float]:
        """How many, the median and the tail."""
        taken = sorted(self._taken) or [0.0]
        at = {name: taken[int(len(taken) * part)] for name, part in (("p50", 0.5), ("p99", 0.99))}
        return {"count": len(self._taken), **at}
