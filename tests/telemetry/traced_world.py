"""Sampled publications on a live network, and the spans that they must leave: by brute force.

Nodes are sets of items; who is due a publication follows from the sets, and which hosts it crosses
from the tree. Nothing here looks at graphs, labels or contexts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from local_network import DEADLINE, LocalNetwork, until

from routing.api import Config

TREE = [("r0", "r1"), ("r0", "r2"), ("r1", "r3"), ("r1", "r4"), ("r2", "r5")]
ROOT = "r0"
ITEMS = range(8)
#: No publication is repeated and no subscription expires while a test lasts, however busy the
#: machine is: a repetition has spans of its own, and these trees are those without any.
CALM = Config(period=0.2, lifetime=3 * DEADLINE, retry=3 * DEADLINE)

Edge = tuple[tuple[str, str], tuple[str, str]]
"""((service, operation) of the parent, (service, operation) of the child)."""


class Row(NamedTuple):
    """What both collectors and hosts know of a span."""

    service: str
    operation: str
    trace: str
    span: str
    parent: str
    start_ns: int
    end_ns: int
    attributes: dict


def rows_of(network: LocalNetwork) -> list[Row]:
    """The spans that the hosts themselves keep."""
    hosts = [*network.hosts.values(), *(client.host for client in network.clients)]
    found = []
    for host in hosts:
        for span in list(host.tracer.recent):
            row = span.as_row(host.address)
            found.append(Row(*(row[name] for name in Row._fields)))
    return found


class TracedWorld:
    """Clients at random edges with random subscriptions."""

    def __init__(self, network: LocalNetwork, seed: int, clients: int = 4) -> None:
        self.network, self.rng = network, random.Random(seed)
        sets = {frozenset(self.rng.sample(ITEMS, self.rng.randint(1, 4))) for _ in range(10)}
        self.nodes = dict(enumerate(sorted(sets, key=lambda s: (-len(s), sorted(s))), start=1))
        for node, mine in self.nodes.items():
            above = [n for n in range(1, node) if self.nodes[n] > mine]
            network.insert(ROOT, node, self._low(above))
        edges = sorted(network.hosts)
        self.edges = {f"h{i}": self.rng.choice(edges) for i in range(clients)}
        self.clients = {name: network.client(edge, name) for name, edge in self.edges.items()}
        self.wants: dict[str, frozenset[int]] = {}
        for name, client in self.clients.items():
            nodes = self.rng.sample(sorted(self.nodes), self.rng.choice((0, 1, 2)))
            self.wants[name] = frozenset().union(*(self.nodes[node] for node in nodes))
            subscriber = client.subscriber(f"s-{name}")
            for node in nodes:
                subscriber.subscribe(ROOT, node, DEADLINE)
        self.sent: dict[int, tuple[str, int]] = {}
        self.reached: Counter[str] = Counter()

    def _low(self, nodes: Iterable[int]) -> tuple[int, ...]:
        sets = {node: self.nodes[node] for node in nodes}
        return tuple(sorted(n for n, s in sets.items() if not any(t < s for t in sets.values())))

    def publish(self, count: int, sample: bool | None = True) -> None:
        """Publish random items all at once, so that some share frames and batches."""
        sent = []
        for _ in range(count):
            name, item = self.rng.choice(sorted(self.clients)), self.rng.choice(ITEMS)
            header = self._low(node for node, items in self.nodes.items() if item in items)
            self.reached["several lowest nodes"] += len(header) > 1
            send = self.clients[name].publisher("p").send
            sent.append((send(ROOT, header, b"%d" % item, sample=sample), name, item))
        for future, name, item in sent:
            self.sent[future.result(DEADLINE)] = (name, item)

    # -- what must be there --------------------------------------------------------------

    def way(self, edge: str) -> list[str]:
        """From an edge router up to the root."""
        found = [edge]
        while found[-1] != ROOT:
            found.append(self.network.hops[found[-1]][ROOT])
        return found

    def expected(self, publisher: str, item: int) -> Counter[Edge]:
        """The edges of the tree of spans that one publication must leave."""
        last, edges = (publisher, "publish"), set()
        for router in self.way(self.edges[publisher]):
            edges.add((last, (router, "submit")))
            last = (router, "submit")
        due = [name for name, wanted in self.wants.items() if item in wanted]
        self.reached["nobody" if not due else "several" if len(due) > 1 else "one"] += 1
        for name in due:
            last = (ROOT, "submit")
            for host in [*self.way(self.edges[name])[-2::-1], name]:
                edges.add((last, (host, "forward")))
                last = (host, "forward")
            edges.add((last, (name, "deliver")))
        return Counter(edges)

    def spans_due(self) -> int:
        """How many spans all publications so far must leave."""
        return sum(1 + self.expected(*sent).total() for sent in self.sent.values())

    def check(self, rows: list[Row]) -> None:
        """Every publication has left exactly its tree, in the order of time."""
        traces: dict[str, list[Row]] = {}
        for row in rows:
            traces.setdefault(row.trace, []).append(row)
        found: Counter[frozenset] = Counter()
        for members in traces.values():
            found[frozenset(_edges(members).items())] += 1
            _check_times(members)
        wanted = Counter(frozenset(self.expected(*sent).items()) for sent in self.sent.values())
        assert found == wanted


def _edges(members: list[Row]) -> Counter[Edge]:
    by_span = {row.span: row for row in members}
    assert len(by_span) == len(members), "a span twice"
    roots = [row for row in members if not row.parent]
    assert [row.operation for row in roots] == ["publish"]
    inner = [(by_span[row.parent], row) for row in members if row.parent]
    return Counter(
        ((up.service, up.operation), (down.service, down.operation)) for up, down in inner
    )


def _check_times(members: list[Row]) -> None:
    by_span = {row.span: row for row in members}
    for row in members:
        assert row.start_ns <= row.end_ns
        if row.parent:
            above = by_span[row.parent]
            assert above.start_ns <= row.start_ns, (above, row)
            assert row.attributes.get("messaging.f3.hop", 99) > above.attributes.get(
                "messaging.f3.hop", -1
            )


__all__ = ["CALM", "DEADLINE", "ROOT", "TREE", "Row", "TracedWorld", "rows_of", "until"]
