"""Options, text and plots that `f3 bench router` and `f3 bench peers` share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

Row = dict[str, Any]

#: From this ratio of the largest to the smallest value, a plot's axis is logarithmic.
_WIDE = 10

SIZES = "1000,10000,100000,1000000"
_COLUMNS = {
    "system": "system",
    "encoding": "encoding",
    "scenario": "scenario",
    "subscribers": "subscribers",
    "notifications_per_s": "notifications/s",
    "growth": "growth",
    "deliveries_per_s": "deliveries/s",
    "deliveries_per_notification": "each",
    "ideal_per_notification": "due",
    "cpu_us_per_notification": "CPU us",
    "p50": "p50 us",
    "p99": "p99 us",
    "rss_bytes": "MB",
    "subscribe_s": "subscribe s",
}


def sizes(text: str) -> list[int]:
    """Populations such as 1000,10000, in rising order."""
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise typer.BadParameter(f"{text!r} is no list of sizes such as {SIZES}")
    return found


def check_plot(plot: Path | None) -> None:
    """Say at once that a plot could not be written."""
    if plot is not None and not plot.resolve().parent.is_dir():
        raise typer.BadParameter(f"{plot.parent} is no folder", param_hint="--plot")


def compare(rows: list[Row]) -> None:
    """How much slower each row is than the fastest of the same system, encoding and scenario."""
    best: dict[tuple[str, ...], int] = {}
    for row in rows:
        best[_line(row)] = max(best.get(_line(row), 0), row["notifications_per_s"])
    for row in rows:
        row["growth"] = round(best[_line(row)] / max(1, row["notifications_per_s"]), 2)


def _line(row: Row) -> tuple[str, ...]:
    return row["system"], row["encoding"], row["scenario"]


def show(rows: list[Row], notes: list[str], plot: Path | None, as_json: bool) -> None:
    """Print the rows, and draw them if that is wanted."""
    compare(rows)
    if plot is not None:
        _draw(rows, plot)
    typer.echo(json.dumps(rows) if as_json else "\n".join([_text(rows), *notes]))


def _text(rows: list[Row]) -> str:
    lines = [list(_COLUMNS.values()), *([_cell(row, key) for key in _COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def _cell(row: Row, key: str) -> str:
    value = row["latency_us"][key] if key in row["latency_us"] else row[key]
    if value is None:
        return "-"
    if key == "rss_bytes":
        return f"{value / 1e6:.0f}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _draw(rows: list[Row], file: Path) -> None:
    """Three panels, a line for each system, encoding and scenario."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    panels = {
        "notifications_per_s": "notifications/s, ten neighbours",
        "p50": "latency at 200/s, median µs",
        "rss_bytes": "memory of the process, MB",
    }
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 4.4))
    for ax, (key, title) in zip(axes, panels.items(), strict=True):
        _draw_panel(ax, rows, key)
        ax.set(xscale="log", xlabel="subscribers", title=title)
        ax.grid(True, which="major", alpha=0.3)
        low, high = ax.dataLim.y0, ax.dataLim.y1
        if high > _WIDE * low:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _draw_panel(ax: Any, rows: list[Row], key: str) -> None:
    for n, line in enumerate(dict.fromkeys(map(_line, rows))):
        points = [
            (row["subscribers"], row["latency_us"].get(key, row.get(key)))
            for row in rows
            if _line(row) == line
        ]
        scale = 1e6 if key == "rss_bytes" else 1
        drawn = [(size, value / scale) for size, value in points if value is not None]
        style = "o-" if line[0] == "f3" else "s--"
        label = f"{line[0]}, {line[2] if line[0] == 'f3' else line[1]}"
        ax.plot(
            [size for size, _ in drawn],
            [value for _, value in drawn],
            style,
            color=f"C{n}",
            ms=4,
            label=label,
        )
