"""Messages that were changed on their way: whatever they say, no router fails.

Bytes of messages are changed at random; what still decodes is handed to the router, in the midst
of a schedule. What is delivered is worth nothing then, so the oracle does not look; a router may
raise ProtocolError, which its host counts, and nothing else.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from routing.api import Effect, Event
from routing.errors import ProtocolError
from routing.messages import Message
from routing.registry import protocols
from routing.router import TreeRouter
from routing.wire import decode, encode
from sim.network import Network, NotAtRestError
from sim.schedule import Plan, run
from sim.world import World

PLAN = Plan(routers=5, hosts=4, actions=100, seconds=8.0)
SCHEDULES = 12
#: What must have been changed in earnest, and how often in all.
WANTED = {
    "Hello": 5,
    "Resubscribe": 20,
    "ResubscribeAck": 20,
    "GraphSetup": 5,
    "Subscribe": 5,
    "Notify": 5,
    "Publish": 20,
    "PublishAck": 20,
    "SequenceReply": 5,
}


class Vandal:
    """Changes one message in ten, the first thousand of a schedule."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.changed: Counter[str] = Counter()
        self.seen = 0

    def __call__(self, message: Message) -> Message:
        self.seen += 1
        if self.seen > 1000 or self.rng.random() > 0.1:
            return message
        for _ in range(20):
            try:
                found = decode(self._spoilt(encode(message)))
            except ProtocolError:
                continue
            if found != message:
                self.changed[type(found).__name__] += 1
                return found
        return message

    def _spoilt(self, parts: tuple[bytes, ...]) -> tuple[bytes, ...]:
        copies = [bytearray(part) for part in parts]
        part = self.rng.choice([copy for copy in copies if copy])
        for _ in range(self.rng.randint(1, 3)):
            byte = self.rng.choice((0, 1, 2, 3, 127, 255, self.rng.randrange(256)))
            part[self.rng.randrange(len(part))] = byte
        return tuple(map(bytes, copies))


@pytest.fixture
def indulgent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that does as hosts do: refusals and messages to nobody are dropped."""
    handle, transmit = TreeRouter.handle, Network._transmit

    def handled(self: TreeRouter, event: Event, now: float) -> list[Effect]:
        try:
            return handle(self, event, now)
        except ProtocolError:
            return []

    def transmitted(self: Network, src: str, dst: str, message: Message) -> None:
        if frozenset((src, dst)) in {frozenset(pair) for pair in self.links()}:
            transmit(self, src, dst, message)

    monkeypatch.setattr(TreeRouter, "handle", handled)
    monkeypatch.setattr(TreeRouter, "check", lambda _: None)
    monkeypatch.setattr(Network, "_transmit", transmitted)
    monkeypatch.setattr(World, "_observe", lambda *_: None)
    monkeypatch.setattr(World, "check_at_rest", lambda _: None)


@pytest.mark.sim
@pytest.mark.usefixtures("indulgent")
def test_no_router_fails_whatever_a_message_says() -> None:
    changed: Counter[str] = Counter()
    for name, protocol in protocols().items():
        for seed in range(SCHEDULES):
            vandal = Vandal(seed)
            try:
                run(seed, protocol, PLAN, transcode=vandal)
            except NotAtRestError:
                changed["never at rest"] += 1  # a router was told of a number never reached
            assert vandal.seen > 100, name
            changed += vandal.changed
    assert all(changed[kind] >= count for kind, count in WANTED.items()), changed
