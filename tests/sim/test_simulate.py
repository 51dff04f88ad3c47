"""`f3 simulate`, as people use it and as they get it wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from f3.cli import app
from routing.registry import protocols

run = CliRunner().invoke


@pytest.mark.parametrize("protocol", protocols())
def test_every_protocol_delivers_the_same(protocol: str) -> None:
    command = ["simulate", "--topology", "tree:2,3", "--teams", "6", "--notifications", "10"]
    done = run(app, [*command, "--protocol", protocol, "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["deliveries"] == 54
    assert (facts["routers"], facts["subscribers"], facts["recovered"]) == (15, 15, 0)


def test_losses_are_recovered() -> None:
    command = ["simulate", "--topology", "tree:2,3", "--teams", "6", "--notifications", "30"]
    calm = json.loads(run(app, [*command, "--json"]).stdout)
    rough = json.loads(run(app, [*command, "--loss", "0.2", "--json"]).stdout)
    assert rough["deliveries"] == calm["deliveries"]
    assert rough["recovered"] > 0


def test_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "way.png"
    options = ["--topology", "chain:4", "--notifications", "3", "--plot", str(picture)]
    done = run(app, ["simulate", *options])
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "each exactly once to exactly those who asked" in done.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--topology", "nowhere"], "no topology is called 'nowhere'"),
        (["--protocol", "ftp"], "unknown protocol 'ftp' (known: "),
        (["--topology", "chain:3", "--root", "r9"], "no router 'r9'"),
        (["--topology", "chain:3", "--notifications", "1", "--plot", "x.doc"], "pictures end in"),
        (["--teams", "1"], "teams"),
    ],
)
def test_mistakes_exit_with_2_and_say_what_is_wrong(options: list[str], reason: str) -> None:
    done = run(app, ["simulate", *options])
    assert done.exit_code == 2
    assert reason in done.stderr
