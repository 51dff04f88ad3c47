"""A workload in the simulator: all get what they asked for, whoever comes, goes and moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from f3.cli import app
from f3.rehearsal import Rehearsal, rehearse
from routing.registry import protocol
from sim.oracle import ViolationError
from tests.spark.conftest import Make
from topology.catalogue import load
from topology.paths import centre
from workloads.describe import churn_counts
from workloads.graph import Graph
from workloads.reader import Workload

pytestmark = pytest.mark.spark

#: A lively minute, in which few are where they were at the start.
LIVELY: dict[str, Any] = {
    "subscribers.count": 300,
    "subscribers.topics_each": 2,
    "subscribers.routers": 7,
    "notifications.count": 120,
    "notifications.sources": 3,
    "churn.arrivals": 0.5,
    "churn.departures": 0.5,
    "churn.moves": 2,
}


def replayed(workload: Workload, name: str = "f3") -> dict[str, Any]:
    overlay = load("transit-stub-64")
    one = Rehearsal(workload, overlay, centre(overlay), protocol(name))
    return rehearse(one, lambda line: None)


@pytest.mark.parametrize(
    ("name", "content"),
    [("baseball-30", {}), ("traffic-20", {}), ("attribute-value", {"attributes": 3, "values": 2})],
)
def test_a_lively_workload_is_delivered_exactly(
    name: str, content: dict[str, Any], make: Make
) -> None:
    workload = make(name, parameters=LIVELY | content)
    facts = replayed(workload)
    assert facts["subscriptions"] == workload.counts["subscriptions"]
    assert facts["notifications"] == 120
    assert {event: facts[event] for event in ("arrive", "depart", "move")} == churn_counts(workload)
    assert facts["move"] > 400
    assert facts["deliveries"] > 1_000


def test_the_judge_watches_the_network(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a header for other nodes than the routers think, somebody would miss it or get it."""
    workload = make("baseball-30", parameters=LIVELY)
    for wrong, reason in ((0, "without asking for it"), (1, "has not reached")):
        monkeypatch.setattr(
            Graph, "covering", lambda graph, nodes, w=wrong: np.arange(len(graph) * w)
        )
        with pytest.raises(ViolationError, match=reason):
            replayed(workload)


def test_the_command(make: Make, tmp_path: Path) -> None:
    path = str(make("varying-depth", parameters=LIVELY).path)
    told = CliRunner().invoke(app, ["workload", "replay", path, "--topology", "chain:12"])
    assert told.exit_code == 0, told.stderr
    assert "each exactly once to exactly those who asked" in told.stdout
    run = ["workload", "replay", path, "--json", "--topology", "chain:12", "--protocol"]
    facts = json.loads(CliRunner().invoke(app, [*run, "content-list"]).stdout)
    assert (facts["protocol"], facts["notifications"]) == ("content-list", 120)
    for arguments, status, reason in (
        ([*run, "smoke-signals"], 2, "unknown protocol 'smoke-signals'"),
        (["workload", "replay", path, "--topology", "chain:3"], 2, "the topology has 3"),
        (["workload", "replay", path, "--root", "nowhere"], 2, "nowhere"),
        (["workload", "replay", str(tmp_path)], 1, "is not a workload"),
    ):
        refused = CliRunner().invoke(app, arguments)
        assert (refused.exit_code, refused.stdout) == (status, "")
        assert reason in refused.stderr
