"""What a forwarding table costs as it grows (Kulik 2004, section 4.2, Table 4.4).

One router with ten neighbours and one namespace; only its table runs. Set-ups and headers come
from a second table above it that holds the whole graph, as they would from the router's upstream
neighbour; that table's work, and drawing the workload, is not timed. What is timed:

    subscription    `insert` where the node is new to the table, `setups` where it is new to the
                    neighbour, and `attach` always; the mean over all subscribers so far. Most
                    subscribers of a large population ask for what their neighbour has already:
                    the mean over the others is given as well.
    unsubscription  `detach` of pairs of node and neighbour drawn at random, and `remove` where
                    that was the last neighbour; then all are subscribed again.
    notification    `route_batch` on batches of 1000 with bodies of 100 bytes, whose result is a
                    batch per neighbour, ready to be encoded. The first pass after a change of the
                    table is given apart (cold); so are batches of one (single).

Times are CPU time of the measuring thread, which neighbours on a busy machine disturb less than
the clock on the wall; garbage collection is off meanwhile.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import thread_time
from typing import TypeVar

from f3.bench.scenarios import Scenario
from routing.batch import Batch, Row
from routing.content_graph import NodeId
from routing.messages import Setup
from routing.table import Neighbor, Table

NEIGHBORS = tuple(f"neighbor-{k}" for k in range(10))
BATCH, BATCHES, SINGLES, BODY = 1000, 100, 5000, b"x" * 100
_ROUTER = "router"
_CHUNK = 50_000
_UNSUBSCRIPTIONS_MAX = 20_000

T = TypeVar("T")
Pair = tuple[NodeId, Neighbor]
_Step = tuple[NodeId, Neighbor, Setup | None, bool]


@dataclass(slots=True)
class Figures:
    """What was measured at one size."""

    subscribers: int
    us_per_notification: float | None = None
    us_per_notification_cold: float | None = None
    us_per_notification_single: float | None = None
    us_per_subscription: float | None = None
    us_per_new_subscription: float | None = None
    us_per_unsubscription: float | None = None
    bytes: int | None = None
    nodes: int | None = None
    subscriptions: int | None = None
    labels: int | None = None
    identifiers_per_header: float | None = None
    neighbors_per_notification: float | None = None
    note: str = ""


class TableBench:
    """A table that grows under one scenario."""

    def __init__(self, scenario: Scenario, table: type[Table], above: type[Table], seed: int):
        self._scenario = scenario
        self._rng = random.Random(seed)
        self._table = table()
        self._above = above()
        for setup in scenario.setups:
            self._above.insert(setup)
        self._pairs: dict[Pair, None] = {}
        self._holders: dict[NodeId, int] = {}
        self._subscribers = 0
        self._seconds = 0.0

    # -- subscriptions -------------------------------------------------------------------

    def grow(self, subscribers: int, limit_s: float) -> bool:
        """Subscribe up to so many; False if that would take longer than allowed."""
        while self._subscribers < subscribers:
            if self._seconds > limit_s:
                return False
            count = min(_CHUNK, subscribers - self._subscribers)
            self._seconds += _timed(_subscribe, self._table, self._draw(count))
            self._subscribers += count
        return True

    def _draw(self, count: int) -> list[_Step]:
        nodes = self._scenario.subscriptions.draw(self._rng, count)
        neighbors = self._rng.choices(NEIGHBORS, k=count)
        return [self._step(node, i) for (node,), i in zip(nodes, neighbors, strict=True)]

    def _step(self, node: NodeId, neighbor: Neighbor) -> _Step:
        setup = None
        if node not in self._holders:
            self._holders[node] = 0
            (setup,) = self._above.setups(node, _ROUTER)
            self._above.attach(node, _ROUTER)
        new = (node, neighbor) not in self._pairs
        if new:
            self._pairs[node, neighbor] = None
            self._holders[node] += 1
        return node, neighbor, setup, new

    def unsubscribe(self, limit_s: float) -> float:
        """Microseconds an unsubscription; the table is as before afterwards."""
        pairs = self._rng.sample(list(self._pairs), min(len(self._pairs), self._victims()))
        steps = [self._parting(pair) for pair in pairs]
        seconds, done = 0.0, 0
        while done < len(steps) and seconds <= limit_s:
            some = steps[done : done + 100]
            seconds += _timed(_unsubscribe, self._table, some)
            done += len(some)
        _unsubscribe(self._table, steps[done:])
        _subscribe(self._table, [self._step(*pair) for pair in pairs])
        return 1e6 * seconds / done

    def _victims(self) -> int:
        return min(_UNSUBSCRIPTIONS_MAX, max(100, len(self._pairs) // 10))

    def _parting(self, pair: Pair) -> tuple[NodeId, Neighbor, bool]:
        node, neighbor = pair
        del self._pairs[pair]
        self._holders[node] -= 1
        last = not self._holders[node]
        if last:
            del self._holders[node]
            self._above.detach(node, _ROUTER)
        return node, neighbor, last

    # -- notifications -------------------------------------------------------------------

    def batches(self) -> list[Batch]:
        """Full batches as they come from above."""
        rows = self._rows()
        return [Batch.of(next(rows) for _ in range(BATCH)) for _ in range(BATCHES)]

    def _rows(self) -> Iterator[Row]:
        position = 0
        while True:
            headers = self._scenario.notifications.draw(self._rng, BATCH)
            published = Batch.of((header, k, BODY) for k, header in enumerate(headers))
            due = self._above.route_batch(published).batches.get(_ROUTER)
            for header, _, body in due.rows() if due is not None else ():
                position += 1
                yield header, position, body

    def forward(self, batches: list[Batch]) -> float:
        """Microseconds a notification."""
        return 1e6 * _timed(_forward, self._table, batches) / sum(map(len, batches))

    # -- all of it -----------------------------------------------------------------------

    def measure(self, subscribers: int, repeat: int, limit_s: float) -> Figures:
        """Every figure at one size."""
        figures = Figures(subscribers)
        if not self.grow(subscribers, limit_s):
            figures.note = (
                f"stopped after {self._subscribers} subscriptions in {self._seconds:.0f} s"
            )
            return figures
        figures.us_per_subscription = 1e6 * self._seconds / self._subscribers
        figures.us_per_new_subscription = 1e6 * self._seconds / len(self._pairs)
        figures.us_per_unsubscription = median(
            self.unsubscribe(limit_s / repeat) for _ in range(repeat)
        )
        self._measure_forwarding(figures, repeat)
        figures.bytes = self._table.bytes()
        size = self._table.size()
        figures.nodes, figures.labels = size["nodes"], size["labels"]
        figures.subscriptions = size["subscriptions"]
        return figures

    def _measure_forwarding(self, figures: Figures, repeat: int) -> None:
        batches = self.batches()
        singles = [
            Batch.of((row,)) for batch in batches[: SINGLES // BATCH] for row in batch.rows()
        ]
        figures.us_per_notification_cold = self.forward(batches)
        figures.us_per_notification = median(self.forward(batches) for _ in range(repeat))
        figures.us_per_notification_single = median(self.forward(singles) for _ in range(repeat))
        due = self._table.route_batch(batches[0]).batches
        figures.identifiers_per_header = len(batches[0].nodes) / 4 / BATCH
        figures.neighbors_per_notification = sum(map(len, due.values())) / BATCH


def _subscribe(table: Table, steps: list[_Step]) -> None:
    for node, neighbor, setup, new in steps:
        if setup is not None:
            table.insert(setup)
        if new:
            table.setups(node, neighbor)
        table.attach(node, neighbor)


def _unsubscribe(table: Table, steps: list[tuple[NodeId, Neighbor, bool]]) -> None:
    for node, neighbor, last in steps:
        table.detach(node, neighbor)
        if last:
            table.remove(node)


def _forward(table: Table, batches: list[Batch]) -> None:
    for batch in batches:
        table.route_batch(batch)


def _timed(work: Callable[[Table, list[T]], None], table: Table, items: list[T]) -> float:
    gc.disable()
    try:
        start = thread_time()
        work(table, items)
        return thread_time() - start
    finally:
        gc.enable()
