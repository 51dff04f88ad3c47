"""`f3 bench trace`: that it measures what it says, and its interval."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from f3.cli import app
from f3.commands.bench_trace import interval


def test_the_benchmark_measures_every_way_and_counts_spans(monkeypatch):
    monkeypatch.setattr("f3.commands.bench_trace._LEAD_SECONDS", 0.02)
    arguments = ["bench", "trace", "--routers", "2", "--rounds", "1", "--seconds", "0.1", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    rows = {row["sampling"]: row for row in json.loads(done.stdout)["rows"]}
    assert list(rows) == ["off", "off again", "1/1000", "1/10", "1/10 to nobody", "1"]
    assert all(row["messages_per_s"] > 0 for row in rows.values())
    assert rows["off"]["lost_percent"] == rows["off"]["more_cpu_percent"] == 0.0
    assert rows["off"]["spans"] == rows["off again"]["spans"] == 0
    assert 0 < rows["1/10"]["spans"] < rows["1"]["spans"]
    nobody = rows["1/10 to nobody"]
    under_way = nobody["spans"] - nobody["spans_dropped"] - nobody["spans_waiting"]
    assert 0 <= under_way <= 4 * 512  # a request of each of four hosts


def test_the_interval_has_the_median_as_often_as_it_says():
    assert interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    rng = random.Random(1)
    for count in (6, 15, 40):
        inside = wide = 0
        for _ in range(2000):
            low, high = interval([rng.gauss(5.0, 2.0) for _ in range(count)])
            inside += low <= 5.0 <= high
            wide += high - low
        assert inside / 2000 == pytest.approx(0.97, abs=0.025)
    assert wide / 2000 < 2.0
