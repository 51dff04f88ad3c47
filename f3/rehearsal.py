"""Replaying a workload in the simulator, churn included, with every delivery checked.

Rows come from the files that the Spark job wrote (`workloads.reader`), batch by batch:
subscriptions first, then churn and notifications merged by time. What stays in memory is the
network, its content graph, who is subscribed now, and the publications of the last few seconds.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routing.api import (
    Accepted,
    Address,
    Confirmed,
    Deliver,
    Effect,
    InsertNode,
    NodeId,
    Publication,
    Publish,
    Refused,
    Router,
    Subscribe,
    Unsubscribe,
)
from routing.store import Store
from sim.network import Link, Network
from sim.oracle import ViolationError
from topology.overlay import Overlay, TopologyError
from topology.paths import next_hops
from workloads.population import NO_ROUTER
from workloads.reader import (
    ChurnEvent,
    Notification,
    Workload,
    each_event,
    each_notification,
    each_subscription,
)

Progress = Callable[[str], None]

#: Virtual seconds after which a publication must have reached everybody.
PATIENCE = 5.0
#: Subscriptions between two pauses in which the network catches up, and how long those are.
_AT_ONCE = 10_000
_PAUSE = 0.5
_SHOW_S = 2.0


def attach(overlay: Overlay, routers: int) -> list[Address]:
    """Where a workload's routers are in an overlay: evenly spread, over its stubs if it has any."""
    stubs = overlay.of_kind("stub")
    names = stubs if len(stubs) >= routers else overlay.routers
    if len(names) < routers:
        raise TopologyError(
            f"the workload has subscribers at {routers} routers and the topology has {len(names)}: "
            "choose a larger one, or generate with --param subscribers.routers=…"
        )
    return [names[number * len(names) // routers] for number in range(routers)]


@dataclass(slots=True)
class _Open:
    """A publication on its way: whom its header is for, who still has to get it, who has."""

    time: float
    nodes: frozenset[NodeId]
    due: set[str]
    got: set[str] = field(default_factory=set)


class Judge:
    """Who must and who may receive what: those who asked for a node that the header lies under.

    Whoever had a subscription in force at publication and has kept it must receive it within
    PATIENCE, nobody may twice, and nobody may who has not asked (as in `sim.oracle`, which
    remembers everything).
    """

    def __init__(self) -> None:
        self.deliveries = 0
        self.unconfirmed = 0
        #: Per client, its nodes and since when they are in force; per node, the clients so far.
        self._wants: dict[str, dict[NodeId, float | None]] = {}
        self._in_force: dict[NodeId, set[str]] = {}
        self._open: dict[bytes, _Open] = {}

    def subscribes(self, client: str, node: NodeId) -> None:
        """A client asks for a node."""
        self._wants.setdefault(client, {})[node] = None
        self.unconfirmed += 1

    def confirmed(self, client: str, node: NodeId, now: float) -> None:
        """A subscription is in force, unless it was withdrawn on the way."""
        wants = self._wants.get(client, {})
        if node in wants and wants[node] is None:
            wants[node] = now
            self.unconfirmed -= 1
            self._in_force.setdefault(node, set()).add(client)

    def withdraws(self, client: str, node: NodeId) -> None:
        """A client no longer wants a node; it must hold it."""
        wants = self._wants[client]
        self.unconfirmed -= wants.pop(node) is None
        if not wants:
            del self._wants[client]
        self._in_force.get(node, set()).discard(client)
        for publication in self._open.values():
            if client in publication.due and not _kept(wants, publication):
                publication.due.discard(client)

    def published(self, body: bytes, nodes: frozenset[NodeId], now: float) -> None:
        """A publication for the subscribers of these nodes; those before it have had their time."""
        self.check(now - PATIENCE)
        due = set().union(*(self._in_force.get(node, ()) for node in nodes))
        self._open[body] = _Open(now, nodes, due)

    def delivered(self, client: str, body: bytes) -> None:
        """Safety, at each delivery."""
        publication = self._open.get(body)
        if publication is None:
            raise ViolationError(f"{client} received {body!r} unpublished or {PATIENCE} s late")
        if publication.nodes.isdisjoint(self._wants.get(client, ())):
            raise ViolationError(f"{client} received {body!r} without asking for it")
        if client in publication.got:
            raise ViolationError(f"{client} received {body!r} twice")
        publication.got.add(client)
        publication.due.discard(client)
        self.deliveries += 1

    def check(self, until: float) -> None:
        """Completeness: what was published by then has reached everybody."""
        while self._open:
            body, publication = next(iter(self._open.items()))
            if publication.time > until:
                return
            if publication.due:
                some = sorted(publication.due)[:3]
                raise ViolationError(f"{body!r} has not reached {len(publication.due)}: {some} …")
            del self._open[body]


def _kept(wants: dict[NodeId, float | None], publication: _Open) -> bool:
    """Whether a client still has a subscription that was in force at publication."""
    return any(
        since is not None and since <= publication.time and node in publication.nodes
        for node, since in wants.items()
    )


class Rehearsal:
    """A workload on an overlay in virtual time."""

    def __init__(
        self, workload: Workload, overlay: Overlay, root: Address, protocol: type[Router]
    ) -> None:
        self.judge = Judge()
        self.counts: Counter[str] = Counter()
        self._workload = workload
        self._root = root
        self._edges = attach(overlay, workload.routers)
        self._accepted = 0
        self.network = Network(
            protocol,
            {link.ends: Link(latency=link.latency) for link in overlay.links},
            next_hops(overlay, [root]),
            {root: Store()},
        )
        self.network.observers.append(self._observe)

    def load(self) -> None:
        """The whole content graph, parents first."""
        graph = self._workload.graph
        for node in np.argsort(graph.level, kind="stable").tolist():
            parents = tuple(graph.parents.of_one(node).tolist())
            self.network.event(self._root, InsertNode(node, parents, ()))

    def subscribe(self, show: Progress) -> None:
        """Everybody who is there at the start; returns when all subscriptions are in force."""
        total = self._workload.counts["subscriptions"]
        for one in each_subscription(self._workload.subscriptions()):
            self._join(one.subscriber, one.router, one.node)
            self.counts["subscriptions"] += 1
            if self.counts["subscriptions"] % _AT_ONCE == 0:
                self.network.run(self.network.now + _PAUSE)
                show(f"subscribed {self.counts['subscriptions']:,} of {total:,}")
        self.network.settle()
        if self.judge.unconfirmed:
            raise ViolationError(f"{self.judge.unconfirmed} subscriptions are not in force")

    def play(self, show: Progress) -> None:
        """Churn and notifications in the order of time; returns when all has been delivered."""
        start, total = self.network.now, self._workload.counts["notifications"]
        streams: tuple[Iterator[ChurnEvent | Notification], ...] = (
            each_event(self._workload.churn()),
            each_notification(self._workload.notifications()),
        )
        for row in heapq.merge(*streams, key=lambda row: row.time_us):
            self.network.run(start + row.time_us / 1e6)
            if isinstance(row, Notification):
                self._publish(row)
                show(f"published {self.counts['notifications']:,} of {total:,}")
            else:
                self._change(row)
        self.network.settle()
        self.judge.check(self.network.now)
        if self._accepted < self.counts["notifications"]:
            raise ViolationError(f"only {self._accepted} publications were accepted")

    def _change(self, row: ChurnEvent) -> None:
        if row.from_router != NO_ROUTER:
            client, edge = _name(row.subscriber, row.from_router), self._edges[row.from_router]
            self.judge.withdraws(client, row.node)
            self.network.event(edge, Unsubscribe(client, self._root, row.node))
        if row.to_router != NO_ROUTER:
            self._join(row.subscriber, row.to_router, row.node)
        self.counts[row.event] += 1

    def _join(self, subscriber: int, router: int, node: NodeId) -> None:
        client = _name(subscriber, router)
        self.judge.subscribes(client, node)
        self.network.event(self._edges[router], Subscribe(client, self._root, node))

    def _publish(self, row: Notification) -> None:
        body = b"%d" % row.notification
        covering = frozenset(self._workload.graph.covering(np.array(row.nodes, np.int64)).tolist())
        self.judge.published(body, covering, self.network.now)
        self.counts["notifications"] += 1
        said = Publication(row.nodes, body)
        event = Publish("source", self._root, (said,), row.notification)
        self.network.event(self._edges[row.router], event)

    def _observe(self, _: Address, effect: Effect, now: float) -> None:
        match effect:
            case Deliver(client, notification):
                self.judge.delivered(client, notification.body)
            case Confirmed(client, _, node):
                self.judge.confirmed(client, node, now)
            case Accepted(count=count):
                self._accepted += count
            case Refused(client, _, reason):
                raise ViolationError(f"{client} was refused: {reason}")


def _name(subscriber: int, router: int) -> str:
    """A subscriber that moves is another client elsewhere."""
    return f"{subscriber}@{router}"


def rehearse(rehearsal: Rehearsal, show: Progress) -> dict[str, Any]:
    """All of it; the counts, and how fast the simulator was."""
    show = _now_and_then(show)
    began = time.process_time()
    rehearsal.load()
    loaded = time.process_time()
    rehearsal.subscribe(show)
    subscribed = time.process_time()
    rehearsal.play(show)
    end = time.process_time()
    network = rehearsal.network
    tables = [router.state_size().get("nodes", 0) for router in network.routers.values() if router]
    names = ("subscriptions", "arrive", "depart", "move", "notifications")
    return {
        "routers": len(tables),
        **{name: rehearsal.counts[name] for name in names},
        "deliveries": rehearsal.judge.deliveries,
        "ids_per_table": {"mean": sum(tables) / len(tables), "max": max(tables)},
        "messages": dict(sorted(network.sent.items())),
        "cpu_seconds": {
            "load": loaded - began,
            "subscribe": subscribed - loaded,
            "play": end - subscribed,
        },
    }


def _now_and_then(show: Progress) -> Progress:
    last = [time.monotonic()]

    def say(line: str) -> None:
        now = time.monotonic()
        if now >= last[0] + _SHOW_S:
            last[0] = now
            show(line)

    return say
