"""What grows and what does not: refresh traffic, and a network of 1200 routers."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from routing.api import Address, Config, Deliver, Effect, Publication, Publish, Send, Subscribe
from routing.registry import protocol
from routing.store import Store
from routing.wire import encode
from sim.network import Link, Network, is_refresh
from topology.catalogue import load
from topology.overlay import overlay
from topology.paths import next_hops


def flat_store(nodes: int) -> Store:
    store = Store()
    for node in range(nodes):
        store.insert_node(node, (), ())
    return store


def refresh_bytes(nodes: int, periods: float = 20.0) -> int:
    """Bytes that a chain of three routers sends in so many periods while nothing changes."""
    links = [("A", "B"), ("B", "C")]
    hops = next_hops(overlay(links), ["A"])
    net = Network(protocol("f3"), {pair: Link() for pair in links}, hops, {"A": flat_store(nodes)})
    for node in range(nodes):
        net.event("C", Subscribe("me", "A", node))
    net.settle()
    sent: list[int] = []

    def count(_: Address, effect: Effect, now: float) -> None:
        if isinstance(effect, Send):
            assert is_refresh(effect.message), effect
            sent.append(sum(map(len, encode(effect.message))))

    net.observers.append(count)
    net.run(net.now + periods)
    assert len(sent) > 2 * periods
    return sum(sent)


@pytest.mark.sim
def test_refreshing_an_unchanged_table_costs_the_same_whatever_its_size() -> None:
    small, large = refresh_bytes(100), refresh_bytes(10_000)
    assert large < 1.3 * small
    assert large < 20.0 * 2 * 2 * 150  # periods, links, both ways, bytes a message


@pytest.mark.sim
def test_1200_routers_deliver_exactly_what_brute_force_says() -> None:
    """The size of the thesis's Study 1: a subscriber at each router (Kulik 2004, 4.1.1)."""
    network = load("transit-stub-1200", seed=1)
    root = network.routers[0]
    rng = random.Random(1)
    store = Store()
    store.insert_node(0, (), ())
    for team in range(1, 31):
        store.insert_node(team, (0,), ())
    net = Network(
        protocol("f3"),
        {link.ends: Link(latency=link.latency) for link in network.links},
        next_hops(network, [root]),
        {root: store},
        config=Config(period=100.0, lifetime=400.0),
    )
    received: Counter[tuple[Address, bytes]] = Counter()

    def note(address: Address, effect: Effect, now: float) -> None:
        if isinstance(effect, Deliver):
            received[address, effect.notification.body] += 1

    net.observers.append(note)
    wishes = {router: rng.choice((0, rng.randint(1, 30))) for router in network.routers}
    for router, node in wishes.items():
        net.event(router, Subscribe("me", root, node))
    net.run(net.now + 10.0)
    games = {b"game %d" % n: rng.randint(1, 30) for n in range(10)}
    for number, (body, team) in enumerate(games.items()):
        net.event(root, Publish("source", root, (Publication((team,), body),), number))
    net.run(net.now + 10.0)
    due = {(r, b): 1 for r, n in wishes.items() for b, team in games.items() if n in (0, team)}
    assert received == due
