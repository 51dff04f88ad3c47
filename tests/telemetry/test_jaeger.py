"""The same check as for the built-in collector, against a real Jaeger; where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from traced_world import CALM, ROOT, TREE, Row, TracedWorld, until

from actors.host import HostOptions
from actors.telemetry.options import Tracing

QUERY, INGEST = "http://127.0.0.1:16686", "http://127.0.0.1:4318"
JAEGER = shutil.which("jaeger")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(JAEGER is None, reason="no jaeger binary on PATH (docs/telemetry.md)"),
]


def get(path: str):
    try:
        with urlopen(f"{QUERY}{path}", timeout=5) as reply:
            return json.load(reply)["data"]
    except (URLError, ConnectionError):
        return None


@pytest.fixture
def jaeger(tmp_path):
    if get("/api/services") is not None:
        pytest.skip("something listens on Jaeger's port already")
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen([JAEGER], stdout=log, stderr=log, cwd=tmp_path)
    try:
        until(lambda: get("/api/services") is not None, "Jaeger", limit=60.0)
        yield
    finally:
        process.kill()  # it keeps nothing, and takes its time to end in good order
        process.wait(30)


def services() -> list[str]:
    return [name for name in get("/api/services") or () if name.startswith("f3-")]


def stored() -> list[Row]:
    """Every span of ours that Jaeger has, each once; it also keeps those of its own queries."""
    rows = {}
    for service in services():
        for trace in get(f"/api/traces?service={service}&limit=1000&lookback=1h") or ():
            for span in trace["spans"]:
                above = [r["spanID"] for r in span["references"] if r["refType"] == "CHILD_OF"]
                start_ns = span["startTime"] * 1000
                rows[span["spanID"]] = Row(
                    trace["processes"][span["processID"]]["serviceName"].removeprefix("f3-"),
                    span["operationName"].partition(" ")[0],
                    span["traceID"],
                    span["spanID"],
                    above[0] if above else "",
                    start_ns,
                    start_ns + span["duration"] * 1000,
                    {tag["key"]: tag["value"] for tag in span["tags"]},
                )
    return list(rows.values())


def test_jaeger_has_the_spans_that_brute_force_expects(jaeger, network):
    made = network(TREE, [ROOT], config=CALM, options=HostOptions(tracing=Tracing(INGEST)))
    world = TracedWorld(made, 5)
    world.publish(40)
    due = world.spans_due()
    until(lambda: len(stored()) >= due, "all spans in Jaeger")
    rows = stored()
    assert len(rows) == due
    world.check(rows)
    assert {f"f3-{row.service}" for row in rows} == set(services())
