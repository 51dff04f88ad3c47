"""`f3 simulate`: baseball news on an overlay in virtual time, checked by the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer


def simulate(
    topology: Annotated[str, typer.Option(help="see `f3 topology list`")] = "transit-stub-100",
    protocol: Annotated[str, typer.Option(help="f3, content-list, …")] = "f3",
    teams: Annotated[int, typer.Option(min=2, max=200)] = 30,
    notifications: Annotated[int, typer.Option(min=1)] = 100,
    loss: Annotated[float, typer.Option(min=0.0, max=0.5, help="share lost on each link")] = 0.0,
    root: Annotated[str, typer.Option(help="rendezvous point [default: the centre]")] = "",
    seed: Annotated[int, typer.Option(help="same seed, same run")] = 0,
    plot: Annotated[Path | None, typer.Option(help="draw the last notification's way")] = None,
    service: Annotated[
        float, typer.Option(min=0.0, help="seconds that a router takes for each message")
    ] = 0.0,
    slow: Annotated[
        list[str] | None, typer.Option(help="a router that takes longer, as r2=0.5; repeatable")
    ] = None,
    leave: Annotated[
        bool, typer.Option("--leave", help="at the end all subscribers unsubscribe at once")
    ] = False,
    queues: Annotated[
        Path | None, typer.Option(help="record queue lengths here, for `f3 plot queues`")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Play baseball news in virtual time: a subscriber at each router, every delivery checked."""
    from routing.errors import ProtocolError
    from routing.registry import protocol as find
    from sim.oracle import ViolationError
    from sim.play import Play, play
    from topology.catalogue import load
    from topology.overlay import TopologyError
    from topology.paths import centre

    if queues is not None and not service:
        typer.echo("error: without --service no message ever waits: try --service 0.001", err=True)
        raise typer.Exit(2)
    try:
        overlay = load(topology, seed)
        root, makes = root or centre(overlay), find(protocol)
        one = Play(overlay, root, makes, teams, loss, seed, service, _slow(slow or (), service))
    except (TopologyError, ProtocolError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(f"{len(overlay.routers)} routers, rendezvous point {one.root} …", err=True)
    try:
        facts = play(one, notifications, leave)
    except ViolationError as error:
        typer.echo(f"error: the oracle objects: {error}", err=True)
        raise typer.Exit(1) from error
    facts = {"topology": topology, "protocol": protocol, "seed": seed, **facts}
    if plot is not None:
        _draw(one, plot)
    if queues is not None:
        _record(one, queues)
    typer.echo(json.dumps(facts) if as_json else _text(facts))


def _slow(given: Iterable[str], service: float) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, seconds = text.rpartition("=")
        try:
            found[name] = float(seconds)
        except ValueError:
            found[name] = -1.0
        if not name or not 0.0 <= found[name] < float("inf"):
            raise ValueError(f"--slow takes a router and seconds, as r2=0.5, not {text!r}")
    if found and not service:
        raise ValueError("--slow needs --service, the time of all other routers")
    return found


def _record(one: Any, path: Path) -> None:
    from f3.runs import write

    series = {name: queue.series for name, queue in one.world.network.queues.items()}
    try:
        write(path, "simulator", series)
    except OSError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(f"wrote {path}", err=True)


def _draw(one: Any, path: Path) -> None:
    from topology.overlay import TopologyError
    from topology.paths import tree
    from topology.plot import draw

    title = (
        f"One notification: {len(one.last_crossed)} links crossed, "
        f"{len(one.last_reached)} of {len(one.overlay.routers)} subscribers had asked for it"
    )
    try:
        draw(
            one.overlay,
            path,
            title,
            tree(one.overlay, one.root),
            crossed=one.last_crossed,
            reached=one.last_reached,
        )
    except (TopologyError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(f"wrote {path}", err=True)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['deliveries']:,} deliveries of {facts['notifications']:,} notifications, "
        f"each exactly once to exactly those who asked",
        "",
    ]
    for name, value in facts.items():
        if isinstance(value, dict):
            value = "  ".join(f"{key} {_number(one)}" for key, one in value.items())
        lines.append(f"{name:<24} {_number(value)}")
    return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)
