"""Frames: how messages travel on a link, and the bounded queue in front of it.

A frame is one ZeroMQ message: a head (`F3`, a version, when its oldest message was queued) and
then the parts of one or more messages (`routing.wire`), each after its length. While a link is
busy, what waits for it is coalesced: notifications that follow each other in a session are joined
into one batch, and all of it shares a frame. So batching follows load, and an idle link adds no
delay.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from routing import wire
from routing.batch import Batch
from routing.errors import ProtocolError
from routing.messages import Message, Notify, PublishAck, PublishRefusal

_HEAD = struct.Struct("<2sBQ")
_LENGTH = struct.Struct("<I")
_MAGIC, _VERSION = b"F3", 1

#: Messages that no session counts: others may overtake them to join earlier ones.
_UNORDERED = (PublishAck, PublishRefusal)

#: A frame is closed when it has reached so many bytes, or messages.
FRAME_BYTES = 256 << 10
FRAME_MESSAGES = 1024
#: What may still come after a link is full: a few turns of everybody who adds to it.
_SLACK_BYTES = 8 << 20
_SLACK_MESSAGES = 50_000
#: No frame is longer; a connection that brings a longer one is closed.
FRAME_BYTES_MAX = 16 << 20


def pack_frame(queued_ns: int, parts: list[bytes]) -> bytes:
    """One frame of the parts of whole messages."""
    pieces = [_HEAD.pack(_MAGIC, _VERSION, queued_ns)]
    for part in parts:
        pieces.append(_LENGTH.pack(len(part)))
        pieces.append(part)
    return b"".join(pieces)


def queued_at(frame: bytes) -> int:
    """When the oldest message of a frame was queued (ns); ProtocolError if it is no frame."""
    if len(frame) < _HEAD.size:
        raise ProtocolError(f"{len(frame)} bytes are no frame")
    magic, version, queued_ns = _HEAD.unpack_from(frame)
    if magic != _MAGIC or version != _VERSION:
        raise ProtocolError(f"a frame of version {version} that begins with {magic!r}")
    return int(queued_ns)


def messages_of(frame: bytes) -> Iterator[Message]:
    """The messages of a frame, in order; ProtocolError where it stops making sense."""
    parts = _parts(frame)
    for head in parts:
        message = [head]
        message.extend(next(parts, b"") for _ in range(wire.part_count(head) - 1))
        yield wire.decode(message)


def _parts(frame: bytes) -> Iterator[bytes]:
    at, end = _HEAD.size, len(frame)
    while at < end:
        if end - at < _LENGTH.size:
            raise ProtocolError("a frame ends within a length")
        (length,) = _LENGTH.unpack_from(frame, at)
        at += _LENGTH.size
        if length > end - at:
            raise ProtocolError(f"a frame ends {length - (end - at)} bytes too early")
        yield frame[at : at + length]
        at += length


@dataclass(slots=True)
class _Run:
    """Notifications of one session that follow each other."""

    first: Notify
    #: The number that the next one must have.
    following: int
    size: int
    queued_ns: int
    batches: list[Batch]

    def parts(self) -> wire.Parts:
        if len(self.batches) == 1:
            return wire.encode(self.first)
        return wire.encode(replace(self.first, batch=Batch.join(self.batches)))


@dataclass(slots=True)
class _Encoded:
    encoded: wire.Parts
    size: int
    queued_ns: int

    def parts(self) -> wire.Parts:
        return self.encoded


_Item = _Run | _Encoded


class Outbox:
    """What waits for one link, in order; counts bytes and messages, and refuses beyond a bound."""

    def __init__(self, bytes_max: int, messages_max: int) -> None:
        self.bytes_max = bytes_max
        self.messages_max = messages_max
        self._waiting: deque[_Item] = deque()
        #: What the next notification may join.
        self._run: _Run | None = None
        self.bytes = 0
        self.messages = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether nothing more should be caused to be sent here for now."""
        return self.bytes >= self.bytes_max or self.messages >= self.messages_max

    @property
    def overfull(self) -> bool:
        """Far beyond full: whatever was to hold back the source has not."""
        return (
            self.bytes >= self.bytes_max + _SLACK_BYTES
            or self.messages >= self.messages_max + _SLACK_MESSAGES
        )

    def put(self, message: Message, now_ns: int) -> bool:
        """Queue a message; false, and nothing is queued, if no frame could hold it."""
        if isinstance(message, Notify):
            return self._put_notify(message, now_ns)
        parts = wire.encode(message)
        size = _size(parts)
        if size > FRAME_BYTES_MAX:
            return False
        if not isinstance(message, _UNORDERED):
            self._run = None
        self._append(_Encoded(parts, size, now_ns))
        return True

    def _put_notify(self, message: Notify, now_ns: int) -> bool:
        batch = message.batch
        size = _batch_size(batch)
        if size > FRAME_BYTES_MAX:
            return False
        run = self._run
        if run is not None and _follows(run, message, size):
            run.batches.append(batch)
            run.following += len(batch)
            run.size += size
            self.bytes += size
            self.messages += 1
            return True
        following = message.number + len(batch)
        self._run = _Run(message, following, size, now_ns, [batch])
        self._append(self._run)
        return True

    def _append(self, item: _Item) -> None:
        self._waiting.append(item)
        self.bytes += item.size
        self.messages += 1

    def take(self) -> tuple[bytes, int]:
        """The next frame, and how many messages went into it."""
        parts: list[bytes] = []
        size, count, queued_ns = 0, 0, self._waiting[0].queued_ns
        while self._waiting and size < FRAME_BYTES and count < FRAME_MESSAGES:
            item = self._waiting[0]
            if parts and size + item.size > FRAME_BYTES_MAX:
                break
            self._waiting.popleft()
            self._forget(item)
            parts.extend(item.parts())
            size += item.size
            count += _count(item)
        self.bytes -= size
        self.messages -= count
        return pack_frame(queued_ns, parts), count

    def drop_before(self, queued_ns: int) -> int:
        """Forget what was queued before then; returns how many messages that were."""
        before = self.messages
        while self._waiting and self._waiting[0].queued_ns < queued_ns:
            item = self._waiting.popleft()
            self._forget(item)
            self.bytes -= item.size
            self.messages -= _count(item)
        return before - self.messages

    def _forget(self, item: _Item) -> None:
        """What leaves the queue cannot be joined any more."""
        if item is self._run:
            self._run = None

    def clear(self) -> int:
        """Forget everything; returns how many messages that were."""
        dropped = self.messages
        self._waiting.clear()
        self._run = None
        self.bytes = self.messages = 0
        return dropped


def _count(item: _Item) -> int:
    return len(item.batches) if isinstance(item, _Run) else 1


def _size(parts: wire.Parts) -> int:
    return sum(map(len, parts)) + _LENGTH.size * len(parts)


def _batch_size(batch: Batch) -> int:
    """About what a Notify takes in a frame: names and lengths are a few dozen bytes."""
    columns = len(batch.header_offsets) + len(batch.nodes) + len(batch.positions)
    columns += len(batch.payload_offsets) + len(batch.traces)
    return columns + len(batch.payloads) + 64


def _follows(run: _Run, message: Notify, size: int) -> bool:
    return (
        message.number == run.following
        and message.session == run.first.session
        and message.namespace == run.first.namespace
        and message.batch.first() > run.batches[-1].last()
        and run.size + size <= FRAME_BYTES
    )
