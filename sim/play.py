"""Baseball news on an overlay, in virtual time: a subscriber at each router (Kulik 2004, 4.1.1).

40 % of the subscribers follow one team, 50 % the games between two, 10 % all of them; a
notification is about one game. The oracle watches, so what is counted was delivered exactly.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from routing import messages
from routing.api import Address, Config, Deliver, Effect, Router, Send
from routing.content_graph import NodeId
from routing.store import Store
from sim.network import Link, Network
from sim.oracle import Item
from sim.world import World
from topology.overlay import Overlay
from topology.paths import next_hops

#: Share of subscribers that follow one team, and that follow a team or a pair of teams.
ONE, ONE_OR_TWO = 0.4, 0.9

Topics = dict[NodeId, frozenset[Item]]


def baseball_topics(teams: int) -> Topics:
    """All games, those of each team, and those of each pair: node 0, then teams, then pairs."""
    games = list(combinations(range(teams), 2))
    topics: list[frozenset[Item]] = [frozenset(games)]
    topics += [frozenset(game for game in games if team in game) for team in range(teams)]
    topics += [frozenset([game]) for game in games]
    return dict(enumerate(topics))


@dataclass(slots=True)
class Play:
    """A network that plays a season; counts what passes."""

    overlay: Overlay
    root: Address
    protocol: type[Router]
    teams: int = 30
    loss: float = 0.0
    seed: int = 0
    #: Seconds that a router takes for a message; if any, queues form and are recorded.
    service: float = 0.0
    #: Those that take longer, or less.
    slow: Mapping[Address, float] = field(default_factory=dict)
    #: Notifications per link since the start, and those of the last publication.
    crossed: Counter[tuple[Address, Address]] = field(default_factory=Counter)
    last_crossed: list[tuple[Address, Address]] = field(default_factory=list)
    last_reached: list[Address] = field(default_factory=list)
    wishes: dict[Address, NodeId] = field(default_factory=dict)
    _rng: random.Random = field(init=False)
    world: World = field(init=False)

    def __post_init__(self) -> None:
        if self.teams < 2:
            raise ValueError(f"a game needs two teams, not {self.teams}")
        unknown = sorted(set(self.slow) - set(self.overlay.routers))
        if unknown:
            raise ValueError(f"there is no router {unknown[0]!r} to be slow")
        self._rng = random.Random(self.seed)
        network = Network(
            self.protocol,
            {link.ends: Link(latency=link.latency) for link in self.overlay.links},
            next_hops(self.overlay, [self.root]),
            {self.root: Store()},
            seed=self.seed,
            config=Config(period=10.0, lifetime=40.0),
            service=self.service,
            slow=self.slow,
            record_queues=self.service > 0.0,
        )
        topics = baseball_topics(self.teams)
        meanings = {(self.root, node): games for node, games in topics.items()}
        self.world = World(network, meanings, check=False)
        for node in topics:
            self.world.insert(self.root, node)
        network.observers.append(self._observe)

    # -- a season ------------------------------------------------------------------------

    def subscribe(self) -> None:
        """A subscriber at each router asks for what it follows; returns when all is at rest."""
        self._disturb(self.loss)
        for router in self.overlay.routers:
            self.world.client(router, router)
            self.wishes[router] = self._wish()
            self.world.subscribe(router, self.root, self.wishes[router])
        self._come_to_rest()

    def leave(self) -> None:
        """All subscribers give up what they follow at once; returns when all is at rest."""
        for router, node in self.wishes.items():
            self.world.unsubscribe(router, self.root, node)
        self._come_to_rest()

    def publish(self, notifications: int) -> None:
        """The source, at the rendezvous point, tells of games; returns when all is at rest."""
        self._disturb(self.loss)
        for _ in range(notifications):
            self.last_crossed.clear()
            self.last_reached.clear()
            game = tuple(sorted(self._rng.sample(range(self.teams), 2)))
            self.world.publish(self.root, self.root, game)
            self.world.network.run(self.world.network.now + 1.0)
        self._come_to_rest()
        self.world.check_at_rest()

    def _disturb(self, loss: float) -> None:
        for a, b in self.world.network.links():
            self.world.network.disturb(a, b, loss, 0.0)

    def _come_to_rest(self) -> None:
        """A while with losses, where there are any; then without, until all is settled."""
        if self.loss:
            self.world.network.run(self.world.network.now + 60.0)
            self._disturb(0.0)
        self.world.network.settle()

    def _wish(self) -> NodeId:
        draw, teams, rng = self._rng.random(), self.teams, self._rng
        if draw < ONE:
            return 1 + rng.randrange(teams)
        if draw >= ONE_OR_TWO:
            return 0
        one, other = sorted(rng.sample(range(teams), 2))
        return 1 + teams + one * (2 * teams - one - 1) // 2 + other - one - 1

    def _observe(self, address: Address, effect: Effect, now: float) -> None:
        if isinstance(effect, Send) and isinstance(effect.message, messages.Notify):
            pair = (address, effect.dst)
            self.crossed[pair] += len(effect.message.batch)
            self.last_crossed.append(pair)
        elif isinstance(effect, Deliver):
            self.last_reached.append(address)


def play(one: Play, notifications: int, leave: bool = False) -> dict[str, Any]:
    """A whole season; the counts, and how fast the simulator was."""
    start = time.process_time()
    one.subscribe()
    subscribed = time.process_time()
    one.publish(notifications)
    end = time.process_time()
    network = one.world.network
    sent = sum(network.sent.values())
    tables = [router.state_size()["nodes"] for router in network.routers.values() if router]
    links = len(one.overlay.links)
    if leave:
        one.leave()
    return {
        "routers": len(one.overlay.routers),
        "links": links,
        "subscribers": len(one.overlay.routers),
        "notifications": notifications,
        "deliveries": one.world.oracle.deliveries,
        "recovered": one.world.reports["recovered"],
        "notifications_per_link": {
            "mean": sum(one.crossed.values()) / links,
            "max": max(one.crossed.values(), default=0),
        },
        "ids_per_table": {"mean": sum(tables) / len(tables), "max": max(tables)},
        "messages": dict(sorted(network.sent.items())),
        "cpu_seconds": {"subscribe": subscribed - start, "publish": end - subscribed},
        "messages_per_cpu_s": sent / (end - start),
    }
