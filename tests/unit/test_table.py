"""Every table against what its definition says, on random histories (Kulik 2004, 3.4.3, 3.4.5)."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from routing.batch import Batch
from routing.messages import Setup
from routing.registry import protocols
from routing.router import TreeRouter
from routing.table import GraphTable, LabelTable, Table

Sets = dict[int, frozenset[int]]
NEIGHBORS = ("", "a", "b", "c")

TABLES = {
    name: cls.table
    for name, cls in protocols().items()
    if issubclass(cls, TreeRouter) and (issubclass(cls.table, GraphTable) or name == "f3")
}
#: F3's two tables, which are one where nothing was compiled.
LABELS = sorted({TABLES["f3"], LabelTable}, key=lambda table: table.__name__)


def lowest(sets: Sets, nodes: set[int]) -> set[int]:
    return {n for n in nodes if not any(sets[m] < sets[n] for m in nodes)}


def highest(sets: Sets, nodes: set[int]) -> set[int]:
    return {n for n in nodes if not any(sets[m] > sets[n] for m in nodes)}


class History:
    """A table, and the sets and subscriptions that it should stand for."""

    def __init__(self, table: Table, rng: random.Random) -> None:
        self.table, self.rng = table, rng
        self.sets: Sets = {}
        self.subs: dict[str, set[int]] = {i: set() for i in NEIGHBORS}
        self.next = 0
        self.reached: Counter[str] = Counter()

    def step(self) -> None:
        kinds = [
            self.insert,
            self.insert,
            self.insert,
            self.attach,
            self.attach,
            self.detach,
            self.remove,
        ]
        self.rng.choice(kinds)()
        self.table.check()
        self.route()

    def insert(self) -> None:
        items = frozenset(self.rng.sample(range(7), self.rng.randint(1, 6)))
        if items in self.sets.values():
            return
        above = lowest(self.sets, {n for n, s in self.sets.items() if s > items})
        below = highest(self.sets, {n for n, s in self.sets.items() if s < items})
        self.reached["inserted between"] += bool(above and below)
        setup = Setup(self.next, tuple(sorted(above)), tuple(sorted(below)))
        if self.table.whole_graph:
            self.table.learn(setup)
        self.table.insert(setup)
        self.sets[self.next] = items
        self.next += 1

    def attach(self) -> None:
        if self.sets:
            node, neighbor = self.rng.choice(sorted(self.sets)), self.rng.choice(NEIGHBORS)
            self.reached["subscribed twice"] += node in self.subs[neighbor]
            if node not in self.subs[neighbor]:
                self.expect_setup(node, neighbor)
                self.table.attach(node, neighbor)
                self.subs[neighbor].add(node)

    def expect_setup(self, node: int, neighbor: str) -> None:
        """Rule 7: the lowest ancestors and the highest descendants that the neighbour holds."""
        if self.table.whole_graph:
            return
        held, mine = self.subs[neighbor], self.sets[node]
        above = lowest(self.sets, {n for n in held if self.sets[n] > mine})
        below = highest(self.sets, {n for n in held if self.sets[n] < mine})
        expected = Setup(node, tuple(sorted(above)), tuple(sorted(below)))
        assert self.table.setups(node, neighbor) == [expected]

    def detach(self) -> None:
        held = [(n, i) for i, nodes in self.subs.items() for n in sorted(nodes)]
        if held:
            node, neighbor = self.rng.choice(held)
            self.table.detach(node, neighbor)
            self.subs[neighbor].discard(node)

    def remove(self) -> None:
        unused = [n for n in self.sets if not any(n in held for held in self.subs.values())]
        if unused and not self.table.whole_graph:
            node = self.rng.choice(unused)
            self.reached["removed"] += 1
            self.table.remove(node)
            del self.sets[node]

    def route(self) -> None:
        item = self.rng.randrange(7)
        covering = {n for n, s in self.sets.items() if item in s}
        header = tuple(sorted(lowest(self.sets, covering)))
        due = {i for i, held in self.subs.items() if held & covering}
        minimal = {i: tuple(sorted(lowest(self.sets, self.subs[i] & covering))) for i in due}
        self.reached["several labels"] += any(len(h) > 1 for h in minimal.values())
        self.reached["several lowest"] += len(header) > 1
        expected = dict.fromkeys(due, header) if self.table.whole_graph else minimal
        assert self.table.route(header) == expected
        assert set(self.table.covering(header)) == covering
        self.route_batch(header, expected)

    def route_batch(self, header: tuple[int, ...], expected: dict[str, tuple[int, ...]]) -> None:
        batch = Batch.of([(header, 5, b"x"), ((), 6, b"yy"), (header, 9, b"")])
        routed = self.table.route_batch(batch)
        assert not routed.unknown
        found = {i: list(due.rows()) for i, due in routed.batches.items()}
        assert found == {i: [(h, 5, b"x"), (h, 9, b"")] for i, h in expected.items()}


@pytest.mark.parametrize("name", TABLES)
def test_random_histories(name: str) -> None:
    reached: Counter[str] = Counter()
    for seed in range(60):
        history = History(TABLES[name](), random.Random(seed))
        for _ in range(50):
            history.step()
        reached.update(history.reached)
    wanted = {"inserted between", "subscribed twice", "several labels", "several lowest"}
    if not TABLES[name].whole_graph:
        wanted.add("removed")
    assert {what for what in wanted if reached[what] < 50} == set(), reached


@pytest.mark.parametrize("kind", LABELS)
def test_a_header_with_a_node_that_is_not_here_is_counted(kind: type[Table]) -> None:
    table = kind()
    table.insert(Setup(1, (), ()))
    table.attach(1, "a")
    routed = table.route_batch(Batch.of([((1, 7), 3, b"x"), ((7,), 4, b"y")]))
    assert routed.unknown == 2
    assert list(routed.batches["a"].rows()) == [((1,), 3, b"x")]


@pytest.mark.parametrize("kind", LABELS)
def test_a_neighbour_that_is_due_everything_gets_the_same_payload_bytes(kind: type[Table]) -> None:
    table = kind()
    table.insert(Setup(1, (), ()))
    table.attach(1, "a")
    batch = Batch.of([((1,), n, b"body") for n in range(1, 5)])
    assert table.route_batch(batch).batches["a"].payloads is batch.payloads


@pytest.mark.parametrize("kind", LABELS)
def test_sizes_count_what_is_there(kind: type[Table]) -> None:
    table = kind()
    table.insert(Setup(1, (), ()))
    table.insert(Setup(2, (1,), ()))
    table.attach(1, "a")
    table.attach(2, "b")
    size = table.size()
    assert (size["nodes"], size["edges"], size["subscriptions"], size["labels"]) == (2, 1, 2, 3)
