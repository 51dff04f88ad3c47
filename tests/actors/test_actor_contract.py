"""The simulator's contract on live links: same kind of workload, same oracle, every protocol."""

from __future__ import annotations

from collections import Counter

import pytest
from live_world import LiveWorld

from routing.registry import protocols

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
