"""Study 1: traffic of unicast, two multicasts and F3 on one network (Kulik 2004, section 4.1).

A 1200-node transit-stub network in virtual time, a subscriber at each router, 1000 notifications
from one source; per scenario 20 runs with different sources and subscriptions (Tables 4.1, 4.2).
Counts come from the messages on the links and from the routers' tables, and every delivery is
checked by the oracle. Not here: losses and queues, which the thesis leaves out too.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from functools import lru_cache
from typing import Any

from experiments.implied import Definitions, Implied
from experiments.points import Point, Result
from experiments.work import Work, draw
from routing import messages
from routing.api import Address, Config, Effect, Router, Send
from routing.content_graph import NodeId
from routing.registry import protocol
from routing.store import Store
from sim.network import Link, Network
from sim.oracle import Item
from sim.world import World
from topology.catalogue import load
from topology.overlay import Overlay
from topology.paths import next_hops, tree

TITLE = "Study 1: notifications per link, identifiers per subscription, table and notification"
SCENARIOS = {
    "baseball": "baseball-30",
    "traffic": "traffic-20",
    "attribute-value": "attribute-value-5",
}
SYSTEMS = ("unicast", "overlapping-id", "disjunctive-id", "f3")
MEASURES = (
    "notifications_per_link",
    "ids_per_subscription",
    "ids_per_table",
    "ids_per_notification",
)

#: No timer has anything to do: nothing is lost.
_CALM = Config(period=1e7, lifetime=4e7, retry=1e7)
#: Publications that are on their way together: enough to share messages, few enough to hold.
_BURST = 250


def points(quick: bool) -> list[Point]:
    """Runs outermost, so that a study that is stopped has whole runs of everything."""
    topology, runs, notifications = (
        ("transit-stub-100", 3, 200) if quick else ("transit-stub-1200", 20, 1000)
    )
    return [
        Point(
            f"{scenario}-{system}-{run}",
            {
                "scenario": scenario,
                "system": system,
                "run": run,
                "topology": topology,
                "notifications": notifications,
            },
        )
        for run in range(runs)
        for scenario in SCENARIOS
        for system in SYSTEMS
    ]


def run(scenario: str, system: str, run: int, topology: str, notifications: int) -> Result:
    """One system in one run of one scenario."""
    overlay = load(topology)
    root = random.Random(f"source {run}").choice(sorted(overlay.routers))  # noqa: S311
    count = len(overlay.routers)
    parameters = {
        "subscribers.count": count,
        "subscribers.routers": count,
        "notifications.count": notifications,
    }
    work = draw(SCENARIOS[scenario], run, parameters)
    season = Season(overlay, root, protocol(system), work)
    gc.disable()  # what a run makes stays until its end: there is nothing to collect
    try:
        season.subscribe()
        season.publish()
        season.check(system)
        return season.result()
    finally:
        gc.enable()


class _World(World):
    """A world whose headers come from the scenario, not from comparing sets of items."""

    headers: dict[Item, tuple[NodeId, ...]]

    def lowest(self, namespace: Address, item: Item, among: object) -> tuple[NodeId, ...]:
        return self.headers[item]


class Season:
    """One run: a network, a subscriber at each router, and counters on every link."""

    def __init__(self, overlay: Overlay, root: Address, router: type[Router], work: Work) -> None:
        self.overlay, self.root, self.work = overlay, root, work
        self.routers = sorted(overlay.routers)
        self.disjoint = router is protocol("disjunctive-id")
        #: Per link away from the root: notifications and the identifiers that they carried.
        self.crossed: Counter[tuple[Address, Address]] = Counter()
        self.carried: Counter[tuple[Address, Address]] = Counter()
        #: Per host, its topic, and the identifiers that the subscription to it became.
        self.own = dict(zip(self.routers, work.nodes.tolist(), strict=True))
        self.asked: dict[Address, int] = {}
        self.topics = len(work.topics)
        self.tree = tree(overlay, root)
        self.definitions = Definitions(work, self.routers, self.tree.parents)
        store, headers = self._content()
        links = {link.ends: Link(latency=link.latency) for link in overlay.links}
        hops = next_hops(overlay, [root])
        network = Network(router, links, hops, {root: store}, config=_CALM, joining=True)
        self.world = _World(network, self._meanings(), check=False)
        self.world.headers = headers
        network.observers.append(self._observe)

    def _content(self) -> tuple[Store, dict[Item, tuple[NodeId, ...]]]:
        """The graph at the rendezvous point, and each notice's lowest nodes in it.

        Topics by generalisation; for disjunctive identifiers, topics straight above the
        categories that they cover.
        """
        work, store = self.work, Store()
        if not self.disjoint:
            graph = work.graph()
            for node in graph.topological():
                store.insert_node(node, graph.parents(node), ())
            return store, dict(zip(work.notices.tolist(), work.headers(work.notices), strict=True))
        categories = work.categories()
        covers = work.matching(categories)
        for node in range(self.topics):
            store.insert_node(node, (), ())
        for at in range(len(categories)):
            store.insert_node(self.topics + at, covers[:, at].nonzero()[0].tolist(), ())
        numbered = {code: (self.topics + at,) for at, code in enumerate(categories.tolist())}
        return store, {code: numbered[code] for code in work.notices.tolist()}

    def _meanings(self) -> dict[tuple[Address, NodeId], frozenset[Item]]:
        """What each topic stands for, by brute force: the oracle's own view."""
        codes = sorted(set(self.work.notices.tolist()))
        matching = self.work.matching(_array(codes))
        return {
            (self.root, node): frozenset(codes[at] for at in row.nonzero()[0].tolist())
            for node, row in enumerate(matching)
        }

    # -- the run -------------------------------------------------------------------------

    def subscribe(self) -> None:
        """A subscriber at each router asks for its topic; returns when all is at rest."""
        for at, node in enumerate(self.work.nodes.tolist()):
            host = self.routers[at]
            self.world.client(host, host)
            self.world.subscribe(host, self.root, node)
        self.world.network.settle(quiet=10.0, limit=1e6)

    def publish(self) -> None:
        """The source tells of everything; the oracle then finds nothing missing or too much."""
        notices = self.work.notices.tolist()
        for start in range(0, len(notices), _BURST):
            for notice in notices[start : start + _BURST]:
                self.world.publish(self.root, self.root, notice)
            self.world.network.settle(quiet=10.0, limit=1e6)
        self.world.check_at_rest()
        odd = {name: n for name, n in self.world.reports.items() if n}
        assert not odd, f"reported in a network without faults: {odd}"

    def _observe(self, address: Address, effect: Effect, now: float) -> None:
        if not isinstance(effect, Send):
            return
        message = effect.message
        if isinstance(message, messages.Notify):
            pair = (address, effect.dst)
            self.crossed[pair] += len(message.batch)
            self.carried[pair] += len(message.batch.nodes) // 4
        elif isinstance(message, messages.GraphSetup):
            for setup in message.setups:
                if setup.node == self.own[effect.dst]:
                    self.asked[effect.dst] = self._identifiers(setup)

    def _identifiers(self, setup: messages.Setup) -> int:
        """One for a topic; for disjunctive identifiers, the categories in its list."""
        return sum(node >= self.topics for node in setup.children) if self.disjoint else 1

    def check(self, system: str) -> None:
        """Every link and every table has what the definitions imply, to the last identifier."""
        ours = Implied(
            crossed={dst: count for (_, dst), count in self.crossed.items()},
            carried={dst: count for (_, dst), count in self.carried.items()},
            tables=dict(zip(self.routers, self._tables(), strict=True)),
            asked=self.asked,
        )
        wrong = ours.differs(self.definitions.of(system))
        assert not wrong, f"{system}: {wrong}"

    # -- the counts ----------------------------------------------------------------------

    def result(self) -> Result:
        """Whole network and most heavily loaded router, for each measure."""
        links = len(self.routers) - 1  # those of the dissemination tree
        busiest = max(self.crossed, key=lambda pair: (self.crossed[pair], pair), default=None)
        asked = _mean(list(self.asked.values()))
        tables = self._tables()
        return {
            "deliveries": self.world.oracle.deliveries,
            "root": self.root,
            "topics": self.topics,
            "implied_unicast": self.definitions.unicast(),
            "hops": _mean(list(self.tree.depths.values())),
            "notifications_per_link": [
                sum(self.crossed.values()) / links,
                max(self.crossed.values(), default=0),
            ],
            # The most heavily loaded router is the source's: all subscriptions end there.
            "ids_per_subscription": [asked, asked],
            "ids_per_table": [_mean(tables), max(tables)],
            "ids_per_notification": [
                sum(self.carried.values()) / max(sum(self.crossed.values()), 1),
                self.carried[busiest] / self.crossed[busiest] if busiest else 0.0,
            ],
        }

    def _tables(self) -> list[int]:
        """Identifiers in each router's table."""
        sizes = [router.state_size() for router in self.world.network.routers.values() if router]
        if not self.disjoint:
            return [size.get("nodes", 0) for size in sizes]
        # A topic's own identifier is no category of notifications here.
        return [size.get("categories", 0) - size.get("nodes", 0) for size in sizes]


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _array(codes: list[int]) -> Any:
    import numpy as np

    return np.array(codes, dtype=np.int64)


@lru_cache(maxsize=1)
def printed() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Table 4.2: (measure, system, scenario) to (typical router, most heavily loaded one)."""
    rows: dict[tuple[str, str], tuple[float, ...]] = {
        (MEASURES[0], "unicast"): (909.1, 3105.1, 100.1, 66560.6, 128336.2, 3898.2),
        (MEASURES[0], "overlapping-id"): (312.7, 1870.0, 85.3, 1299.8, 61423.5, 3543.9),
        (MEASURES[0], "disjunctive-id"): (245.5, 619.5, 52.7, 1000.0, 1000.0, 1000.0),
        (MEASURES[0], "f3"): (245.5, 619.5, 52.7, 1000.0, 1000.0, 1000.0),
        (MEASURES[1], "overlapping-id"): (1.0,) * 6,
        (MEASURES[1], "disjunctive-id"): (50.8, 118.4, 21.8, 50.7, 118.5, 22.0),
        (MEASURES[1], "f3"): (1.0,) * 6,
        (MEASURES[2], "overlapping-id"): (4.5, 3.9, 16.9, 361.2, 187.6, 955.4),
        (MEASURES[2], "disjunctive-id"): (103.6, 145.8, 183.4, 465.0, 210.0, 3102.5),
        (MEASURES[2], "f3"): (4.5, 3.9, 16.9, 361.2, 187.6, 955.4),
        (MEASURES[3], "overlapping-id"): (1.0,) * 6,
        (MEASURES[3], "disjunctive-id"): (1.0,) * 6,
        (MEASURES[3], "f3"): (1.0, 1.5, 1.3, 1.2, 4.2, 3.7),
    }
    return {
        (measure, system, scenario): (values[at], values[at + 3])
        for (measure, system), values in rows.items()
        for at, scenario in enumerate(SCENARIOS)
    }
