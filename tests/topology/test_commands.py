"""`f3 topology`: data on stdout, the rest on stderr, exit code 2 for what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from f3.cli import app
from topology.catalogue import load
from topology.files import from_document

RUN = CliRunner()


def test_show_counts_as_json() -> None:
    done = RUN.invoke(app, ["topology", "show", "chen-55", "--root", "E", "--json"])
    assert done.exit_code == 0
    facts = json.loads(done.stdout)
    assert (facts["routers"], facts["links"], facts["diameter"]) == (55, 54, 7)
    assert facts["kinds"] == {"core": 5, "edge": 32, "inner": 18}
    assert facts["tree"] == {"root": "E", "by": "latency", "depth": 6}


def test_show_as_text_and_list() -> None:
    done = RUN.invoke(app, ["topology", "show", "chain:4"])
    assert done.exit_code == 0
    assert "routers    4" in done.stdout
    assert "transit-stub-1200" in RUN.invoke(app, ["topology", "list"]).stdout


@pytest.mark.parametrize("name", ["transit-stub-64", "mixed.json", "bare.json"])
def test_show_draws(name: str, tmp_path: Path) -> None:
    links = [{"between": pair} for pair in (["a", "b"], ["b", "c"], ["c", "d"])]
    placed = [{"name": "a", "position": [1, 2]}, {"name": "b", "position": [3, 4]}]
    (tmp_path / "mixed.json").write_text(json.dumps({"links": links, "routers": placed}))
    (tmp_path / "bare.json").write_text(json.dumps({"links": links}))
    picture = tmp_path / "picture.png"
    what = name if name.startswith("transit") else str(tmp_path / name)
    done = RUN.invoke(app, ["topology", "show", what, "--plot", str(picture)])
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in done.stderr


def test_export_can_be_loaded_again() -> None:
    done = RUN.invoke(app, ["topology", "export", "transit-stub-100", "--seed", "5"])
    assert done.exit_code == 0
    assert from_document(json.loads(done.stdout)) == load("transit-stub-100", 5)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["show", "no-such"], "no topology is called 'no-such'"),
        (["show", "chain:3", "--root", "x"], "no router 'x'"),
        (["show", "chain:3", "--by", "x"], "not by 'x'"),
        (["show", "chain:3", "--plot", "/no/such/folder/x.png"], "No such file"),
        (["show", "chain:3", "--plot", "x.what"], "pictures end in"),
        (["export", "none.toml"], "none.toml: No such file"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], reason: str) -> None:
    done = RUN.invoke(app, ["topology", *arguments])
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stdout == ""
