"""A batch of notifications as columns: what a hop touches is apart from what it only passes on.

    header_offsets   u32, one more than notifications: where each header begins in `nodes`
    nodes            u32: the node IDs of all headers
    positions        u64: each notification's position in its namespace
    payload_offsets  u32, one more than notifications: where each payload begins in `payloads`
    payloads         bytes that no router reads (`routing.payload`)
    traces           the contexts of sampled notifications (`routing.trace`); mostly empty

A router rewrites the first two columns per neighbour. Where a neighbour is due every
notification of a batch, the others go on as the same objects, neither read nor copied.
All numbers are little-endian.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from routing.errors import ProtocolError
from routing.trace import check_traces, join_traces, select_traces, unpack_traces

try:
    from routing._native import join_offsets as _compiled_join_offsets
    from routing._native import validate as _compiled_validate
except ImportError:
    _compiled_join_offsets = _compiled_validate = None  # type: ignore[assignment]

Header = tuple[int, ...]
Row = tuple[Header, int, bytes]

if sys.byteorder != "little" or array("I").itemsize != 4:  # pragma: no cover
    raise ImportError("batches need a little-endian machine with 4-byte integers")


def pack_u32(numbers: Iterable[int]) -> bytes:
    """A column of node IDs or offsets."""
    return array("I", numbers).tobytes()


def unpack_u32(column: bytes) -> memoryview[int]:
    """The numbers of a column, without a copy."""
    return memoryview(column).cast("I")


@dataclass(frozen=True, slots=True)
class Batch:
    """Notifications in the order of their positions; copies of one notification share theirs."""

    header_offsets: bytes
    nodes: bytes
    positions: bytes
    payload_offsets: bytes
    payloads: bytes
    traces: bytes = b""

    @classmethod
    def of(cls, rows: Iterable[Row], traces: bytes = b"") -> Batch:
        """A batch of (header, position, payload) rows."""
        header_offsets, nodes, positions = array("I", (0,)), array("I"), array("Q")
        payload_offsets, payloads, end = array("I", (0,)), [], 0
        for header, position, payload in rows:
            nodes.extend(header)
            header_offsets.append(len(nodes))
            positions.append(position)
            payloads.append(payload)
            end += len(payload)
            payload_offsets.append(end)
        return cls(
            header_offsets.tobytes(),
            nodes.tobytes(),
            positions.tobytes(),
            payload_offsets.tobytes(),
            b"".join(payloads),
            traces,
        )

    @classmethod
    def join(cls, batches: Sequence[Batch]) -> Batch:
        """One batch of several whose positions rise from each to the next."""
        return cls(
            _join_offsets([batch.header_offsets for batch in batches]),
            b"".join([batch.nodes for batch in batches]),
            b"".join([batch.positions for batch in batches]),
            _join_offsets([batch.payload_offsets for batch in batches]),
            b"".join([batch.payloads for batch in batches]),
            _join_traces(batches),
        )

    def __len__(self) -> int:
        return len(self.positions) // 8

    def first(self) -> int:
        """The position of the first notification."""
        return int.from_bytes(self.positions[:8], "little")

    def last(self) -> int:
        """The position of the last notification."""
        return int.from_bytes(self.positions[-8:], "little")

    def headers(self) -> Iterator[bytes]:
        """The header of each notification, as a column of node IDs."""
        offsets, nodes = unpack_u32(self.header_offsets), self.nodes
        for i in range(len(self)):
            yield nodes[4 * offsets[i] : 4 * offsets[i + 1]]

    def position(self, row: int) -> int:
        """One notification's position."""
        return memoryview(self.positions).cast("Q")[row]

    def payload(self, row: int) -> bytes:
        """One notification's payload."""
        offsets = unpack_u32(self.payload_offsets)
        return self.payloads[offsets[row] : offsets[row + 1]]

    def contexts(self) -> dict[int, bytes]:
        """The trace contexts of the sampled notifications, by row."""
        return dict(unpack_traces(self.traces)) if self.traces else {}

    def rows(self) -> Iterator[Row]:
        """Every notification as (header, position, payload)."""
        nodes, payloads = unpack_u32(self.nodes).tolist(), self.payloads
        headers, offsets = unpack_u32(self.header_offsets), unpack_u32(self.payload_offsets)
        for row, position in enumerate(memoryview(self.positions).cast("Q")):
            header = tuple(nodes[headers[row] : headers[row + 1]])
            yield header, position, payloads[offsets[row] : offsets[row + 1]]

    def select(self, rows: Sequence[int], headers: Sequence[bytes]) -> Batch:
        """Some of the notifications, in order, with other headers."""
        ends = array("I", (0,))
        end = 0
        for header in headers:
            end += len(header) // 4
            ends.append(end)
        nodes = b"".join(headers)
        if len(rows) == len(self):
            kept = (self.positions, self.payload_offsets, self.payloads, self.traces)
            return Batch(ends.tobytes(), nodes, *kept)
        positions = memoryview(self.positions).cast("Q")
        chosen = array("Q", (positions[row] for row in rows))
        payload_offsets, payloads = self._payloads_of(rows)
        traces = select_traces(self.traces, rows) if self.traces else b""
        return Batch(ends.tobytes(), nodes, chosen.tobytes(), payload_offsets, payloads, traces)

    def _payloads_of(self, rows: Sequence[int]) -> tuple[bytes, bytes]:
        offsets = unpack_u32(self.payload_offsets)
        ends, chosen, end = array("I", (0,)), [], 0
        for row in rows:
            chosen.append(self.payloads[offsets[row] : offsets[row + 1]])
            end += len(chosen[-1])
            ends.append(end)
        return ends.tobytes(), b"".join(chosen)

    def validate(self) -> None:
        """ProtocolError unless the columns fit together; for batches that came from outside."""
        if _compiled_validate is None:
            self.check_columns()
        else:
            _compiled_validate(self)

    def check_columns(self) -> None:
        """What `validate` does, in Python: 50 times slower, and easier to read."""
        count = len(self)
        if len(self.positions) != 8 * count or len(self.nodes) % 4:
            raise ProtocolError("a batch has a column that is no whole number of entries")
        _check_offsets("header", self.header_offsets, count, len(self.nodes) // 4)
        _check_offsets("payload", self.payload_offsets, count, len(self.payloads))
        check_traces(self.traces, count)
        positions = memoryview(self.positions).cast("Q").tolist()
        if positions != sorted(positions):
            raise ProtocolError("the positions of a batch fall")


def _join_traces(batches: Sequence[Batch]) -> bytes:
    if not any(batch.traces for batch in batches):
        return b""
    return join_traces((len(batch), batch.traces) for batch in batches)


def join_offsets(columns: list[bytes]) -> bytes:
    """One column of offsets of several: each goes on where the last one ended."""
    joined = array("I", (0,))
    for column in columns:
        base = joined[-1]
        joined.extend([base + offset for offset in unpack_u32(column)[1:]])
    return joined.tobytes()


_join_offsets = join_offsets if _compiled_join_offsets is None else _compiled_join_offsets


def _check_offsets(name: str, column: bytes, count: int, end: int) -> None:
    if len(column) != 4 * (count + 1):
        raise ProtocolError(f"a batch of {count} has {len(column)} bytes of {name} offsets")
    offsets = unpack_u32(column).tolist()
    if offsets[0] != 0 or offsets[-1] != end or offsets != sorted(offsets):
        raise ProtocolError(f"the {name} offsets of a batch do not cover its {end} entries")


EMPTY = Batch.of(())
