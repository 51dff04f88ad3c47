"""What a message of publications carries, and how each proves who published it.

Publications of one publisher that are sent together travel as columns; whatever is on the way
touches them once. A payload is a tag, after its length, and the body.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import NamedTuple

import msgpack  # type: ignore[import-untyped]

from routing.errors import ProtocolError
from routing.messages import Publish

_TAG_BYTES = 16


class Signed(NamedTuple):
    """One publication of a message."""

    number: int
    nodes: tuple[int, ...]
    body: bytes
    tag: bytes
    trace: bytes


def sign(key: bytes, message: Publish, number: int, nodes: tuple[int, ...], body: bytes) -> bytes:
    """The tag that proves who published this (Kulik 2004, section 6.1); empty without a key."""
    if not key:
        return b""
    signed = (
        message.namespace,
        message.publisher,
        message.host,
        message.incarnation,
        number,
        message.version,
        nodes,
        body,
    )
    return hmac.digest(key, msgpack.packb(signed), "sha256")[:_TAG_BYTES]


def pack(tag: bytes, body: bytes) -> bytes:
    """The payload of a publication."""
    return b"%c%b%b" % (len(tag), tag, body) if tag else b"\0" + body


def unpack(message: Publish) -> Iterator[Signed]:
    """The publications one by one; ProtocolError where a payload is none."""
    contexts = message.batch.contexts()
    for row, (nodes, number, payload) in enumerate(message.batch.rows()):
        end = 1 + payload[0] if payload else 0
        if not 0 < end <= len(payload):
            raise ProtocolError(f"publication {number} of {message.publisher!r} is cut off")
        yield Signed(number, nodes, payload[end:], payload[1:end], contexts.get(row, b""))
