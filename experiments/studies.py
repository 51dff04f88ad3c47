"""The studies by name, and how each is run from points to page."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from experiments.points import Point, kept, measure, spent

#: The module that measures, and the one that makes rows, page and plot of what was measured.
STUDIES = {
    "1": ("experiments.study1", "experiments.study1_page"),
    "2": ("experiments.study2", "experiments.study2_page"),
    "3": ("experiments.study3", "experiments.study3"),
    "4": ("experiments.study4", "experiments.study4"),
    "siena": ("experiments.study_siena", "experiments.study_siena"),
    "growth": ("experiments.growth", "experiments.growth"),
}

#: Studies that can read what the Spark job wrote.
READING = ("2",)


class NothingMeasuredError(Exception):
    """There is nothing to make a page of."""


def study(
    name: str,
    folder: Path,
    quick: bool,
    force: bool = False,
    draw: bool = False,
    workloads: Path | None = None,
) -> list[dict[str, Any]]:
    """Measure what is missing, then write rows, plot and page; returns the rows.

    With `draw`, nothing is measured, and the page shows what is there. `workloads` is a folder
    with the Spark job's output for each scenario. At full size Study 2 has the job write what is
    not there; its quick form, without a folder, draws its rows here, and so do the others, which
    have a population for every point.
    """
    measuring, showing = map(importlib.import_module, STUDIES[name])
    points: list[Point] = measuring.points(quick)
    if name in READING and (workloads or not quick):
        workloads = workloads or folder / "workloads"
        points = measuring.points(quick, str(workloads))
        if not draw:
            measuring.generate(workloads)
    mine = folder / f"study{name}"
    if draw:
        results = [kept(mine, point) or {} for point in points]
        if not any(results):
            raise NothingMeasuredError(f"{mine} has no results of study {name}: run it first")
    else:
        results = measure(points, measuring.run, mine, force=force)
    rows: list[dict[str, Any]] = showing.rows(quick, results)
    showing.plot(rows, folder)
    text: str = showing.page(quick, results, rows, folder)
    text = f"{text.rstrip()}\n\n## This run\n\n{spent(mine, points)}\n"
    (folder / f"study{name}.md").write_text(text, encoding="utf-8")
    (folder / f"study{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows
