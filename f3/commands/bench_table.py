"""`f3 bench table`: what a forwarding table costs as it grows from a thousand to a million.

One router with ten neighbours under the three scenarios of the thesis's second study (Kulik
2004, section 4.2, Table 4.4), the compiled table beside the Python one. `f3.bench.table` says
exactly what is timed; times are CPU time of the measuring thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from routing.table import Table

Row = dict[str, Any]

_SIZES = "1000,10000,100000,1000000"
_TABLES = ("native", "python")
_COLUMNS = {
    "scenario": "scenario",
    "subscribers": "subscribers",
    "table": "table",
    "us_per_notification": "notification",
    "us_per_notification_cold": "cold",
    "us_per_notification_single": "single",
    "us_per_subscription": "subscription",
    "us_per_new_subscription": "new",
    "us_per_unsubscription": "unsubscription",
    "bytes": "MB",
    "growth": "growth",
    "times_faster": "x faster",
}


def table(
    scenario: Annotated[
        list[str] | None, typer.Option(help="baseball, traffic or attribute-value; may be repeated")
    ] = None,
    subscribers: Annotated[str, typer.Option(help="sizes to measure at, with commas")] = _SIZES,
    tables: Annotated[str, typer.Option(help="native, python or both")] = "native,python",
    repeat: Annotated[int, typer.Option(min=1, help="of every measurement; medians count")] = 5,
    limit: Annotated[
        float, typer.Option(min=1, help="seconds for the subscriptions to one table")
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="of the workload")] = 1,
    plot: Annotated[Path | None, typer.Option(help="draw the growth into this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="rows for machines")] = False,
) -> None:
    """Microseconds a notification, a subscription and an unsubscription take, and the memory."""
    from f3.bench.scenarios import SCENARIOS

    names = _known("scenario", scenario or list(SCENARIOS), list(SCENARIOS))
    kinds = _known("table", tables.split(","), list(_TABLES))
    sizes = _sizes(subscribers)
    if plot is not None and not plot.resolve().parent.is_dir():
        raise typer.BadParameter(f"{plot.parent} is no folder", param_hint="--plot")
    rows = list(_rows(names, _available(kinds), sizes, repeat, limit, seed))
    _compare(rows)
    if plot is not None:
        _draw(rows, plot)
    typer.echo(json.dumps(rows) if as_json else _text(rows))


# -- what to measure ---------------------------------------------------------------------------


def _known(what: str, wanted: list[str], known: list[str]) -> list[str]:
    for name in wanted:
        if name not in known:
            raise typer.BadParameter(f"no {what} is called {name!r} (known: {', '.join(known)})")
    return wanted


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise typer.BadParameter(f"{text!r} is no list of sizes such as {_SIZES}")
    return sizes


def _available(kinds: list[str]) -> dict[str, type[Table]]:
    from routing.table import LabelTable

    tables: dict[str, type[Table]] = {"python": LabelTable}
    try:
        from routing.native import NativeTable
    except ImportError as error:
        if "native" in kinds:
            typer.echo(f"the compiled table is left out: {error}", err=True)
    else:
        tables["native"] = NativeTable
    found = {kind: tables[kind] for kind in kinds if kind in tables}
    if not found:
        typer.echo("error: no table to measure; install again with a C++ compiler", err=True)
        raise typer.Exit(1)
    return found


# -- measuring ---------------------------------------------------------------------------------


def _rows(
    names: list[str],
    tables: dict[str, type[Table]],
    sizes: list[int],
    repeat: int,
    limit: float,
    seed: int,
) -> Iterator[Row]:
    import random

    from f3.bench.scenarios import SCENARIOS
    from f3.bench.table import NEIGHBORS, TableBench

    for name in names:
        scenario = SCENARIOS[name](random.Random(seed))
        for kind, type_ in tables.items():
            bench = TableBench(scenario, type_, tables.get("native", type_), seed)
            for size in sizes:
                typer.echo(f"{name}, {kind} table, {size} subscribers …", err=True)
                figures = bench.measure(size, repeat, limit)
                about = {"scenario": name, "table": kind, "neighbors": len(NEIGHBORS)}
                yield {**about, **asdict(figures), "repeat": repeat, "seed": seed}


def _compare(rows: list[Row]) -> None:
    """Ratios within this run: to the smallest size, and to the Python table."""
    smallest: dict[tuple[str, str], float] = {}
    python = {(r["scenario"], r["subscribers"]): r for r in rows if r["table"] == "python"}
    for row in rows:
        cost = row["us_per_notification"]
        first = smallest.setdefault((row["scenario"], row["table"]), cost)
        row["growth"] = None if cost is None else cost / first
        other = python.get((row["scenario"], row["subscribers"]), {}).get("us_per_notification")
        row["times_faster"] = None if cost is None or other is None else other / cost


# -- showing -----------------------------------------------------------------------------------


def _text(rows: list[Row]) -> str:
    head = list(_COLUMNS.values())
    lines = [head, *([_cell(row, key) for key in _COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    notes = [
        f"{row['scenario']}, {row['table']}, {row['subscribers']}: {row['note']}"
        for row in rows
        if row["note"]
    ]
    return "\n".join(["microseconds of CPU time each; batches of 1000", *text, *notes])


def _cell(row: Row, key: str) -> str:
    value = row[key]
    if value is None:
        return "-"
    if key == "bytes":
        return f"{value / 1e6:.1f}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _draw(rows: list[Row], file: Path) -> None:
    """Three panels, a line for each scenario and table."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    panels = {
        "us_per_notification": "µs a notification (batches of 1000)",
        "us_per_subscription": "µs a subscription",
        "us_per_unsubscription": "µs an unsubscription",
        "bytes": "bytes",
    }
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 4.2))
    for ax, (key, title) in zip(axes, panels.items(), strict=True):
        _draw_panel(ax, rows, key)
        ax.set(xscale="log", yscale="log", xlabel="subscribers", title=title)
        ax.grid(True, which="major", alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _draw_panel(ax: Any, rows: list[Row], key: str) -> None:
    colors = {"baseball": "C0", "traffic": "C1", "attribute-value": "C2"}
    for scenario, kind in dict.fromkeys((row["scenario"], row["table"]) for row in rows):
        points = [
            (row["subscribers"], row[key])
            for row in rows
            if (row["scenario"], row["table"]) == (scenario, kind) and row[key] is not None
        ]
        if not points:
            continue
        style = "o-" if kind == "native" else "s--"
        label = f"{scenario}, {kind}"
        ax.plot(*zip(*points, strict=True), style, color=colors[scenario], ms=4, label=label)
