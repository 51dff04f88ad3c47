"""`f3 plot queues`: queue length over time, per router, from any recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from f3.runs import Series

app = typer.Typer(no_args_is_help=True, help="Draw recorded runs.")

#: Routers with a line and a name of their own: those whose queues were longest.
_NAMED_MAX = 10


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
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    longest = {router: max(queued for _, queued in points) for router, points in series.items()}
    named = sorted(longest, key=lambda router: (-longest[router], router))[:_NAMED_MAX]
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for router in [*(r for r in series if r not in named), *reversed(named)]:
        times, queued = zip(*series[router], strict=True)
        label = f"{router} (up to {longest[router]:.0f})" if router in named else None
        width = 1.6 if router in named else 0.6
        colour = f"C{named.index(router)}" if router in named else "0.8"
        axes.step(times, queued, where="post", lw=width, color=colour, label=label)
    axes.set(xlabel="seconds", ylabel="messages waiting", title=f"Queues of {name}", ylim=(0, None))
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], fontsize="small", title="longest first")
    figure.savefig(out, dpi=120)
    plt.close(figure)
