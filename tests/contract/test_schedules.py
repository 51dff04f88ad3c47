"""Every protocol against the oracle: random schedules with faults, in virtual time.

F3_SCHEDULES says how many in all; `make test` runs 500, `make test-long` 10,000. A schedule is
its seed: to see one again, `run(seed, protocol(name))`.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from routing.messages import Message
from routing.registry import protocols
from routing.router import TreeRouter
from routing.wire import decode, encode
from sim.schedule import FAULTY, Plan, run

SCHEDULES = int(os.environ.get("F3_SCHEDULES", "500"))
CHUNKS = 10
MINIMAL = {"f3", "f3-python", "minimal-graph"}
#: Protocols whose graph must be complete before anybody subscribes: they see no insertions.
FIXED = {
    name
    for name, cls in protocols().items()
    if issubclass(cls, TreeRouter) and cls.table.fixed_graph
}

#: Crowded: many things at once on few routers.
CROWDED = Plan(routers=3, hosts=4, actions=150, seconds=8.0)

#: What schedules are worth nothing without. How often 100 of them must reach it, at the least.
WANTED = {
    "covering": 60,
    "overlap": 60,
    "equality": 60,
    "re-subscription": 40,
    "unsubscription with notifications in flight": 10,
    "unsubscription with set-up in flight": 20,
    "several lowest nodes": 50,
    "insertion": 40,
    "removal": 40,
    "unknown identifier": 40,
    "subscription refused": 40,
    "publication refused": 5,
    "crash": 25,
    "crash of a rendezvous point": 20,
    "crash of a host": 40,
    "crash with subscriptions pending": 2,
    "loss and duplication": 40,
    "partition": 40,
    "rerouting": 10,
    "recovered": 5,
    "interrupted": 5,
    "expired": 1,
    "publications together": 20,
    "resynchronise": 20,
}


def through_the_wire(message: Message) -> Message:
    return decode(encode(message))


@pytest.mark.sim
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", protocols())
def test_schedules_with_faults(name: str, chunk: int) -> None:
    """Safety, completeness, liveness, mirrored tables, and messages that survive the wire."""
    reached: Counter[str] = Counter()
    count = math.ceil(SCHEDULES / (CHUNKS * len(protocols())))
    for seed in range(chunk * count, (chunk + 1) * count):
        plan = CROWDED if seed % 2 else Plan()
        minimal = name in MINIMAL
        outcome = run(seed, protocols()[name], plan, minimal=minimal, transcode=through_the_wire)
        reached.update(outcome.reached.keys())
    if count >= 100:
        missed = {what: reached[what] for what, n in WANTED.items() if reached[what] < n}
        if name in FIXED:
            del missed["insertion"]
        assert missed == {}, f"of {count} schedules"


@pytest.mark.sim
def test_the_schedules_reach_what_they_are_for() -> None:
    reached: Counter[str] = Counter()
    for seed in range(100):
        reached.update(run(seed, protocols()["f3"], CROWDED if seed % 2 else Plan()).reached.keys())
    missed = {what: reached[what] for what, n in WANTED.items() if reached[what] < n}
    assert missed == {}


@pytest.mark.sim
@pytest.mark.parametrize("name", protocols())
def test_without_faults_nothing_needs_mending(name: str) -> None:
    """No loss, no doubt, nothing recovered: `run` demands that no such report is made."""
    plan = Plan(routers=5, actions=120, seconds=8.0, faults=False)
    deliveries = 0
    for seed in range(20):
        outcome = run(seed, protocols()[name], plan, minimal=name in MINIMAL)
        deliveries += outcome.deliveries
        assert outcome.reached.keys().isdisjoint(FAULTY)
    assert deliveries > 250


TRACE = """
import hashlib
from routing.registry import protocol
from sim.network import Network
from sim.schedule import Plan, run

digest = hashlib.sha256()
event = Network.event

def traced(self, address, what):
    effects = event(self, address, what)
    digest.update(repr((self.now, address, what, effects)).encode())
    return effects

Network.event = traced
handled = [run(seed, protocol({name!r})).handled for seed in range(8)]
print(digest.hexdigest(), sum(handled))
"""


@pytest.mark.sim
@pytest.mark.parametrize("name", ["f3", "stored-graph"])
def test_the_same_seed_is_the_same_run_under_any_hash_seed(name: str) -> None:
    traces = set()
    for hash_seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", TRACE.format(name=name)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        traces.add(done.stdout)
    (trace,) = traces
    assert int(trace.split()[1]) > 1000
