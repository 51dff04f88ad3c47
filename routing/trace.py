"""Trace contexts: 25 bytes that travel beside a message and mean nothing to a router.

A context is a trace id (16 bytes), a span id (8) and flags (1), as in W3C Trace Context. In a batch
the contexts are a sparse column: for each sampled notification a record of its row (u32) and its
context, rows rising; unsampled traffic has an empty column. Whoever runs the routers makes spans
of them (`actors.telemetry`); the routers only keep them with their notifications.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from routing.errors import ProtocolError

TRACE_BYTES = 25

_RECORD = struct.Struct(f"<I{TRACE_BYTES}s")


def pack_traces(records: Iterable[tuple[int, bytes]]) -> bytes:
    """A column of (row, context) records."""
    return b"".join(_RECORD.pack(row, context) for row, context in records)


def unpack_traces(column: bytes) -> Iterator[tuple[int, bytes]]:
    """The (row, context) records of a column."""
    return _RECORD.iter_unpack(column)


def join_traces(parts: Iterable[tuple[int, bytes]]) -> bytes:
    """One column of several, each with how many notifications it is for."""
    records: list[tuple[int, bytes]] = []
    base = 0
    for count, column in parts:
        records.extend((base + row, context) for row, context in unpack_traces(column))
        base += count
    return pack_traces(records)


def select_traces(column: bytes, rows: Sequence[int]) -> bytes:
    """The contexts of some of the notifications, numbered anew."""
    contexts = dict(unpack_traces(column))
    chosen = ((at, contexts.get(row)) for at, row in enumerate(rows))
    return pack_traces((at, context) for at, context in chosen if context is not None)


def replace_traces(column: bytes, renewed: Mapping[bytes, bytes]) -> bytes:
    """Each context as `renewed` has it; those that it lacks stay as they are."""
    return pack_traces((row, renewed.get(old, old)) for row, old in unpack_traces(column))


def check_traces(column: bytes, count: int) -> None:
    """ProtocolError unless every record is whole and names a row of its own, in order."""
    if len(column) % _RECORD.size:
        raise ProtocolError(f"{len(column)} bytes hold no whole number of trace contexts")
    last = -1
    for row, _ in unpack_traces(column):
        if not last < row < count:
            raise ProtocolError(f"trace contexts of a batch of {count}: row {row} is out of place")
        last = row
