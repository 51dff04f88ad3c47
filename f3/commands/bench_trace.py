"""`f3 bench trace`: what tracing costs the traffic that it watches.

A chain of live routers in one process each would measure Ray's start-up; here they are threads of
one process, publisher, routers and subscriber alike, so that every microsecond that tracing takes
anywhere is taken from the throughput. Off and each ratio take turns, and are compared within a
round. Processor time per message is told as well: other work on the machine disturbs it less.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from actors.client import Client
    from actors.host import RouterHost

_RATIOS = {"off": 0.0, "1/1000": 0.001, "1/10": 0.1, "1": 1.0}
_WAIT_SECONDS = 120.0
_WARM = 500
_SERVE = """
import sys
from actors.telemetry.server import CollectorServer

with CollectorServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def trace(
    routers: Annotated[int, typer.Option(min=1, help="in the chain")] = 3,
    messages: Annotated[int, typer.Option(min=100, help="in each run")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="of all ratios")] = 7,
    size: Annotated[int, typer.Option(min=0, help="bytes of a body")] = 150,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Throughput with tracing off and at 1/1000, 1/10 and 1, exported to the built-in collector."""
    from f3.commands.cluster import progress

    show = progress()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in _RATIOS}
    spans: dict[str, dict[str, int]] = {}
    with _collector() as url:
        show("warming up")
        _Chain(routers, 1.0, url).run(_WARM, size)
        for n in range(rounds):
            order = list(_RATIOS) if n % 2 == 0 else list(reversed(_RATIOS))
            for name in order:
                show(f"round {n + 1} of {rounds}: {name}")
                chain = _Chain(routers, _RATIOS[name], url if name != "off" else "")
                taken[name].append(chain.run(messages, size))
                spans[name] = chain.spans()
    rows = [{"sampling": name, **_row(taken[name], taken["off"]), **spans[name]} for name in taken]
    _show({"benchmark": "trace", "routers": routers, "messages": messages, "rows": rows}, as_json)


def _row(taken: list[tuple[float, float]], off: list[tuple[float, float]]) -> dict[str, float]:
    """Medians over the rounds; what is lost is taken from the two runs of the same round."""
    both = list(zip(taken, off, strict=True))
    slower = statistics.median(1 - mine[0] / other[0] for mine, other in both)
    dearer = statistics.median(mine[1] / other[1] - 1 for mine, other in both)
    return {
        "messages_per_s": round(statistics.median(rate for rate, _ in taken)),
        "cpu_us_per_message": round(statistics.median(cpu for _, cpu in taken), 2),
        "lost_percent": round(100 * slower, 2),
        "more_cpu_percent": round(100 * dearer, 2),
    }


@contextmanager
def _collector() -> Iterator[str]:
    """The built-in collector in a process of its own, as a network would find it."""
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait(_WAIT_SECONDS)


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

    def run(self, messages: int, size: int) -> tuple[float, float]:
        """Messages a second, until the subscriber has the last, and processor us for each."""
        near, far = self._clients
        seen = _Counter()
        subscriber = far.subscriber("s", seen.count)
        subscriber.subscribe("r0", 1, _WAIT_SECONDS)
        publisher, body = near.publisher("p"), bytes(size)
        for count in (_WARM, messages):
            seen.wait_for(count)
            began, cpu = time.perf_counter(), time.process_time()
            for _ in range(count):
                publisher.send("r0", (1,), body, timeout=_WAIT_SECONDS)
            if not seen.done.wait(_WAIT_SECONDS):
                raise TimeoutError(f"{count} messages did not arrive within {_WAIT_SECONDS} s")
            taken, cpu = time.perf_counter() - began, time.process_time() - cpu
        self._close()
        return messages / taken, 1e6 * cpu / messages

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
            f"{row['lost_percent']:6.2f} % lost  {row['cpu_us_per_message']:6.1f} us of processor "
            f"({row['more_cpu_percent']:+.2f} %)  {row['spans']:>8,} spans, "
            f"{row['spans_dropped']:,} dropped"
        )
