"""`f3 up` and the commands that use it, as processes; and Ctrl-C, which leaves none behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from ray_tools import DEADLINE, until
from typer.testing import CliRunner

from f3.cli import app
from f3.commands import running

#: A shell's background job ignores Ctrl-C, and so would all that it starts.
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
F3 = [sys.executable, "-c", HEED + "from f3.cli import main; main()"]
runner = CliRunner()


@pytest.fixture(autouse=True)
def run_directory(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    monkeypatch.setenv("F3_RUN_DIR", str(folder))
    return folder


def f3(*arguments: str, code: int = 0, **options: object) -> str:
    """Run a command to its end."""
    ran = subprocess.run(
        [*F3, *arguments], capture_output=True, text=True, timeout=DEADLINE, **options
    )
    assert ran.returncode == code, ran.stderr[-2000:]
    return ran.stdout


def marked(mark: str) -> list[int]:
    """Processes that inherited a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.ray
def test_up_publish_subscribe_status_and_control_c(tmp_path):
    graph = tmp_path / "graph.jsonl"
    graph.write_text('{"node": 1}\n{"node": 2, "parents": [1]}\n')
    mark = f"F3_TEST_MARK={uuid.uuid4()}"
    environment = {**os.environ, **dict([mark.split("=")])}
    command = [*F3, "up", "--topology", "chain:2", "--rendezvous", "r1", "--graph", str(graph)]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    try:
        told = json.loads(up.stdout.readline())
        assert told["routers"] == ["r0", "r1"]
        with subprocess.Popen(
            [*F3, "subscribe", "1", "--count", "2", "--timeout", "50"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as listener:
            assert listener.stderr.readline() == "subscribed\n"
            assert f3("publish", "2", "-", input="one\ntwo\n") == "1\n2\n"
            assert listener.communicate(timeout=DEADLINE)[0] == "one\ntwo\n"
            assert listener.returncode == 0
        status = json.loads(f3("status", "--json"))["routers"]
        pairs = ((status["r0"], "r1"), (status["r1"], "r0"))
        assert all(one["links"][other]["up"] for one, other in pairs)
        assert len(marked(mark)) > 3
    finally:
        up.send_signal(signal.SIGINT)
        up.stdout.close()
        assert up.wait(DEADLINE) == 0
    until(lambda: not marked(mark), "the end of every process")
    f3("status", code=1)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("starting Ray", signal.SIGINT),
        ("starting Ray", signal.SIGTERM),
        ("routers started: 1", signal.SIGINT),
    ],
)
def test_control_c_while_starting_leaves_nothing_behind(moment, number):
    mark = f"F3_TEST_MARK={uuid.uuid4()}"
    environment = {**os.environ, **dict([mark.split("=")])}
    command = [*F3, "up", "--topology", "chain:4"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as up:
        while not up.stderr.readline().startswith(moment):
            assert up.poll() is None
        up.send_signal(number)
        assert up.wait(DEADLINE) == 0
    until(lambda: not marked(mark), "the end of every process")


@pytest.mark.ray
@pytest.mark.slow
def test_a_killed_driver_takes_everything_with_it():
    mark = f"F3_TEST_MARK={uuid.uuid4()}"
    environment = {**os.environ, **dict([mark.split("=")])}
    command = [*F3, "up", "--topology", "chain:2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as up:
        assert json.loads(up.stdout.readline())["routers"] == ["r0", "r1"]
        assert len(marked(mark)) > 3
        up.kill()
    until(lambda: not marked(mark), "the end of every process")
    assert "no cluster 'f3' runs here" in runner.invoke(app, ["status"]).stderr


def test_an_address_without_a_ray_is_a_clear_error_at_once():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for address in (f"127.0.0.1:{port}", "127.0.0.1:99999"):
        result = runner.invoke(app, ["up", "--ray-address", address])
        assert result.exit_code == 1
        assert f"no Ray answers at {address}" in result.stderr


@pytest.mark.parametrize("command", [["down"], ["status"], ["up"], ["up", "--detach"]])
def test_a_name_that_cannot_be_is_refused(command):
    result = runner.invoke(app, [*command, "--name", "../x"])
    assert result.exit_code == 2
    assert "a cluster cannot be called '../x'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--topology", "ring:5"], "no topology is called 'ring:5'"),
        (["--topology", "chain:x"], "write chain:LENGTH"),
        (["--rendezvous", "nowhere"], "'nowhere' is no router"),
        (["--protocol", "f4"], "unknown protocol 'f4'"),
        (["--topology", "missing.json"], "missing.json"),
        (["--graph", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(arguments, why):
    result = runner.invoke(app, ["up", *arguments])
    assert result.exit_code == 2
    assert why in result.stderr


def test_a_graph_file_is_checked_line_by_line(tmp_path):
    graph = tmp_path / "graph.jsonl"
    graph.write_text('{"node": 1}\n{"nodes": 2}\n')
    result = runner.invoke(app, ["up", "--graph", str(graph)])
    assert result.exit_code == 2
    assert f"{graph}, line 2: KeyError('node')" in result.stderr


@pytest.mark.parametrize(
    "command", [["down"], ["status"], ["publish", "1", "x"], ["subscribe", "1"], ["insert", "1"]]
)
def test_without_a_cluster_the_next_step_is_named(command):
    result = runner.invoke(app, [*command, "--name", "nobody"])
    assert result.exit_code == 1
    assert "start one with `f3 up --name nobody`" in result.stderr


def test_a_cluster_is_announced_while_it_lives_and_a_killed_one_is_forgotten(run_directory):
    with running.announced("one", {"routers": []}):
        assert running.find("one")["pid"] == os.getpid()
        with (
            pytest.raises(RuntimeError, match="runs already: `f3 down --name one`"),
            running.announced("one", {}),
        ):
            pass
    assert not running.is_running("one")
    left = run_directory / "dead.json"
    left.write_text('{"pid": 1}')
    assert not running.is_running("dead")
    assert not left.exists()
    with pytest.raises(ValueError, match="cannot be called"):
        running.state_file("../etc/passwd")
    run_directory.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        running.run_directory()
