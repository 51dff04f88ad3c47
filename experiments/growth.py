"""Appendix A: measured growth against the predicted order (Kulik 2004, Tables A.2 to A.4).

One thing grows at a time: subscribers, neighbours, degree, depth. The prediction is an order, so
the measurement is fitted to a power of what grows, and the exponent is put beside the predicted
one. Everything that is timed is compiled; `experiments.one_router` says how.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from experiments.page import table
from experiments.points import Point, Result

TITLE = "Appendix A: growth, measured and predicted"
Row = dict[str, Any]

#: What grows, in which scenario, over which values; then what is predicted of each measure.
SWEEPS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "subscribers": ("attribute-value", "subscribers.count", (1000, 4000, 16000, 64000, 256000)),
    "degree": ("varying-degree", "degree", (1, 2, 4, 8, 16)),
    "depth": ("varying-depth", "depth", (1, 2, 4, 8)),
}
SYSTEMS = ("f3", "content-list", "disjunctive-id", "siena")
#: Exponents that Tables A.2 to A.4 predict, by (sweep, system, measure); nothing is said elsewhere.
#: With attributes and values fixed, n stops growing once every topic is there: 0 then.
PREDICTED = {
    ("subscribers", "f3", "us_per_notification"): "log n: 0",
    ("subscribers", "content-list", "us_per_notification"): "de log n: 0",
    ("subscribers", "disjunctive-id", "us_per_notification"): "N + i: 0",
    ("subscribers", "siena", "us_per_notification"): "S: 1",
    ("subscribers", "f3", "us_per_subscription"): "log n + de log i: 0 or less",
    ("subscribers", "content-list", "us_per_subscription"): "log n + log i: 0",
    ("subscribers", "disjunctive-id", "us_per_subscription"): "2^n: 0 once n stands still",
    ("subscribers", "siena", "us_per_subscription"): "1: 0",
    ("subscribers", "f3", "kilobytes"): "ne + is: below 1, then 0",
    ("subscribers", "content-list", "kilobytes"): "n + is: below 1, then 0",
    ("subscribers", "disjunctive-id", "kilobytes"): "2^N i: 0",
    ("subscribers", "siena", "kilobytes"): "S: 1",
    ("degree", "f3", "us_per_subscription"): "log n + de log i: up to 1",
    ("degree", "f3", "us_per_notification"): "log n + i: 0",
    ("degree", "f3", "kilobytes"): "ne + is: up to 1",
    ("degree", "content-list", "us_per_subscription"): "log n + log i: 0",
    ("degree", "content-list", "us_per_notification"): "de (log n + i): up to 1",
    ("degree", "content-list", "kilobytes"): "n + is: 0",
    ("depth", "f3", "us_per_subscription"): "log n + de log i: up to 1",
    ("depth", "f3", "us_per_notification"): "log n + i: 0",
    ("depth", "f3", "kilobytes"): "ne + is: 0",
    ("depth", "content-list", "us_per_subscription"): "log n + log i: 0",
    ("depth", "content-list", "us_per_notification"): "de (log n + i): up to 1",
    ("depth", "content-list", "kilobytes"): "n + is: 0",
}

ERRATA = """
- Table A.2 writes 2^N i for a disjunctive table, which holds at most N identifiers of i bits each:
  N i. Table A.3 writes 2^n for the time of a disjunctive subscription, which is the number of its
  categories, at most N.
- Number of descendants is given as d * e; in a graph of degree e and depth d it is up to e^d, and
  at most n.
- The lists here keep all neighbours in one word, so their log i is a constant, and going through
  the neighbours of each identifier (the i of content lists' d e (log n + i)) costs nothing.
- Writing to the neighbours that are due (the i of F3's log n + i) is most of a notification's time
  here. There are ten of them in every sweep, but with few subscribers, or flat graphs, a
  notification is due at one or two of them, and at nearly all with many or deep ones: that is the
  growth of all systems but SIENA with depth, and F3's with subscribers.
- With the degree, everything is due everywhere; a content list then passes on what came.
"""


def points(quick: bool) -> list[Point]:
    """Every sweep for every system that has a prediction in it."""
    return [
        Point(f"{sweep}-{value}-{system}", {"sweep": sweep, "value": value, "system": system})
        for sweep, (_, _, values) in SWEEPS.items()
        for value in (values[:3] if quick and sweep == "subscribers" else values)
        for system in SYSTEMS
        if (sweep, system, "kilobytes") in PREDICTED
    ]


def run(sweep: str, value: int, system: str) -> Result:
    """One system at one value of what grows."""
    from experiments.one_router import NEIGHBORS, measure
    from experiments.work import draw

    scenario, key, _ = SWEEPS[sweep]
    work = draw(scenario, 1, {key: value, "subscribers.routers": NEIGHBORS})
    found = [measure(system, work) for _ in range(3)]
    return {name: sorted(each[name] for each in found)[1] for name in found[0]}


def exponent(xs: list[float], ys: list[float]) -> tuple[float, float]:
    """The least-squares power of x that y grows with, and its standard error."""
    logs = [(math.log(x), math.log(y)) for x, y in zip(xs, ys, strict=True)]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in logs)
    return slope, math.sqrt(residual / max(len(logs) - 2, 1) / spread)


def rows(quick: bool, results: list[Result]) -> list[Row]:
    """The fitted exponent for each prediction."""
    found = [
        {**point.parameters, **result}
        for point, result in zip(points(quick), results, strict=False)
        if result
    ]
    return [row for key in PREDICTED if len((row := _fitted(found, *key))["x"]) > 1]


def _fitted(found: list[Row], sweep: str, system: str, measure: str) -> Row:
    mine = [r for r in found if (r["sweep"], r["system"]) == (sweep, system)]
    xs, ys = [float(r["value"]) for r in mine], [float(r[measure]) for r in mine]
    slope, error = exponent(xs, ys) if len(xs) > 1 else (math.nan, math.nan)
    return {
        "sweep": sweep,
        "system": system,
        "measure": measure,
        "predicted": PREDICTED[sweep, system, measure],
        "exponent": slope,
        "standard_error": error,
        "x": xs,
        "y": ys,
    }


def page(quick: bool, results: list[Result], rows: list[Row], folder: Path) -> str:
    """The Markdown page."""
    lines = [
        f"# {TITLE}",
        "",
        "Kulik 2004, appendix A. Exponent k of a fit y = c x^k: 0 is flat, 1 in proportion. "
        "n is the number of topics, S of subscribers, i of neighbours (ten), d the depth and e the "
        "degree of the graph, s subscriptions of a neighbour, N all possible topics.",
        "",
    ]
    for sweep in SWEEPS:
        found = [
            [
                f"{r['system']}, {r['measure'].replace('_', ' ')}",
                r["predicted"],
                f"{r['exponent']:.2f} ± {r['standard_error']:.2f}",
                r["y"][0],
                r["y"][-1],
            ]
            for r in rows
            if r["sweep"] == sweep
        ]
        titles = ["measure", "predicted: exponent", "fitted exponent", "first", "last"]
        lines += [f"## With {sweep}", "", table(titles, found), ""]
    return "\n".join([*lines, "![growth](studygrowth.png)", "", "## Errata", ERRATA])


def plot(rows: list[Row], folder: Path) -> None:
    """Every measure over what grows."""
    from matplotlib.figure import Figure

    measures = ("us_per_subscription", "us_per_notification", "kilobytes")
    figure = Figure(figsize=(10, 8), layout="constrained")
    for line, sweep in zip(figure.subplots(len(SWEEPS), 3), SWEEPS, strict=True):
        for axes, measure in zip(line, measures, strict=True):
            for row in rows:
                if (row["sweep"], row["measure"]) == (sweep, measure):
                    label = f"{row['system']} ({row['exponent']:.2f})"
                    axes.loglog(row["x"], row["y"], marker=".", label=label)
                    axes.set_xticks(row["x"], [f"{x:,.0f}" for x in row["x"]], fontsize=7)
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
            axes.set_title(f"{measure.replace('_', ' ')} by {sweep}", fontsize=9)
            axes.legend(fontsize=6)
    figure.savefig(folder / "studygrowth.png", dpi=110)
