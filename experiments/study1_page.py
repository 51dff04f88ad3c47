"""The page of Study 1: Table 4.2 with the printed number, ours and the ratio."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from experiments.page import number, ratio, table
from experiments.points import Result
from experiments.study1 import MEASURES, SCENARIOS, SYSTEMS, TITLE, points, printed

Row = dict[str, Any]
_ROUTERS = ("typical router", "most heavily loaded router")

ERRATA = """
- **N of baseball** (Table 4.1) is printed as 465, pairs and single teams; "all teams" makes 466.
  A notification is about a game, so there are 435 disjoint categories, and that is what a
  disjunctive table can hold at the most; the printed 465.0 counts the topics.
- **N of traffic** is printed as 190 in Table 4.1 (stretches between two different exits), yet the
  disjunctive table of Table 4.2 holds 210 (one-exit stretches included). We draw two different
  exits, for subscriptions and notifications alike: 190 categories.
- **Degree and depth** of baseball, 29 and 3, mean that a two-team subscription asks for the games
  *between* the two teams, one node under both. That is what we simulate.
- **Topology.** The thesis's GT-ITM parameters are not printed. Unicast's mean says how far its
  subscribers were from the source: 909.1 = 1000 * 0.128 * 7.1 hops (baseball), 100.1 = 1000 *
  0.0135 * 7.4 hops (attribute-value); ours are listed above. Everything that is in proportion to
  hops or to subscribers beyond a router differs by that factor: unicast, overlapping identifiers,
  and the typical table, since a router has on average 1 + hops subscribers at or beyond it. Scaled
  by it, our tables in baseball and traffic have 4.4 and 3.9 identifiers, printed are 4.5 and 3.9.
- **Ids per table, attribute-value.** With 7.4 hops the typical router has 8.4 subscribers at or
  beyond it and can hold no more overlapping identifiers than that; 16.9 are printed.
- **Unicast, most loaded against typical.** In all three scenarios a subscriber sits at each router
  and asks for something at random, so the copies on a link are in proportion to the subscribers
  behind it, and the ratio of the most loaded to the typical router must be the same in all three.
  The printed ratios are 73, 41 and 39. Ours agree with each other (see "checks").
- **Overlapping identifiers, most loaded.** The source makes a copy for "all", for each of two teams
  and for the pair if anybody asked for it (1200 * 0.5 subscribers over 435 pairs: three of four
  are), 3.75 copies of a notification about a game; 1.3 are printed.
- **Disjunctive identifiers per subscription** follow from the shares: baseball 0.4 * 29 + 0.5 * 1 +
  0.1 * 435 = 55.6 (printed 50.8); attribute-value (0.7 + 0.3 * 5)^5 = 51.5 where a category may
  lack an attribute, (0.7 + 0.3 * 4)^5 = 24.8 where it may not (printed 21.8). We count categories
  that lack attributes, because notifications lack them (probability 0.3 each).
- **Traffic matches more here.** Two stretches between random exits out of 20 overlap in 73 % of all
  cases, which every count of the traffic scenario is in proportion to; from the printed unicast
  mean and 7.1 to 7.4 hops, 42 to 44 % follow. Drawing the first exit, and then the last among those
  from there on, would give 119.75 of 210 categories per subscription (printed: 118.4), and 43 % if
  meeting at one exit only is no overlap. So the thesis probably drew short stretches more often
  than "two randomly selected exits" does.
- **Ids per notification, most loaded.** Several links carry every notification; ours is the one of
  them that comes last by name. Headers are longest next to the source, and shrink on the way.
- **Attributes.** Section 4.1.1 gives notifications four attributes and subscriptions five; we give
  both five. 4 values and a wildcard make 5^5 = 3125 topics, as printed.
- **Numbers of hosts.** Our unicast tells hosts apart by 16 bits drawn from their addresses; the few
  that share a number share copies until their ways part, which the table of implied counts shows.
"""

#: The probability that a subscription matches a notification, from section 4.1.1 as we read it.
PROBABILITY = {
    "baseball": 0.4 * 29 / 435 + 0.5 / 435 + 0.1,
    "traffic": 139 / 190,
    "attribute-value": (0.3 + 0.7 * 0.7 / 4) ** 5,
}


def whole_runs(quick: bool, results: list[Result]) -> set[int]:
    """The runs that have every scenario and system: only these are shown and compared."""
    pairs = list(zip(points(quick), results, strict=False))
    runs = {point.parameters["run"] for point, _ in pairs}
    return runs - {point.parameters["run"] for point, result in pairs if not result}


def rows(quick: bool, results: list[Result]) -> list[Row]:
    """Mean and spread over the runs for each measure, system, scenario and sort of router."""
    gathered: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
    whole = whole_runs(quick, results)
    for point, result in zip(points(quick), results, strict=False):
        if point.parameters["run"] in whole:
            where = (point.parameters["system"], point.parameters["scenario"])
            for measure in MEASURES:
                gathered[measure, *where].append(result[measure])
    return [
        _row(measure, system, scenario, sort, [run[sort] for run in gathered[key]])
        for measure in MEASURES
        for system in SYSTEMS
        for scenario in SCENARIOS
        for sort in (0, 1)
        if (key := (measure, system, scenario)) in gathered
        and (system != "unicast" or measure == MEASURES[0])
    ]


def _row(measure: str, system: str, scenario: str, sort: int, runs: list[float]) -> Row:
    known = printed().get((measure, system, scenario))
    return {
        "measure": measure,
        "system": system,
        "scenario": scenario,
        "router": _ROUTERS[sort],
        "runs": len(runs),
        "ours": mean(runs),
        "spread": pstdev(runs),
        "printed": None if known is None else known[sort],
    }


def checks(rows: list[Row]) -> dict[str, bool]:
    """What Table 4.2 says of the systems relative to each other."""
    ours = {(r["measure"], r["system"], r["scenario"], r["router"]): r["ours"] for r in rows}
    whole = [s for s in SCENARIOS if len({r["system"] for r in rows if r["scenario"] == s}) == 4]

    def same(measure: str, one: str, other: str) -> bool:
        return all(
            ours[measure, one, s, router] == ours[measure, other, s, router]
            for s in whole
            for router in _ROUTERS
        )

    def rising(measure: str, *systems: str) -> bool:
        return all(
            ours[measure, a, s, router] <= ours[measure, b, s, router]
            for a, b in pairwise(systems)
            for s in whole
            for router in _ROUTERS
        )

    return {
        "F3 = disjunctive in notifications per link": same(MEASURES[0], "f3", "disjunctive-id"),
        "F3 <= overlapping <= unicast in notifications per link": rising(
            MEASURES[0], "f3", "overlapping-id", "unicast"
        ),
        "F3 = overlapping in identifiers per subscription": same(
            MEASURES[1], "f3", "overlapping-id"
        ),
        "F3 = overlapping in identifiers per table": same(MEASURES[2], "f3", "overlapping-id"),
        "F3 <= disjunctive in identifiers per table": rising(MEASURES[2], "f3", "disjunctive-id"),
        "one identifier per notification in both multicasts": all(
            ours[MEASURES[3], system, s, router] == 1.0
            for system in ("overlapping-id", "disjunctive-id")
            for s in whole
            for router in _ROUTERS
        ),
    }


def implied(quick: bool, results: list[Result]) -> list[Row]:
    """Unicast's copies per link: from the definitions, from what was drawn, and simulated."""
    found, whole = [], whole_runs(quick, results)
    for scenario, probability in PROBABILITY.items():
        mine = [
            (point.parameters["notifications"], result)
            for point, result in zip(points(quick), results, strict=False)
            if point.parameters["run"] in whole
            and (point.parameters["scenario"], point.parameters["system"]) == (scenario, "unicast")
        ]
        simulated = [result[MEASURES[0]][0] for _, result in mine]
        if simulated:
            expected = mean(count * probability * result["hops"] for count, result in mine)
            found.append(
                {
                    "scenario": scenario,
                    "probability": probability,
                    "hops": mean(result["hops"] for _, result in mine),
                    "expected": expected,
                    "drawn": mean(result["implied_unicast"] for _, result in mine),
                    "simulated": mean(simulated),
                    "spread": pstdev(simulated),
                }
            )
    return found


def page(quick: bool, results: list[Result], rows: list[Row], folder: Path) -> str:
    """The Markdown page."""
    parameters = points(quick)[0].parameters
    runs = len(whole_runs(quick, results))
    deliveries = sum(result["deliveries"] for result in results if result)
    lines = [
        f"# {TITLE}",
        "",
        f"Kulik 2004, section 4.1. Topology {parameters['topology']}, {runs} run(s) a scenario "
        f"with different sources, {parameters['notifications']} notifications each; thesis: 1200 "
        "routers, 20 runs, 1000 notifications. Counts, not timings: every number comes from "
        "messages on links and from tables of routers in the simulator. The oracle has checked "
        f"each of {number(deliveries)} deliveries, by brute force over what topics mean.",
        "",
        "Typical router: the mean over all links of the dissemination tree, or over all routers. "
        "Most heavily loaded: the busiest link, the largest table, the source that all ask. "
        "± is the standard deviation over runs.",
        "",
    ]
    for measure in MEASURES:
        lines += [f"## {measure.replace('_', ' ').capitalize()}", "", _panel(rows, measure), ""]
    lines += ["## What the definitions imply", "", *_definitions(implied(quick, results)), ""]
    held = checks(rows)
    lines += [
        "## Checks",
        "",
        *(f"- {name}: {'yes' if ok else '**no**'}" for name, ok in held.items()),
    ]
    lines += [f"- unicast, most loaded / typical: {_proportions(rows)}", ""]
    return "\n".join([*lines, "![notifications per link](study1.png)", "", "## Errata", ERRATA])


def _definitions(found: list[Row]) -> list[str]:
    text = (
        "In every run, the notifications and identifiers on each link, the identifiers in each "
        "table and in each subscription were compared with a count that knows of no protocol "
        "(`experiments/implied.py`): a copy per subscriber beyond the link (unicast), per topic "
        "(overlapping), or one (disjunctive, F3), a header of the lowest matching topics beyond "
        "(F3). They are equal, all of them, or the run would have failed. What differs between "
        "runs is the source and what was drawn; unicast's mean follows from the probability that "
        "a subscription matches and from the hops to subscribers:"
    )
    titles = [
        "unicast",
        "probability of a match",
        "hops",
        "1000 * probability * hops",
        "from what was drawn",
        "simulated",
        "±",
        "within the spread",
    ]
    cells = [
        [
            row["scenario"],
            f"{row['probability']:.4f}",
            row["hops"],
            row["expected"],
            row["drawn"],
            row["simulated"],
            row["spread"],
            "yes" if abs(row["simulated"] - row["expected"]) <= row["spread"] else "no",
        ]
        for row in found
    ]
    return [text, "", table(titles, cells)]


def _panel(rows: list[Row], measure: str) -> str:
    titles = ["system, scenario"]
    for router in _ROUTERS:
        titles += [f"{router}: printed", "ours", "±", "ratio"]
    found = {(r["system"], r["scenario"], r["router"]): r for r in rows if r["measure"] == measure}
    lines = []
    for system, scenario in sorted({key[:2] for key in found}, key=_in_order):
        cells: list[Any] = [f"{system}, {scenario}"]
        for router in _ROUTERS:
            row = found[system, scenario, router]
            cells += [
                row["printed"],
                row["ours"],
                row["spread"],
                ratio(row["ours"], row["printed"]),
            ]
        lines.append(cells)
    return table(titles, lines)


def _in_order(key: tuple[str, ...]) -> tuple[int, int]:
    return SYSTEMS.index(key[0]), list(SCENARIOS).index(key[1])


def _proportions(rows: list[Row]) -> str:
    ours = {
        (r["scenario"], r["router"]): r["ours"]
        for r in rows
        if r["measure"] == MEASURES[0] and r["system"] == "unicast"
    }
    found = (
        f"{s} {ours[s, _ROUTERS[1]] / ours[s, _ROUTERS[0]]:.1f}"
        for s in SCENARIOS
        if (s, _ROUTERS[0]) in ours
    )
    return ", ".join(found)


def plot(rows: list[Row], folder: Path) -> None:
    """Notifications per link, by system, for the typical and the most loaded router."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, router in zip(figure.subplots(1, 2), _ROUTERS, strict=True):
        for at, system in enumerate(SYSTEMS):
            mine = {
                r["scenario"]: r
                for r in rows
                if (r["measure"], r["system"], r["router"]) == (MEASURES[0], system, router)
            }
            places = [list(SCENARIOS).index(scenario) + 0.2 * at for scenario in mine]
            axes.bar(places, [r["ours"] for r in mine.values()], 0.18, label=system)
            axes.plot(places, [r["printed"] for r in mine.values()], "k_", markersize=9)
        axes.set_yscale("log")
        axes.set_xticks([x + 0.3 for x in range(len(SCENARIOS))], list(SCENARIOS))
        axes.set_title(router, fontsize=10)
    figure.axes[0].set_ylabel("notifications per link")
    figure.axes[0].legend(fontsize=8, title="black: printed", title_fontsize=8)
    figure.savefig(folder / "study1.png", dpi=110)
