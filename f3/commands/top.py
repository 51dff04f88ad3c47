"""`f3 top`: the routers of a running cluster, live; with --record, for `f3 plot queues` as well."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from f3.commands.cluster import Json, Name, fail, joined

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = (
    *("links", "queued", "of", "in/s", "out/s", "wait p50", "hop p50", "hop p99", "batch"),
    *("nodes", "edges", "labels", "dropped", "refresh B/s", "restarts", "spans", "lost"),
)


def top(
    name: Name = "f3",
    period: Annotated[float, typer.Option(min=0.1, help="seconds between two looks")] = 1.0,
    count: Annotated[int, typer.Option(min=0, help="looks; 0 for until Ctrl-C")] = 0,
    record: Annotated[
        Path | None, typer.Option(help="write queue lengths here, a line each")
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch queues, hops and tables; Ctrl-C ends."""
    with joined(name) as state, ExitStack() as stack:
        try:
            file = None if record is None else stack.enter_context(open(record, "w"))
        except OSError as error:
            fail(error, 2)
        try:
            _watch(state, period, count, file, as_json)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)


def _watch(
    state: dict[str, Any], period: float, count: int, file: TextIO | None, as_json: bool
) -> None:
    import json
    import sys

    from rich.console import Console
    from rich.live import Live

    from actors.connect import statuses
    from f3 import runs

    if file is not None:
        runs.begin(file, "cluster")
    began, before, looks = time.monotonic(), dict[str, Any](), 0
    console = Console() if sys.stdout.isatty() else Console(width=190)
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while not count or looks < count:
            now = time.monotonic()
            found = statuses(state["cluster"], 2 * period)
            looks += 1
            if file is not None:
                _record(file, now - began, found)
            if as_json:
                live.console.print_json(
                    json.dumps({"t": now - began, "routers": found}), indent=None
                )
            else:
                live.update(_table(found, before, state["rendezvous"]), refresh=True)
            before = {"now": now, **found}
            if not count or looks < count:
                time.sleep(max(0.0, period - (time.monotonic() - now)))


def _record(file: TextIO, t: float, found: dict[str, Any]) -> None:
    from f3 import runs

    for router, status in found.items():
        if status is not None:
            links = status["links"].values()
            capacity = sum(link["capacity_messages"] for link in links)
            queued = sum(link["queued_messages"] for link in links)
            runs.sample(file, t, router, queued, capacity=capacity)
    file.flush()


def _table(found: dict[str, Any], before: dict[str, Any], roots: list[str]) -> Table:
    from rich.table import Table

    table = Table(title="Routers (* rendezvous points; times in us)")
    table.add_column("router", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    seconds = time.monotonic() - before["now"] if before else 0.0
    for name in sorted(found):
        shown = f"{name} *" if name in roots else name
        status = found[name]
        if status is None:
            table.add_row(shown, "no answer")
        else:
            table.add_row(shown, *_cells(status, before.get(name), seconds))
    return table


def _cells(status: dict[str, Any], last: dict[str, Any] | None, seconds: float) -> list[str]:
    from actors.telemetry.names import DROPS
    from f3.commands.tables import total

    links = list(status["links"].values())
    old = [] if last is None else list(last["links"].values())

    def rate(key: str) -> str:
        return f"{max(0, total(links, key) - total(old, key)) / seconds:,.0f}" if old else ""

    state, told = status["state"], status["telemetry"]
    dropped = sum(total(links, reason) for reason in DROPS)
    return [
        f"{sum(link['up'] for link in links)}/{len(links)}",
        str(total(links, "queued_messages")),
        str(total(links, "capacity_messages")),
        rate("messages_received"),
        rate("messages_sent"),
        f"{status['wait_us']['p50']:.0f}",
        f"{status['hop_us']['p50']:.0f}",
        f"{status['hop_us']['p99']:.0f}",
        f"{status['batch_size']['p50']:.0f}",
        *(str(state.get(kind, 0)) for kind in ("nodes", "edges", "labels")),
        str(dropped),
        rate("refresh_bytes"),
        str(status.get("restarts", 0)),
        str(told["spans"]),
        str(told.get("dropped", 0)),
    ]
