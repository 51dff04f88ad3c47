"""The compiled table against the readable one, on long random histories."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from routing.messages import Setup
from routing.table import LabelTable, Table
from tests.native.histories import History

native = pytest.importorskip("routing.native", reason="the compiled table was not built")

#: What random histories must reach, or they prove nothing.
MUST_REACH = (
    "between",
    "again",
    "attached twice",
    "merged",
    "rejoined",
    "set-up between",
    "covering",
    "multi-label",
    "unknown",
    "whole batch",
    "part of a batch",
    "reduced header",
    "overlap",
)


def run(seeds: range, nodes: int, neighbors: int, steps: int, check_every: int) -> None:
    reached: Counter[str] = Counter()
    for seed in seeds:
        history = History(seed, native.NativeTable, nodes, neighbors)
        history.run(steps, check_every)
        reached += history.reached
    assert [what for what in MUST_REACH if reached[what] < 10] == []


def test_small_graphs() -> None:
    run(range(150), nodes=12, neighbors=3, steps=150, check_every=1)


def test_large_graphs() -> None:
    run(range(4), nodes=100, neighbors=10, steps=2000, check_every=50)


def test_more_neighbors_than_bits_in_a_word() -> None:
    run(range(2), nodes=40, neighbors=150, steps=3000, check_every=300)


@pytest.mark.parametrize("roots", [1, 2, 31, 32, 33, 40, 70])
def test_more_above_than_bits_in_a_word(roots: int) -> None:
    """A node below many, given up: some come into the labels beneath, some were there already."""
    above = tuple(range(100, 100 + roots))
    half = above[: (roots + 1) // 2]
    setups = [Setup(root, (), ()) for root in above]
    setups += [Setup(1, half, ()), Setup(2, above, ()), Setup(3, (1, 2), ())]
    tables: list[Table] = [LabelTable(), native.NativeTable()]
    for table in tables:
        for setup in setups:
            table.insert(setup)
            table.attach(setup.node, "b")
            if setup.node != 3:
                table.attach(setup.node, "a")
        assert table.route((3,))["a"] == (1, 2)
        table.detach(2, "a")
        assert table.route((3,))["a"] == (1, *above[len(half) :])
        assert table.route((2,))["a"] == above
        table.detach(2, "b")
        table.remove(2)
        table.insert(Setup(2, above, (3,)))
        table.detach(1, "a")
        assert table.route((3,)) == {"a": above, "b": (3,)}
        table.check()
    assert tables[0].size() == tables[1].size()


@pytest.mark.slow
def test_many_histories() -> None:
    count = int(os.environ.get("F3_SCHEDULES", "1000"))
    run(range(1000, 1000 + count), nodes=14, neighbors=3, steps=200, check_every=1)
    run(range(2000, 2040), nodes=110, neighbors=12, steps=3000, check_every=50)
