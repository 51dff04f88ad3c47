"""The simulator's contract on live links: same kind of workload, same oracle, every protocol."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from live_world import LiveWorld
from local_network import DEADLINE, until

from routing.api import Deliver
from routing.registry import protocols
from routing.store import Store
from sim.network import Link, Network
from sim.world import World
from topology.overlay import overlay
from topology.paths import next_hops

TREE = [("r0", "r1"), ("r0", "r2"), ("r1", "r3"), ("r1", "r4"), ("r2", "r5")]
#: Reports that only a mistake of the protocol can bring about while nothing goes wrong.
NEVER = ("unknown-node", "lost", "misrouted", "no-route", "bad-setup")


@pytest.mark.parametrize("protocol", sorted(protocols()))
def test_every_protocol_keeps_its_promises_on_live_links(network, protocol):
    reached: Counter[str] = Counter()
    for seed in range(3):
        roots = ["r0"] if seed % 2 else ["r0", "r4"]
        made = network(TREE, roots, protocol=protocol)
        world = LiveWorld(made, seed)
        for _ in range(150):
            world.act()
        world.check()
        for name, host in made.hosts.items():
            host.submit(host.router.check).result(10)
            assert not any(host.reports[report] for report in NEVER), (name, host.reports)
        reached += world.reached
        reached["deliveries"] += world.oracle.deliveries
        made.close()
    wanted = ("subscription", "unsubscription", "several lowest nodes", "refusal")
    assert all(reached[what] >= 5 for what in wanted), reached
    assert reached["removal under subscribers"], reached
    assert reached["deliveries"] > 200, reached


@pytest.mark.parametrize("protocol", sorted(protocols()))
def test_one_workload_brings_the_same_deliveries_live_as_in_the_simulator(network, protocol):
    """Step by step, in both: who received what, and in which order."""
    made = network(TREE, ["r0"], protocol=protocol)
    live = LiveWorld(made, seed=5, clients=0)
    edges = {f"c{n}": ("r3", "r4", "r5", "r1")[n] for n in range(4)}
    heard: dict[str, list[bytes]] = {name: [] for name in edges}
    clients = {name: made.client(edge, f"h-{name}") for name, edge in edges.items()}
    subscribers = {
        name: client.subscriber(name, lambda n, to=heard[name]: to.append(n.body))
        for name, client in clients.items()
    }
    twin = Twin(protocols()[protocol], TREE, edges, live.meanings)
    rng, published = random.Random(7), 0
    held: set[tuple[str, int]] = set()
    for _ in range(80):
        name, node = rng.choice(sorted(edges)), rng.randint(1, 12)
        if rng.random() < 0.5:
            item = rng.randrange(10)
            header = live.low("r0", [n for n in range(1, 13) if item in live.meanings["r0", n]])
            if not header:
                continue  # nobody asked for it, nor can
            body = twin.publish(name, item)
            position = clients[name].publisher(name).publish("r0", header, body, timeout=DEADLINE)
            published += 1
            assert position == published
        elif (name, node) in held:
            twin.unsubscribe(name, node)
            subscribers[name].unsubscribe("r0", node, DEADLINE)
            held.discard((name, node))
        else:
            twin.subscribe(name, node)
            subscribers[name].subscribe("r0", node, DEADLINE)
            held.add((name, node))
        until(lambda: heard == twin.heard, "the simulator's deliveries")
    assert published > 20
    assert sum(map(len, heard.values())) > 30


class Twin:
    """The same network and clients in the simulator, brought to rest after each step."""

    def __init__(self, protocol, links, edges: dict[str, str], meanings) -> None:
        hosts = [(edge, f"h-{name}") for name, edge in edges.items()]
        overlaid = overlay([*links, *hosts])
        simulated = Network(
            protocol,
            {pair: Link(0.001) for pair in [*links, *hosts]},
            next_hops(overlaid, ["r0"]),
            {"r0": Store()},
        )
        self.world = World(simulated, meanings, check=False)
        self.heard: dict[str, list[bytes]] = {name: [] for name in edges}
        simulated.observers.append(self._observe)
        for _, node in sorted(meanings):
            self.world.insert("r0", node)
        for name in edges:
            self.world.client(name, f"h-{name}")

    def _observe(self, _: str, effect, now: float) -> None:
        if isinstance(effect, Deliver):
            self.heard[effect.client].append(effect.notification.body)

    def publish(self, name: str, item: int) -> bytes:
        body = self.world.publish(name, "r0", item)
        self.world.network.settle()
        return body

    def subscribe(self, name: str, node: int) -> None:
        self.world.subscribe(name, "r0", node)
        self.world.network.settle()

    def unsubscribe(self, name: str, node: int) -> None:
        self.world.unsubscribe(name, "r0", node)
        self.world.network.settle()


def test_routers_that_are_killed_come_back_and_nothing_is_lost_or_doubled(network):
    made = network(TREE, ["r0"])
    world = LiveWorld(made, seed=11)
    victims: Counter[str] = Counter()
    for step in range(400):
        world.act_calmly()
        if step % 25 == 24:
            victim = world.rng.choice(sorted(made.hosts))
            made.kill(victim)
            for _ in range(3):
                world.publish()
            made.boot(victim)
            victims[victim] += 1
    world.check(60.0)
    assert victims["r0"], "the rendezvous point was never killed"
    assert len(victims) >= 4
    recovered = sum(client.host.reports["recovered"] for client in world.clients)
    assert recovered, "no notification was ever lost on the way"
