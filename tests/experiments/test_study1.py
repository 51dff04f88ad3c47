"""Study 1 at the smallest size: definitions and the relations of Table 4.2 (Kulik 2004, 4.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import study1, study1_page
from experiments.implied import Definitions
from experiments.points import Point, measure
from experiments.work import draw
from routing.registry import protocol
from topology.catalogue import load
from topology.paths import tree

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


@pytest.mark.parametrize("system", study1.SYSTEMS)
@pytest.mark.parametrize("scenario", study1.SCENARIOS)
def test_one_more_notification_on_a_link_is_noticed(scenario: str, system: str) -> None:
    """The definitions bite: every link and every table is compared."""
    overlay = load("tree:2,3")
    count = len(overlay.routers)
    parameters = {
        "subscribers.count": count,
        "subscribers.routers": count,
        "notifications.count": 30,
    }
    work = draw(study1.SCENARIOS[scenario], 1, parameters)
    season = study1.Season(overlay, "r", protocol(system), work)
    season.subscribe()
    season.publish()
    season.check(system)
    season.crossed["r", "r.0"] += 1
    with pytest.raises(AssertionError, match=r"crossed of 'r\.0' is"):
        season.check(system)


def test_unicast_counts_a_copy_for_each_subscriber() -> None:
    """By hand: all want everything, so a link has a copy for each host beyond it."""
    overlay = load("chain:4")
    hosts = sorted(overlay.routers)
    one = draw("baseball-30", 1, {"subscribers.count": 4, "notifications.count": 5})
    work = replace(one, nodes=np.zeros(4, dtype=np.int64), topics=np.zeros(1, dtype=np.int64))
    definitions = Definitions(work, hosts, tree(overlay, hosts[0]).parents)
    assert list(definitions.of("unicast").crossed.values()) == [15, 10, 5]
    assert list(definitions.of("overlapping-id").crossed.values()) == [5, 5, 5]
    assert list(definitions.of("f3").tables.values()) == [1, 1, 1, 1]
    assert set(definitions.of("disjunctive-id").tables.values()) == {435}
    assert definitions.unicast() == 10


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
