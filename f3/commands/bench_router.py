"""`f3 bench router`: one real router process between a source and ten neighbours.

The router is what clusters run, on its ZeroMQ links, and not a bare table. Source and neighbours
are processes that speak its frames and do as little as possible besides, so that the router and
not they are the limit; they share the machine with it, which is why the router's own processor
time per notification stands beside the rate. Every neighbour's deliveries, their order and their
positions are checked against brute force. `f3.bench.system` says exactly what is timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from f3.commands.bench_rows import SIZES, Row, check_plot, show, sizes

_SCENARIOS = ("attribute-value", "baseball", "traffic")


def router(
    scenario: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(_SCENARIOS)}; may be repeated")
    ] = None,
    subscribers: Annotated[str, typer.Option(help="sizes to measure at, with commas")] = SIZES,
    notifications: Annotated[
        int, typer.Option(min=1000, help="drawn once, published over and over")
    ] = 100_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="of each run")] = 3.0,
    repeat: Annotated[int, typer.Option(min=1, help="of the rate; the median counts")] = 5,
    seed: Annotated[int, typer.Option(help="of the workload")] = 1,
    plot: Annotated[Path | None, typer.Option(help="draw the growth into this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="rows for machines")] = False,
) -> None:
    """Notifications a second through one router, latency and memory as its table grows."""
    names = scenario or list(_SCENARIOS)
    for name in names:
        if name not in _SCENARIOS:
            raise typer.BadParameter(
                f"no scenario is called {name!r} (known: {', '.join(_SCENARIOS)})"
            )
    populations = sizes(subscribers)
    check_plot(plot)
    from f3.bench.children import BenchError

    try:
        rows = list(_rows(names, populations, notifications, seconds, repeat, seed))
    except BenchError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    show(rows, [], plot, as_json)


def _rows(
    names: list[str],
    populations: list[int],
    notifications: int,
    seconds: float,
    repeat: int,
    seed: int,
) -> Iterator[Row]:
    from f3.bench.load import Load, scenario
    from f3.bench.router import RouterSystem
    from f3.bench.system import measure

    for name in names:
        graph = scenario(name, seed)
        for size in populations:
            typer.echo(f"{name}, {size} subscribers …", err=True)
            load = Load.draw(graph, size, notifications, seed)
            row = measure(lambda load=load: RouterSystem(load), seconds, repeat)  # type: ignore[misc]
            yield {**row, "repeat": repeat, "seed": seed}
