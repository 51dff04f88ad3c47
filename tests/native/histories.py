"""Random histories for two tables that must not differ.

A node stands for a random set of points and covers the nodes whose sets are smaller ones of its
own points, so that graphs have every shape: chains, diamonds, many parents, many children.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

from routing.batch import Batch
from routing.content_graph import ContentGraph, NodeId
from routing.messages import Setup
from routing.table import LabelTable, Table
from routing.trace import pack_traces

POINTS = 7


def random_graph(rng: random.Random, nodes: int) -> ContentGraph:
    """A content graph of random sets; identifiers are random numbers of 32 bits."""
    topics = rng.sample([frozenset(c) for k in range(1, POINTS) for c in _sets(k)], nodes)
    ids = dict(zip(topics, rng.sample(range(2**32), nodes), strict=True))
    graph = ContentGraph()
    for topic in sorted(topics, key=len, reverse=True):
        above = [other for other in topics if other > topic]
        lowest = [a for a in above if not any(a > other for other in above)]
        graph.insert(ids[topic], {ids[a] for a in lowest}, ())
    return graph


def _sets(size: int) -> list[tuple[int, ...]]:
    return list(combinations(range(POINTS), size))


class History:
    """The same random operations on two tables, every answer compared."""

    def __init__(self, seed: int, table: type[Table], nodes: int, neighbors: int) -> None:
        self.rng = random.Random(seed)
        self.graph = random_graph(self.rng, nodes)
        self.all = sorted(self.graph)
        self.neighbors = [f"n{k}" for k in range(neighbors)]
        self.reference = LabelTable()
        self.table = table()
        self.reached: Counter[str] = Counter()
        self.position = 0
        self._gone: set[NodeId] = set()
        # Headers that come again and again: what is remembered of them must not grow old.
        self._usual = [tuple(self.rng.sample(self.all, k)) for k in (1, 2, 2, 3, 4)]

    def run(self, steps: int, check_every: int) -> None:
        """A phase in which the table grows, one in which it is stable, one in which it empties."""
        ops = [self.insert, self.attach, self.detach, self.remove, self.ask, self.forward]
        phases = [(6, 10, 1, 1, 4, 4), (2, 6, 6, 4, 4, 4), (1, 2, 10, 8, 4, 4)]
        for step in range(steps):
            weights = phases[3 * step // steps]
            self.rng.choices(ops, weights)[0]()
            assert self.table.size() == self.reference.size()
            if step % check_every == 0:
                self.compare()
        self.compare()
        self.table.check()
        self.reference.check()

    # -- operations ----------------------------------------------------------------------

    def insert(self) -> None:
        held = self.reference.graph
        outside = [node for node in self.all if node not in held]
        if not outside:
            return
        node = self.rng.choice(outside)
        parents, children = self.graph.position(node, held.nodes())
        setup = Setup(node, tuple(sorted(parents)), tuple(sorted(children)))
        assert self.table.root_setups(self.graph, node) == [setup]
        self.reached["between"] += bool(parents and children)
        self.reached["again"] += node in self._gone
        self.both("insert", setup)

    def attach(self) -> None:
        node, neighbor = self._known(), self._neighbor()
        if node is None:
            return
        self.reached["attached twice"] += neighbor in self.reference.subscribers(node)
        self.both("attach", node, neighbor)

    def detach(self) -> None:
        node = self._known()
        if node is None or not self.reference.subscribers(node):
            return
        neighbor = self.rng.choice(sorted(self.reference.subscribers(node)))
        self.both("detach", node, neighbor)
        self.reached["merged"] += bool(self.reference.label(node, neighbor))

    def remove(self) -> None:
        free = [n for n in sorted(self.reference.graph) if not self.reference.subscribers(n)]
        if not free:
            return
        node = self.rng.choice(free)
        graph = self.reference.graph
        edges = graph.edges() - len(graph.parents(node)) - len(graph.children(node))
        self.both("remove", node)
        self.reached["rejoined"] += graph.edges() > edges
        self._gone.add(node)

    def ask(self) -> None:
        node, neighbor = self.rng.choice(self.all), self._neighbor()
        setup = self.both("setups", node, neighbor)
        assert isinstance(setup, list)
        self.reached["set-up between"] += bool(setup[0].parents and setup[0].children)
        self.both("subscribers", node)
        self.both("subs", neighbor)
        self.both("root_header", self.graph, tuple(sorted(self.graph.low(self._header()))))

    def forward(self) -> None:
        header = self._header()
        for name in ("unknown", "covering"):
            self.both(name, header)
        routed = self.both("route", header)
        assert isinstance(routed, dict)
        assert list(routed) == sorted(routed)
        self._count_header(header, routed)
        batch = self._batch()
        self._compare_routed(batch)

    def both(self, name: str, *arguments: object) -> object:
        """One operation on both tables."""
        expected = getattr(self.reference, name)(*arguments)
        assert getattr(self.table, name)(*arguments) == expected, (name, arguments)
        return expected

    # -- comparing -----------------------------------------------------------------------

    def compare(self) -> None:
        """Every label and every index."""
        for node in self.reference.graph:
            for neighbor in self.neighbors:
                label = self.both("label", node, neighbor)
                assert isinstance(label, set | frozenset)
                self.reached["covering"] += bool(label) and node not in label
                self.reached["multi-label"] += len(label) > 1
        for neighbor in self.neighbors:
            self.both("subs", neighbor)

    def _compare_routed(self, batch: Batch) -> None:
        expected, routed = self.reference.route_batch(batch), self.table.route_batch(batch)
        assert routed == expected
        self.reached["unknown"] += routed.unknown > 0
        for due in routed.batches.values():
            due.validate()
            if len(due) == len(batch):
                assert due.payloads is batch.payloads
                self.reached["whole batch"] += 1
            else:
                self.reached["part of a batch"] += 1
                self.reached["part of the traces"] += 0 < len(due.traces) < len(batch.traces)

    def _count_header(self, header: tuple[int, ...], routed: dict[str, tuple[int, ...]]) -> None:
        known = [node for node in header if node in self.reference.graph]
        for neighbor, reduced in routed.items():
            union = set().union(*(self.reference.label(node, neighbor) for node in known))
            self.reached["reduced header"] += len(union) > len(reduced)
            self.reached["overlap"] += len(reduced) > 1

    # -- choosing ------------------------------------------------------------------------

    def _known(self) -> NodeId | None:
        nodes = sorted(self.reference.graph)
        return self.rng.choice(nodes) if nodes else None

    def _neighbor(self) -> str:
        """One of the last often: with many neighbours, some must hold many nodes."""
        return self.rng.choice(self.neighbors[-self.rng.choice((3, len(self.neighbors))) :])

    def _header(self) -> tuple[int, ...]:
        return tuple(self.rng.sample(self.all, self.rng.choice((0, 1, 1, 2, 3, 5))))

    def _batch(self) -> Batch:
        headers = [self._header() for _ in range(self.rng.choice((1, 2, 3)))]
        headers += self.rng.sample(self._usual, self.rng.choice((0, 1, 3)))
        rows = []
        for _ in range(self.rng.choice((0, 1, 1, 2, 8, 40))):
            self.position += self.rng.randint(1, 1000)
            payload = self.rng.randbytes(self.rng.choice((0, 1, 100)))
            rows.append((self.rng.choice(headers), self.position, payload))
        sampled = [row for row in range(len(rows)) if self.rng.random() < 0.6]
        return Batch.of(rows, pack_traces((row, self.rng.randbytes(25)) for row in sampled))
