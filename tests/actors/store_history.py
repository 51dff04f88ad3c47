"""Random histories of a rendezvous point's store, the same for every store with the same past.

A node's number is the set of items it stands for, one bit each, so its place follows from it.
Batch k of a history depends on the seed, on k and on the store's state alone: a process that
comes back from a kill goes on exactly as the one before would have.

    python store_history.py PATH SEED BATCH: open PATH and go on from that batch, for ever,
    with one line on stdout after each commit.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from routing.errors import ProtocolError
from routing.store import Store

BITS = 9
SOURCES = [("p", "h1"), ("p", "h2"), ("q", "h1")]


def limits(seed: int) -> dict[str, Any]:
    """How the log is bounded, by turns mostly by count, by bytes, or by age."""
    bounds = [(20, 100_000, 100.0), (100, 2000, 100.0), (1000, 100_000, 15.0)]
    capacity, bytes_max, age_max = bounds[seed % 3]
    return {"capacity": capacity, "window": 8, "bytes_max": bytes_max, "age_max": age_max}


def place(store: Store, node: int) -> tuple[list[int], list[int]]:
    """The lowest nodes of the graph that cover a node, and the highest that it covers."""
    above = [other for other in store.graph if other & node == node != other]
    below = [other for other in store.graph if other & node == other != node]
    return sorted(store.graph.low(above)), sorted(store.graph.high(below))


def run_batch(store: Store, seed: int, batch: int, seen: Counter[str]) -> None:
    """A few random changes; whoever calls it commits."""
    rng = random.Random(f"{seed} {batch}")
    before = store.first
    store.advance(1000.0 + batch)
    seen["dropped"] += store.first - before
    for _ in range(rng.randint(1, 12)):
        kind = rng.random()
        if kind < 0.2:
            _insert(store, rng, seen)
        elif kind < 0.28 and len(store.graph):
            store.remove_node(rng.choice(sorted(store.graph)))
            seen["remove"] += 1
        elif kind < 0.3:
            store.set_access(rng.choice((None, {}, {"p": b"\x00key", "q": b"k"})))
            seen["access"] += 1
        elif len(store.graph):
            _publish(store, rng, seen)


def _insert(store: Store, rng: random.Random, seen: Counter[str]) -> None:
    node = rng.randrange(1, 1 << BITS)
    try:
        store.insert_node(node, *place(store, node))
        seen["insert"] += 1
    except ProtocolError:
        seen["refused"] += 1


def _publish(store: Store, rng: random.Random, seen: Counter[str]) -> None:
    source = rng.choice(SOURCES)
    known = store._settled.get(source)
    incarnation, newest = (1, 0) if known is None else (known.incarnation, known.newest)
    incarnation = max(1, incarnation + rng.choice((0,) * 20 + (1, -1)))
    number = max(1, newest + rng.choice((1, 1, 1, 1, 2, 0, -1, -9, -20)))
    position = store.settled(source, incarnation, number)
    if position is not None:
        seen["again" if position else "long ago"] += 1
        return
    picked = rng.sample(sorted(store.graph), min(len(store.graph), rng.randint(1, 3)))
    lowest = tuple(sorted(store.graph.low(picked)))
    before = store.first
    payload = rng.randbytes(rng.choice((0, 5, 50, 50, 300, 2500)))
    trace = rng.choice((b"", b"", rng.randbytes(25)))
    store.append(source, incarnation, number, lowest, payload, trace)
    seen["append"] += 1
    seen["sampled"] += bool(trace)
    seen["dropped"] += store.first - before


def state(store: Store) -> dict[str, Any]:
    """Everything that a store can be asked, as plain values."""
    graph = store.graph
    probes = range(1, 1 << BITS)
    return {
        "graph": {node: sorted(graph.parents(node)) for node in graph},
        "children": {node: sorted(graph.children(node)) for node in graph},
        "counts": (store.version, store.inserted, store.first, store.last, store.bytes),
        "numbers": store.numbers,
        "access": store.access,
        "entries": [store.entry(p) for p in range(store.first, store.last + 1)],
        "covering": [sorted(store.covering([node])) for node in probes],
        "retired": sorted(store._retired),
        "settled": {
            (source, incarnation, number): store.settled(source, incarnation, number)
            for source in SOURCES
            for incarnation in range(1, 12)
            for number in range(1, 40)
        },
    }


def main() -> None:
    """Go on with a history until killed."""
    from actors.store import DurableStore

    path, seed, batch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = DurableStore(path, **limits(seed))
    while True:
        run_batch(store, seed, batch, Counter())
        store.commit()
        batch += 1
        sys.stdout.write(f"{batch}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
