"""Random schedules: what clients do, interleaved with what goes wrong, all from one seed.

`run` builds a random tree of routers, a random partial order of nodes and a random sequence of
actions, lets it happen under the oracle's eyes, mends every fault, and then demands rest,
completeness and tables that mirror one another. What a schedule reached is counted, so that a
test can demand that a thousand of them reached everything of interest.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

from routing.api import Address, Config, Router
from routing.content_graph import NodeId
from routing.messages import Message
from routing.nodes import Phase
from routing.router import TreeRouter
from routing.store import Store
from sim.network import Link, Network
from sim.oracle import Item, ViolationError
from sim.world import World
from topology.overlay import overlay
from topology.paths import next_hops

_Pair = tuple[Address, Address]

ITEMS = range(10)
#: A graph that loses all its nodes has nothing left to test.
REMOVALS_MAX = 2
#: No node has this ID: a subscription to it must be rejected.
BOGUS = 999

#: Reports that only a fault, or a mistake of the protocol, can bring about.
FAULTY = (
    "unknown-node",
    "recovered",
    "lost",
    "duplicate",
    "stale",
    "resynchronise",
    "misrouted",
    "no-route",
    "bad-setup",
    "interrupted",
    "expired",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a schedule."""

    routers: int = 8
    hosts: int = 4
    nodes: int = 12
    actions: int = 100
    seconds: float = 25.0
    faults: bool = True


@dataclass(slots=True)
class Outcome:
    """What happened in a schedule."""

    reached: Counter[str] = field(default_factory=Counter)
    handled: int = 0
    deliveries: int = 0


def run(
    seed: int,
    protocol: type[Router],
    plan: Plan | None = None,
    *,
    minimal: bool = False,
    transcode: Callable[[Message], Message] | None = None,
) -> Outcome:
    """Run one schedule; ViolationError or AssertionError if a promise is broken."""
    schedule = _Schedule(seed, protocol, plan or Plan(), minimal, transcode)
    return schedule.run()


class _Schedule:
    def __init__(
        self,
        seed: int,
        protocol: type[Router],
        plan: Plan,
        minimal: bool,
        transcode: Callable[[Message], Message] | None,
    ) -> None:
        self.rng = rng = random.Random(seed)
        self.plan = plan
        self.routers = [f"r{i}" for i in range(rng.randint(1, plan.routers))]
        self.hosts = [f"h{i}" for i in range(rng.randint(1, plan.hosts))]
        self.roots = rng.sample(self.routers, min(len(self.routers), rng.choice((1, 1, 1, 2))))
        meanings = {(r, n): s for r in self.roots for n, s in self._meanings().items()}
        self.keys = sorted(meanings)
        meanings.update({(root, BOGUS): frozenset() for root in self.roots})
        #: Links between routers that trees may use; those given up are cut for good.
        self.overlay, leaves = self._overlay()
        self.given_up: set[tuple[Address, Address]] = set()
        self.leaves = leaves
        network = Network(
            protocol,
            {pair: self._link() for pair in self.overlay + leaves},
            self._hops(),
            {root: Store() for root in self.roots},
            seed=rng.getrandbits(64),
            config=Config(period=1.0, lifetime=4.0, retry=2.0, window=4, recover_batch=3),
            transcode=transcode,
        )
        self.network = network
        self.world = World(network, meanings, minimal=minimal)
        self.outcome = Outcome()
        self.subscriptions: dict[str, set[tuple[Address, NodeId]]] = {}
        self.dropped: set[tuple[str, Address, NodeId]] = set()
        self.life = 0
        self.alive: dict[Address, list[str]] = {}
        self.later = [key for key in self.keys if rng.random() < 0.3]
        if issubclass(protocol, TreeRouter) and protocol.table.fixed_graph:
            self.later.clear()
        for namespace, node in (key for key in self.keys if key not in self.later):
            self.world.insert(namespace, node)
        for host in self.hosts:
            self._populate(host)

    # -- the random world ----------------------------------------------------------------

    def _meanings(self) -> dict[NodeId, frozenset[Item]]:
        """Distinct sets of items, many of them unions or intersections of others.

        Independent sets seldom cover each other: chains and diamonds have to be made.
        """
        rng = self.rng
        sets: list[frozenset[Item]] = []
        for _ in range(rng.randint(2, self.plan.nodes)):
            while True:
                items: frozenset[Item] = frozenset(rng.sample(ITEMS, rng.randint(1, 4)))
                if sets and rng.random() < 0.7:
                    other = rng.choice(sets)
                    items = items | other if rng.random() < 0.5 else (rng.choice(sets) & other)
                if items and items not in sets:
                    break
            sets.append(items)
        rng.shuffle(sets)
        return dict(enumerate(sets))

    def _overlay(self) -> tuple[list[_Pair], list[_Pair]]:
        """A random tree of routers, sometimes with links to spare, and a host on some of them."""
        rng, routers = self.rng, self.routers
        pairs = [(routers[rng.randrange(i)], routers[i]) for i in range(1, len(routers))]
        spare = [pair for pair in combinations(routers, 2) if pair not in pairs]
        pairs += rng.sample(spare, min(len(spare), rng.choice((0, 0, 1, 2, 3))))
        return pairs, [(rng.choice(routers), host) for host in self.hosts]

    def _hops(self) -> dict[Address, dict[Address, Address]]:
        kept = [pair for pair in self.overlay if pair not in self.given_up]
        return next_hops(overlay(kept + self.leaves), self.roots, by="hops")

    def _link(self) -> Link:
        rng = self.rng
        return Link(latency=rng.choice((0.001, 0.01, 0.1, 0.2)), jitter=rng.choice((0.0, 0.05)))

    def _populate(self, host: Address) -> None:
        """New clients for a host that has just come up."""
        self.life += 1
        names = [f"{host}.{self.life}.{i}" for i in range(self.rng.randint(1, 2))]
        for name in names:
            self.world.client(name, host)
            self.subscriptions[name] = set()
        self.alive[host] = names

    # -- the run -------------------------------------------------------------------------

    def run(self) -> Outcome:
        plan, network, rng = self.plan, self.network, self.rng
        times = sorted(
            rng.uniform(0.0, plan.seconds)
            for _ in range(rng.randint(plan.actions // 3, plan.actions))
        )
        for time in times:
            network.at(time, self._act)
        network.run(plan.seconds)
        if plan.faults:
            self._mend()
        network.settle()
        if self.alive:
            self._publish_everything()
            network.settle()
        self.world.check_at_rest()
        self._check_reports()
        self.outcome.handled = network.handled
        self.outcome.deliveries = self.world.oracle.deliveries
        self.outcome.reached.update(self.world.reports)
        for what, count in self.world.refused.items():
            self.outcome.reached[f"{what} refused"] += count
        return self.outcome

    def _check_reports(self) -> None:
        """Without faults there is nothing to recover from, and nothing out of place."""
        if not self.plan.faults:
            odd = {name: self.world.reports[name] for name in FAULTY if self.world.reports[name]}
            if odd:
                raise ViolationError(f"reported without any fault: {odd}")

    def _mend(self) -> None:
        for a, b in self.network.links():
            self.network.disturb(a, b, 0.0, 0.0)
            if (a, b) not in self.given_up and (b, a) not in self.given_up:
                self.network.heal(a, b, noticed=self.rng.random() < 0.5)
        for address, router in self.network.routers.items():
            if router is None:
                self._restart(address, self.rng.random() < 0.5)

    def _publish_everything(self) -> None:
        """A network that has come to rest delivers whatever is published from now on."""
        clients = sorted(name for names in self.alive.values() for name in names)
        for namespace in self.roots:
            for item in ITEMS:
                self.world.publish(self.rng.choice(clients), namespace, item)

    def _reach(self, what: str) -> None:
        self.outcome.reached[what] += 1

    # -- actions -------------------------------------------------------------------------

    def _act(self) -> None:
        common = (self._subscribe,) * 9 + (self._unsubscribe,) * 7 + (self._publish,) * 6
        rare = (self._insert, self._remove, self._bogus)
        faults = (self._crash, self._crash_host, self._disturb, self._cut, self._reroute)
        kinds = common + (*rare, self._burst) + (faults if self.plan.faults else ())
        self.rng.choice(kinds)()

    def _client(self) -> str | None:
        names = [name for names in self.alive.values() for name in names]
        return self.rng.choice(names) if names else None

    def _subscribe(self) -> None:
        client = self._client()
        if client is None:
            return
        key = self.rng.choice(self.keys)
        if key not in self.subscriptions[client]:
            self._note_subscription(client, key)
            self.subscriptions[client].add(key)
            self.world.subscribe(client, *key)

    def _note_subscription(self, client: str, key: tuple[Address, NodeId]) -> None:
        if (client, *key) in self.dropped:
            self._reach("re-subscription")
        mine = self.world.meanings[key]
        for other, keys in self.subscriptions.items():
            if other == client:
                continue
            theirs = [self.world.meanings[k] for k in keys if k[0] == key[0]]
            if mine in theirs:
                self._reach("equality")
            if any(mine < t or t < mine for t in theirs):
                self._reach("covering")
            if any(mine & t and not mine <= t and not t <= mine for t in theirs):
                self._reach("overlap")

    def _unsubscribe(self) -> None:
        client = self._client()
        if client is None or not self.subscriptions[client]:
            return
        key = self.rng.choice(sorted(self.subscriptions[client]))
        self.subscriptions[client].discard(key)
        if self.world.holds(client, *key):
            if self.network.on_wire["Notify"]:
                self._reach("unsubscription with notifications in flight")
            if self.network.on_wire["Subscribe"] or self.network.on_wire["GraphSetup"]:
                self._reach("unsubscription with set-up in flight")
            self.dropped.add((client, *key))
            self.world.unsubscribe(client, *key)

    def _publish(self) -> None:
        client = self._client()
        if client is not None:
            namespace = self.rng.choice(self.roots)
            item = self.rng.choice(ITEMS)
            graph = self.network.stores[namespace].graph
            if len(self.world.lowest(namespace, item, graph)) > 1:
                self._reach("several lowest nodes")
            self.world.publish(client, namespace, item)

    def _burst(self) -> None:
        """Many publications at once, so that some are always on their way; or together."""
        client = self._client()
        if client is not None and self.rng.random() < 0.5:
            items = self.rng.choices(ITEMS, k=self.rng.randint(2, 6))
            self._reach("publications together")
            self.world.publish_all(client, self.rng.choice(self.roots), items)
            return
        for _ in range(self.rng.randint(2, 6)):
            self._publish()

    def _insert(self) -> None:
        ready = [key for key in self.later if self.network.routers[key[0]] is not None]
        if ready:
            key = self.rng.choice(ready)
            self.later.remove(key)
            self._reach("insertion")
            self.world.insert(*key)

    def _remove(self) -> None:
        root = self.rng.choice(self.roots)
        graph = self.network.stores[root].graph
        enough = self.outcome.reached["removal"] < REMOVALS_MAX
        if len(graph) and enough and self.network.routers[root] is not None:
            self._reach("removal")
            node = self.rng.choice(sorted(graph))
            self.world.remove(root, node)

    def _bogus(self) -> None:
        client, root = self._client(), self.rng.choice(self.roots)
        if client is not None and not self.world.holds(client, root, BOGUS):
            self._reach("unknown identifier")
            self.world.subscribe(client, root, BOGUS)

    # -- faults --------------------------------------------------------------------------

    def _crash(self) -> None:
        address = self.rng.choice(self.routers)
        router = self.network.routers[address]
        if not isinstance(router, TreeRouter):
            return
        self._reach("crash of a rendezvous point" if address in self.roots else "crash")
        for namespace in self.roots:
            states = router.namespace(namespace).nodes.states.values()
            if any(state.phase is Phase.PENDING for state in states):
                self._reach("crash with subscriptions pending")
        self.network.crash(address, noticed=self.rng.random() < 0.5)
        self._soon(lambda: self._restart(address, noticed=self.rng.random() < 0.5))

    def _restart(self, address: Address, noticed: bool) -> None:
        if self.network.routers[address] is None:
            self.network.restart(address, noticed)
            if address in self.hosts:
                self._populate(address)

    def _crash_host(self) -> None:
        host = self.rng.choice(self.hosts)
        if self.network.routers[host] is not None:
            self._reach("crash of a host")
            del self.alive[host]
            self.world.crash_host(host, noticed=self.rng.random() < 0.5)
            away = self.rng.choice((2.0, 12.0))  # back soon, or after all hope is given up
            self._soon(lambda: self._restart(host, noticed=self.rng.random() < 0.5), away)

    def _disturb(self) -> None:
        if links := list(self.network.links()):
            a, b = self.rng.choice(links)
            self._reach("loss and duplication")
            self.network.disturb(a, b, self.rng.uniform(0, 0.4), self.rng.uniform(0, 0.3))
            self._soon(lambda: self.network.disturb(a, b, 0.0, 0.0))

    def _cut(self) -> None:
        if links := list(self.network.links()):
            a, b = self.rng.choice(links)
            self._reach("partition")
            self.network.cut(a, b, noticed=self.rng.random() < 0.5)
            self._soon(lambda: self._heal(a, b, noticed=self.rng.random() < 0.5))

    def _heal(self, a: Address, b: Address, noticed: bool) -> None:
        if (a, b) not in self.given_up and (b, a) not in self.given_up:
            self.network.heal(a, b, noticed)

    def _reroute(self) -> None:
        """Give a link up for good, or take one back, and let the routers hear of it by and by."""
        pair = self.rng.choice(self.overlay) if self.overlay else None
        if pair is None or not self._can_spare(pair):
            return
        self._reach("rerouting")
        noticed = self.rng.random() < 0.5
        if pair in self.given_up:
            self.given_up.discard(pair)
            self.network.heal(*pair, noticed)
        else:
            self.given_up.add(pair)
            self.network.cut(*pair, noticed)
        for address in self.network.routers:
            self._soon(partial(self._tell_hops, address))

    def _can_spare(self, pair: _Pair) -> bool:
        """Whether the routers stay connected without a link."""
        kept = [each for each in self.overlay if each not in self.given_up and each != pair]
        reached = {self.routers[0]}
        for _ in self.routers:
            reached.update(end for each in kept if reached.intersection(each) for end in each)
        return len(reached) == len(self.routers)

    def _tell_hops(self, address: Address) -> None:
        self.network.reroute(address, self._hops()[address])

    def _soon(self, action: Callable[[], None], mean: float = 2.0) -> None:
        self.network.at(self.network.now + self.rng.expovariate(1.0 / mean), action)
