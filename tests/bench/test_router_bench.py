"""`f3 bench router` at a small size: a real router process, real links, counts by brute force."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from f3.bench.children import BenchError, Child
from f3.bench.load import NEIGHBORS, Load, mean_points, scenario
from f3.bench.router import RouterSystem
from f3.bench.stamps import MARK, Samples, stamped
from f3.bench.system import Measurement
from f3.cli import app

run = CliRunner().invoke
SMALL = ["--notifications", "2000", "--seconds", "0.1", "--repeat", "2"]
KEYS = (
    "notifications_per_s",
    "deliveries_per_s",
    "deliveries_per_notification",
    "ideal_per_notification",
    "rss_bytes",
)


@pytest.mark.parametrize("name", ["attribute-value", "baseball", "traffic"])
def test_rows_have_the_keys_that_were_promised(name: str, tmp_path: Path) -> None:
    plot = tmp_path / "growth.png"
    options = ["--scenario", name, "--subscribers", "30,300", "--json", "--plot", str(plot)]
    done = run(app, ["bench", "router", *options, *SMALL])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["scenario"], row["subscribers"]) for row in rows] == [(name, 30), (name, 300)]
    for row in rows:
        assert (row["system"], row["encoding"]) == ("f3", "content graph")
        assert all(row[key] > 0 for key in KEYS)
        assert 0 < row["latency_us"]["p50"] <= row["latency_us"]["p99"]
        assert row["deliveries_per_notification"] == row["ideal_per_notification"]
        assert row["cpu_us_per_notification"] >= 0
    assert plot.stat().st_size > 1000


def test_what_people_get_wrong_is_named(tmp_path: Path) -> None:
    for options, named in (
        (["--scenario", "cricket"], "cricket"),
        (["--subscribers", "many"], "many"),
        (["--plot", str(tmp_path / "none" / "x.png")], "none"),
    ):
        done = run(app, ["bench", "router", *options])
        assert done.exit_code == 2
        assert named in done.stderr


@pytest.mark.parametrize("size", [20, 400])
def test_what_is_due_follows_from_content(size: int) -> None:
    load = Load.draw(scenario("attribute-value", 3), size, 200, 3)
    topics = load.scenario.topics
    expected = np.zeros((NEIGHBORS, 200), dtype=np.int64)
    for i, k in product(range(NEIGHBORS), range(200)):
        values = load.topic(k)
        assert all(values)
        expected[i, k] = sum(
            all(wanted in (0, value) for wanted, value in zip(topics[n], values, strict=True))
            for n in load.held[i]
        )
    assert np.array_equal(load.matches, expected)
    assert np.array_equal(load.due, expected > 0)
    assert (expected.sum(axis=0) > 0).all()
    assert 0 < load.due.mean() < 1, "neither nobody nor everybody is due everything"


def test_what_is_due_of_stretches_of_road() -> None:
    load = Load.draw(scenario("traffic", 5), 12, 100, 5)
    topics = load.scenario.topics
    for i, nodes in enumerate(load.held):
        held = [topics[node] for node in nodes]
        for k, header in enumerate(load.notifications):
            exits = {exit_ for node in header for exit_ in topics[node]}
            met = any(a <= exit_ <= b for a, b in held for exit_ in exits)
            assert load.due[i, k] == met


def test_a_subscription_matches_113_notifications_on_average() -> None:
    assert mean_points(scenario("attribute-value", 1)) == pytest.approx(2.2**6)


def test_a_wrong_count_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Load.draw(scenario("baseball", 1), 100, 1000, 1)
    system = RouterSystem(load)
    try:
        due = load.due.copy()
        due[0, 0], due[1, 0] = 1 - due[0, 0], 1 - due[1, 0]
        monkeypatch.setattr(system, "expected", lambda: due)
        monkeypatch.setattr("f3.bench.system._DRAIN_SECONDS", 2.0)
        with pytest.raises(BenchError, match=r"deliveries, due|stands still"):
            Measurement(system).run(0.05, 1)
    finally:
        system.close()


def test_stamps_are_found_where_reads_cut_them() -> None:
    samples, bodies = Samples(), b"".join(stamped() for _ in range(50))
    for at in range(0, len(bodies), 7):
        samples.look(0, bodies[at : at + 7], 0)
        samples.look(1, b"nothing" + MARK[:3], 0)
    assert samples.summary()["count"] == 50


def test_a_child_that_dies_is_an_error() -> None:
    child = Child("f3.bench.router_process")
    try:
        child.tell("nonsense")
        with pytest.raises(BenchError, match="router_process"):
            child.hear()
    finally:
        child.close()
