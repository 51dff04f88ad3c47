"""The page of Study 2: Table 4.4, growth, crossovers, and which system to pick when."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from experiments.page import number, ratio, table
from experiments.points import Result
from experiments.study2 import MEASURES, SCENARIOS, SYSTEMS, TITLE, points

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

ABOUT = """
- `f3`: the network's own table (`native/`). `disjunctive-id`: a hash table from categories to
  neighbours.
- `siena`: the extended counting algorithm, identical filters kept apart, and an interface for each
  subscription, as we read the thesis (see Errata).
- `siena-by-neighbor`: the same with one interface for each of the ten neighbours, as Carzaniga and
  Wolf 2003 mean it for a router in a network; it stops once every neighbour is matched.
- `siena-merged`: the same, and identical filters merged, as an engineer would.
"""

ERRATA = """
- Section 4.2.2 swaps F3 and SIENA in one sentence: it is SIENA that took three seconds a
  notification in the attribute-value scenario, and F3 that took 10 microseconds.
- **N** (Table 4.3): 100 teams make 4950 pairs, 100 teams and "all", 5051 topics, not 5151. Six
  attributes of five values or a wildcard make 6^6 = 46,656 topics, not 5^6 = 15,625.
- **Why SIENA is linear there.** Counting as its authors describe it (Carzaniga and Wolf 2003,
  Figure 4) ends once all interfaces are matched, and skips the filters of those that are; with a
  fixed number of interfaces it is sublinear (their Figure 9). With ten interfaces, baseball and
  attribute-value soon have somebody behind every neighbour who wants everything, and the time
  falls to next to nothing (`siena-by-neighbor`). Figure 3-1 of the thesis has it grow linearly
  where all subscribe to the same topic, and with ten interfaces the first ten filters would end
  that. So each subscription must have had an interface of its own, the centralised architecture
  of their Figure 8, and that is what `siena` does here: no end before the last filter.
- **How many filters that is.** Per subscriber, a notification meets 0.13 constraints (baseball:
  two teams of 100 and all those who want everything), 0.59 (attribute-value: 4.2 attributes, each
  wanted with this value by 14 %) and 7.5 (traffic: 21 exits, each wanted by 35 %). The printed
  times at a million are 0.15, 5.2 and 0.22 us for each of them. Ours are 13 times as fast as
  printed in baseball and in traffic, the same factor in both, which speaks for this reading. That
  attribute-value took longer than traffic there does not follow from the algorithm.
- **More than linear**: from 100,000 subscribers on, the filters that a notification meets no longer
  fit into the processor's caches, and each of them costs more.
- **Table sizes.** Ours are what the compiled tables hold. F3's counts the headers that it remembers
  and labels for every neighbour; its traffic table is larger than printed (60 exits: each of 1830
  nodes may have labels of many nodes for each of ten neighbours).
- **Traffic in SIENA.** One attribute per exit (Table 4.3: 60), and a stretch as a disjunction of
  filters, one per exit, because it is wanted if any of its exits is in the notification. Two
  constraints on first and last exit would be shorter and is not what the table describes.
- **Neighbours.** Section 4.2.1 has ten neighbouring routers and draws each subscription's from
  four of them; here it is drawn from all ten. It has 20 repetitions; here is one population, the
  one that the Spark job wrote, and the median of three measurements up to 10,000 subscribers.
- `siena` from 100,000 subscribers on was timed with the first 100 of the 1000 notifications.
- One core of a machine that is twenty years younger than the thesis's 2.8 GHz Pentium; only ratios
  within one run mean anything.
"""


ADVICE = """
- **Few topics, fixed for good**: disjunctive identifiers. One look-up a notification, and nothing
  is faster. The price is the list that each subscription becomes (see Study 3 for what that does
  as topics get richer), and that a new topic or category means new lists for everybody; the
  network's own implementation refuses it.
- **Many topics that overlap, or topics that come and go, and more than one hop**: F3. One
  identifier a subscription, headers of a few identifiers that say all there is to say at every
  hop, and a time per notification that does not depend on how many subscribers there are once the
  topics are known. It needs a preprocessor that knows the topics; and a router whose table
  changes between any two notifications works every header of several identifiers out anew (the
  last table of times above).
- **Predicates that nobody wants to translate into topics beforehand, and a moderate number of
  distinct filters**: counting, with identical filters merged and an interface per neighbour. Where
  nearly everything is due everywhere it is as quick as anything, because it may stop early; where
  few neighbours are due, it looks at every filter that shares a value with the notification, at
  every hop, and at the attributes themselves rather than a header.
- **Never** identical filters kept apart: memory and time in proportion to subscribers, for nothing
  in return.
"""


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
        "Kulik 2004, section 4.2. One router, ten neighbours, 1000 notifications"
        f"{'' if quick else ', read from what the Spark job wrote'}. Everything that is timed is "
        "compiled C++ called from Python. CPU time of one thread. Brute force agreed with every "
        "system on which neighbours are due which notification, at every size.",
        ABOUT,
        f"Ours at {largest:,} subscribers beside Table 4.4 at a million. A cell without our number "
        "was not measured in this run.",
        "",
    ]
    for measure, title in MEASURES.items():
        lines += [f"## {title[0].upper()}{title[1:]}", "", _panel(rows, measure, largest), ""]
        lines += ["By subscribers:", "", _growing(rows, measure), ""]
    lines += ["![growth](study2.png)", "", "## What grows", "", *_findings(rows, largest), ""]
    lines += [_slopes(rows), ""]
    lines += ["## Where subscribing becomes cheaper with F3 than with disjunctive identifiers", ""]
    lines += [f"- {scenario}: {_crossover(rows, scenario)}" for scenario in SCENARIOS]
    lines += ["", "## Which to pick", "", _quickest(rows, largest), ADVICE, "## Errata", ERRATA]
    return "\n".join(lines)


def _findings(rows: list[Row], largest: int) -> list[str]:
    """Time per notification over the last hundredfold of subscribers."""
    ours = {(r["scenario"], r["system"], r["subscribers"]): r for r in rows}
    start = largest // 100

    def factors(system: str, measure: str) -> str:
        found = []
        for scenario in SCENARIOS:
            low = ours.get((scenario, system, start))
            high = ours.get((scenario, system, largest))
            if low and high and low[measure]:
                times, ends = high[measure] / low[measure], (low[measure], high[measure])
                found.append(f"{scenario} {number(times)} ({' to '.join(map(number, ends))})")
        return ", ".join(found) or "not measured"

    said = f"From {start:,} to {largest:,} subscribers, a hundred times as many,"
    return [
        f"{said} the time per notification grows by these factors (us in brackets):",
        "",
        *(f"- {system}: {factors(system, 'us_per_notification')}" for system in SYSTEMS),
        "",
        "F3 sends a copy to each neighbour that is due one, so part of its growth is output. "
        "Neighbours due a notification: " + factors("f3", "due") + "; topics in the table: "
        f"{factors('f3', 'topics')}.",
    ]


def _quickest(rows: list[Row], largest: int) -> str:
    """Who is best in what, at the largest size."""
    found = []
    for measure, title in MEASURES.items():
        cells: list[Any] = [title]
        for scenario in SCENARIOS:
            mine = sorted(
                (r[measure], r["system"])
                for r in rows
                if (r["scenario"], r["subscribers"]) == (scenario, largest)
            )
            cells.append(", ".join(f"{system} {number(value)}" for value, system in mine))
        found.append(cells)
    return table([f"at {largest:,} subscribers, best first", *SCENARIOS], found)


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
    both = [s for s in sizes if ("f3", s) in ours and ("disjunctive-id", s) in ours]
    cheaper = [s for s in both if ours["f3", s] < ours["disjunctive-id", s]]
    if not cheaper:
        return "nowhere: disjunctive identifiers are cheaper at every size"
    if cheaper == both:
        return "F3 is cheaper at every size"
    last = both[-1]
    return (
        f"F3 is cheaper at {', '.join(f'{s:,}' for s in cheaper)}; at {last:,} it takes "
        f"{ours['f3', last]:.2g} us a subscription, disjunctive identifiers "
        f"{ours['disjunctive-id', last]:.2g} us"
    )


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
                style = "--" if system == "siena-by-neighbor" else "-"
                axes.loglog(xs, ys, style, marker=".", label=system)
            axes.set_title(f"{scenario}", fontsize=9)
        line[0].set_ylabel(title, fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("subscribers")
    grid[0][0].legend(fontsize=7)
    figure.savefig(folder / "study2.png", dpi=110)
