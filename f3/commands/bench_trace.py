"""`f3 bench trace`: what tracing costs the traffic that it watches.

A chain of live routers in one process each would measure Ray's start-up; here they are threads of
one process, publisher, routers and subscriber alike, so that every microsecond that tracing takes
anywhere is taken from the throughput. Off and each ratio take turns, and the best of all rounds
counts: other work on the machine only ever slows a run down.
"""

from __future__ import annotations

import json
import statistics
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from actors.client import Client
    from actors.host import RouterHost

_RATIOS = {"off": 0.0, "1/1000": 0.001, "1/10": 0.1, "1": 1.0}
_WAIT_SECONDS = 120.0
_WARM = 500


def trace(
    routers: Annotated[int, typer.Option(min=1, help="in the chain")] = 3,
    messages: Annotated[int, typer.Option(min=100, help="in each run")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="of all ratios")] = 5,
    size: Annotated[int, typer.Option(min=0, help="bytes of a body")] = 150,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Throughput with tracing off and at 1/1000, 1/10 and 1, exported to the built-in collector."""
    from actors.telemetry.server import CollectorServer
    from f3.commands.cluster import progress

    show = progress()
    rates: dict[str, list[float]] = {name: [] for name in _RATIOS}
    spans: dict[str, dict[str, int]] = {}
    with CollectorServer() as server:
        for n in range(rounds):
            order = list(_RATIOS) if n % 2 == 0 else list(reversed(_RATIOS))
            for name in order:
                show(f"round {n + 1} of {rounds}: {name}")
                chain = _Chain(routers, _RATIOS[name], server.url if name != "off" else "")
                rates[name].append(chain.run(messages, size))
                spans[name] = chain.spans()
    best = {name: max(taken) for name, taken in rates.items()}
    rows = [
        {
            "sampling": name,
            "messages_per_s": round(best[name]),
            "median_per_s": round(statistics.median(rates[name])),
            "lost_percent": round(100 * (1 - best[name] / best["off"]), 2),
            **spans[name],
        }
        for name in _RATIOS
    ]
    _show({"benchmark": "trace", "routers": routers, "messages": messages, "rows": rows}, as_json)


class _Chain:
    """publisher - r0 (rendezvous point) - r1 - … - subscriber, in threads."""

    def __init__(self, routers: int, ratio: float, endpoint: str) -> None:
        from actors.client import Client
        from actors.host import HostOptions
        from actors.member import Plan
        from actors.telemetry.options import Tracing
        from actors.wiring import Wiring
        from routing.api import Config, InsertNode
        from routing.store import Store

        options = HostOptions(tracing=Tracing(endpoint, ratio, metrics_period=60.0))
        config = Config(window=256)
        names = [f"r{n}" for n in range(routers)]
        self._hosts: dict[str, RouterHost] = {}
        self._wirings: list[Wiring] = []
        for n, name in enumerate(names):
            hops = {"r0": names[n - 1]} if n else {}
            plan = Plan(name, "f3", hops, config, options)
            store = None if n else (lambda: Store(window=config.window))
            self._hosts[name] = plan.host(time.time_ns(), store).start()
        for one, other in pairwise(names):
            self._wirings.append(Wiring(self._hosts[other], {one: self._ask(one)}).start())
        for wiring in self._wirings:
            wiring.wait(_WAIT_SECONDS)
        self._hosts["r0"].event(InsertNode(1, (), ())).result(_WAIT_SECONDS)
        self._clients: list[Client] = []
        for edge, name in (("r0", "near"), (names[-1], "far")):
            plan = Plan(name, "f3", {"r0": edge}, config, options)
            client = Client(plan, edge, self._ask(edge), time.time_ns())
            self._clients.append(client.start(_WAIT_SECONDS))

    def _ask(self, name: str) -> Any:
        from actors.link import Kind

        def ask(caller: str, here: Any) -> Any:
            return self._hosts[name].attach(caller, here.endpoint, here.public, Kind.ROUTER)

        return ask

    def run(self, messages: int, size: int) -> float:
        """Messages a second, from the first until the subscriber has the last; then the end."""
        near, far = self._clients
        seen = _Counter()
        subscriber = far.subscriber("s", seen.count)
        subscriber.subscribe("r0", 1, _WAIT_SECONDS)
        publisher, body = near.publisher("p"), bytes(size)
        for count in (_WARM, messages):
            seen.wait_for(count)
            began = time.perf_counter()
            for _ in range(count):
                publisher.send("r0", (1,), body, timeout=_WAIT_SECONDS)
            if not seen.done.wait(_WAIT_SECONDS):
                raise TimeoutError(f"{count} messages did not arrive within {_WAIT_SECONDS} s")
            taken = time.perf_counter() - began
        self._close()
        return messages / taken

    def _close(self) -> None:
        for client in self._clients:
            client.close()
        for wiring in self._wirings:
            wiring.stop()
        for host in self._hosts.values():
            host.stop()

    def spans(self) -> dict[str, int]:
        """Spans made and dropped, by all hosts of the last run."""
        hosts = [*self._hosts.values(), *(client.host for client in self._clients)]
        told = [host.tracer.status() for host in hosts]
        return {
            "spans": sum(each["spans"] for each in told),
            "spans_dropped": sum(each.get("dropped", 0) for each in told),
        }


class _Counter:
    """Counts notifications down."""

    def __init__(self) -> None:
        import threading

        self.done = threading.Event()
        self._left = 0

    def wait_for(self, count: int) -> None:
        """So many are to come."""
        self.done.clear()
        self._left = count

    def count(self, _: Any) -> None:
        """One has come."""
        self._left -= 1
        if not self._left:
            self.done.set()


def _show(result: dict[str, Any], as_json: bool) -> None:
    typer.echo("", err=True)
    if as_json:
        typer.echo(json.dumps(result))
        return
    for row in result["rows"]:
        typer.echo(
            f"{row['sampling']:>7}  {row['messages_per_s']:>8,} messages/s  "
            f"{row['lost_percent']:6.2f} % lost  {row['spans']:>8,} spans, "
            f"{row['spans_dropped']:,} dropped"
        )
