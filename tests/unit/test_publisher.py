"""The publisher end: what travels together, what is answered, what is repeated."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing import messages
from routing.api import Accepted, Config, Effect, Publication, Publish, Refused
from routing.errors import ProtocolError
from routing.messages import Placed, Refusal
from routing.publications import unpack
from routing.publisher import BACKLOG_MAX, PublisherEnd


class World:
    """A publisher end, what it has sent and what it has told its clients."""

    def __init__(self, **config: float) -> None:
        self.sent: list[messages.Publish] = []
        self.told: list[Effect] = []
        made = Config(**config)  # type: ignore[arg-type]
        self.end = PublisherEnd("h", 7, made, self.told.append, self._ask)

    def _ask(self, message: messages.RequestMessage, _: float) -> None:
        assert isinstance(message, messages.Publish)
        self.sent.append(message)

    def publish(self, first: int, count: int, size: int = 3) -> None:
        some = tuple(
            Publication((1,), b"%d" % n + bytes(size)) for n in range(first, first + count)
        )
        self.end.publish(Publish("p", "n", some, first), 0.0)

    def numbers(self) -> list[list[int]]:
        """The numbers in each message."""
        return [[each.number for each in unpack(message)] for message in self.sent]

    def ack(self, *placed: Placed, now: float = 0.0) -> None:
        self.end.answered(messages.PublishAck("n", (), "p", 7, placed), now)

    def accepted(self) -> dict[int, int]:
        """Positions by ticket; each is told once."""
        found: dict[int, int] = {}
        for effect in self.told:
            if isinstance(effect, Accepted):
                for n in range(effect.count):
                    assert effect.ticket + n not in found
                    found[effect.ticket + n] = effect.position + n
        return found


def test_what_is_published_together_travels_together_and_is_answered_together() -> None:
    world = World()
    world.publish(1, 5)
    assert world.numbers() == [[1, 2, 3, 4, 5]]
    world.ack(Placed(1, 11, 5))
    assert world.told == [Accepted("p", "n", 1, 11, 5)]
    assert world.end.next_timeout() is None


def test_the_window_holds_back_what_does_not_fit() -> None:
    world = World(window=4)
    world.publish(1, 10)
    assert world.numbers() == [[1, 2, 3, 4]]
    world.ack(Placed(2, 2, 3))
    assert world.numbers()[1:] == [], "the oldest is still under way"
    world.ack(Placed(1, 9))
    assert world.numbers()[1:] == [[5, 6, 7, 8]]
    world.ack(Placed(5, 10, 4))
    assert world.numbers()[2:] == [[9, 10]]


def test_a_message_has_a_bounded_size() -> None:
    world = World(window=4096)
    world.publish(1, 600)
    assert [len(some) for some in world.numbers()] == [256, 256, 88]
    large = World(window=4096)
    large.publish(1, 3, size=100_000)
    assert large.numbers() == [[1], [2], [3]]


def test_a_refusal_concerns_one_of_many() -> None:
    world = World()
    world.publish(1, 3)
    no = messages.PublishRefusal("n", (), "p", 7, 2, "why", Refusal.UNKNOWN_NODE)
    world.end.answered(no, 0.0)
    world.end.answered(no, 0.0)
    world.ack(Placed(1, 5), Placed(3, 6))
    assert world.accepted() == {1: 5, 3: 6}
    refused = [effect for effect in world.told if isinstance(effect, Refused)]
    assert refused == [Refused("p", "n", "why", ticket=2, code=Refusal.UNKNOWN_NODE)]
    assert world.end.next_timeout() is None


def test_what_is_not_answered_in_time_is_repeated_as_it_was() -> None:
    world = World(retry=2.0)
    world.publish(1, 3)
    world.ack(Placed(2, 1))
    world.end.tick(1.9)
    assert len(world.sent) == 1
    world.end.tick(2.0)
    assert world.sent[1] is world.sent[0]
    assert world.end.next_timeout() == 4.0


def test_an_answer_for_another_life_or_for_nobody_is_none() -> None:
    world = World()
    world.publish(1, 1)
    world.end.answered(messages.PublishAck("n", (), "p", 6, (Placed(1, 1),)), 0.0)
    world.end.answered(messages.PublishAck("n", (), "q", 7, (Placed(1, 1),)), 0.0)
    world.ack(Placed(2, 1), Placed(0, 1), Placed(1 << 60, 5, 1 << 60))
    assert world.told == []
    world.ack(Placed(0, 0, 1 << 62))
    assert world.accepted() == {1: 1}


def test_too_much_that_waits_is_refused_before_anything_changes() -> None:
    world = World(window=1)
    world.publish(1, BACKLOG_MAX)
    world.publish(BACKLOG_MAX + 1, 1)
    with pytest.raises(ProtocolError, match="no more than 10000 may"):
        world.publish(BACKLOG_MAX + 2, 1)
    assert world.numbers() == [[1]]


@given(st.randoms(use_true_random=False), st.integers(1, 40), st.integers(1, 9))
def test_every_publication_is_told_once_however_the_answers_come(
    rng: random.Random, count: int, window: int
) -> None:
    world = World(window=window)
    at = 1
    while at <= count:
        some = min(rng.randint(1, 5), count - at + 1)
        world.publish(at, some)
        at += some
    while len(world.accepted()) < count:
        waiting = [n for some in world.numbers() for n in some]
        first = rng.choice(waiting)
        length = rng.randint(1, len(waiting))
        world.ack(Placed(first, 100 + first, length))
    assert world.accepted() == {n: 100 + n for n in range(1, count + 1)}
    assert world.numbers() == sorted(world.numbers()), "in order"
    assert world.end.next_timeout() is None
