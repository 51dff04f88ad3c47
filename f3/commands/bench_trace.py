"""`f3 bench trace`: what tracing costs the traffic that it watches.

A chain of live routers in one process each would measure Ray's start-up; here they are threads of
one process, publisher, routers and subscriber alike, so that every microsecond that tracing takes
anywhere is taken from the throughput. So many messages are published together, and the next when
the last of them has arrived: one thread works at a time, and batches are the same every time. (As
much traffic as goes would measure how Python's threads fight for the interpreter: two equal chains
then differ by a third.)

A chain for each way of tracing stands from the beginning, and the chains carry traffic in turns, in
another order every round. Traffic runs for a while before it is timed, longer than spans wait for
their export, so that exporting is in what is timed.

What is lost is told as the median, over the rounds, of what each lost against the chain without
tracing in the same round; with the interval that has the median in 95 of 100 cases. A second chain
without tracing shows what is noise. Processor time for a message is told as well.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from actors.client import Client
    from actors.host import RouterHost


class _Way(NamedTuple):
    """How a chain is traced: which share, and to the collector, to nobody, or not at all."""

    ratio: float
    to: str


_WAYS = {
    "off": _Way(0.0, ""),
    "off again": _Way(0.0, ""),
    "1/1000": _Way(0.001, "collector"),
    "1/10": _Way(0.1, "collector"),
    "1/10 to nobody": _Way(0.1, "nobody"),
    "1": _Way(1.0, "collector"),
}
#: Nobody listens on the port for the discard service, unless an inetd from long ago does.
_NOBODY = "http://127.0.0.1:9"
_WAIT_SECONDS = 120.0
#: Traffic before it is timed: spans wait up to a second for their export.
_LEAD_SECONDS = 1.1
_SERVE = """
import sys
from actors.telemetry.server import CollectorServer

with CollectorServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


class _Run(NamedTuple):
    """Messages a second, and processor microseconds for each."""

    rate: float
    cpu_us: float


def trace(
    routers: Annotated[int, typer.Option(min=1, help="in the chain")] = 3,
    seconds: Annotated[float, typer.Option(min=0.05, help="timed in each turn")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="of all ways")] = 15,
    together: Annotated[int, typer.Option(min=1, help="messages on their way at a time")] = 100,
    size: Annotated[int, typer.Option(min=0, help="bytes of a body")] = 150,
    seed: Annotated[int, typer.Option(help="for the order of turns")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Throughput with tracing off and at 1/1000, 1/10 and 1, exported to the built-in collector."""
    taken: dict[str, list[_Run]] = {name: [] for name in _WAYS}
    with ExitStack() as stack:
        urls = {"": "", "nobody": _NOBODY, "collector": stack.enter_context(_collector())}
        chains = {
            name: stack.enter_context(_Chain(routers, way.ratio, urls[way.to], together, size))
            for name, way in _WAYS.items()
        }
        _take_turns(chains, taken, rounds, seconds, seed)
        spans = {name: chain.spans() for name, chain in chains.items()}
    rows = [
        {"sampling": name, **_row(found, taken["off"]), **spans[name]}
        for name, found in taken.items()
    ]
    about = {"routers": routers, "rounds": rounds, "seconds": seconds}
    about |= {"together": together, "size": size}
    _show({"benchmark": "trace", **about, "rows": rows}, as_json)


def _take_turns(
    chains: dict[str, _Chain],
    taken: dict[str, list[_Run]],
    rounds: int,
    seconds: float,
    seed: int,
) -> None:
    from f3.commands.cluster import progress

    show, rng = progress(), random.Random(seed)
    for n in range(-1, rounds):
        show("warming up" if n < 0 else f"round {n + 1} of {rounds}")
        for name in rng.sample(list(chains), len(chains)):
            run = chains[name].run(seconds)
            if n >= 0:
                taken[name].append(run)


def _row(taken: Sequence[_Run], off: Sequence[_Run]) -> dict[str, Any]:
    """Medians over the rounds; what is lost is taken from the two runs of the same round."""
    both = list(zip(taken, off, strict=True))
    lost = [100 * (1 - mine.rate / other.rate) for mine, other in both]
    dearer = [100 * (mine.cpu_us / other.cpu_us - 1) for mine, other in both]
    return {
        "messages_per_s": round(statistics.median(run.rate for run in taken)),
        "cpu_us_per_message": round(statistics.median(run.cpu_us for run in taken), 2),
        "lost_percent": round(statistics.median(lost), 2),
        "lost_percent_from_to": [round(end, 2) for end in interval(lost)],
        "more_cpu_percent": round(statistics.median(dearer), 2),
        "more_cpu_percent_from_to": [round(end, 2) for end in interval(dearer)],
    }


def interval(values: Sequence[float], risk: float = 0.05) -> tuple[float, float]:
    """Where the median is, by the signs of the deviations alone; all of it for too few values.

    The widest pair of ranks is narrowed while the chance that the median is outside stays below
    the risk: with n values, k of them below the median with chance comb(n, k) / 2**n.
    """
    ranked, n = sorted(values), len(values)
    cut, outside = 0, 2 / 2**n
    while outside + 2 * comb(n, cut + 1) / 2**n <= risk:
        cut += 1
        outside += 2 * comb(n, cut) / 2**n
    return ranked[cut], ranked[n - 1 - cut]


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

    def __init__(self, routers: int, ratio: float, endpoint: str, together: int, size: int) -> None:
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
        near, far = self._clients
        self._messages, self._left = [((1,), bytes(size))] * together, 0
        self._arrived = threading.Event()
        far.subscriber("s", self._count).subscribe("r0", 1, _WAIT_SECONDS)
        self._publisher = near.publisher("p")

    def _ask(self, name: str) -> Any:
        from actors.link import Kind

        def ask(caller: str, here: Any) -> Any:
            return self._hosts[name].attach(caller, here.endpoint, here.public, Kind.ROUTER)

        return ask

    def __enter__(self) -> _Chain:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        for wiring in self._wirings:
            wiring.stop()
        for host in self._hosts.values():
            host.stop()

    def run(self, seconds: float) -> _Run:
        """Publish so many together, again and again for so long."""
        self._publish(_LEAD_SECONDS)
        began, cpu = time.perf_counter(), time.process_time()
        count = self._publish(seconds)
        taken, cpu = time.perf_counter() - began, time.process_time() - cpu
        return _Run(count / taken, 1e6 * cpu / count)

    def _publish(self, seconds: float) -> int:
        """Returns how many messages were published, and have arrived."""
        count, until = 0, time.perf_counter() + seconds
        while not count or time.perf_counter() < until:
            self._arrived.clear()
            self._left = len(self._messages)
            self._publisher.send_many("r0", self._messages, timeout=_WAIT_SECONDS)
            if not self._arrived.wait(_WAIT_SECONDS):
                raise TimeoutError(f"{self._left} messages did not arrive in {_WAIT_SECONDS} s")
            count += len(self._messages)
        return count

    def _count(self, _: Any) -> None:
        self._left -= 1
        if not self._left:
            self._arrived.set()

    def spans(self) -> dict[str, int]:
        """Spans made and dropped, by all hosts."""
        hosts = [*self._hosts.values(), *(client.host for client in self._clients)]
        told = [host.tracer.status() for host in hosts]
        return {
            "spans": sum(each["spans"] for each in told),
            "spans_dropped": sum(each.get("dropped", 0) for each in told),
            "spans_waiting": sum(each.get("waiting", 0) for each in told),
        }


def _show(result: dict[str, Any], as_json: bool) -> None:
    typer.echo("", err=True)
    if as_json:
        typer.echo(json.dumps(result))
        return
    for row in result["rows"]:
        low, high = row["lost_percent_from_to"]
        typer.echo(
            f"{row['sampling']:>14}  {row['messages_per_s']:>8,} messages/s  "
            f"{row['lost_percent']:6.2f} % lost ({low:.2f} to {high:.2f})  "
            f"{row['cpu_us_per_message']:6.1f} us of processor ({row['more_cpu_percent']:+.2f} %)  "
            f"{row['spans']:>8,} spans, {row['spans_dropped']:,} dropped"
        )
