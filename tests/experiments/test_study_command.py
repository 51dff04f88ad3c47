"""`f3 study`: from points to page, rows and plot, and on from where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip(
    "experiments.opponents", reason="the compiled opponents were not built", exc_type=ImportError
)

from experiments import study3
from experiments.points import Point
from f3.cli import app


@pytest.fixture
def one_population(monkeypatch: pytest.MonkeyPatch) -> None:
    """Study 3 with the first of its populations."""
    points = study3.points

    def first(quick: bool) -> list[Point]:
        return [point for point in points(quick) if point.parameters["seed"] == 0]

    monkeypatch.setattr(study3, "points", first)


@pytest.mark.usefixtures("one_population")
def test_a_study_writes_its_page_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ["study", "3", "--quick", "--out", str(tmp_path), "--json"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    rows = json.loads(first.stdout)["3"]
    assert {(row["attributes"], row["system"]) for row in rows} == {
        (attributes, system) for attributes in study3.ATTRIBUTES for system in study3.SYSTEMS
    }
    folder = tmp_path / "quick"
    page = (folder / "study3.md").read_text(encoding="utf-8")
    assert "8 of 8 points are measured; they took" in page
    assert json.loads((folder / "study3.json").read_text(encoding="utf-8")) == rows
    (folder / "study3" / "raw" / "7-f3-0.json").unlink()
    drawn = CliRunner().invoke(app, [*command, "--draw"])
    assert drawn.exit_code == 0, "a page of what there is"
    assert "7 of 8 points" in (folder / "study3.md").read_text(encoding="utf-8")
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0
    assert "7 of 8 points are there already" in again.stderr
    assert "[1/1] 7-f3-0" in again.stderr


def test_what_a_user_gets_wrong(tmp_path: Path) -> None:
    unknown = CliRunner().invoke(app, ["study", "7"])
    assert unknown.exit_code == 2
    assert "there is no study '7'" in unknown.stderr
    nothing = CliRunner().invoke(app, ["study", "3", "--draw", "--out", str(tmp_path)])
    assert nothing.exit_code == 1
    assert "run it first" in nothing.stderr
