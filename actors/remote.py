"""Members of a cluster as Ray actors: thin shells around hosts.

Ray places, starts and restarts them and carries management calls; messages between routers never
go through Ray. Actors are found by name, in a Ray namespace that is the cluster's name.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import ray
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

from actors.host import Attachment, HostOptions, RouterHost
from actors.link import Kind
from actors.member import Plan
from actors.security import Keys, make_keys
from actors.telemetry.explain import explain
from actors.wiring import Ask, Pulse, UnreachableError, Wiring
from routing.api import Address, Event, Reroute
from routing.store import Store

if TYPE_CHECKING:
    from actors.store import Sync

_CALL_SECONDS = 5.0
#: A neighbour that does not answer must not keep others waiting for long.
_ASK_SECONDS = 2.0
_START_SECONDS = 60.0
#: Before a router asks after neighbours that it has just been told of.
_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Where a rendezvous point keeps its state, and how much of its log."""

    directory: str
    capacity: int = 100_000
    window: int = 256
    access: Mapping[str, bytes] | None = None
    bytes_max: int | None = None
    age_max: float | None = None
    sync: Sync = "normal"

    def open(self, address: Address) -> Store:
        """Open the store, with whatever an earlier life left there."""
        from actors.store import DurableStore  # most routers have none

        return DurableStore(
            Path(self.directory) / f"{quote(address, safe='')}.db",
            self.capacity,
            self.window,
            self.access,
            bytes_max=self.bytes_max,
            age_max=self.age_max,
            sync=self.sync,
        )


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """A router of a cluster: what it is, who is beside it, and what it keeps."""

    cluster: str
    member: Plan
    neighbors: tuple[Address, ...]
    #: All rendezvous points.
    namespaces: tuple[Address, ...]
    #: Whether it is a rendezvous point, and where its store is.
    store: StorePlan | None = None
    secure: bool = False
    #: What a link to a host of clients does when it is full.
    clients: Kind = Kind.HOST
    #: Seconds that a client waits for it before it looks for another.
    patience: float = 10.0


class Life(NamedTuple):
    """One life of a member, from one start of its process to the next."""

    incarnation: int
    #: How many lives there have been, this one included.
    number: int


def next_life(cluster: str, address: Address) -> Life:
    """Greater than any earlier incarnation, also on a machine whose clock is behind.

    The last one is kept by Ray's control store, which is also what restarts actors.
    """
    key = f"f3/{cluster}/{address}"
    last = Life(*map(int, (_internal_kv_get(key, namespace="f3") or b"0 0").split()))
    life = Life(max(time.time_ns(), last.incarnation + 1), last.number + 1)
    _internal_kv_put(key, "{} {}".format(*life), overwrite=True, namespace="f3")
    return life


def here(options: HostOptions, secure: bool) -> tuple[HostOptions, Keys | None]:
    """Where a member listens in this process: loopback, or with keys the machine's address."""
    if not secure:
        return options, None
    link = replace(options.link, interface=str(ray.util.get_node_ip_address()))  # type: ignore[no-untyped-call]
    return replace(options, link=link), make_keys()


def ask_actor(cluster: str, neighbor: Address, kind: Kind) -> Ask:
    """How to ask a router where it listens; `kind` is what the asker is to it."""

    def ask(caller: Address, listening: Attachment) -> Attachment:
        try:
            actor = ray.get_actor(neighbor, namespace=cluster)
            found: Any = ray.get(actor.attach.remote(caller, listening, kind), timeout=_ASK_SECONDS)
        except (ray.exceptions.RayError, ValueError) as error:
            raise UnreachableError(f"router {neighbor!r}: {_first_line(error)}") from None
        return Attachment(*found)

    return ask


class RouterActor:
    """A router or rendezvous point; the class behind the Ray actor."""

    def __init__(self, plan: RouterPlan) -> None:
        self.plan = plan
        options, keys = here(plan.member.options, plan.secure)
        self._member = replace(plan.member, options=options, keys=keys)
        life = next_life(plan.cluster, plan.member.address)
        open_store = None
        if plan.store is not None:
            open_store = partial(plan.store.open, plan.member.address)
        self._host = self._member.host(life.incarnation, open_store).start()
        self._host.about["restarts"] = life.number - 1
        self._host.submit(lambda: None).result(_START_SECONDS)  # raises if it cannot start
        threading.Thread(target=_fall_with, args=(self._host,), daemon=True).start()
        asks = {name: ask_actor(plan.cluster, name, Kind.ROUTER) for name in plan.neighbors}
        self._wiring = Wiring(self._host, asks)
        if ray.get_runtime_context().was_current_actor_reconstructed:
            self._wiring.start()  # the first time, `wire` does

    def listening(self) -> dict[Address, Attachment]:
        """Where this router listens for each neighbour; LinkError if it cannot."""
        return {name: self._host.listen(name, Kind.ROUTER) for name in self.plan.neighbors}

    def wire(self, there: Mapping[Address, Attachment]) -> None:
        """Where the neighbours listen: one call for all that start with this one."""
        for name, found in there.items():
            self._host.attach(name, found.endpoint, found.public, Kind.ROUTER)
        self._wiring.start(_GRACE)

    def attach(self, caller: Address, there: Attachment, kind: Kind) -> Attachment:
        """A neighbour says where it listens."""
        return self._host.attach(caller, there.endpoint, there.public, kind)

    def invite(self) -> RouterPlan:
        """What a client host needs to know to become a neighbour; no publisher's secret."""
        return replace(self.plan, store=None)

    def pulse(self) -> Pulse:
        """A sign of life: the links, and the way to each rendezvous point."""
        next_hop = self._host.submit(self._next_hop).result(_CALL_SECONDS)
        return Pulse(self._host.links_up(), next_hop, dict(self._wiring.trouble))

    def _next_hop(self) -> dict[Address, Address]:
        return dict(self._host.router.view.next_hop)

    def status(self) -> dict[str, Any]:
        """Everything worth showing."""
        node = ray.get_runtime_context().get_node_id()
        trouble = dict(self._wiring.trouble)
        return {**self._host.status(), "node": node, "secure": self.plan.secure, "trouble": trouble}

    def spans(self, trace: str) -> list[dict[str, Any]]:
        """What this router still knows of a trace."""
        recent = list(self._host.tracer.recent)
        return [s.as_row(self._host.address) for s in recent if s.trace.hex() == trace]

    def explain(
        self, namespace: Address, header: Sequence[int] | None, nodes: Sequence[int]
    ) -> Any:
        """Whom the table would send a notification to, and why (`actors.telemetry.explain`)."""
        ask = partial(explain, self._host.router, namespace, header, nodes)
        return self._host.submit(ask).result(_CALL_SECONDS)

    def events(self, events: Sequence[Event]) -> None:
        """An administrator's changes, in order; ProtocolError if one of them is illegal."""
        for future in [self._host.event(event) for event in events]:
            future.result(_CALL_SECONDS)

    def reroute(self, next_hop: dict[Address, Address]) -> None:
        """The dissemination trees have changed."""
        self._host.event(Reroute(next_hop)).result(_CALL_SECONDS)

    def stop(self) -> None:
        """End in good order."""
        self._wiring.stop()
        self._host.stop()


def _fall_with(host: RouterHost) -> None:
    """A host that fails takes its process with it: Ray starts a new one, with a clean slate."""
    host.join()
    if host.failure is not None:
        traceback.print_exception(host.failure)
        sys.stderr.flush()
        os._exit(1)


def _first_line(error: Exception) -> str:
    """What Ray has to say, without its page of text."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()[:200]
