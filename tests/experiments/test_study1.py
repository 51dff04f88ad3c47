"""Study 1 at the smallest size: definitions and the relations of Table 4.2 (Kulik 2004, 4.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import study1, study1_page
from experiments.points import Point, measure

SMALL = {"topology": "tree:2,4", "notifications": 60}


@pytest.fixture(scope="module")
def tiny() -> list[dict[str, object]]:
    """Every scenario and system on a small tree; the oracle watches each run."""
    results = []
    for point in study1.points(quick=True):
        wanted = point.parameters["run"] == 0
        results.append(study1.run(**{**point.parameters, **SMALL}) if wanted else {})
    return results


def test_the_relations_of_table_4_2_hold(tiny: list[dict[str, object]]) -> None:
    rows = study1_page.rows(True, tiny)
    assert len(rows) == (1 + 3 * 4) * 3 * 2
    assert all(study1_page.checks(rows).values()), study1_page.checks(rows)


def test_all_systems_deliver_the_same(tiny: list[dict[str, object]]) -> None:
    deliveries: dict[object, set[object]] = {}
    for point, result in zip(study1.points(quick=True), tiny, strict=True):
        if result:
            found = deliveries.setdefault(point.parameters["scenario"], set())
            found.add(result["deliveries"])
    assert all(len(found) == 1 and min(map(int, found)) > 20 for found in deliveries.values())


def test_the_systems_differ_where_they_should(tiny: list[dict[str, object]]) -> None:
    rows = study1_page.rows(True, tiny)
    ours = {(r["measure"], r["system"], r["scenario"], r["router"]): r["ours"] for r in rows}
    busiest = "most heavily loaded router"
    for scenario in study1.SCENARIOS:
        per_link = [ours["notifications_per_link", s, scenario, busiest] for s in study1.SYSTEMS]
        if scenario != "attribute-value":  # too few subscribers here want the same
            assert per_link[0] >= per_link[1] > per_link[3], "copies cost more than F3"
        per_table = [ours["ids_per_table", s, scenario, busiest] for s in study1.SYSTEMS[1:]]
        assert per_table[1] > per_table[2], "disjunctive tables are larger than F3's"
    assert ours["ids_per_notification", "f3", "traffic", "typical router"] > 1.0


def test_page_and_plot_come_from_the_rows(tiny: list[dict[str, object]], tmp_path: Path) -> None:
    rows = study1_page.rows(True, tiny)
    study1_page.plot(rows, tmp_path)
    text = study1_page.page(True, tiny, rows, tmp_path)
    assert "66,561" in text
    assert "## Errata" in text
    assert "**no**" not in text
    assert (tmp_path / "study1.png").stat().st_size > 10_000


def test_points_are_measured_once(tmp_path: Path) -> None:
    ran: list[int] = []

    def run(n: int) -> dict[str, int]:
        ran.append(n)
        return {"square": n * n}

    said: list[str] = []
    points = [Point(f"n{n}", {"n": n}) for n in range(3)]
    first = measure(points[:2], run, tmp_path, say=said.append)
    again = measure(points, run, tmp_path, say=said.append)
    assert (first, again) == ([{"square": 0}, {"square": 1}], [{"square": n * n} for n in range(3)])
    assert ran == [0, 1, 2]
    assert "2 of 3 points are there already" in said
    (tmp_path / "raw" / "n1.json").write_text('{"parameters": {"n": 1}, "res', encoding="utf-8")
    measure(points, run, tmp_path, say=said.append)
    assert ran == [0, 1, 2, 1], "a torn file is measured anew"
    measure([Point("n2", {"n": 5})], run, tmp_path, say=said.append)
    assert ran[-1] == 5, "other parameters are another point"
    measure(points[:1], run, tmp_path, force=True, say=said.append)
    assert ran[-1] == 0
