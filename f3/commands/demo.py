"""`f3 demo`: a network in one minute, checked to the last delivery.

The content is a season of baseball (Kulik 2004, section 4.1.2): whoever subscribes to a team gets
all its games, to two teams the games between them, or simply everything. What each subscriber must
receive is worked out from the teams alone, without graphs or routers, and compared with what it
got.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from actors.cluster import Cluster

Game = frozenset[int]
"""The two teams of a game; as a subscription, the teams that must play."""

_EVERYTHING: Game = frozenset()
_WAIT_SECONDS = 60.0
_SUBSCRIBE_AT_ONCE = 5000


@dataclass(frozen=True)
class Season:
    """Teams, and a node for every subscription that makes sense."""

    teams: int

    def nodes(self) -> dict[Game, int]:
        """Everything, each team, each pair: numbered from 1, wider ones first."""
        singles = [frozenset({team}) for team in range(self.teams)]
        pairs = [frozenset(pair) for pair in combinations(range(self.teams), 2)]
        return {wanted: n for n, wanted in enumerate([_EVERYTHING, *singles, *pairs], start=1)}

    def graph(self) -> list[tuple[int, list[int]]]:
        """Each node with its parents: the pair is below both teams, and they below everything."""
        nodes = self.nodes()
        return [
            (node, [nodes[wanted - {team}] for team in sorted(wanted)])
            for wanted, node in nodes.items()
        ]


def demo(
    subscribers: Annotated[int, typer.Option(min=1, help="on three hosts")] = 3000,
    publications: Annotated[int, typer.Option(min=1, help="games to report")] = 500,
    teams: Annotated[int, typer.Option(min=2, max=100, help="in the league")] = 20,
    seed: Annotated[int, typer.Option(help="for network and content")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Start a small transit-stub network, publish, check every delivery, show it, and stop."""
    from actors.cluster import Cluster
    from f3.commands.cluster import fail, progress, quiet_stdout
    from topology.transit_stub import TransitStub, transit_stub

    show = progress()
    model = TransitStub(domains=1, transit=3, stubs=1, size=3)
    overlay = transit_stub(model, seed)
    root = overlay.of_kind("transit")[0]
    began = time.monotonic()
    with quiet_stdout(), Cluster(overlay, [root], progress=show) as cluster:
        started = time.monotonic()
        result = _play(cluster, root, Season(teams), subscribers, publications, seed, show)
        status = cluster.status()["routers"]
        show("stopping")
    result["seconds_to_start"] = round(started - began, 1)
    result["seconds"] = round(time.monotonic() - began, 1)
    _print(result, status, root, as_json)
    if result["wrong_subscribers"]:
        fail(f"{result['wrong_subscribers']} subscribers did not receive what they should")


def _play(
    cluster: Cluster,
    root: str,
    season: Season,
    subscribers: int,
    publications: int,
    seed: int,
    show: Callable[[str], None],
) -> dict[str, Any]:
    import ray

    rng = random.Random(seed)  # noqa: S311
    show(f"loading the content graph of {season.teams} teams")
    cluster.load_graph(root, season.graph())
    wants = {f"s{n}": _wish(rng, season.teams) for n in range(subscribers)}
    stubs = cluster.overlay.of_kind("stub")
    hosts = [cluster.subscriber_host(edge, record=True) for edge in stubs[:: len(stubs) // 3][:3]]
    show(f"subscribing {subscribers} subscribers")
    began = time.monotonic()
    _subscribe(hosts, root, season, wants)
    subscribed = time.monotonic()
    show(f"publishing {publications} games")
    games = _publish(cluster, root, season, publications, rng, stubs[1])
    expected = {name: _due(want, games) for name, want in wants.items()}
    deliveries = sum(map(len, expected.values()))
    _await(hosts, deliveries, show)
    elapsed = time.monotonic() - subscribed
    received: dict[str, list[int]] = {name: [] for name in wants}
    for part in ray.get([host.received.remote() for host in hosts]):
        for name, notes in part.items():
            received[name] += [position for _, position in notes]
    return {
        "routers": len(cluster.overlay.routers),
        "subscribers": subscribers,
        "publications": publications,
        "deliveries_expected": deliveries,
        "deliveries": sum(map(len, received.values())),
        "wrong_subscribers": sum(sorted(received[name]) != expected[name] for name in wants),
        "seconds_to_subscribe": round(subscribed - began, 2),
        "deliveries_per_s": round(deliveries / elapsed),
    }


def _wish(rng: random.Random, teams: int) -> Game:
    """One in fifty wants everything, one in four a pair, the others a team."""
    draw = rng.random()
    return frozenset(rng.sample(range(teams), 0 if draw < 0.02 else 2 if draw < 0.27 else 1))


def _subscribe(hosts: list[Any], root: str, season: Season, wants: dict[str, Game]) -> None:
    import ray

    nodes = season.nodes()
    wanted = [(name, root, nodes[want]) for name, want in wants.items()]
    refs = [
        host.subscribe.remote(some[start : start + _SUBSCRIBE_AT_ONCE], _WAIT_SECONDS)
        for host, some in ((host, wanted[n :: len(hosts)]) for n, host in enumerate(hosts))
        for start in range(0, len(some), _SUBSCRIBE_AT_ONCE)
    ]
    refused = [refusal for part in ray.get(refs) for refusal in part]
    assert not refused, refused[:3]


def _publish(
    cluster: Cluster, root: str, season: Season, count: int, rng: random.Random, edge: str
) -> dict[int, Game]:
    """Publish random games; by position."""
    nodes = season.nodes()
    games = [frozenset(rng.sample(range(season.teams), 2)) for _ in range(count)]
    with cluster.client(edge) as client:
        publisher = client.publisher("league")
        sent = [
            publisher.send(root, [nodes[game]], b"game %d: %d - %d" % (n, *sorted(game)))
            for n, game in enumerate(games)
        ]
        positions = [future.result(_WAIT_SECONDS) for future in sent]
    return dict(zip(positions, games, strict=True))


def _due(want: Game, games: dict[int, Game]) -> list[int]:
    """By brute force: a game is wanted if every team asked for plays in it."""
    return sorted(position for position, game in games.items() if want <= game)


def _await(hosts: list[Any], deliveries: int, show: Callable[[str], None]) -> None:
    import ray

    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        so_far = sum(ray.get([host.deliveries.remote() for host in hosts]))
        show(f"delivered: {so_far} of {deliveries}")
        if so_far >= deliveries or time.monotonic() > deadline:
            return
        time.sleep(0.05)


def _print(result: dict[str, Any], status: dict[str, Any], root: str, as_json: bool) -> None:
    from f3.commands.tables import show_routers

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
    show_routers(status, [root])
    right = result["subscribers"] - result["wrong_subscribers"]
    typer.echo(
        f"{result['publications']} publications, {result['deliveries']} deliveries "
        f"({result['deliveries_expected']} due): {right} of {result['subscribers']} subscribers "
        f"received exactly what they asked for.\n"
        f"{result['routers']} routers started in {result['seconds_to_start']} s; "
        f"{result['seconds']} s in all."
    )
