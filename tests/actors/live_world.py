"""Clients on live hosts, watched by the simulator's oracle: the same promises, in real time.

Nodes are sets of items; headers, places in the graph and the oracle's answers all come from the
sets by brute force.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import Future

from local_network import DEADLINE, LocalNetwork, until

from actors.answers import RefusedError
from routing.api import InsertNode, RemoveNode
from sim.oracle import Oracle, ViolationError

ITEMS = range(10)
BOGUS = 999


class LiveWorld:
    """Random clients of a network, and what they must receive."""

    def __init__(self, network: LocalNetwork, seed: int, clients: int = 4, nodes: int = 12) -> None:
        self.network = network
        self.rng = random.Random(seed)
        self.reached: Counter[str] = Counter()
        self.meanings = {(r, n): s for r in network.roots for n, s in self._sets(nodes).items()}
        self.oracle = Oracle({**self.meanings, **{(r, BOGUS): frozenset() for r in network.roots}})
        self.violations: list[str] = []
        self.graphs: dict[str, set[int]] = {root: set() for root in network.roots}
        self.gone: set[tuple[str, int]] = set()
        self.held: dict[str, set[tuple[str, int]]] = {}
        self.published: list[tuple[bytes, Future]] = []
        self._lock = threading.Lock()
        for root, node in sorted(self.meanings):
            self.insert(root, node)
        edges = sorted(network.hosts)
        self.clients = [network.client(self.rng.choice(edges), f"h{i}") for i in range(clients)]
        self.subscribers = {}
        for i, client in enumerate(self.clients):
            name = f"c{i}"
            self.held[name] = set()
            self.subscribers[name] = client.subscriber(name, self._receiver(name))

    def _sets(self, wanted: int) -> dict[int, frozenset[int]]:
        sets: set[frozenset[int]] = set()
        while len(sets) < wanted:
            items = set(self.rng.sample(ITEMS, self.rng.randint(1, 4)))
            if sets and self.rng.random() < 0.5:
                items |= self.rng.choice(sorted(sets, key=sorted))
            sets.add(frozenset(items))
        return dict(enumerate(sorted(sets, key=sorted), start=1))

    def _receiver(self, name: str):
        def receive(notification) -> None:
            with self._lock:
                try:
                    self.oracle.delivered(name, notification.namespace, notification.body)
                except ViolationError as violation:
                    self.violations.append(str(violation))

        return receive

    # -- brute force ---------------------------------------------------------------------

    def low(self, root: str, nodes) -> tuple[int, ...]:
        sets = {node: self.meanings[root, node] for node in nodes}
        return tuple(sorted(n for n, s in sets.items() if not any(t < s for t in sets.values())))

    def high(self, root: str, nodes) -> tuple[int, ...]:
        sets = {node: self.meanings[root, node] for node in nodes}
        return tuple(sorted(n for n, s in sets.items() if not any(t > s for t in sets.values())))

    # -- actions -------------------------------------------------------------------------

    def act(self) -> None:
        common = (self.subscribe, self.subscribe, self.publish, self.publish, self.unsubscribe)
        self.rng.choice(common * 3 + (self.remove, self.bogus))()

    def act_calmly(self) -> None:
        """Only what needs no router to answer at once."""
        quiet = self.publish if self.rng.random() < 0.8 else self.subscribe
        quiet()

    def insert(self, root: str, node: int) -> None:
        mine = self.meanings[root, node]
        above = [n for n in self.graphs[root] if self.meanings[root, n] > mine]
        below = [n for n in self.graphs[root] if self.meanings[root, n] < mine]
        event = InsertNode(node, self.low(root, above), self.high(root, below))
        self.network.hosts[root].event(event).result(DEADLINE)
        self.graphs[root].add(node)

    def remove(self) -> None:
        root = self.rng.choice(self.network.roots)
        if len(self.graphs[root]) < 6:
            return
        node = self.rng.choice(sorted(self.graphs[root]))
        with self._lock:
            # Who is told when is up to the network; the oracle expects nothing for it any more.
            for name, keys in self.held.items():
                if (root, node) in keys:
                    self.reached["removal under subscribers"] += 1
                    keys.discard((root, node))
                    self.gone.add((root, node))
                    self.forget(name, root, node)
        self.network.hosts[root].event(RemoveNode(node)).result(DEADLINE)
        self.graphs[root].discard(node)

    def forget(self, name: str, root: str, node: int) -> None:
        """A subscription whose node is about to go: wanted from now on, due no more."""
        self.oracle._clients[name].nodes[root, node] = float("inf")

    def subscribe(self) -> None:
        name = self.rng.choice(sorted(self.subscribers))
        root = self.rng.choice(self.network.roots)
        node = self.rng.choice(sorted(self.graphs[root]))
        if (root, node) in self.held[name]:
            return
        with self._lock:
            self.oracle.subscribes(name, root, node)
        self.subscribers[name].subscribe(root, node, DEADLINE)
        with self._lock:
            self.oracle.confirmed(name, root, node, time.monotonic())
        self.held[name].add((root, node))
        self.reached["subscription"] += 1

    def unsubscribe(self) -> None:
        name = self.rng.choice(sorted(self.subscribers))
        if not self.held[name]:
            return
        root, node = self.rng.choice(sorted(self.held[name]))
        self.subscribers[name].unsubscribe(root, node, DEADLINE)
        self.held[name].discard((root, node))
        with self._lock:
            self.oracle.withdrawn(name, root, node)
        self.reached["unsubscription"] += 1

    def bogus(self) -> None:
        name, root = self.rng.choice(sorted(self.subscribers)), self.rng.choice(self.network.roots)
        try:
            self.subscribers[name].subscribe(root, BOGUS, DEADLINE)
        except RefusedError:
            self.reached["refusal"] += 1
        else:
            raise AssertionError("a node that does not exist was subscribed to")

    def publish(self) -> None:
        index = self.rng.randrange(len(self.clients))
        root, item = self.rng.choice(self.network.roots), self.rng.choice(ITEMS)
        matching = [n for n in self.graphs[root] if item in self.meanings[root, n]]
        nodes = self.low(root, matching)
        body = b"%d" % len(self.published)
        with self._lock:
            self.oracle.published(body, root, item, time.monotonic())
        future = self.clients[index].publisher(f"p{index}").send(root, nodes, body)
        self.published.append((body, future))
        self.reached["several lowest nodes" if len(nodes) > 1 else "publication"] += 1

    # -- the end -------------------------------------------------------------------------

    def check(self, limit: float = DEADLINE) -> None:
        """Everything acknowledged has been delivered once, and nothing else has."""
        for body, future in self.published:
            try:
                future.result(limit)
            except RefusedError:
                with self._lock:
                    self.oracle.forget_publication(body)
                self.reached["refused publication"] += 1
            else:
                with self._lock:
                    self.oracle.accepted(body)
        until(lambda: self.violations or not self._missing(), "delivery of everything", limit)
        assert not self.violations, self.violations[:3]
        assert not self._missing()

    def _missing(self) -> list[tuple[str, bytes]]:
        with self._lock:
            return self.oracle.missing()
