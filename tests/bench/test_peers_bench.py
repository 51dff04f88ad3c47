"""`f3 bench peers` at a small size, with those servers that are here."""

from __future__ import annotations

import json
import shutil

import psutil
import pytest
from typer.testing import CliRunner

from f3.bench.peers import BROKERS
from f3.cli import app

run = CliRunner().invoke
SMALL = ["--subscribers", "200", "--notifications", "2000", "--seconds", "0.1", "--repeat", "1"]


def rows_of(systems: str) -> list[dict[str, object]]:
    done = run(app, ["bench", "peers", "--systems", systems, *SMALL, "--json"])
    assert done.exit_code == 0, done.output
    rows: list[dict[str, object]] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize("name", sorted(BROKERS))
def test_a_peer_beside_the_router(name: str) -> None:
    if shutil.which(BROKERS[name].server) is None:
        pytest.skip(f"{BROKERS[name].server} is not on PATH")
    rows = rows_of(f"f3,{name}")
    found = [(row["system"], row["encoding"]) for row in rows]
    assert found == [("f3", "content graph"), (name, "wildcards"), (name, "exact")]
    router, wildcards, exact = rows
    assert router["ideal_per_notification"] == exact["ideal_per_notification"]
    for row in (router, exact):
        assert row["deliveries_per_notification"] == pytest.approx(
            row["ideal_per_notification"], rel=0.02
        )
    copies = wildcards["duplicates_per_notification"]
    assert isinstance(copies, float)
    assert (copies == 0) if name == "mosquitto" else (copies > 0)
    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if child.name() == BROKERS[name].server]


def test_a_server_that_is_not_here_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = run(app, ["bench", "peers", "--systems", "redis", *SMALL])
    assert done.exit_code == 1
    assert "redis-server is not on PATH" in done.stderr


def test_an_unknown_system_is_named() -> None:
    done = run(app, ["bench", "peers", "--systems", "f3,pigeons"])
    assert done.exit_code == 2
    assert "pigeons" in done.stderr
