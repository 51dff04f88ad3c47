"""Frames and the queue in front of a link."""

from __future__ import annotations

import random

import pytest

from actors import frames
from actors.frames import FRAME_BYTES, FRAME_BYTES_MAX, Outbox, messages_of, pack_frame, queued_at
from routing.batch import Batch
from routing.errors import ProtocolError
from routing.messages import Hello, Notify, Placed, PublishAck, Reject

SESSION = (7, 1)


def notify(number: int, position: int, count: int = 1, body: bytes = b"x", space: str = "r0"):
    rows = [((1, position % 5), position + i, body) for i in range(count)]
    return Notify(space, SESSION, number, Batch.of(rows))


def drain(outbox: Outbox) -> list:
    found = []
    while outbox:
        found.extend(messages_of(outbox.take()[0]))
    assert outbox.bytes == outbox.messages == 0
    return found


def test_notifications_that_follow_each_other_travel_as_one():
    outbox = Outbox(1 << 20, 1000)
    for n in range(1, 11):
        assert outbox.put(notify(n, 100 + n), 1)
        assert outbox.put(PublishAck("r0", (), "p", 7, (Placed(n, n),)), 1)
    (joined, *acks) = drain(outbox)
    assert joined.number == 1
    expected = [notify(n, 100 + n).batch for n in range(1, 11)]
    assert list(joined.batch.rows()) == [row for batch in expected for row in batch.rows()]
    assert [ack.placed[0].number for ack in acks] == list(range(1, 11))


@pytest.mark.parametrize(
    "second",
    [
        notify(3, 12),
        notify(2, 10),
        notify(2, 12, space="r1"),
        Notify("r0", (7, 2), 2, notify(2, 12).batch),
    ],
    ids=["a number is missing", "positions do not rise", "another namespace", "another session"],
)
def test_notifications_that_do_not_follow_stay_apart(second):
    outbox = Outbox(1 << 20, 1000)
    first = notify(1, 10)
    outbox.put(first, 1)
    outbox.put(second, 1)
    assert drain(outbox) == [first, second]


def test_no_notification_overtakes_a_session_message():
    outbox = Outbox(1 << 20, 1000)
    between = Reject("r0", SESSION, 1, (9,), "gone")
    for message in (notify(1, 10), between, notify(2, 11)):
        outbox.put(message, 1)
    assert drain(outbox) == [notify(1, 10), between, notify(2, 11)]


def test_random_queues_keep_order_and_every_notification():
    rng = random.Random(3)
    joined = 0
    for _ in range(300):
        outbox, number, sent = Outbox(1 << 30, 1 << 30), 1, []
        for _ in range(rng.randint(1, 30)):
            if rng.random() < 0.7:
                count = rng.randint(1, 3)
                outbox.put(notify(number, 100 + number, count), 1)
                sent += [("row", n) for n in range(100 + number, 100 + number + count)]
                number += count
            else:
                outbox.put(Hello(number), 1)
                sent.append(("hello", number))
        got = []
        for message in drain(outbox):
            if isinstance(message, Hello):
                got.append(("hello", message.incarnation))
            else:
                joined += len(message.batch) > 3
                got += [("row", row[1]) for row in message.batch.rows()]
        assert got == sent
    assert joined > 100


def test_frames_are_bounded_and_a_message_beyond_the_bound_is_not_taken():
    outbox = Outbox(1 << 30, 1 << 30)
    body = bytes(FRAME_BYTES // 10)
    for n in range(1, 41):
        outbox.put(notify(n, n, body=body), 1)
    sizes = []
    while outbox:
        sizes.append(len(outbox.take()[0]))
    assert len(sizes) > 2
    assert max(sizes) <= 2 * FRAME_BYTES
    assert not outbox.put(notify(1, 1, body=bytes(FRAME_BYTES_MAX + 1)), 1)
    assert not outbox.put(Reject("r", SESSION, 1, tuple(range(FRAME_BYTES_MAX // 4)), ""), 1)
    assert len(outbox) == outbox.bytes == outbox.messages == 0


def test_full_and_overfull_count_bytes_and_messages():
    outbox = Outbox(1 << 30, 4)
    for n in range(1, 5):
        assert not outbox.full
        outbox.put(notify(n, n), 1)
    assert outbox.full
    assert not outbox.overfull
    assert outbox.clear() == 4
    outbox = Outbox(1000, 1 << 30)
    outbox.put(notify(1, 1, body=bytes(1000)), 1)
    assert outbox.full
    outbox.put(notify(2, 2, body=bytes(frames._SLACK_BYTES)), 1)
    assert outbox.overfull


def test_a_frame_says_when_its_oldest_message_was_queued():
    outbox = Outbox(1 << 20, 100)
    outbox.put(Hello(1), 123)
    outbox.put(Hello(2), 456)
    assert queued_at(outbox.take()[0]) == 123


def test_garbage_raises_protocol_error_and_nothing_else():
    rng = random.Random(1)
    outbox = Outbox(1 << 20, 100)
    for message in (notify(1, 1, 3), Hello(3), notify(4, 9)):
        outbox.put(message, 1)
    frame = outbox.take()[0]
    good = bad = 0
    for _ in range(3000):
        mangled = bytearray(frame[: rng.randint(0, len(frame))])
        for _ in range(rng.randint(0, 3)):
            if mangled:
                mangled[rng.randrange(len(mangled))] = rng.randrange(256)
        try:
            queued_at(bytes(mangled))
            good += bool(list(messages_of(bytes(mangled))))
        except ProtocolError:
            bad += 1
    assert good > 10
    assert bad > 1000
    with pytest.raises(ProtocolError, match="ends 4 bytes too early"):
        list(messages_of(pack_frame(1, [b"12345678"])[:-4]))
    with pytest.raises(ProtocolError, match="version 9"):
        queued_at(frames._HEAD.pack(b"F3", 9, 0))
