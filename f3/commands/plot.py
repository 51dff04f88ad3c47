"""`f3 plot queues`: queue length over time, per router, from any recorded run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from f3.runs import Series

app = typer.Typer(no_args_is_help=True, help="Draw recorded runs.")

#: Routers with a curve of their own: those whose queues were longest.
_NAMED_MAX = 6
#: Routers in the map below the curves, and moments that it tells apart.
_ROWS_MAX = 40
_BINS = 400


@app.callback()
def _group() -> None:
    """Draw recorded runs."""


@app.command()
def queues(
    run: Annotated[
        Path, typer.Argument(help="made by `f3 top --record` or `f3 simulate --queues`")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="the picture; its ending is its kind")
    ] = Path("queues.png"),
    since: Annotated[float, typer.Option("--from", help="seconds; where the picture begins")] = 0.0,
    to: Annotated[float | None, typer.Option("--to", help="seconds; where it ends")] = None,
) -> None:
    """Draw how many messages waited at each router, over time."""
    from f3.commands.cluster import fail
    from f3.runs import RunError, read

    try:
        series = _between(read(run), since, float("inf") if to is None else to)
        _draw(series, out, run.name)
    except (RunError, OSError, ValueError) as error:
        fail(error, 2)
    typer.echo(f"wrote {out}", err=True)


def _between(series: Series, since: float, to: float) -> Series:
    """What happened in that time; ValueError if that is nothing."""
    chosen = {
        router: [(t, queued) for t, queued in points if since <= t <= to]
        for router, points in series.items()
    }
    found = {router: points for router, points in chosen.items() if points}
    if not found:
        raise ValueError(f"no sample from {since} to {to} s")
    return found


def _draw(series: Series, out: Path, name: str) -> None:
    """The longest queues as curves; below, every router as a line that darkens as it fills."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    longest = {router: max(queued for _, queued in points) for router, points in series.items()}
    ranked = sorted(longest, key=lambda router: (-longest[router], router))
    shown = {router: series[router] for router in ranked[:_ROWS_MAX]}
    height = 4.0 + 0.16 * len(shown)
    look: dict[str, Any] = {"figsize": (9, height), "height_ratios": (3, height - 3)}
    figure, (curves, map_) = plt.subplots(2, 1, sharex=True, layout="constrained", **look)
    for router in reversed(ranked[:_NAMED_MAX]):
        times, queued = zip(*series[router], strict=True)
        label = f"{router} (up to {longest[router]:.0f})"
        colour = f"C{ranked.index(router)}"
        curves.step(times, queued, where="post", lw=1.4, color=colour, label=label)
    curves.set(ylabel="messages waiting", title=f"Queues of {name}", ylim=(0, None))
    curves.grid(alpha=0.3)
    handles, labels = curves.get_legend_handles_labels()
    curves.legend(handles[::-1], labels[::-1], fontsize="small", title="longest first")
    _draw_map(map_, figure, shown)
    if len(shown) < len(series):
        map_.set_ylabel(f"the {len(shown)} longest of {len(series)} routers")
    figure.savefig(out, dpi=120)
    plt.close(figure)


def _draw_map(axes: Any, figure: Any, series: Series) -> None:
    from matplotlib.colors import PowerNorm

    start = min(points[0][0] for points in series.values())
    end = max(points[-1][0] for points in series.values())
    rows = [filled(points, start, end, _BINS) for points in series.values()]
    extent = (start, max(end, start + 1e-9), len(rows) - 0.5, -0.5)
    # Short queues must be seen beside long ones.
    look = {"cmap": "Reds", "norm": PowerNorm(0.4, vmin=0, vmax=max(1.0, *map(max, rows)))}
    image = axes.imshow(rows, extent=extent, aspect="auto", interpolation="nearest", **look)
    axes.set_yticks(range(len(rows)), list(series), fontsize="x-small")
    axes.set(xlabel="seconds", ylabel="router, longest queue first")
    figure.colorbar(image, ax=axes, label="waiting")


def filled(points: list[tuple[float, float]], start: float, end: float, bins: int) -> list[float]:
    """The longest that a queue was in each of so many equal parts of the time."""
    width = (end - start) / bins or 1.0
    found = [0.0] * bins
    ends = [t for t, _ in points[1:]] + [end]
    for (t, queued), until in zip(points, ends, strict=True):
        first = min(int((t - start) / width), bins - 1)
        last = max(first, min(math.ceil((until - start) / width), bins) - 1)
        for at in range(first, last + 1):
            found[at] = max(found[at], queued)
    return found
