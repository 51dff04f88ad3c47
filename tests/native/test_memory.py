"""Memory: given back when it is not needed, and a table that was emptied is as good as new."""

from __future__ import annotations

import pytest

from routing.batch import Batch
from routing.messages import Setup

native = pytest.importorskip("routing.native", reason="the compiled table was not built")

LEAVES = range(1, 3001)
NEIGHBORS = [f"n{k}" for k in range(20)]


def filled() -> object:
    """A flat graph in which every neighbour holds every node."""
    table = native.NativeTable()
    table.insert(Setup(0, (), ()))
    for node in LEAVES:
        table.insert(Setup(node, (0,), ()))
        for neighbor in NEIGHBORS:
            table.attach(node, neighbor)
    return table


def test_memory_is_given_back() -> None:
    table = filled()
    full = table.bytes()
    assert full > 4 * 2 * len(LEAVES) * len(NEIGHBORS)
    for node in LEAVES:
        for neighbor in NEIGHBORS:
            table.detach(node, neighbor)
        table.remove(node)
    assert table.neighbors() == set()
    assert table.size() == {"nodes": 1, "edges": 0, "subscriptions": 0, "labels": 0}
    assert table.bytes() < full / 2
    table.check()


def test_remembered_headers_are_bounded() -> None:
    """However many headers there are, what is remembered of them has a limit."""
    table = filled()
    before = table.bytes()
    for first in range(60):
        headers = [
            ((first * 49 + k) % 3000 + 1, (first * 7 + k * 11) % 3000 + 1) for k in range(1000)
        ]
        rows = [(header, k + 1, b"") for k, header in enumerate(headers)]
        assert table.route_batch(Batch.of(rows)).unknown == 0
    assert 4_000_000 < table.bytes() - before < 20_000_000


def test_many_neighbors_come_and_go() -> None:
    """Numbers of neighbours that have left are used again."""
    table = native.NativeTable()
    table.insert(Setup(1, (), ()))
    for k in range(2000):
        table.attach(1, f"n{k}")
        assert table.route((1,)) == {f"n{k}": (1,)}
        table.detach(1, f"n{k}")
    assert table.bytes() < 20_000
