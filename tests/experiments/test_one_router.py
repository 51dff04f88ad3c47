"""Studies 2 to 4 at the smallest size, where brute force agrees (Kulik 2004, 4.2 to 4.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "experiments.opponents", reason="the compiled opponents were not built", exc_type=ImportError
)
pytest.importorskip(
    "routing.native", reason="the compiled table was not built", exc_type=ImportError
)

from experiments import one_router, study2, study2_page, study3, study4
from experiments.work import Work, draw

SMALL = {"subscribers.count": 400, "subscribers.routers": 10, "notifications.count": 100}
SCENARIOS = {
    "baseball": {"teams": 20},
    "traffic": {"exits": 15},
    "attribute-value": {"attributes": 4, "values": 3},
}


def work(scenario: str, **more: object) -> Work:
    return draw(scenario, 1, {**SCENARIOS[scenario], **SMALL, **more})


@pytest.mark.parametrize(
    "system", ["f3", "disjunctive-id", "siena", "siena-by-neighbor", "siena-merged"]
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_system_forwards_what_brute_force_says(scenario: str, system: str) -> None:
    for subscribers in (1, 30, 400):
        small = work(scenario, **{"subscribers.count": subscribers})
        result = one_router.measure(system, small)
        assert result["us_per_notification"] > 0
        assert result["kilobytes"] > 0


def test_a_system_that_forgets_a_neighbour_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(one_router.Disjunctive):
        def forward(self) -> tuple[float, one_router.Due]:
            seconds, due = super().forward()
            return seconds, due & ~np.uint64(4)

    monkeypatch.setitem(one_router.SYSTEMS, "forgetful", Forgetful)
    with pytest.raises(AssertionError, match="forgetful: notification"):
        one_router.measure("forgetful", work("baseball"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_categories_of_a_topic_are_what_it_matches(scenario: str) -> None:
    small = work(scenario)
    every, match = small.categories(), small.matcher()
    covered = one_router.categories_of(small)
    sizes = set()
    for topic in small.topics.tolist():
        assert sorted(covered(topic).tolist()) == every[match(topic, every)].tolist()
        sizes.add(len(covered(topic)))
    assert len(sizes) > 2


def results(study: Any, small: dict[str, object]) -> list[dict[str, Any]]:
    """Every point of the quick study whose parameters are small, and nothing for the others."""
    found = []
    for point in study.points(quick=True):
        wanted = all(point.parameters[key] <= limit for key, limit in small.items())
        parameters = dict(point.parameters)
        if "notifications" in parameters:
            parameters["notifications"] = 50
        found.append(study.run(**parameters) if wanted else {})
    return found


@pytest.mark.parametrize(
    ("study", "shown", "small", "pictures"),
    [
        (study2, study2_page, {"subscribers": 100}, ["study2.png"]),
        (study3, study3, {"seed": 0}, ["study3.png"]),
        (study4, study4, {"seed": 0}, ["study4-degree.png", "study4-depth.png"]),
    ],
    ids=["2", "3", "4"],
)
def test_pages_and_plots(
    study: Any, shown: Any, small: dict[str, object], pictures: list[str], tmp_path: Path
) -> None:
    found = results(study, small)
    rows = shown.rows(True, found)
    assert len(rows) > 5
    shown.plot(rows, tmp_path)
    text = shown.page(True, found, rows, tmp_path)
    assert "## Errata" in text
    assert "nan" not in text or study is study2
    assert all((tmp_path / name).stat().st_size > 10_000 for name in pictures)


def test_what_the_thesis_explains_holds_in_counts() -> None:
    """4.3.2: disjunctive tables grow with attributes, F3's do not; 4.4.2: so do content lists."""
    few = study3.run(7, "disjunctive-id", 0)["kilobytes"], study3.run(7, "f3", 0)["kilobytes"]
    many = study3.run(10, "disjunctive-id", 0)["kilobytes"], study3.run(10, "f3", 0)["kilobytes"]
    assert many[0] > 4 * few[0]
    assert many[1] < 2 * few[1]
    lists = [study4.run("depth", depth, "content-list", 0) for depth in (1, 10)]
    graphs = [study4.run("depth", depth, "f3", 0) for depth in (1, 10)]
    assert lists[1]["ids_per_notification"] > 5 * lists[0]["ids_per_notification"]
    assert graphs[1]["ids_per_notification"] == graphs[0]["ids_per_notification"] == 1.0
