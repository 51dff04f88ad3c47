"""`f3 bench start`: how long a network takes to start, what a router weighs, and Ray's share.

Empty Ray actors, as many, are started beside it in the same run: what they take is Ray's, and only
the difference is ours. Memory is read from the system for each process: `uss` is what nobody else
shares and would be free without it; `pss` adds its share of what several have in common.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from actors.cluster import Progress
    from topology.overlay import Overlay

_WAIT_SECONDS = 300.0
#: How the cluster's word on its progress begins, and what to call that stage.
_STAGES = {"starting Ray": "ray", "routers started": "routers", "links up": "links"}
_FIELDS = {"uss": ("Private_Clean", "Private_Dirty"), "pss": ("Pss",), "rss": ("Rss",)}


def start(
    topology: Annotated[
        str, typer.Option(help="a name or a file; `f3 topology list` shows them")
    ] = "transit-stub-64",
    seed: Annotated[int, typer.Option(help="for random topologies")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Start a network and as many empty actors; seconds, processor and memory of each."""
    from f3.commands.cluster import fail, progress, quiet_stdout
    from topology.catalogue import load
    from topology.overlay import TopologyError

    try:
        overlay = load(topology, seed)
    except TopologyError as error:
        fail(error, 2)
    show = progress()
    with quiet_stdout():
        result = measure(overlay, show)
    typer.echo("", err=True)
    found = {"benchmark": "start", "topology": topology, **result}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for key, value in found.items():
        typer.echo(f"{key:28} {value}")


def measure(overlay: Overlay, show: Progress) -> dict[str, Any]:
    """Start it, and as many empty actors; stops both."""
    import ray

    from actors.cluster import Cluster
    from topology.paths import centre

    stage = _Stages(show)
    cluster = Cluster(overlay, [centre(overlay)], progress=stage)
    with cluster:
        stage("up")
        seconds = stage.seconds
        routers = [one["process"] for one in cluster.status(_WAIT_SECONDS)["routers"].values()]
        memory = [_memory(process["pid"]) for process in routers]
        cpu = [process["cpu_s"] for process in routers]
        show("starting empty actors")
        began = time.monotonic()
        shell: Any = ray.remote(_Empty)
        empty = [shell.options(num_cpus=0).remote() for _ in overlay.routers]
        costs: Any = ray.get([actor.cost.remote() for actor in empty], timeout=_WAIT_SECONDS)
        empty_seconds = time.monotonic() - began
        bare = [_memory(pid) for pid, _ in costs]
        show("stopping")
    return {
        "routers": len(overlay.routers),
        "links": len(overlay.links),
        "seconds": round(sum(seconds.values()), 1),
        **{f"seconds.{name}": round(value, 1) for name, value in seconds.items()},
        "seconds.empty_actors": round(empty_seconds, 1),
        "cpu_s": round(statistics.median(cpu), 2),
        "cpu_s.empty_actor": round(statistics.median(spent for _, spent in costs), 2),
        **{f"{kind}_mb": _median(memory, kind) for kind in _FIELDS},
        **{f"{kind}_mb.empty_actor": _median(bare, kind) for kind in _FIELDS},
    }


class _Empty:
    """An actor that does nothing."""

    def cost(self) -> tuple[int, float]:
        """Its process, and the processor seconds that it has taken so far."""
        return os.getpid(), time.process_time()


class _Stages:
    """Seconds of each stage, from what the cluster says of its progress."""

    def __init__(self, show: Progress) -> None:
        self.seconds: dict[str, float] = {}
        self._show = show
        self._stage, self._since = "", time.monotonic()

    def __call__(self, text: str) -> None:
        self._show(text)
        stage = next((stage for start, stage in _STAGES.items() if text.startswith(start)), "")
        if stage == self._stage:
            return
        now = time.monotonic()
        if self._stage:
            self.seconds[self._stage] = now - self._since
        self._stage, self._since = stage, now


def _memory(pid: int) -> dict[str, float]:
    """Megabytes of a process on this machine, by kind."""
    kilobytes: dict[str, int] = {}
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup.readlines()[1:]:
            name, _, rest = line.partition(":")
            kilobytes[name] = int(rest.split()[0])
    return {kind: sum(kilobytes[name] for name in names) / 1e3 for kind, names in _FIELDS.items()}


def _median(memory: list[dict[str, float]], kind: str) -> float:
    return round(statistics.median(one[kind] for one in memory), 1)
