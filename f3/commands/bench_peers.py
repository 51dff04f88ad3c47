"""`f3 bench peers`: a router beside NATS, Redis and Mosquitto, on the same load in one run.

One server process, ten connections, the same notifications with the same bodies, the same counts
checked against brute force (`f3.bench.peers`, `f3.bench.system`). Servers are looked for on PATH
(Debian: nats-server, redis-server, mosquitto) and left out where they are not found.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from f3.commands.bench_rows import SIZES, Row, check_plot, show, sizes

if TYPE_CHECKING:
    from f3.bench.load import Load
    from f3.bench.system import System

_SYSTEMS = "f3,nats,redis,mosquitto"
_ENCODINGS = "wildcards,exact"
_NOTES = [
    "each: deliveries of one notification; due: neighbours that want it; the rest are copies.",
    "exact: every subscription listed as the notifications that it matches, {each:.0f} of them "
    "on average: possible only because this space has 15,625 points.",
    "Ranges (the traffic scenario) cannot be encoded in any of the others.",
]


def peers(
    systems: Annotated[str, typer.Option(help="with commas")] = _SYSTEMS,
    encodings: Annotated[str, typer.Option(help="of the others: wildcards, exact")] = _ENCODINGS,
    subscribers: Annotated[str, typer.Option(help="sizes to measure at, with commas")] = SIZES,
    notifications: Annotated[
        int, typer.Option(min=1000, help="drawn once, published over and over")
    ] = 100_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="of each run")] = 3.0,
    repeat: Annotated[int, typer.Option(min=1, help="of the rate; the median counts")] = 3,
    seed: Annotated[int, typer.Option(help="of the workload")] = 1,
    plot: Annotated[Path | None, typer.Option(help="draw the growth into this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="rows for machines")] = False,
) -> None:
    """F3, NATS, Redis and Mosquitto side by side: rate, copies, latency, memory."""
    wanted = _known("system", systems, _SYSTEMS)
    ways = _known("encoding", encodings, _ENCODINGS)
    populations = sizes(subscribers)
    check_plot(plot)
    from f3.bench.children import BenchError
    from f3.bench.load import Load, mean_points, scenario

    graph = scenario("attribute-value", seed)
    rows: list[Row] = []
    try:
        for size in populations:
            load = Load.draw(graph, size, notifications, seed)
            rows += _rows(load, _starts(wanted, ways), seconds, repeat)
    except BenchError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    notes = [note.format(each=mean_points(graph)) for note in _NOTES]
    show([{**row, "repeat": repeat, "seed": seed} for row in rows], notes, plot, as_json)


def _known(what: str, text: str, known: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in known.split(","):
            raise typer.BadParameter(f"no {what} is called {name!r} (known: {known})")
    return names


Start = Callable[["Load"], "System"]


def _starts(systems: list[str], encodings: list[str]) -> dict[str, Start]:
    """How to start each system that is here, in each encoding."""
    from f3.bench.peers import BROKERS, Broker
    from f3.bench.router import RouterSystem

    def broker(kind: type[Broker], encoding: str) -> Start:
        return lambda load: kind(load, encoding)

    found: dict[str, Start] = {"f3": RouterSystem} if "f3" in systems else {}
    for name in systems:
        kind = BROKERS.get(name)
        if kind is not None and shutil.which(kind.server) is None:
            typer.echo(f"{kind.server} is not on PATH and is left out", err=True)
        elif kind is not None:
            found |= {f"{name}, {encoding}": broker(kind, encoding) for encoding in encodings}
    if not found:
        typer.echo("error: none of the systems is here; install one of them", err=True)
        raise typer.Exit(1)
    return found


def _rows(load: Load, starts: dict[str, Start], seconds: float, repeat: int) -> Iterator[Row]:
    from f3.bench.system import measure

    for name, start in starts.items():
        typer.echo(f"{name}, {load.subscribers} subscribers …", err=True)
        yield measure(lambda start=start: start(load), seconds, repeat)  # type: ignore[misc]
