"""`f3 demo`: a network in one minute, checked to the last delivery.

Spark generates the workload, a season of baseball (Kulik 2004, section 4.1.1): whoever subscribes
to a team gets all its games, to two teams the games between them, or simply everything. A small
transit-stub network of Ray actors plays it. What each subscriber must receive is worked out from
the teams alone, without graphs or routers, and compared with what it got.
"""

from __future__ import annotations

import json
import re
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from f3.commands.tracing import Sample, Ui, UiPort, tracing

if TYPE_CHECKING:
    from actors.telemetry.options import Tracing
    from f3.replay import Replayed
    from workloads.reader import Workload

#: Hosts of subscribers; each is one neighbour of its edge router.
_HOSTS = 3


def demo(
    subscribers: Annotated[int, typer.Option(min=1, help="on three hosts")] = 100_000,
    publications: Annotated[int, typer.Option(min=1, help="games to report")] = 50,
    teams: Annotated[int, typer.Option(min=2, max=200, help="in the league")] = 30,
    seed: Annotated[int, typer.Option(help="for network and content")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
    ui: Ui = False,
    ui_port: UiPort = 0,
    sample: Sample = 0.2,
) -> None:
    """Generate a workload, start a network, publish, check every delivery, show it, and stop.

    With --ui, a page with traces of some publications stays up until Ctrl-C.
    """
    from actors.telemetry.options import endpoint_from_environment

    ratio = sample if ui or endpoint_from_environment() else 0.0
    with tracing(ui, ui_port, ratio) as (traced, page):
        _run(subscribers, publications, teams, seed, as_json, traced)
        if page:
            typer.echo(f"traces: {page} (Ctrl-C ends)", err=True)
            with suppress(KeyboardInterrupt):
                signal.pause()


def _run(
    subscribers: int, publications: int, teams: int, seed: int, as_json: bool, traced: Tracing
) -> None:
    from actors.cluster import Cluster, Options
    from actors.host import HostOptions
    from f3.commands.cluster import fail, progress
    from f3.replay import replay
    from topology.transit_stub import TransitStub, transit_stub

    show = progress()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="f3-demo-") as folder:
        workload = _generate(Path(folder) / "workload", subscribers, publications, teams, seed)
        generated = time.monotonic()
        overlay = transit_stub(TransitStub(domains=1, transit=3, stubs=1, size=3), seed)
        root, stubs = overlay.of_kind("transit")[0], overlay.of_kind("stub")
        edges = stubs[:: len(stubs) // _HOSTS][:_HOSTS]
        options = Options(host=HostOptions(tracing=traced))
        with Cluster(overlay, [root], options=options, progress=show) as cluster:
            started = time.monotonic()
            played = replay(cluster, root, workload, edges, show)
            show("checking what everybody received")
            result = _judge(played, workload)
            status = cluster.status()["routers"]
            show("stopping")
    result |= {
        "routers": len(overlay.routers),
        "seconds_to_generate": round(generated - began, 1),
        "seconds_to_start": round(started - generated, 1),
        "seconds": round(time.monotonic() - began, 1),
    }
    _print(result, status, root, as_json)
    if result["wrong_subscribers"]:
        fail(f"{result['wrong_subscribers']} subscribers did not receive what they should")


def _generate(folder: Path, subscribers: int, publications: int, teams: int, seed: int) -> Workload:
    from workloads.job import Job, generate
    from workloads.meter import Meter
    from workloads.reader import Workload
    from workloads.scenario import load_scenario

    parameters: dict[str, object] = {
        "teams": teams,
        "subscribers.count": subscribers,
        "subscribers.routers": _HOSTS,
        "notifications.count": publications,
        "churn.arrivals": 0.0,
        "churn.departures": 0.0,
        "churn.moves": 0.0,
    }
    generate(Job(load_scenario("baseball", parameters), folder, seed), Meter())
    return Workload(folder)


def _judge(played: Replayed, workload: Workload) -> dict[str, Any]:
    """By brute force: a game is due to whoever asked for no team that does not play in it."""
    from f3.replay import client_name
    from workloads.reader import each_subscription

    due = _due(played, workload)
    expected = deliveries = wrong = 0
    for router in range(workload.routers):
        received = played.received(router)
        deliveries += sum(map(len, received.values()))
        for one in each_subscription(workload.subscriptions(router)):
            expected += len(due[one.node])
            wrong += sorted(received.get(client_name(one.subscriber), [])) != due[one.node]
    return {
        "subscribers": workload.counts["subscriptions"],
        "publications": len(played.positions),
        "deliveries_expected": expected,
        "deliveries": deliveries,
        "wrong_subscribers": wrong,
        "seconds_to_subscribe": round(played.seconds_to_subscribe, 2),
        "deliveries_per_s": round(expected / played.seconds_to_deliver),
    }


def _due(played: Replayed, workload: Workload) -> list[list[int]]:
    """Per node, the positions of the games that its subscribers asked for."""
    from workloads.reader import each_notification

    texts = (one.text for one in each_notification(workload.notifications()))
    games = {at: _teams(text) for at, text in zip(played.positions, texts, strict=True)}
    wants = map(_teams, workload.graph.text)
    return [sorted(at for at, game in games.items() if want <= game) for want in wants]


def _teams(text: str) -> frozenset[int]:
    """The teams that a topic or a notification names; none for all games."""
    return frozenset(map(int, re.findall(r"\d+", text)))


def _print(result: dict[str, Any], status: dict[str, Any], root: str, as_json: bool) -> None:
    from f3.commands.tables import remarks, routers_tables, show

    if as_json:
        hops = {
            name: {
                "hop_us": one["hop_us"],
                "queued": sum(link["queued_messages"] for link in one["links"].values()),
            }
            for name, one in status.items()
            if one is not None
        }
        typer.echo(json.dumps({**result, "per_router": hops}))
        return
    typer.echo("", err=True)
    show(routers_tables(status, [root]), remarks(status))
    right = result["subscribers"] - result["wrong_subscribers"]
    typer.echo(
        f"{result['publications']} publications, {result['deliveries']:,} deliveries "
        f"({result['deliveries_expected']:,} due): {right:,} of {result['subscribers']:,} "
        f"subscribers received exactly what they asked for.\n"
        f"Workload in {result['seconds_to_generate']} s, {result['routers']} routers in "
        f"{result['seconds_to_start']} s; {result['seconds']} s in all."
    )
