"""The compiled table against the readable one, on long random histories."""

from __future__ import annotations

import os
from collections import Counter

import pytest

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


@pytest.mark.slow
def test_many_histories() -> None:
    count = int(os.environ.get("F3_SCHEDULES", "1000"))
    run(range(1000, 1000 + count), nodes=14, neighbors=3, steps=200, check_every=1)
    run(range(2000, 2040), nodes=110, neighbors=12, steps=3000, check_every=50)
