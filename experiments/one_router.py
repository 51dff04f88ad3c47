"""One router with ten neighbours, its table alone, timed (Kulik 2004, sections 4.2 to 4.4).

Every system takes the same subscriptions from the same neighbours and forwards the same
notifications; brute force says which neighbours are due each, and every system must agree.

All are compiled: F3 is `routing.native`, the others are `experiments.opponents`. Timed is CPU time
of this thread. A subscription is timed as the router meets it: for F3 the insertion of a node that
is new, the set-up for the neighbour, and the label; for the lists all identifiers of the
subscription; for SIENA its part of building the table. Notifications are timed as one batch, up
to the batch that each neighbour is sent, bodies of 100 bytes included; once when the table has
just changed, and once more. F3 remembers its answer for a header until the table changes, which
is sound because nothing else decides it; the others have nothing that it would pay to remember.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import product
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from experiments.in_siena import filters_of, messages_of, names_of
from experiments.opponents import Lists, Siena, gather, offsets_of
from experiments.points import Result
from experiments.work import Ints, Work
from routing.batch import Batch
from routing.messages import Setup
from routing.native import NativeTable

NEIGHBORS = 10
_NAMES = tuple(f"neighbor-{k}" for k in range(NEIGHBORS))
_ROUTER = "router"
_BODY = b"x" * 100
#: Of SIENA's pre-processing (Carzaniga and Wolf 2003, section 5.2).
_ROUNDS = 10

Due = NDArray[np.uint64]
"""Per notification, the neighbours that are due it, as bits."""


class System(ABC):
    """A table under test."""

    def __init__(self, work: Work) -> None:
        self.work = work

    @abstractmethod
    def subscribe(self) -> float:
        """Take all subscriptions; returns the seconds it took."""

    @abstractmethod
    def forward(self) -> tuple[float, Due]:
        """Forward all notifications; the seconds it took, and who is due each."""

    def look_up(self) -> float | None:
        """The part of `forward` that finds who is due, in seconds, where it can be told apart."""
        return None

    @abstractmethod
    def memory(self) -> int:
        """The bytes of the table."""

    def identifiers(self) -> float:
        """Identifiers that one notification brings, on average."""
        return 1.0

    def _bodies(self) -> tuple[bytes, bytes]:
        """Offsets and bytes of all bodies."""
        count = len(self.work.notices)
        return (np.arange(count + 1, dtype=np.uint32) * len(_BODY)).tobytes(), _BODY * count


class F3(System):
    """F3's compiled table; set-ups and headers come from a table above it."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.table, self._above = NativeTable(), NativeTable()
        for node in work.graph().topological():
            self._above.insert(Setup(node, tuple(sorted(work.parents[node])), ()))
        self._steps = self._draw()
        self._batch = self._publications()

    def _draw(self) -> list[tuple[int, str, Setup | None, bool]]:
        """Each subscription with its set-up, if the node is new to the router."""
        steps: list[tuple[int, str, Setup | None, bool]] = []
        met: set[int] = set()
        held: set[tuple[int, int]] = set()
        pairs = zip(self.work.nodes.tolist(), self.work.routers.tolist(), strict=True)
        for node, router in pairs:
            setup = None
            if node not in met:
                met.add(node)
                (setup,) = self._above.setups(node, _ROUTER)
                self._above.attach(node, _ROUTER)
            steps.append((node, _NAMES[router], setup, (node, router) not in held))
            held.add((node, router))
        return steps

    def _publications(self) -> Batch:
        headers = self.work.headers(self.work.notices)
        rows = ((header, at + 1, _BODY) for at, header in enumerate(headers))
        return self._above.route_batch(Batch.of(rows)).batches.get(_ROUTER, Batch.of(()))

    def subscribe(self) -> float:
        return timed(lambda: _attach_all(self.table, self._steps))

    def forward(self) -> tuple[float, Due]:
        routed = []
        seconds = timed(lambda: routed.append(self.table.route_batch(self._batch)))
        due = np.zeros(len(self.work.notices), dtype=np.uint64)
        for name, batch in routed[0].batches.items():
            at = np.frombuffer(batch.positions, dtype=np.uint64).astype(np.int64) - 1
            due[at] |= np.uint64(1 << _NAMES.index(name))
        return seconds, due

    def memory(self) -> int:
        return self.table.bytes()

    def identifiers(self) -> float:
        return len(self._batch.nodes) / 4 / max(len(self._batch), 1)


def _attach_all(table: NativeTable, steps: list[tuple[int, str, Setup | None, bool]]) -> None:
    for node, neighbor, setup, new in steps:
        if setup is not None:
            table.insert(setup)
        if new:
            table.setups(node, neighbor)
        table.attach(node, neighbor)


class ContentList(System):
    """A header lists every node that covers the notification; a subscription is one node."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.lists = Lists()
        self._ids = [np.uint32(node).tobytes() for node in range(len(work.topics))]
        covering = work.matching(work.notices).T
        self._offsets = offsets_of(covering.sum(axis=1))
        self._nodes = covering.nonzero()[1].astype(np.uint32)

    def subscribe(self) -> float:
        ids = [self._ids[node] for node in self.work.nodes.tolist()]
        routers = self.work.routers.tolist()
        return timed(lambda: _subscribe_all(self.lists, ids, routers))

    def forward(self) -> tuple[float, Due]:
        columns, found = (self._offsets.tobytes(), self._nodes.tobytes()), list[bytes]()
        bodies = self._bodies()

        def route() -> None:
            found.append(self.lists.route(*columns))
            gather(found[0], NEIGHBORS, *columns, *bodies)

        return timed(route), np.frombuffer(found[0], dtype=np.uint64)

    def look_up(self) -> float:
        columns = (self._offsets.tobytes(), self._nodes.tobytes())
        return timed(lambda: self.lists.route(*columns))

    def memory(self) -> int:
        return self.lists.bytes()

    def identifiers(self) -> float:
        return len(self._nodes) / len(self.work.notices)


class Disjunctive(ContentList):
    """A subscription is all its categories; a header is one."""

    def __init__(self, work: Work) -> None:
        System.__init__(self, work)
        self.lists = Lists()
        covered = categories_of(work)
        self._ids = [covered(code).astype(np.uint32).tobytes() for code in work.topics.tolist()]
        self._nodes = work.notices.astype(np.uint32)
        self._offsets = np.arange(len(self._nodes) + 1, dtype=np.uint32)


def _subscribe_all(lists: Lists, ids: list[bytes], neighbors: list[int]) -> None:
    for each, neighbor in zip(ids, neighbors, strict=True):
        lists.subscribe(each, neighbor)


def categories_of(work: Work) -> Callable[[int], Ints]:
    """The codes of all notices that a topic's code covers."""
    content = work.scenario.content
    if work.scenario.kind != "attribute-value":
        every = work.categories()
        match = work.matcher()
        return lambda topic: every[match(topic, every)]
    base = content.values + 1
    free = range(base) if content.appears < 1 else range(1, base)

    def covered(topic: int) -> Ints:
        codes = np.zeros(1, dtype=np.int64)
        for place in range(content.attributes):
            digit = topic // base**place % base
            options = np.array([digit] if digit else list(free), dtype=np.int64) * base**place
            codes = (codes[:, None] + options[None, :]).ravel()
        return codes

    return covered


class Counting(System):
    """SIENA's forwarding as the thesis ran it: a filter per subscription, all kept apart.

    Every subscription has an interface of its own, which belongs to a neighbour: only so does the
    time grow with identical subscriptions (Figure 3-1 there; Carzaniga and Wolf 2003, Figure 8).
    """

    merge = False

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._neighbor_of = self._interfaces()
        which = np.arange(len(work.nodes)) if self._own_interface() else work.routers
        self._filters, self._messages = filters_of(work, which), messages_of(work).columns()
        self.siena = Siena(len(self._neighbor_of), names_of(work), [], self.merge)

    def _own_interface(self) -> bool:
        return True

    def _interfaces(self) -> bytes:
        """The neighbour of each interface."""
        own = self.work.routers if self._own_interface() else np.arange(NEIGHBORS)
        return own.astype(np.uint8).tobytes()

    def subscribe(self) -> float:
        def build() -> None:
            self._filters.add_to(self.siena)
            self.siena.build()

        return timed(build)

    def forward(self) -> tuple[float, Due]:
        bodies, found = self._bodies(), list[bytes]()

        def route() -> None:
            found.append(self.siena.route(*self._messages, _ROUNDS, self._neighbor_of))
            gather(found[0], NEIGHBORS, *self._messages[:2], *bodies)

        return timed(route), np.frombuffer(found[0], dtype=np.uint64)

    def memory(self) -> int:
        return self.siena.bytes()


class CountingByNeighbor(Counting):
    """The same with one interface per neighbour: it stops once every neighbour is matched."""

    def _own_interface(self) -> bool:
        return False


class MergedCounting(CountingByNeighbor):
    """And with identical filters merged, as an engineer would."""

    merge = True


SYSTEMS: dict[str, type[System]] = {
    "f3": F3,
    "content-list": ContentList,
    "disjunctive-id": Disjunctive,
    "siena": Counting,
    "siena-by-neighbor": CountingByNeighbor,
    "siena-merged": MergedCounting,
}


def measure(system: str, work: Work) -> Result:
    """Subscribe everybody, forward everything, and have brute force agree."""
    table = SYSTEMS[system](work)
    subscribing = table.subscribe()
    first, due = table.forward()
    again, same = table.forward()
    looking = table.look_up()
    expected = brute_force(work)
    wrong = np.flatnonzero((due != expected) | (same != expected))
    if len(wrong):
        raise AssertionError(
            f"{system}: notification {wrong[0]} is due at {expected[wrong[0]]:b}, "
            f"not at {due[wrong[0]]:b} (neighbours as bits)"
        )
    return {
        "us_per_subscription": 1e6 * subscribing / len(work.nodes),
        "us_per_notification": 1e6 * again / len(work.notices),
        "us_per_notification_first": 1e6 * first / len(work.notices),
        **({} if looking is None else {"us_per_look_up": 1e6 * looking / len(work.notices)}),
        "kilobytes": table.memory() / 1000,
        "ids_per_notification": table.identifiers(),
        "topics": len(work.topics),
        "due": float(sum(int(bits).bit_count() for bits in due.tolist()) / len(due)),
    }


def brute_force(work: Work) -> Due:
    """Who is due what, from what topics mean."""
    matching = work.matching(work.notices)
    due = np.zeros(len(work.notices), dtype=np.uint64)
    for router in range(NEIGHBORS):
        held = np.unique(work.nodes[work.routers == router])
        if len(held):
            due |= matching[held].any(axis=0).astype(np.uint64) << np.uint64(router)
    return due


def timed(action: Callable[[], object]) -> float:
    """Seconds of this thread's CPU time; garbage collection is off meanwhile."""
    gc.collect()
    gc.disable()
    try:
        start = thread_time()
        action()
        return thread_time() - start
    finally:
        gc.enable()


def grid(**axes: list[object]) -> list[dict[str, object]]:
    """All combinations of parameters, the last axis fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
