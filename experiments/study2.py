"""Study 2: one router from 1 to a million subscribers (Kulik 2004, section 4.2).

F3, disjunctive identifiers and SIENA's forwarding, with identical filters kept apart as in SIENA
and merged, under three scenarios (Tables 4.3 and 4.4, Figures 4-5 to 4-7). What is timed, and
that all systems are compiled, is said in `experiments.one_router`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from experiments.page import ratio, table
from experiments.points import Point, Result

TITLE = "Study 2: a router from 1 to a million subscribers"
SCENARIOS = ("baseball", "traffic", "attribute-value")
SYSTEMS = ("f3", "disjunctive-id", "siena", "siena-by-neighbor", "siena-merged")
MEASURES = {
    "kilobytes": "table size (kB)",
    "us_per_subscription": "processing time per subscription (us)",
    "us_per_notification": "processing time per notification (us)",
    "us_per_notification_first": "time per notification after a table change (us)",
}
Row = dict[str, Any]

#: Table 4.4 by measure and system: baseball, traffic, attribute-value.
PRINTED = {
    ("kilobytes", "siena"): (54384.92, 439536.4, 76859.3),
    ("kilobytes", "disjunctive-id"): (1322.9, 472.7, 4004.2),
    ("kilobytes", "f3"): (1356.7, 471.1, 4532.7),
    ("us_per_subscription", "siena"): (3.9, 28.4, 14.7),
    ("us_per_subscription", "disjunctive-id"): (826.0, 1481.2, 290.7),
    ("us_per_subscription", "f3"): (5.5, 78.7, 138.0),
    ("us_per_notification", "siena"): (18668.0, 1678498.2, 3037973.0),
    ("us_per_notification", "disjunctive-id"): (19.9, 14.9, 27.5),
    ("us_per_notification", "f3"): (10.4, 10.3, 10.8),
}

ERRATA = """
- Section 4.2.2 swaps F3 and SIENA in one sentence: it is SIENA that took three seconds a
  notification in the attribute-value scenario, and F3 that took 10 microseconds.
- **N** (Table 4.3): 100 teams make 4950 pairs, 100 teams and "all", 5051 topics, not 5151. Six
  attributes of five values or a wildcard make 6^6 = 46,656 topics, not 5^6 = 15,625.
- **Traffic in SIENA.** Table 4.3 gives a message one attribute per exit (60), and matching by
  overlap is then no conjunction of constraints. Here a stretch is two constraints, first exit
  and last exit, which is what SIENA's operators are for, and is far cheaper than the printed
  1.7 s. Baseball is one attribute per team, attribute-value one per attribute, as printed.
- **Neighbours.** Section 4.2.1 has ten neighbouring routers and draws each subscription's from
  four of them; here it is drawn from all ten.
- **Early exit.** With few interfaces and many subscribers nearly every notification is due
  everywhere, and the counting algorithm (Figure 4 of Carzaniga and Wolf 2003) stops once every
  interface is matched. In baseball and attribute-value, every neighbour soon has a subscriber
  to everything, whose one constraint is met by the first attribute: ours stops there, however
  many filters there are. Traffic has no such subscription, and there the time is in proportion
  to subscribers, as printed for all three; SIENA 1.6.8 may not have stopped early.
- Microseconds on one core of a machine that is shared and twenty years younger than the thesis's
  2.8 GHz Pentium; only ratios within one run mean anything.
"""


ADVICE = """
- **Few topics, fixed for good**: disjunctive identifiers. One look-up a notification, and nothing
  is faster. The price is the list that each
  subscription becomes (see Study 3 for what that does as topics get richer), and that a new
  topic or category means new lists for everybody; the network's own implementation refuses it.
- **Many topics that overlap, or topics that come and go**: F3. One identifier a subscription,
  headers of a few identifiers, and a time per notification that does not depend on how many
  subscribers there are once the topics are known.
- **Predicates that nobody wants to translate into topics beforehand, and a moderate number of
  distinct filters**: counting, with identical filters merged. With few interfaces the early exit
  makes it quick where nearly everything is due everywhere. Kept apart, identical filters cost
  memory and time in proportion to subscribers, for nothing in return.
"""


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
                # A tenth of a second each is too long for a thousand.
                "notifications": 100 if system == "siena" and size >= 10**6 else 1000,
                **({"workloads": workloads} if workloads else {}),
            },
        )
        for size in sizes
        for scenario in SCENARIOS
        for system in SYSTEMS
    ]


def generate(workloads: Path) -> None:
    """Have the Spark job write the workload of each scenario that is not there yet."""
    from experiments.one_router import NEIGHBORS
    from workloads.job import Job
    from workloads.job import generate as write
    from workloads.scenario import load_scenario

    for scenario in SCENARIOS:
        if not (workloads / scenario).exists():
            parameters = {
                "subscribers.count": 10**6,
                "subscribers.routers": NEIGHBORS,
                "notifications.count": 1000,
            }
            write(Job(load_scenario(scenario, parameters), workloads / scenario, seed=1))


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


def rows(quick: bool, results: list[Result]) -> list[Row]:
    """A row per point."""
    return [
        {**point.parameters, **result}
        for point, result in zip(points(quick), results, strict=False)
        if result
    ]


def growth(rows: list[Row], scenario: str, system: str, measure: str, start: int = 1000) -> float:
    """The slope of a measure over subscribers, both logarithmic, from `start` on."""
    mine = [
        (math.log(r["subscribers"]), math.log(max(r[measure], 1e-9)))
        for r in rows
        if r["scenario"] == scenario and r["system"] == system and r["subscribers"] >= start
    ]
    if len(mine) < 2:
        return math.nan
    mean_x = sum(x for x, _ in mine) / len(mine)
    mean_y = sum(y for _, y in mine) / len(mine)
    above = sum((x - mean_x) * (y - mean_y) for x, y in mine)
    return above / sum((x - mean_x) ** 2 for x, _ in mine)


def page(quick: bool, results: list[Result], rows: list[Row], folder: Path) -> str:
    """The Markdown page."""
    largest = max(row["subscribers"] for row in rows)
    lines = [
        f"# {TITLE}",
        "",
        "Kulik 2004, section 4.2. One router, ten neighbours, 1000 notifications. Everything that "
        "is timed is compiled C++ called from Python: F3 is the network's own table, the others "
        "are `experiments/native`. CPU time of one thread. Brute force agreed with every system on "
        "which neighbours are due which notification, at every size.",
        "",
        f"Ours at {largest:,} subscribers beside Table 4.4 at a million. A cell without our number "
        "was not measured in this run.",
        "",
    ]
    for measure, title in MEASURES.items():
        lines += [f"## {title[0].upper()}{title[1:]}", "", _panel(rows, measure, largest), ""]
        lines += ["By subscribers:", "", _growing(rows, measure), ""]
    lines += ["![growth](study2.png)", "", "## Growth", "", _slopes(rows), ""]
    lines += ["## Where subscribing becomes cheaper with F3 than with disjunctive identifiers", ""]
    lines += [f"- {scenario}: {_crossover(rows, scenario)}" for scenario in SCENARIOS]
    lines += ["", "## Which to pick", ADVICE, "## Errata", ERRATA]
    return "\n".join(lines)


def _panel(rows: list[Row], measure: str, largest: int) -> str:
    titles = ["system"]
    for scenario in SCENARIOS:
        titles += [f"{scenario}: printed", "ours", "ratio"]
    ours = {(r["system"], r["scenario"]): r for r in rows if r["subscribers"] == largest}
    found = []
    for system in SYSTEMS:
        cells: list[Any] = [system]
        for at, scenario in enumerate(SCENARIOS):
            known = PRINTED.get((measure, system))
            mine = ours.get((system, scenario), {}).get(measure)
            cells += [known and known[at], mine, ratio(mine, known and known[at])]
        found.append(cells)
    return table(titles, found)


def _growing(rows: list[Row], measure: str) -> str:
    sizes = sorted({row["subscribers"] for row in rows})
    ours = {(r["scenario"], r["system"], r["subscribers"]): r[measure] for r in rows}
    return table(
        ["scenario, system", *(f"{size:,}" for size in sizes)],
        [
            [f"{scenario}, {system}", *(ours.get((scenario, system, size)) for size in sizes)]
            for scenario in SCENARIOS
            for system in SYSTEMS
        ],
    )


def _slopes(rows: list[Row]) -> str:
    """Exponents of growth from 1000 subscribers on: 0 is flat, 1 is in proportion."""
    titles = ["exponent from 1000 subscribers on", *SCENARIOS]
    found = [
        [f"{system}, {title}", *(f"{growth(rows, s, system, measure):.2f}" for s in SCENARIOS)]
        for system in SYSTEMS
        for measure, title in MEASURES.items()
    ]
    return table(titles, found)


def _crossover(rows: list[Row], scenario: str) -> str:
    ours = {
        (r["system"], r["subscribers"]): r["us_per_subscription"]
        for r in rows
        if r["scenario"] == scenario
    }
    sizes = sorted({size for _, size in ours})
    cheaper = [s for s in sizes if ours["f3", s] < ours["disjunctive-id", s]]
    if not cheaper:
        return "nowhere: disjunctive identifiers are cheaper at every size"
    if cheaper == sizes:
        return "F3 is cheaper at every size"
    return "F3 is cheaper at " + ", ".join(f"{s:,}" for s in cheaper)


def plot(rows: list[Row], folder: Path) -> None:
    """Figures 4-5 to 4-7: the three measures over subscribers, per scenario."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 10), layout="constrained")
    grid = figure.subplots(len(MEASURES), len(SCENARIOS), sharex=True)
    for line, (measure, title) in zip(grid, MEASURES.items(), strict=True):
        for axes, scenario in zip(line, SCENARIOS, strict=True):
            for system in SYSTEMS:
                mine = [r for r in rows if (r["scenario"], r["system"]) == (scenario, system)]
                xs, ys = [r["subscribers"] for r in mine], [r[measure] for r in mine]
                axes.loglog(xs, ys, marker=".", label=system)
            axes.set_title(f"{scenario}", fontsize=9)
        line[0].set_ylabel(title, fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("subscribers")
    grid[0][0].legend(fontsize=7)
    figure.savefig(folder / "study2.png", dpi=110)
