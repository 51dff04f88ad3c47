"""Recorded runs: written by the simulator, read back, drawn; and files that are none."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from f3 import runs
from f3.cli import app
from f3.commands.plot import filled


def test_a_simulated_run_is_recorded_and_drawn(tmp_path):
    run, picture = tmp_path / "run.jsonl", tmp_path / "queues.png"
    simulate = ["simulate", "--topology", "chain:5", "--notifications", "3", "--service", "0.01"]
    done = CliRunner().invoke(app, [*simulate, "--queues", str(run)])
    assert done.exit_code == 0, done.output
    series = runs.read(run)
    assert set(series) == {f"r{n}" for n in range(5)}
    assert max(queued for points in series.values() for _, queued in points) >= 2
    done = CliRunner().invoke(app, ["plot", "queues", str(run), "--out", str(picture)])
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def longest(series, since, to):
    """Per router, the longest queue in a time."""
    return {
        router: max((queued for t, queued in points if since <= t <= to), default=0)
        for router, points in series.items()
    }


def test_a_slow_router_and_a_burst_of_unsubscriptions_are_seen(tmp_path):
    """The slow one has the longest queue of all; everybody's leaving is the last that happens."""
    run, calm = tmp_path / "run.jsonl", tmp_path / "calm.jsonl"
    simulate = ["simulate", "--topology", "chain:6", "--notifications", "8", "--service", "0.02"]
    for path, more in ((run, ["--slow", "r4=1.5", "--leave"]), (calm, [])):
        done = CliRunner().invoke(app, [*simulate, *more, "--queues", str(path)])
        assert done.exit_code == 0, done.output
    found, without = runs.read(run), runs.read(calm)
    end = max(points[-1][0] for points in found.values())
    peaks = longest(found, 0, end)
    assert max(peaks, key=peaks.get) == "r4"
    assert peaks["r4"] >= 2 * longest(without, 0, end)["r4"]
    assert sum(longest(found, end - 20, end).values()) >= 5


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--service", "0.1", "--slow", "r9=1"], "no router 'r9'"),
        (["--service", "0.1", "--slow", "r1"], "takes a router and seconds"),
        (["--service", "0.1", "--slow", "r1=-1"], "takes a router and seconds"),
        (["--slow", "r1=1"], "needs --service"),
    ],
)
def test_slow_routers_that_make_no_sense(given, reason):
    done = CliRunner().invoke(app, ["simulate", "--topology", "chain:3", *given])
    assert done.exit_code == 2
    assert reason in done.output


def test_the_map_of_queues_has_the_longest_of_every_moment():
    points = [(0.0, 0.0), (1.0, 5.0), (1.1, 2.0), (3.0, 0.0)]
    assert filled(points, 0.0, 4.0, 4) == [0.0, 5.0, 2.0, 0.0]
    assert filled([(1.0, 3.0)], 1.0, 1.0, 2) == [3.0, 0.0]


def test_queues_need_a_service_time(tmp_path):
    done = CliRunner().invoke(app, ["simulate", "--queues", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert "--service" in done.output


def test_what_is_written_is_read_in_the_order_of_time(tmp_path):
    run = tmp_path / "run.jsonl"
    with open(run, "w") as file:
        runs.begin(file, "cluster")
        for t, router, queued in ((2.0, "b", 1), (1.0, "b", 3), (1.5, "a", 0)):
            runs.sample(file, t, router, queued, capacity=10)
    assert runs.read(run) == {"a": [(1.5, 0.0)], "b": [(1.0, 3.0), (2.0, 1.0)]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no samples"),
        ("{}", "line 1: KeyError"),
        ('{"format": "f3-run", "version": 2}', "another format, or version"),
        (json.dumps({"format": "f3-run", "version": 1}) + '\n{"t": "x"}', "line 2"),
    ],
)
def test_files_that_are_no_runs(tmp_path, text, reason):
    run = tmp_path / "run.jsonl"
    run.write_text(text)
    with pytest.raises(runs.RunError, match=reason):
        runs.read(run)
    done = CliRunner().invoke(app, ["plot", "queues", str(run), "--out", str(tmp_path / "x.png")])
    assert done.exit_code == 2
