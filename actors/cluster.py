"""A cluster: routers as Ray actors, wired by a topology, supervised, and cleanly ended.

    with Cluster(overlay, rendezvous=["r0"]) as cluster:
        cluster.insert_node("r0", 1)
        with cluster.client("r3") as client:
            ...

The cluster belongs to the process that started it and ends with it; other processes find it by
its name (`actors.connect`). Where Ray is not running it is started here and stopped at the end.
"""

from __future__ import annotations

import logging
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import ray

from actors.client import Client
from actors.connect import SubscriberHost, administer, ask_all, client_name, connect, must_answer
from actors.host import Attachment, HostOptions
from actors.link import Kind
from actors.member import Plan
from actors.remote import RouterActor, RouterPlan, StorePlan
from actors.store import Sync
from actors.supervisor import Supervisor
from actors.wiring import Pulse
from routing.api import Address, Config, InsertNode, NodeId, RemoveNode
from routing.errors import ProtocolError
from routing.registry import protocol as find_protocol
from topology.overlay import Overlay, TopologyError
from topology.overlay import overlay as make_overlay
from topology.paths import next_hops

if TYPE_CHECKING:
    from actors.preprocessors import RemotePreprocessor
    from preprocess.language import Language

Topology = Overlay | Iterable[tuple[str, str]]
Progress = Callable[[str], None]
Listening = Mapping[Address, Attachment]
"""Per neighbour, where a router listens for it."""

_STOP_SECONDS = 10.0
#: What a router asks of Ray: next to nothing, but Ray spreads only what asks for something.
_CPUS = 0.001
#: What a router's process takes of memory, nearly all of it Ray's own (`f3 bench start`).
_ROUTER_BYTES = 60e6


class ClusterError(RuntimeError):
    """The cluster cannot be started, or does not answer; says which router and why."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a cluster runs; the defaults suit one machine."""

    protocol: str = "f3"
    config: Config = field(default_factory=lambda: Config(window=4096))
    host: HostOptions = field(default_factory=HostOptions)
    #: Where rendezvous points keep their state; None for a folder that goes when the cluster ends.
    data: str | None = None
    #: The log: entries, bytes, seconds; and what a commit survives (`actors.store`).
    log_capacity: int = 1_000_000
    log_bytes: int | None = 1 << 30
    log_age: float | None = None
    sync: Sync = "normal"
    #: Publishers and their keys, per rendezvous point; others let everybody publish.
    access: Mapping[Address, Mapping[str, bytes]] = field(default_factory=dict)
    #: A full link to a host of clients: drop its notifications, or hold the tree back.
    slow_hosts: Literal["drop", "wait"] = "drop"
    #: Keys and encryption; None for whenever Ray has more than one node.
    secure: bool | None = None
    #: Seconds a router or link may be away before trees are computed without it, and before its
    #: clients choose another.
    patience: float = 10.0
    start_timeout: float = 120.0


class Cluster:
    """Routers as Ray actors; a context manager."""

    def __init__(
        self,
        topology: Topology,
        rendezvous: Sequence[Address],
        *,
        name: str | None = None,
        ray_address: str | None = None,
        options: Options | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.overlay = _checked(topology, rendezvous)
        self.rendezvous = tuple(sorted(set(rendezvous)))
        self.name = name or f"f3-{client_name()[7:]}"
        self.options = options or Options()
        find_protocol(self.options.protocol)
        self._ray_address = ray_address
        self._progress = progress or (lambda _: None)
        self._actors: dict[Address, Any] = {}
        self._hosts: list[Any] = []
        self._authorities: dict[Address, Any] = {}
        self._clients: list[Client] = []
        self._owns_ray = False
        self._secure = bool(self.options.secure)
        self._scratch: str | None = None
        self.supervisor: Supervisor | None = None

    # -- life ----------------------------------------------------------------------------

    def start(self) -> Cluster:
        """Start everything; returns when all links are up. Leaves nothing behind if it fails."""
        try:
            self._start_ray()
            self._must_fit()
            self._start_routers()
            self._wire(self._wait_for_routers())
            self._wait_for_links()
        except BaseException:
            self.stop()
            raise
        self.supervisor = Supervisor(
            self.overlay,
            self.rendezvous,
            self._look,
            self._reroute,
            patience=self.options.patience,
        ).start()
        return self

    def stop(self) -> None:
        """End everything that this cluster started; harmless if that is nothing."""
        with uninterrupted():
            self._stop()

    def _stop(self) -> None:
        if self.supervisor is not None:
            self.supervisor.stop()
        for client in self._clients:
            client.close()
        if ray.is_initialized():
            self._stop_actors()
        if self._owns_ray:
            ray.shutdown()
            self._owns_ray = False
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_ray(self) -> None:
        if ray.is_initialized():
            return
        if self._ray_address is not None:
            must_answer(self._ray_address)
        self._progress("starting Ray")
        self._owns_ray = True
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        with uninterrupted():
            try:
                if self._ray_address is not None:
                    ray.init(address=self._ray_address, **quiet)
                else:
                    ray.init(include_dashboard=False, **quiet)
            except SystemExit:  # what Ray makes of SIGTERM while it starts
                raise KeyboardInterrupt from None

    def _must_fit(self) -> None:
        """ClusterError rather than a machine without memory."""
        need, have = len(self.overlay.routers) * _ROUTER_BYTES, _memory()
        if need > have:
            raise ClusterError(
                f"{len(self.overlay.routers)} routers need about {need / 1e9:.1f} GB of memory and "
                f"there are {have / 1e9:.1f} GB: take a smaller topology, a Ray on more machines, "
                "or the simulator (`f3 simulate`)"
            )

    def _start_routers(self) -> None:
        self._progress(f"routers started: 0 of {len(self.overlay.routers)}")
        if self.options.secure is None:
            nodes: Any = ray.nodes()  # type: ignore[no-untyped-call]
            self._secure = sum(node["Alive"] for node in nodes) > 1
        hops = next_hops(self.overlay, self.rendezvous)
        shell = ray.remote(RouterActor)
        for address in self.overlay.routers:
            plan = self._plan(address, hops[address])
            self._actors[address] = shell.options(
                name=address,
                namespace=self.name,
                num_cpus=_CPUS,
                max_restarts=-1,
                max_task_retries=0,
                scheduling_strategy="SPREAD",
            ).remote(plan)

    def _plan(self, address: Address, next_hop: dict[str, str]) -> RouterPlan:
        options = self.options
        return RouterPlan(
            cluster=self.name,
            member=Plan(address, options.protocol, next_hop, options.config, options.host),
            neighbors=tuple(self.overlay.neighbors[address]),
            namespaces=self.rendezvous,
            store=self._store_plan(address) if address in self.rendezvous else None,
            secure=self._secure,
            clients=Kind.HOST if options.slow_hosts == "drop" else Kind.ROUTER,
            patience=options.patience,
        )

    def _store_plan(self, address: Address) -> StorePlan:
        options = self.options
        if options.data is None and self._scratch is None:
            self._scratch = tempfile.mkdtemp(prefix="f3-")
        directory = Path(options.data or self._scratch or ".").resolve()
        directory.mkdir(parents=True, exist_ok=True)
        return StorePlan(
            str(directory),
            options.log_capacity,
            options.config.window,
            options.access.get(address),
            options.log_bytes,
            options.log_age,
            options.sync,
        )

    def _wait_for_routers(self) -> dict[Address, Listening]:
        """Per router, where it listens for each neighbour."""
        deadline = time.monotonic() + self.options.start_timeout
        waiting = {actor.listening.remote(): name for name, actor in self._actors.items()}
        listening: dict[Address, Listening] = {}
        total = len(waiting)
        while waiting:
            done, _ = ray.wait(list(waiting), timeout=1.0)
            for ref in done:
                name = waiting.pop(ref)
                listening[name] = self._must_have_started(name, ref)
            self._progress(f"routers started: {total - len(waiting)} of {total}")
            if waiting and time.monotonic() > deadline:
                raise ClusterError(f"not started in time: {_some(waiting.values())}")
        return listening

    def _must_have_started(self, name: Address, ref: Any) -> Listening:
        try:
            found: Any = ray.get(ref)
            return dict(found)
        except ray.exceptions.RayError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise ClusterError(f"router {name!r} did not start: {lines[-1].strip()}") from error

    def _wire(self, listening: Mapping[Address, Listening]) -> None:
        """Tell every router where its neighbours listen, in one call instead of one a link."""
        if self._secure:
            # Keys first: a socket that calls before its key is known is turned away.
            keys = {
                a: {b: Attachment("", end.public) for b, end in ends.items()}
                for a, ends in listening.items()
            }
            self._tell_ends(keys)
        self._tell_ends(listening)

    def _tell_ends(self, ends: Mapping[Address, Listening]) -> None:
        refs = [
            actor.wire.remote({b: ends[b][a] for b in self.overlay.neighbors[a]})
            for a, actor in self._actors.items()
        ]
        ray.wait(refs, num_returns=len(refs), timeout=self.options.start_timeout)

    def _wait_for_links(self) -> None:
        deadline = time.monotonic() + self.options.start_timeout
        total = 2 * len(self.overlay.links)
        while True:
            pulses = self._look()
            up = sum(sum(pulse.links.values()) for pulse in pulses.values() if pulse is not None)
            self._progress(f"links up: {up // 2} of {total // 2}")
            if up >= total:
                return
            if time.monotonic() > deadline:
                raise ClusterError(f"links not up in time: {_some(self._links_down(pulses))}")
            time.sleep(0.05)

    def _links_down(self, pulses: Mapping[Address, Pulse | None]) -> list[str]:
        """The links that are down, and why as far as their ends know."""
        found = []
        for link in self.overlay.links:
            ends = [(pulses[link.a], link.b), (pulses[link.b], link.a)]
            if not all(pulse is not None and pulse.links.get(far) for pulse, far in ends):
                known = [pulse.trouble.get(far) for pulse, far in ends if pulse is not None]
                why = next((f" ({reason})" for reason in known if reason), "")
                found.append(f"{link.a} – {link.b}{why}")
        return found

    def _stop_actors(self) -> None:
        actors = [*self._hosts, *self._actors.values()]
        refs = [actor.stop.remote() for actor in actors]
        if refs:
            ray.wait(refs, num_returns=len(refs), timeout=_STOP_SECONDS)
        for actor in actors:
            ray.kill(actor, no_restart=True)
        self._hosts.clear()
        self._authorities.clear()
        self._actors.clear()

    # -- supervision ---------------------------------------------------------------------

    def _look(self) -> dict[Address, Pulse | None]:
        return self._ask_all("pulse", timeout=2.0)

    def _ask_all(self, method: str, timeout: float) -> dict[Address, Any]:
        """Call a method of every router; None for those that do not answer."""
        return ask_all(self._actors, method, timeout)

    def _reroute(self, name: Address, next_hop: Mapping[Address, Address]) -> None:
        ask_all({name: self._actors[name]}, "reroute", 5.0, dict(next_hop))

    # -- for users and administrators ----------------------------------------------------

    def client(self, edge: Address, name: str | None = None, timeout: float = 30.0) -> Client:
        """A host of publishers and subscribers at an edge router, in this process."""
        made = connect(self.name, edge, name, timeout)
        self._clients.append(made)
        return made

    def subscriber_host(self, edge: Address, record: bool = False) -> Any:
        """A Ray actor for up to hundreds of thousands of subscribers at an edge router."""
        self._actor(edge)
        name = f"host-{len(self._hosts)}-{client_name()}"
        shell = ray.remote(SubscriberHost)
        made = shell.options(num_cpus=0, max_restarts=0).remote(self.name, edge, name, record)
        self._hosts.append(made)
        return made

    def authority(self, namespace: Address) -> Any:
        """The actor that orders the changes of a namespace's content graph; made when needed."""
        from actors.preprocessors import AuthorityActor

        self._must_be_root(namespace)
        if namespace not in self._authorities:
            shell = ray.remote(AuthorityActor).options(num_cpus=0, max_restarts=-1)
            folder = self._store_plan(namespace).directory
            self._authorities[namespace] = shell.remote(self.name, namespace, folder)
            self._hosts.append(self._authorities[namespace])
        return self._authorities[namespace]

    def preprocessor(self, namespace: Address, language: Language[Any, Any]) -> RemotePreprocessor:
        """A preprocessor of a namespace in an actor of its own; there may be many.

        In this process instead: `embedded(language, cluster.authority(namespace))`.
        """
        from actors.preprocessors import PreprocessorActor, RemotePreprocessor

        shell = ray.remote(PreprocessorActor).options(num_cpus=0)
        made = shell.remote(language, self.authority(namespace))
        self._hosts.append(made)
        return RemotePreprocessor(made)

    def insert_node(
        self,
        namespace: Address,
        node: NodeId,
        parents: Collection[NodeId] = (),
        children: Collection[NodeId] = (),
        version: int | None = None,
    ) -> None:
        """Add a node to a content graph; ProtocolError where it has no such place."""
        self._administer(namespace, [InsertNode(node, tuple(parents), tuple(children), version)])

    def remove_node(self, namespace: Address, node: NodeId) -> None:
        """Take a node out of a content graph; its subscribers are told."""
        self._administer(namespace, [RemoveNode(node)])

    def load_graph(
        self, namespace: Address, nodes: Iterable[tuple[NodeId, Collection[NodeId]]]
    ) -> int:
        """Add (node, parents) each, parents first; returns how many there were."""
        events = [InsertNode(node, tuple(parents), ()) for node, parents in nodes]
        self._administer(namespace, events)
        return len(events)

    def status(self, timeout: float = 5.0) -> dict[str, Any]:
        """Every router's status (None where there is no answer), and what is lost."""
        lost = self.supervisor
        return {
            "cluster": self.name,
            "protocol": self.options.protocol,
            "rendezvous": list(self.rendezvous),
            "routers": self._ask_all("status", timeout),
            "lost_routers": [] if lost is None else sorted(lost.lost_routers),
            "lost_links": [] if lost is None else sorted(lost.lost_links),
            "reroutes": 0 if lost is None else lost.reroutes,
        }

    def _administer(self, namespace: Address, events: Sequence[InsertNode | RemoveNode]) -> None:
        self._must_be_root(namespace)
        administer(self.name, namespace, events)

    def _must_be_root(self, namespace: Address) -> None:
        if namespace not in self.rendezvous:
            known = ", ".join(self.rendezvous)
            raise ProtocolError(f"{namespace!r} is no rendezvous point (there are: {known})")

    def _actor(self, address: Address) -> Any:
        actor = self._actors.get(address)
        if actor is None:
            raise ClusterError(f"no router {address!r} (routers: {_some(self._actors)})")
        return actor


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off until the end: Ray interrupted half-way leaves processes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go elsewhere
        return
    came: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _checked(topology: Topology, rendezvous: Sequence[Address]) -> Overlay:
    """The overlay, if routers can be made of it; TopologyError that names what is wrong."""
    found = topology if isinstance(topology, Overlay) else make_overlay(topology)
    found.require_connected()
    if not rendezvous:
        raise TopologyError("a cluster needs one rendezvous point at least")
    for root in rendezvous:
        if root not in found.routers:
            raise TopologyError(f"rendezvous point {root!r} is no router of the topology")
    return found


def _memory() -> float:
    """The bytes that Ray has for tasks and actors on all its machines."""
    found: Any = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return float(found.get("memory", float("inf")))


def _some(names: Iterable[str], most: int = 10) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
