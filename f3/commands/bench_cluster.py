"""`f3 bench chain` and `f3 bench fanout`: routers as they run, and plain Ray calls beside them.

chain   publisher - r0 (rendezvous point) - r1 - r2 - r3 - subscriber
fanout  a tree 1 -> 3 -> 9 with a subscriber host at each of the nine leaves

A publication crosses every link, goes through the durable log and is acknowledged to its
publisher; a Ray call is passed on by as many actors, without log or acknowledgement. `messages`
are published one by one as fast as the publisher can; `notifications` come in batches. Latency is
taken with one publication under way at a time, and a hop is one of the links between publisher
and subscriber. `cpu_us` says where the time goes: processor time per publication of the
publisher's process, the rendezvous point, a router after it and a host of subscribers.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from actors.client import Client
    from actors.cluster import Cluster

_WAIT_SECONDS = 120.0
#: Warm-up: caches fill, sockets grow their buffers.
_WARM = 200
#: Publications in a batch; and how many times as many are published in batches as one by one.
_BATCH = 1000
_BATCHES = 2

Messages = Annotated[int, typer.Option(min=100, help="published one by one under full load")]
Samples = Annotated[int, typer.Option(min=20, help="of latency, one at a time")]
Calls = Annotated[int, typer.Option(min=50, help="plain Ray calls")]
Size = Annotated[int, typer.Option(min=8, help="bytes of a body")]
Rounds = Annotated[int, typer.Option(min=1, help="of everything; medians count")]
Json = Annotated[bool, typer.Option("--json", help="for machines")]


def chain(
    routers: Annotated[int, typer.Option(min=1, help="in the chain")] = 4,
    messages: Messages = 20_000,
    samples: Samples = 500,
    calls: Calls = 1000,
    size: Size = 150,
    rounds: Rounds = 3,
    as_json: Json = False,
) -> None:
    """A chain of routers between a publisher and a subscriber."""
    names = [f"r{n}" for n in range(routers)]
    result = _measure(
        list(pairwise(names)) or [(names[0], "spare")],
        [names[-1]],
        {"messages": messages, "samples": samples, "calls": calls, "size": size},
        rounds,
        links=routers + 1,
        call_chains=[[*names, "sink"]],
    )
    _show({"benchmark": "chain", "routers": routers, **result}, as_json)


def fanout(
    messages: Messages = 5_000,
    samples: Samples = 300,
    calls: Calls = 500,
    size: Size = 150,
    rounds: Rounds = 3,
    as_json: Json = False,
) -> None:
    """A tree of one, three and nine routers; every leaf has a subscriber."""
    middle = [f"r{n}" for n in range(1, 4)]
    leaves = [f"r{n}" for n in range(4, 13)]
    links = [("r0", name) for name in middle]
    links += [(middle[n // 3], name) for n, name in enumerate(leaves)]
    chains = [["r0", middle[n // 3], name, f"sink-{name}"] for n, name in enumerate(leaves)]
    result = _measure(
        links,
        leaves,
        {"messages": messages, "samples": samples, "calls": calls, "size": size},
        rounds,
        links=4,
        call_chains=chains,
    )
    _show({"benchmark": "fanout", "routers": 13, **result}, as_json)


# -- measuring -------------------------------------------------------------------------------------


def _measure(
    overlay: list[tuple[str, str]],
    leaves: list[str],
    plan: dict[str, int],
    rounds: int,
    links: int,
    call_chains: list[list[str]],
) -> dict[str, Any]:
    from actors.cluster import Cluster
    from f3.commands.cluster import progress, quiet_stdout

    show = progress()
    began = time.monotonic()
    rows: list[dict[str, float]] = []
    with quiet_stdout(), Cluster(overlay, ["r0"], progress=show) as cluster:
        started = time.monotonic() - began
        cluster.load_graph("r0", [(1, ()), (2, (1,))])
        sinks = [cluster.subscriber_host(leaf) for leaf in leaves]
        _subscribe(sinks)
        callers = _Calls(call_chains)
        with cluster.client("r0") as near, cluster.client(leaves[-1]) as far:
            probe = _Probe(near, far, plan["size"], partial(_processor, cluster, sinks))
            for n in range(rounds):
                show(f"round {n + 1} of {rounds}: latency")
                row = probe.latency(plan["samples"], links)
                show(f"round {n + 1} of {rounds}: {plan['messages']} messages")
                row |= probe.saturate(sinks, plan["messages"])
                show(f"round {n + 1} of {rounds}: {plan['calls']} Ray calls")
                row["ray_calls.messages_per_s"] = callers.rate(plan["calls"], plan["size"])
                row["ray_calls.hop_us.p50"] = callers.latency(100, plan["size"], links - 1)
                rows.append(row)
        status = cluster.status()["routers"]
    found = {key: round(statistics.median(row[key] for row in rows), 1) for key in rows[0]}
    found["ratio"] = round(found["f3.messages_per_s"] / found["ray_calls.messages_per_s"], 1)
    return {**plan, "rounds": rounds, "seconds_to_start": round(started, 1), **found} | _per(status)


def _subscribe(sinks: list[Any]) -> None:
    import ray

    ray.get([sink.subscribe.remote([("s", "r0", 1)], _WAIT_SECONDS) for sink in sinks])


class _Probe:
    """A publisher at the rendezvous point, and a subscriber far from it that looks at the clock."""

    def __init__(
        self, near: Client, far: Client, size: int, processor: Callable[[], dict[str, float]]
    ) -> None:
        self._publisher = near.publisher("bench")
        self._processor = processor
        self._size = size
        self._subscriber = far.subscriber("probe")
        self._far = far
        self._subscriber.subscribe("r0", 2)

    def _body(self) -> bytes:
        return time.time_ns().to_bytes(8, "little").ljust(self._size, b"x")

    def latency(self, samples: int, links: int) -> dict[str, float]:
        """Microseconds for each link between publisher and subscriber."""
        taken: list[float] = []
        for n in range(_WARM + samples):
            self._publisher.send("r0", (2,), self._body())
            body = self._subscriber.get(_WAIT_SECONDS).body
            late = time.time_ns() - int.from_bytes(body[:8], "little")
            if n >= _WARM:
                taken.append(late / 1000 / links)
        taken.sort()
        return {
            "f3.hop_us.p50": taken[len(taken) // 2],
            "f3.hop_us.p99": taken[int(len(taken) * 0.99)],
        }

    def saturate(self, sinks: list[Any], count: int) -> dict[str, float]:
        """Publications a second, from the first until every sink has the last; and their cost."""
        row: dict[str, float] = {}
        plans = {"messages": (count, self._one_by_one)}
        plans["notifications"] = (_BATCHES * count, self._in_batches)
        for kind, (many, publish) in plans.items():
            before = self._processor()
            row[f"f3.{kind}_per_s"] = self._flood(sinks, many, publish)
            after = self._processor()
            spent = {role: (after[role] - before[role]) * 1e6 / many for role in after}
            row |= {f"cpu_us.{kind}.{role}": spent[role] for role in spent}
        return row

    def _flood(self, sinks: list[Any], count: int, publish: Callable[[int], None]) -> float:
        import ray

        before = [ray.get(sink.deliveries.remote()) for sink in sinks]
        began = time.perf_counter()
        publish(count)
        deadline = time.monotonic() + _WAIT_SECONDS
        for sink, had in zip(sinks, before, strict=True):
            while ray.get(sink.deliveries.remote()) < had + count:
                if time.monotonic() > deadline:
                    raise typer.Exit(_late(count))
                time.sleep(0.002)
        return count / (time.perf_counter() - began)

    def _one_by_one(self, count: int) -> None:
        body = bytes(self._size)
        for _ in range(count):
            self._publisher.send("r0", (1,), body, timeout=_WAIT_SECONDS)

    def _in_batches(self, count: int) -> None:
        batch = [((1,), bytes(self._size))] * _BATCH
        sent = [
            self._publisher.send_many("r0", batch, timeout=_WAIT_SECONDS)
            for _ in range(count // _BATCH)
        ]
        rest = batch[: count % _BATCH]
        for future in [*sent, self._publisher.send_many("r0", rest, timeout=_WAIT_SECONDS)]:
            future.result(_WAIT_SECONDS)


def _processor(cluster: Cluster, sinks: list[Any]) -> dict[str, float]:
    """Processor seconds so far of a process of each role; means where there are several."""
    import ray

    spent = {name: one["process"]["cpu_s"] for name, one in cluster.status()["routers"].items()}
    hosts = [one["process"]["cpu_s"] for one in ray.get([s.status.remote() for s in sinks])]
    root = spent.pop("r0")
    found = {"publisher": time.process_time(), "rendezvous": root, "host": statistics.mean(hosts)}
    return found | ({"router": statistics.mean(spent.values())} if spent else {})


def _late(count: int) -> int:
    typer.echo(f"error: {count} messages did not arrive within {_WAIT_SECONDS} s", err=True)
    return 1


class _Forward:
    """A Ray actor that passes calls on; the last of a chain counts them."""

    def __init__(self, following: list[Any]) -> None:
        self._following = following
        self._count = 0

    def forward(self, body: bytes) -> None:
        """Take one call, and make the next."""
        self._count += 1
        for actor in self._following:
            actor.forward.remote(body)

    def count(self) -> int:
        """Calls taken so far."""
        return self._count


class _Calls:
    """The same tree as actors that call each other."""

    def __init__(self, chains: list[list[str]]) -> None:
        import ray

        following: dict[str, list[str]] = {}
        for names in chains:
            for one, other in pairwise(names):
                beside = following.setdefault(one, [])
                if other not in beside:
                    beside.append(other)
        shell = ray.remote(_Forward)
        made: dict[str, Any] = {}
        for name in self._deepest_first(chains):
            next_actors = [made[other] for other in following.get(name, [])]
            made[name] = shell.options(num_cpus=0).remote(next_actors)
        self._head = made[chains[0][0]]
        self._ends = [made[names[-1]] for names in chains]
        self._actors = list(made.values())

    @staticmethod
    def _deepest_first(chains: list[list[str]]) -> list[str]:
        depth = {name: at for names in chains for at, name in enumerate(names)}
        return sorted(depth, key=lambda name: -depth[name])

    def _counts(self) -> int:
        import ray

        counts: list[int] = ray.get([end.count.remote() for end in self._ends])
        return min(counts)

    def rate(self, calls: int, size: int) -> float:
        """Calls a second, from the first until every end has had the last."""
        body = bytes(size)
        before = self._counts()
        began = time.perf_counter()
        for _ in range(calls):
            self._head.forward.remote(body)
        while self._counts() < before + calls:
            time.sleep(0.002)
        return calls / (time.perf_counter() - began)

    def latency(self, samples: int, size: int, links: int) -> float:
        """Microseconds for each call between actors, one under way at a time."""
        body, taken = bytes(size), []
        for _ in range(samples):
            before = self._counts()
            began = time.perf_counter()
            self._head.forward.remote(body)
            while self._counts() <= before:
                pass
            taken.append((time.perf_counter() - began) * 1e6 / links)
        return statistics.median(taken)


def _per(status: dict[str, Any]) -> dict[str, Any]:
    """Memory and processor time of the routers."""
    processes = [one["process"] for one in status.values() if one is not None]
    return {
        "router_mb": round(statistics.mean(p["rss_mb"] for p in processes), 1),
        "router_cpu_s": [p["cpu_s"] for p in processes],
    }


def _show(result: dict[str, Any], as_json: bool) -> None:
    typer.echo("", err=True)
    if as_json:
        typer.echo(json.dumps(result))
        return
    for key, value in result.items():
        typer.echo(f"{key:28} {value}")
