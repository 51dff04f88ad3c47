"""Routers and the rendezvous point are killed at random while publications flow.

Afterwards every acknowledged publication has been delivered exactly once to every subscriber that
should have it, by a brute-force count over what the nodes stand for.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import Counter

import pytest
from ray_tools import DEADLINE, recovered, sigkill, until

from actors.cluster import Cluster, Options
from routing.api import Config

pytestmark = pytest.mark.ray

TREE = [("r0", "r1"), ("r0", "r2"), ("r1", "r3"), ("r1", "r4"), ("r2", "r5"), ("r2", "r6")]
#: Nodes and the items they stand for.
MEANING = {1: {1, 2, 3, 4}, 2: {1, 2}, 3: {3, 4}, 4: {1}, 5: {4}}
GRAPH = [(1, ()), (2, (1,)), (3, (1,)), (4, (2,)), (5, (3,))]
LOWEST = {1: (4,), 2: (2,), 3: (3,), 4: (5,)}
SUBSCRIBERS = 20
OPTIONS = Options(config=Config(period=0.5, lifetime=2.0, retry=1.0, window=256))


class Source(threading.Thread):
    """Publishes random items at a steady rate until told to stop."""

    def __init__(self, client, rate: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.publisher = client.publisher("source")
        self.rate, self.rng = rate, random.Random(seed)
        self.sent: list[tuple[int, object]] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        while not self.stopping.is_set():
            due = int((time.monotonic() - began) * self.rate)
            for _ in range(due - len(self.sent)):
                item = self.rng.choice(sorted(LOWEST))
                future = self.publisher.send("r0", LOWEST[item], b"%d" % item, timeout=DEADLINE)
                self.sent.append((item, future))
            self.stopping.wait(0.01)


@pytest.mark.parametrize(
    ("seconds", "rate"),
    [
        pytest.param(10.0, 300.0, id="short"),
        pytest.param(60.0, 1000.0, id="minute", marks=pytest.mark.slow),
    ],
)
def test_every_acknowledged_publication_arrives_exactly_once(local_ray, capsys, seconds, rate):
    import ray

    rng = random.Random(int(seconds))
    with Cluster(TREE, ["r0"], options=OPTIONS) as cluster:
        cluster.load_graph("r0", GRAPH)
        hosts = [cluster.subscriber_host(edge, record=True) for edge in ("r3", "r6")]
        wants = {f"s{n}": 1 + n % len(MEANING) for n in range(SUBSCRIBERS)}
        for n, host in enumerate(hosts):
            mine = [(name, "r0", wants[name]) for name in list(wants)[n :: len(hosts)]]
            assert ray.get(host.subscribe.remote(mine, DEADLINE)) == {}
        with cluster.client("r5") as client:
            source = Source(client, rate, 7)
            source.start()
            kills, times = _kill_for(cluster, rng, seconds)
            source.stopping.set()
            source.join(DEADLINE)
            placed = {future.result(DEADLINE): item for item, future in source.sent}
        due = {name: _due(MEANING[node], placed) for name, node in wants.items()}
        total = sum(map(len, due.values()))
        so_far = lambda: sum(ray.get([host.deliveries.remote() for host in hosts]))  # noqa: E731
        settle = until(lambda: so_far() >= total, f"{total} deliveries")
        received = {k: v for host in hosts for k, v in ray.get(host.received.remote()).items()}
        for name in wants:
            assert sorted(position for _, position in received[name]) == due[name], name
    with capsys.disabled():
        print(
            f"\n{len(placed)} acknowledged, {total} deliveries ({total / seconds:.0f}/s), kills "
            f"{dict(kills)}; recovery median {statistics.median(times):.1f} s, worst "
            f"{max(times):.1f} s; all delivered {settle:.1f} s after the end"
        )
    assert len(placed) == len(source.sent) > seconds * rate / 10
    assert kills["r0"], "the rendezvous point was never killed"
    assert len(kills) >= 2


def _due(wanted: set[int], placed: dict[int, int]) -> list[int]:
    return sorted(position for position, item in placed.items() if item in wanted)


def _kill_for(cluster, rng, seconds: float) -> tuple[Counter[str], list[float]]:
    """Kill somebody every so often; who was killed, and how long each took to be back.

    At least two are killed, one of them the rendezvous point, however slow the machine.
    """
    kills: Counter[str] = Counter()
    times: list[float] = []
    end = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < end or len(times) < 2:
        pause.wait(rng.uniform(0.2, 1.0))
        victim = "r0" if len(times) == 1 else rng.choice(cluster.overlay.routers)
        incarnation = sigkill(cluster, victim)
        kills[victim] += 1
        back = lambda v=victim, i=incarnation: recovered(cluster, v, i)  # noqa: E731
        times.append(until(back, f"recovery of {victim}"))
    return kills, times
