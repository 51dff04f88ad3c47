"""Study 4: is the graph worth it? Content lists against F3 (Kulik 2004, section 4.4).

Graphs of 100 nodes in 5 layers with a degree from 1 to 20, and of 1024 nodes in trees with a depth
from 1 to 10 (Tables 4.7 and 4.8, Figures 4-11 to 4-13). Both tables are compiled; what is timed is
said in `experiments.one_router`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.page import table
from experiments.points import Point, Result
from experiments.study2 import MEASURES
from experiments.study3 import draw_lines, means

TITLE = "Study 4: content lists against content graphs"
SYSTEMS = ("content-list", "f3")
AXES = {"degree": (1, 2, 5, 10, 20), "depth": (1, 2, 4, 6, 8, 10)}
Row = dict[str, Any]

ERRATA = """
- The figures' numbers are not printed; the text gives two: at degree 10 F3's subscriptions took 16
  times as long as a content list's, and at depth 10 a content list's notifications took 10 times
  as long as F3's.
- **The second ratio is not ours, and why.** Appendix A has both systems write to the neighbours
  (i), and a content list look up every identifier and go through its neighbours (d e (log n + i)).
  The printed factor is the number of identifiers: there a look-up was all that counted. Here the
  neighbours of an identifier are one word of bits, and all look-ups of a notification together
  take about a tenth of its time (depth, in the table of look-ups above): the rest is for writing
  it, body and all, to the neighbours that are due, which both systems do alike. Without any
  look-up at all a content list would be that much faster and no more, so no table could be 10
  times as fast.
- **With the degree, content lists stay ahead here.** Every notification is due at all ten
  neighbours, a content list passes the batch on as it came, and only look-ups are left: they do
  grow with the identifiers, and 81 of them still take less than F3's headers for ten neighbours.
- What does not depend on the implementation is the number of identifiers that every hop carries.
- The text lets the degree grow to 50, Table 4.7 to 10; 100 nodes in 5 layers allow 20. Table 4.8
  says 516 topics where the text says 1024 nodes.
"""


def points(quick: bool) -> list[Point]:
    """Both families of graphs, with several populations."""
    return [
        Point(
            f"{axis}-{value}-{system}-{seed}",
            {"axis": axis, "value": value, "system": system, "seed": seed},
        )
        for seed in range(3 if quick else 20)
        for axis, values in AXES.items()
        for value in values
        for system in SYSTEMS
    ]


def run(axis: str, value: int, system: str, seed: int) -> Result:
    """One system with one population."""
    from experiments.one_router import NEIGHBORS, measure
    from experiments.work import draw

    parameters = {axis: value, "subscribers.routers": NEIGHBORS}
    return measure(system, draw(f"varying-{axis}", seed, parameters))


def rows(quick: bool, results: list[Result]) -> list[Row]:
    """Means over the populations."""
    return means(points(quick), results, ("axis", "value", "system"))


def page(quick: bool, results: list[Result], rows: list[Row], folder: Path) -> str:
    """The Markdown page."""
    runs = min(row["runs"] for row in rows)
    lines = [
        f"# {TITLE}",
        "",
        f"Kulik 2004, section 4.4. Ten neighbours, {runs} population(s) (thesis: 20). "
        "Both tables are compiled C++; CPU time of one thread; brute force agreed with both on "
        "every notification.",
        "",
    ]
    shown = {**MEASURES, "ids_per_notification": "identifiers per notification"}
    ours = {(r["axis"], r["value"], r["system"]): r for r in rows}
    for axis, values in AXES.items():
        lines += [f"## Varying {axis}", ""]
        found = [
            [
                f"{title}, {system}",
                *(ours.get((axis, value, system), {}).get(measure) for value in values),
            ]
            for measure, title in shown.items()
            for system in SYSTEMS
        ]
        lines += [table([axis, *map(str, values)], found), ""]
        lines += [f"![by {axis}](study4-{axis}.png)", ""]
    lines += ["## The two printed ratios", "", _ratios(ours), ""]
    lines += ["## What look-ups take", "", _look_ups(ours), ""]
    return "\n".join([*lines, "## Errata", ERRATA])


def _ratios(ours: dict[tuple[str, int, str], Row]) -> str:
    def quotient(axis: str, measure: str, above: str, below: str) -> float | None:
        both = ours.get((axis, 10, above)), ours.get((axis, 10, below))
        return float(both[0][measure] / both[1][measure]) if both[0] and both[1] else None

    subscribing = quotient("degree", "us_per_subscription", "f3", "content-list")
    notifying = quotient("depth", "us_per_notification", "content-list", "f3")
    carrying = quotient("depth", "ids_per_notification", "content-list", "f3")
    return table(
        ["ratio", "printed", "ours"],
        [
            ["degree 10: time per subscription, F3 / content list", 16, subscribing],
            ["depth 10: time per notification, content list / F3", 10, notifying],
            ["depth 10: identifiers per notification, content list / F3", None, carrying],
        ],
    )


def _look_ups(ours: dict[tuple[str, int, str], Row]) -> str:
    """A content list's time per notification, and the part of it that finds who is due."""
    found = []
    for axis, values in AXES.items():
        measured = (ours.get((axis, value, "content-list")) for value in values)
        for value, row in zip(values, measured, strict=True):
            if row is None:
                continue
            taken, whole = row["us_per_look_up"], row["us_per_notification"]
            share = f"{100 * taken / whole:.0f} %"
            cells = [f"{axis} {value}", row["ids_per_notification"], row["due"], taken, whole]
            found.append([*cells, share])
    titles = ["content list", "identifiers", "neighbours due", "us for look-ups", "us in all"]
    return table([*titles, "look-ups"], found)


def plot(rows: list[Row], folder: Path) -> None:
    """Figures 4-11 to 4-13."""
    for axis in AXES:
        mine = [{**row, axis: row["value"]} for row in rows if row["axis"] == axis]
        draw_lines(mine, axis, SYSTEMS, folder / f"study4-{axis}.png")
