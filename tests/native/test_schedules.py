"""Whole networks with either table: not only the same promises kept, the same happens."""

from __future__ import annotations

import pytest

from routing.registry import protocol
from sim.schedule import run

native = pytest.importorskip("routing.native", reason="the compiled table was not built")


@pytest.mark.sim
def test_the_same_schedules() -> None:
    compiled, python = protocol("f3"), protocol("f3-python")
    if compiled.table is python.table:
        pytest.skip("F3_TABLE=python")
    deliveries = 0
    for seed in range(40):
        expected = run(seed, python)
        assert run(seed, compiled) == expected, f"seed {seed}"
        deliveries += expected.deliveries
    assert deliveries > 100
