"""`f3 trace`: one publication followed hop by hop, or foretold from the tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from urllib.request import urlopen

import typer

from f3.commands.cluster import At, Json, Name, Namespace, client, fail, joined, numbers
from f3.commands.cluster import pick_namespace as pick

if TYPE_CHECKING:
    from rich.tree import Tree

    from actors.client import Client

Row = dict[str, Any]

#: After the last new span so long, nothing more is expected.
_QUIET_SECONDS = 1.0
_AGAIN_SECONDS = 0.1
#: For whoever does not look at a terminal: no line is broken.
_WIDTH = 200


def trace(
    nodes: Annotated[str, typer.Argument(help="the lowest nodes that match, with commas")],
    body: Annotated[str, typer.Argument(help="the text")] = "traced",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="publish nothing: say whom the tables would reach")
    ] = False,
    namespace: Namespace = None,
    at: At = None,
    name: Name = "f3",
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="seconds to wait")] = 10.0,
    as_json: Json = False,
) -> None:
    """Publish one message, traced, and draw its way with the time at every hop."""
    header = numbers(nodes)
    if dry_run:
        _foretell(header, namespace, at, name, as_json)
        return
    from actors.answers import RefusedError

    with client(name, at) as (member, state):
        space = pick(state, namespace)
        try:
            member.publisher("trace").publish(
                space, header, body.encode(), timeout=timeout, sample=True
            )
        except (RefusedError, TimeoutError) as error:
            fail(error)
        found = member.host.tracer.recent[-1].trace.hex()
        rows = _gather(lambda: _spans(member, state, found), timeout)
    if as_json:
        typer.echo(json.dumps({"trace": found, "spans": rows}))
        return
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    for tree in _trees(rows):
        console.print(tree)
    console.print(f"trace {found}, {len(rows)} spans", highlight=False)


# -- gathering -------------------------------------------------------------------------------------


def _spans(member: Client, state: Row, trace: str) -> list[Row]:
    """All that is known of a trace: by the collector, by the routers, and here."""
    from actors.connect import ask_routers

    rows = {
        span.span.hex(): span.as_row("here")
        for span in list(member.host.tracer.recent)
        if span.trace.hex() == trace
    }
    for row in _collected(state.get("collector", ""), trace):
        rows.setdefault(row["span"], row)
    for known in ask_routers(state["cluster"], "spans", 2.0, trace).values():
        for row in known or ():
            rows[row["span"]] = row
    return sorted(rows.values(), key=lambda row: (row["start_ns"], row["end_ns"]))


def _collected(url: str, trace: str) -> list[Row]:
    if not url:
        return []
    try:
        with urlopen(f"{url}/api/traces/{trace}", timeout=2.0) as reply:  # noqa: S310
            found: list[Row] = json.load(reply)
            return found
    except (OSError, ValueError):
        return []  # not there yet, or no longer


def _gather(look: Callable[[], list[Row]], timeout: float) -> list[Row]:
    """Look until nothing new comes."""
    rows = look()
    deadline, quiet = time.monotonic() + timeout, time.monotonic() + _QUIET_SECONDS
    while time.monotonic() < min(deadline, quiet):
        time.sleep(_AGAIN_SECONDS)
        more = look()
        if len(more) > len(rows):
            quiet = time.monotonic() + _QUIET_SECONDS
        rows = more
    return rows


# -- drawing ---------------------------------------------------------------------------------------


def _trees(rows: list[Row]) -> list[Tree]:
    """The spans as trees: one, if none is missing."""
    from rich.tree import Tree

    start = min(row["start_ns"] for row in rows)
    drawn = {row["span"]: Tree(_line(row, start), highlight=False) for row in rows}
    roots = []
    for row in rows:
        above = drawn.get(row["parent"])
        if above is None:
            roots.append(drawn[row["span"]])
        else:
            above.children.append(drawn[row["span"]])
    return roots


def _line(row: Row, start: int) -> str:
    from rich.markup import escape

    about = row["attributes"]
    waited = about.get("messaging.f3.queue_wait_us")
    line = f"{_us(row['start_ns'] - start):>9}  {escape(row['service'])}  {escape(row['name'])}"
    line += f"  [bold]{_us(row['end_ns'] - row['start_ns']).strip()}[/]"
    if waited is not None:
        line += f" after {waited} us of waiting"
    if "messaging.f3.subscriber" in about:
        line += f" to {escape(about['messaging.f3.subscriber'])}"
    return line + (f"  [red]{escape(row['error'])}[/]" if row["error"] else "")


def _us(ns: int) -> str:
    return f"{ns / 1000:,.0f} us"


# -- from the tables -------------------------------------------------------------------------------


def _foretell(
    header: list[int], namespace: str | None, at: str | None, name: str, js: bool
) -> None:
    with joined(name) as state:
        from actors.connect import explained
        from routing.errors import ProtocolError

        space = pick(state, namespace)
        try:
            steps = explained(state["cluster"], space, header, state["routers"])
        except ProtocolError as error:
            fail(error)
        way = _way_up(state, at or state["routers"][0], space)
    if js:
        typer.echo(json.dumps({"up": way, "down": steps}))
        return
    typer.echo(f"up    {' -> '.join(way)}   (log and numbers at {space})")
    for step in steps:
        for far, due in step["links"].items():
            whose = "" if far in state["routers"] or due["local"] else " (its subscribers)"
            link = f"{step['router']} -> {far}{whose}"
            typer.echo(f"down  {link}   header {due['header']}{_why(due)}")
        if not step["links"]:
            typer.echo(f"down  {step['router']}   nobody beyond has asked for {step['header']}")


def _why(due: Row) -> str:
    told = (f"node {node} is labelled {label} for it" for node, label in due["labels"])
    why = "; ".join(told)
    return f"   because {why}" if why else ""


def _way_up(state: Row, edge: str, space: str) -> list[str]:
    from actors.connect import ask_routers

    pulses = ask_routers(state["cluster"], "pulse", 5.0)
    way = [edge]
    while way[-1] != space and len(way) <= len(pulses):
        pulse = pulses.get(way[-1])
        if pulse is None or space not in pulse.next_hop:
            fail(f"router {way[-1]!r} does not answer, or has no way to {space!r}")
        way.append(pulse.next_hop[space])
    return way
