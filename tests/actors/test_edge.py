"""Clients whose edge router is lost: they choose another, and nothing is lost or doubled."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from live_world import LiveWorld
from local_network import DEADLINE, LocalNetwork, until

from actors.crowd import Crowd
from actors.edge import Elsewhere
from actors.link import Kind

CHAIN = [("r0", "r1"), ("r1", "r2"), ("r2", "r3")]
TREE = [("r0", "r1"), ("r0", "r2"), ("r1", "r3"), ("r1", "r4"), ("r2", "r5"), ("r2", "r6")]
PATIENCE = 0.3


@pytest.mark.parametrize("secure", [False, True])
def test_subscriptions_and_publications_go_on_at_another_router(network, secure):
    made = network(CHAIN, ["r0"], secure=secure, patience=PATIENCE)
    made.insert("r0", 1)
    client, other = made.client("r3"), made.client("r0")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 1, DEADLINE)
    other.publisher("p").publish("r0", (1,), b"before")
    made.kill("r3")
    other.publisher("p").publish("r0", (1,), b"meanwhile")
    waiting = client.publisher("q").send("r0", (1,), b"from the client", timeout=DEADLINE)
    assert waiting.result(DEADLINE)
    assert client.edge == "r2"
    other.publisher("p").publish("r0", (1,), b"after")
    bodies = [b"before", b"meanwhile", b"from the client", b"after"]
    assert Counter(subscriber.get(DEADLINE).body for _ in bodies) == Counter(bodies)
    assert not len(subscriber.inbox)
    assert client.host.links_up() == {"r2": True}


def test_routers_that_are_cut_off_with_the_lost_one_are_not_chosen(network):
    """r2 and r3 live and answer, and lead nowhere."""
    made = network(CHAIN, ["r0"], patience=PATIENCE)
    made.insert("r0", 1)
    clients = [made.client("r1") for _ in range(8)]
    made.kill("r1")
    until(lambda: {client.edge for client in clients} == {"r0"}, "another edge router")
    clients[0].subscriber("s").subscribe("r0", 1, DEADLINE)


def test_a_second_loss_is_survived_as_the_first(network):
    made = network(CHAIN, ["r0"], patience=PATIENCE)
    made.insert("r0", 1)
    client = made.client("r3")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 1, DEADLINE)
    for lost, edge in (("r3", "r2"), ("r2", "r1"), ("r1", "r0")):
        made.kill(lost)
        until(lambda edge=edge: client.edge == edge, f"a move to {edge}")
        client.publisher("p").publish("r0", (1,), lost.encode(), timeout=DEADLINE)
        assert subscriber.get(DEADLINE).body == lost.encode()


def test_an_edge_router_that_is_back_in_time_keeps_its_clients(network):
    made = network(CHAIN, ["r0"])
    made.insert("r0", 1)
    client = made.client("r3")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 1, DEADLINE)
    made.kill("r3")
    made.boot("r3")
    client.publisher("p").publish("r0", (1,), b"back", timeout=DEADLINE)
    assert subscriber.get(DEADLINE).body == b"back"
    assert client.edge == "r3"


def test_a_crowd_moves_as_well(network):
    made = network(CHAIN, ["r0"], patience=PATIENCE)
    made.insert("r0", 1)
    ask = partial(made.ask, kind=Kind.HOST)
    plan = made.plan("crowd", {"r0": "r3"})
    crowd = Crowd(plan, "r3", ask("r3"), 1, True, Elsewhere(made.look, ask, PATIENCE)).start()
    names = [f"s{n}" for n in range(100)]
    assert crowd.subscribe([(name, "r0", 1) for name in names], DEADLINE) == {}
    made.kill("r3")
    publisher = made.client("r0").publisher("p")
    positions = [publisher.publish("r0", (1,), b"", timeout=DEADLINE) for _ in range(20)]
    until(lambda: crowd.deliveries >= len(names) * len(positions), "deliveries")
    received = crowd.received()
    assert all(sorted(p for _, p in received[name]) == positions for name in names)
    assert crowd.edge == "r2"
    crowd.close()


def test_random_clients_lose_their_edge_routers_for_good(network):
    """Leaves are lost one by one under a workload; the oracle sees every delivery."""
    moved, reached, recovered = 0, Counter(), 0
    for seed in range(3):
        made: LocalNetwork = network(TREE, ["r0"], patience=PATIENCE)
        world = LiveWorld(made, seed, clients=6)
        edges = {client.host.address: client.edge for client in world.clients}
        for victim in world.rng.sample(["r3", "r4", "r5", "r6"], 3):
            for _ in range(30):
                world.act_calmly()
            made.kill(victim)
            for _ in range(30):
                world.publish()
        world.check(60.0)
        moved += sum(client.edge != edges[client.host.address] for client in world.clients)
        reached += world.reached
        recovered += sum(client.host.reports["recovered"] for client in world.clients)
        made.close()
    assert moved >= 4
    assert recovered, "no notification was ever lost on the way"
    assert reached["subscription"] >= 20, reached
    assert reached["publication"] + reached["several lowest nodes"] >= 400, reached
