"""Study 3: F3 and disjunctive identifiers as subscriptions get more attributes (Kulik 2004, 4.3).

1000 subscribers, 7 to 10 attributes of three values or a wildcard (Tables 4.5 and 4.6, Figure
4-8). Both tables are compiled; what is timed is said in `experiments.one_router`.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

from experiments.page import ratio, table
from experiments.points import Point, Result
from experiments.study2 import MEASURES

TITLE = "Study 3: subscriptions with more and more attributes"
ATTRIBUTES = (7, 8, 9, 10)
SYSTEMS = ("disjunctive-id", "f3")
Row = dict[str, Any]

#: Table 4.6.
PRINTED = {
    ("kilobytes", "disjunctive-id"): (414.8, 911.1, 2235.2, 4249.9),
    ("kilobytes", "f3"): (142.6, 132.7, 127.2, 120.0),
    ("us_per_subscription", "disjunctive-id"): (165.3, 308.6, 516.0, 932.3),
    ("us_per_subscription", "f3"): (67.3, 37.8, 31.0, 24.6),
    ("us_per_notification", "disjunctive-id"): (11.3, 12.9, 14.0, 14.8),
    ("us_per_notification", "f3"): (6.4, 5.1, 4.7, 3.9),
}

ERRATA = """
- A wildcard covers 3 categories here, as in section 4.3.2 (3^n for a subscription of wildcards
  alone), so a notification has all attributes; Study 1's lack each with a probability of 0.3.
- Degree 3 in Table 4.5 is the number of values; with n attributes a node of the full graph has
  up to 3n children.
- Our F3 table keeps the headers that it has routed, which the thesis's did not; they are counted
  in its size.
"""


def points(quick: bool) -> list[Point]:
    """Each number of attributes with several populations."""
    return [
        Point(
            f"{attributes}-{system}-{seed}",
            {"attributes": attributes, "system": system, "seed": seed},
        )
        for seed in range(3 if quick else 20)
        for attributes in ATTRIBUTES
        for system in SYSTEMS
    ]


def run(attributes: int, system: str, seed: int) -> Result:
    """One system with one population."""
    from experiments.one_router import NEIGHBORS, measure
    from experiments.work import draw

    parameters = {
        "attributes": attributes,
        "appears": 1.0,
        "subscribers.count": 1000,
        "subscribers.routers": NEIGHBORS,
    }
    return measure(system, draw("varying-attributes", seed, parameters))


def rows(quick: bool, results: list[Result]) -> list[Row]:
    """Means over the populations."""
    return means(points(quick), results, ("attributes", "system"))


def means(points: list[Point], results: list[Result], keys: tuple[str, ...]) -> list[Row]:
    """Means over all points that agree in these parameters."""
    gathered: dict[tuple[Any, ...], list[Result]] = {}
    for point, result in zip(points, results, strict=False):
        if result:
            gathered.setdefault(tuple(point.parameters[k] for k in keys), []).append(result)
    return [
        {
            **dict(zip(keys, where, strict=True)),
            "runs": len(found),
            **{name: mean(each[name] for each in found) for name in found[0]},
        }
        for where, found in gathered.items()
    ]


def page(quick: bool, results: list[Result], rows: list[Row], folder: Path) -> str:
    """The Markdown page."""
    lines = [
        f"# {TITLE}",
        "",
        "Kulik 2004, section 4.3. 1000 subscribers, ten neighbours, "
        f"{min(row['runs'] for row in rows)} population(s) (thesis: not said). Both tables are "
        "compiled C++; CPU time of one thread; brute force agreed with both on every notification.",
        "",
    ]
    ours = {(r["system"], r["attributes"]): r for r in rows}
    for measure, title in MEASURES.items():
        found = []
        for system in SYSTEMS:
            cells: list[Any] = [system]
            for at, attributes in enumerate(ATTRIBUTES):
                known = PRINTED.get((measure, system))
                mine = ours.get((system, attributes), {}).get(measure)
                cells += [known and known[at], mine, ratio(mine, known and known[at])]
            found.append(cells)
        titles = ["system"]
        for attributes in ATTRIBUTES:
            titles += [f"{attributes} attributes: printed", "ours", "ratio"]
        lines += [f"## {title[0].upper()}{title[1:]}", "", table(titles, found), ""]
    return "\n".join([*lines, "![by attributes](study3.png)", "", "## Errata", ERRATA])


def plot(rows: list[Row], folder: Path) -> None:
    """Figure 4-8."""
    draw_lines(rows, "attributes", SYSTEMS, folder / "study3.png")


def draw_lines(rows: list[Row], x: str, systems: tuple[str, ...], path: Path) -> None:
    """The measures over one parameter, a line per system."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.2), layout="constrained")
    for axes, (measure, title) in zip(
        figure.subplots(1, len(MEASURES)), MEASURES.items(), strict=True
    ):
        for system in systems:
            mine = sorted((r[x], r[measure]) for r in rows if r["system"] == system)
            axes.plot([a for a, _ in mine], [b for _, b in mine], marker=".", label=system)
        axes.set_xlabel(x)
        axes.set_title(title, fontsize=8)
        axes.set_ylim(bottom=0)
    figure.axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
