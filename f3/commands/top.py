"""`f3 top`: the routers of a running cluster, live; with --record, for `f3 plot queues` as well."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from f3.commands.cluster import Json, Links, Name, fail, joined

if TYPE_CHECKING:
    from rich.console import Group


def top(
    name: Name = "f3",
    period: Annotated[float, typer.Option(min=0.1, help="seconds between two looks")] = 1.0,
    count: Annotated[int, typer.Option(min=0, help="looks; 0 for until Ctrl-C")] = 0,
    record: Annotated[
        Path | None, typer.Option(help="write queue lengths here, a line each")
    ] = None,
    links: Links = False,
    as_json: Json = False,
) -> None:
    """Watch queues, hops and tables; Ctrl-C ends."""
    with joined(name) as state, ExitStack() as stack:
        try:
            file = None if record is None else stack.enter_context(open(record, "w"))
        except OSError as error:
            fail(error, 2)
        try:
            _watch(state, period, count, file, links, as_json)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)


def _watch(
    state: dict[str, Any],
    period: float,
    count: int,
    file: TextIO | None,
    links: bool,
    as_json: bool,
) -> None:
    import json
    import sys

    from rich.console import Console
    from rich.live import Live

    from actors.connect import statuses
    from f3 import runs
    from f3.commands.tables import WIDTH

    if file is not None:
        runs.begin(file, "cluster")
    began, looks = time.monotonic(), 0
    before: tuple[float, dict[str, Any]] | None = None
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
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
                live.update(_view(found, before, now, state["rendezvous"], links), refresh=True)
            before = (now, found)
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


def _view(
    found: dict[str, Any],
    before: tuple[float, dict[str, Any]] | None,
    now: float,
    roots: list[str],
    links: bool,
) -> Group:
    from rich.console import Group
    from rich.text import Text

    from f3.commands.tables import links_table, remarks, routers_tables

    notes = map(Text, remarks(found))
    if links:
        return Group(links_table(found), *notes)
    last = () if before is None else (before[1], now - before[0])
    return Group(*routers_tables(found, roots, *last), *notes)
