"""The virtual-time network: links, queues and faults do what they say, and only that."""

from __future__ import annotations

import pytest

from routing import messages
from routing.api import (
    Config,
    Effect,
    Event,
    LinkDown,
    LinkUp,
    Received,
    Router,
    Send,
    Start,
    Tick,
    View,
)
from routing.batch import Batch
from sim.network import Link, Network, NotAtRestError


class Talker(Router):
    """Sends ten numbered messages on every tick it is given, and notes what it hears."""

    def __init__(self, address: str, view: View) -> None:
        super().__init__(address, view)
        self.heard: list[tuple[float, int]] = []
        self.events: list[str] = []

    def handle(self, event: Event, now: float) -> list[Effect]:
        self.events.append(type(event).__name__)
        if isinstance(event, Received) and isinstance(event.message, messages.Hello):
            self.heard.append((now, event.message.incarnation))
        if isinstance(event, Tick):
            return [Send(n, messages.Hello(i)) for n in self.view.neighbors for i in range(1, 11)]
        return []

    def next_timeout(self) -> float | None:
        return None

    def state_size(self) -> dict[str, int]:
        return {}

    def check(self) -> None:
        pass


def network(link: Link, **options: object) -> Network:
    return Network(Talker, {("a", "b"): link}, {}, {}, **options)  # type: ignore[arg-type]


def talker(net: Network, address: str) -> Talker:
    router = net.routers[address]
    assert isinstance(router, Talker)
    return router


def test_links_keep_the_order_whatever_the_jitter() -> None:
    net = network(Link(latency=0.01, jitter=0.5), seed=3)
    net.event("a", Tick())
    net.run(10.0)
    heard = talker(net, "b").heard
    assert [number for _, number in heard] == list(range(1, 11))
    assert heard[0][0] >= 0.01
    assert heard[-1][0] > 0.05


def test_loss_loses_and_duplication_doubles() -> None:
    lossy = network(Link(loss=0.5), seed=1)
    lossy.event("a", Tick())
    lossy.run(1.0)
    heard = [number for _, number in talker(lossy, "b").heard]
    assert 0 < len(heard) < 10
    assert lossy.lost == 10 - len(heard)
    double = network(Link(duplicate=0.5), seed=1)
    double.event("a", Tick())
    double.run(1.0)
    assert len(talker(double, "b").heard) > 10


def test_a_busy_router_queues_and_a_full_queue_drops() -> None:
    net = network(Link(latency=0.001), service=0.1, capacity=4, record_queues=True)
    net.event("a", Tick())
    net.run(5.0)
    queue = net.queues["b"]
    assert (queue.longest, queue.dropped) == (4, 6)
    assert [time for time, _ in talker(net, "b").heard] == pytest.approx(
        [0.101, 0.201, 0.301, 0.401]
    )
    assert [length for _, length in queue.series] == [1, 2, 3, 4, 3, 2, 1, 0]


def test_a_crash_loses_what_was_queued_and_on_the_wire() -> None:
    net = network(Link(latency=0.5), service=0.1)
    net.event("a", Tick())
    net.run(0.75)
    net.crash("b")
    net.restart("b")
    net.run(10.0)
    assert talker(net, "b").heard == []
    assert talker(net, "b").events[:2] == ["Start", "LinkUp"]
    assert talker(net, "b").view.incarnation == 2


def test_whoever_notices_is_told() -> None:
    net = network(Link())
    net.cut("a", "b", noticed=True)
    net.event("a", Tick())
    net.run(1.0)
    assert talker(net, "b").heard == []
    net.heal("a", "b", noticed=False)
    names = {LinkDown.__name__, LinkUp.__name__, Start.__name__}
    assert [e for e in talker(net, "b").events if e in names] == ["Start", "LinkDown", "LinkUp"]


def test_an_unnoticed_cut_is_silent() -> None:
    net = network(Link())
    net.cut("a", "b", noticed=False)
    net.heal("a", "b", noticed=False)
    assert talker(net, "a").events == ["Start"]


def test_the_same_seed_loses_the_same_messages() -> None:
    def heard(seed: int) -> list[tuple[float, int]]:
        net = network(Link(loss=0.3, jitter=0.1), seed=seed)
        net.event("a", Tick())
        net.run(5.0)
        return talker(net, "b").heard

    assert heard(5) == heard(5)
    assert heard(5) != heard(6)


class Restless(Talker):
    """Answers everything at once, for ever."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        if isinstance(event, Tick | Received):
            return [Send(n, messages.Subscribe("x", (1, 1), 1, ())) for n in self.view.neighbors]
        return []


def test_a_network_that_never_rests_is_noticed() -> None:
    net = Network(Restless, {("a", "b"): Link(latency=0.1)}, {}, {}, config=Config())
    net.event("a", Tick())
    with pytest.raises(NotAtRestError, match="still busy after 20"):
        net.settle(limit=20.0)


class Spinning(Talker):
    """Asks for a tick now, and again, and again."""

    def next_timeout(self) -> float | None:
        return 0.0


def test_a_router_that_asks_for_ticks_without_end_is_noticed() -> None:
    with pytest.raises(AssertionError, match="asks for ticks without end"):
        Network(Spinning, {("a", "b"): Link()}, {}, {}).run(1.0)


def test_what_a_caller_gets_wrong() -> None:
    net = network(Link())
    net.crash("b")
    with pytest.raises(ValueError, match="router 'b' is down"):
        net.event("b", Tick())
    with pytest.raises(ValueError, match="'a' sends to 'z', which is no neighbour"):
        net._transmit("a", "z", messages.Hello(1))


class Newsmonger(Talker):
    """Sends notifications one by one on a tick, something else in between, and notes batches."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        if isinstance(event, Received) and isinstance(event.message, messages.Notify):
            self.heard += [(event.message.number, len(event.message.batch))]
        if not isinstance(event, Tick):
            return []
        news = [_notify(number) for number in (1, 2, 3, 5)]
        return [Send("b", m) for m in (*news, messages.Hello(7), _notify(6), _notify(7))]


def _notify(number: int) -> messages.Notify:
    return messages.Notify("n", (1, 1), number, Batch.of([((1,), number, b"x")]))


@pytest.mark.parametrize(
    ("joining", "heard"),
    [(False, [(n, 1) for n in (1, 2, 3, 5, 6, 7)]), (True, [(1, 3), (5, 1), (6, 2)])],
)
@pytest.mark.parametrize("latency", [0.0, 0.1])
def test_notifications_of_an_instant_may_share_a_message(
    joining: bool, heard: list[tuple[int, int]], latency: float
) -> None:
    """Only those that follow each other in number, with nothing sent in between."""
    links = {("a", "b"): Link(latency=latency)}
    net = Network(Newsmonger, links, {}, {}, joining=joining)
    net.event("a", Tick())
    net.run(1.0)
    assert talker(net, "b").heard == heard
    assert (net.sent["Notify"], net.on_wire["Notify"]) == (6, 0)
    net.event("a", Tick())
    net.run(2.0)
    assert talker(net, "b").heard == heard * 2, "time goes on: nothing joins what was sent before"
