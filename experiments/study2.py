"""Study 2: one router from 1 to a million subscribers (Kulik 2004, section 4.2).

F3, disjunctive identifiers and SIENA's forwarding, with identical filters kept apart as in SIENA
and merged, under three scenarios (Tables 4.3 and 4.4, Figures 4-5 to 4-7). What is timed, and
that all systems are compiled, is said in `experiments.one_router`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from experiments.points import Point, Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TITLE = "Study 2: a router from 1 to a million subscribers"
SCENARIOS = ("baseball", "traffic", "attribute-value")
SYSTEMS = ("f3", "disjunctive-id", "siena", "siena-by-neighbor", "siena-merged")
MEASURES = {
    "kilobytes": "table size (kB)",
    "us_per_subscription": "processing time per subscription (us)",
    "us_per_notification": "processing time per notification (us)",
    "us_per_notification_first": "time per notification after a table change (us)",
}


def points(quick: bool, workloads: str = "") -> list[Point]:
    """Sizes outermost, so that a study that is stopped has every system at its sizes."""
    sizes = [10**k for k in range(5 if quick else 7)]
    return [
        Point(
            f"{scenario}-{system}-{size}",
            {
                "scenario": scenario,
                "system": system,
                "subscribers": size,
                # It takes up to a tenth of a second for each.
                "notifications": 100 if system == "siena" and size >= 10**5 else 1000,
                **({"workloads": workloads} if workloads else {}),
            },
        )
        for size in sizes
        for scenario in SCENARIOS
        for system in SYSTEMS
    ]


def generate(
    workloads: Path, subscribers: int = 10**6, spark: SparkSession | None = None
) -> list[str]:
    """Have the Spark job write the workload of each scenario that is not there; returns those."""
    from experiments.one_router import NEIGHBORS
    from workloads.job import Job
    from workloads.job import generate as write
    from workloads.meter import Meter
    from workloads.scenario import load_scenario

    parameters = {
        "subscribers.count": subscribers,
        "subscribers.routers": NEIGHBORS,
        "notifications.count": 1000,
    }
    missing = [scenario for scenario in SCENARIOS if not (workloads / scenario).exists()]
    for name in missing:
        write(Job(load_scenario(name, parameters), workloads / name), Meter(), spark)
    return missing


def run(
    scenario: str, system: str, subscribers: int, notifications: int, workloads: str = ""
) -> Result:
    """One system at one size; the median of three where that is cheap.

    `workloads` is a folder with what the Spark job wrote for each scenario, if not empty.
    """
    from experiments.one_router import NEIGHBORS, measure
    from experiments.work import draw, read

    parameters = {
        "subscribers.count": subscribers,
        "subscribers.routers": NEIGHBORS,
        "notifications.count": notifications,
    }
    if workloads:
        work = read(Path(workloads) / scenario, subscribers)
        work = replace(work, notices=work.notices[:notifications])
    else:
        work = draw(scenario, 1, parameters)
    found = [measure(system, work) for _ in range(3 if subscribers <= 10_000 else 1)]
    return {name: median(each[name] for each in found) for name in found[0]}
