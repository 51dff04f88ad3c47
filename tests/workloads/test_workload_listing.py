"""`f3 workload list` and usage errors, which need no Spark."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from f3.cli import app
from workloads.scenario import scenario_names


def test_list_for_people_and_machines() -> None:
    told = CliRunner().invoke(app, ["workload", "list"])
    assert told.exit_code == 0
    listed = json.loads(CliRunner().invoke(app, ["workload", "list", "--json"]).stdout)
    assert [scenario["name"] for scenario in listed] == scenario_names()
    for scenario in listed:
        assert scenario["about"] in told.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["cricket"], "there is no scenario 'cricket'"),
        (["baseball", "--param", "teams=1"], "content.teams must lie between 2 and 100,000"),
        (["baseball", "--param", "teams"], "not of the form key=value"),
        (["baseball", "--subscribers", "0"], "subscribers.count must lie between 1"),
    ],
)
def test_bad_usage_is_told_at_once(arguments: list[str], reason: str) -> None:
    told = CliRunner().invoke(app, ["workload", "generate", *arguments, "--out", "/nonexistent/x"])
    assert told.exit_code == 2
    assert reason in told.stderr
    assert told.stdout == ""
