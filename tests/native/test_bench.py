"""`f3 bench table` at a small size: the rows that machines read, and what people get wrong."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from f3.cli import app

run = CliRunner().invoke


def test_rows_have_the_keys_that_were_promised() -> None:
    options = ["--scenario", "baseball", "--subscribers", "200,1000", "--repeat", "1", "--json"]
    done = run(app, ["bench", "table", *options])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    rows = rows["rows"] if isinstance(rows, dict) else rows
    assert {(row["table"], row["subscribers"]) for row in rows} >= {("python", 200)}
    for row in rows:
        assert row["scenario"] == "baseball"
        for key in ("us_per_notification", "us_per_subscription", "us_per_unsubscription", "bytes"):
            assert row[key] > 0


def test_an_unknown_scenario_is_named() -> None:
    done = run(app, ["bench", "table", "--scenario", "cricket"])
    assert done.exit_code == 2
    assert "cricket" in done.stderr
