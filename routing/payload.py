"""What a notification carries for its subscribers alone: sequence numbers, then the body.

Routers pass payloads on unread (Kulik 2004, section 3.4.9: forwarding reads the F3 header, not
the sequence-number header).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from routing.errors import ProtocolError

_COUNT = struct.Struct("<H")
_ENTRY = struct.Struct("<IQ")
#: Most notifications have one lowest node.
_ONE = struct.Struct("<HIQ")

#: The most sequence numbers that one notification can carry.
NUMBERS_MAX = 0xFFFF


def pack(numbers: Sequence[tuple[int, int]], body: bytes) -> bytes:
    """Sequence numbers (node, number) in front of a body."""
    if len(numbers) == 1:
        return _ONE.pack(1, *numbers[0]) + body
    entries = [_ENTRY.pack(node, number) for node, number in numbers]
    return b"".join((_COUNT.pack(len(entries)), *entries, body))


def unpack(payload: bytes) -> tuple[list[tuple[int, int]], bytes]:
    """The numbers and the body; ProtocolError for bytes that are no payload."""
    if len(payload) < _COUNT.size:
        raise ProtocolError(f"a payload of {len(payload)} bytes is too short")
    (count,) = _COUNT.unpack_from(payload)
    if count == 1 and len(payload) >= _ONE.size:
        _, node, number = _ONE.unpack_from(payload)
        return [(node, number)], payload[_ONE.size :]
    end = _COUNT.size + count * _ENTRY.size
    if len(payload) < end:
        raise ProtocolError(f"a payload of {len(payload)} bytes cannot hold {count} numbers")
    return list(_ENTRY.iter_unpack(payload[_COUNT.size : end])), payload[end:]
