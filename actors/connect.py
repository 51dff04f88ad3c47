"""Clients of a cluster, from any process that Ray reaches."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import ray

from actors.client import Client
from actors.crowd import Crowd
from actors.edge import Elsewhere
from actors.member import Plan
from actors.remote import RouterPlan, ask_actor, here, next_life
from actors.telemetry.explain import way_down
from actors.wiring import Ask, Pulse, UnreachableError
from routing.api import InsertNode, RemoveNode
from routing.errors import ProtocolError

#: More changes of a graph go into several calls: the rendezvous point serves others between.
_EVENTS_AT_ONCE = 1000
_CALL_SECONDS = 30.0
_LOOK_SECONDS = 2.0
_ANSWER_SECONDS = 5.0


class UnknownRouterError(LookupError):
    """The cluster has no router of that name, or none at all; lists those it has."""


def must_answer(address: str) -> None:
    """ConnectionError at once, where Ray would try for a minute and more to reach its head."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return  # "auto", "local": Ray knows what they mean
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"no Ray answers at {address} ({error}): is it running?") from None


def routers(cluster: str) -> list[str]:
    """The routers of a running cluster, sorted."""
    named = ray.util.list_named_actors(all_namespaces=True)
    return sorted(each["name"] for each in named if each["namespace"] == cluster)


def client_name() -> str:
    """A name for a client host that no other has."""
    return f"client-{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"


def invitation(cluster: str, edge: str, timeout: float = 10.0) -> RouterPlan:
    """What the edge router tells whoever wants to be its client."""
    try:
        actor = ray.get_actor(edge, namespace=cluster)
    except ValueError:
        known = ", ".join(routers(cluster)) or "none: is it running?"
        raise UnknownRouterError(
            f"cluster {cluster!r} has no router {edge!r} (routers: {known})"
        ) from None
    try:
        plan: Any = ray.get(actor.invite.remote(), timeout=timeout)
    except ray.exceptions.RayError as error:
        raise _unreachable(cluster, edge, error) from None
    assert isinstance(plan, RouterPlan)
    return plan


def _unreachable(cluster: str, router: str, error: Exception) -> UnreachableError:
    return UnreachableError(
        f"router {router!r} of cluster {cluster!r} does not answer ({type(error).__name__}): "
        "`f3 status` shows which do"
    )


@dataclass(frozen=True, slots=True)
class Membership:
    """What it takes to be a client host at an edge router."""

    plan: Plan
    edge: str
    ask: Ask
    incarnation: int
    elsewhere: Elsewhere


def member(cluster: str, edge: str, name: str, timeout: float) -> Membership:
    """Become a client host at an edge router, as far as the cluster has to know."""
    invited = invitation(cluster, edge, timeout)
    options, keys = here(invited.member.options, invited.secure)
    next_hop = dict.fromkeys(invited.namespaces, edge)
    plan = replace(invited.member, address=name, next_hop=next_hop, options=options, keys=keys)
    ask = partial(ask_actor, cluster, kind=invited.clients)
    elsewhere = Elsewhere(partial(look, cluster), ask, invited.patience)
    return Membership(plan, edge, ask(edge), next_life(cluster, name).incarnation, elsewhere)


def look(cluster: str) -> dict[str, Pulse | None]:
    """Every router's sign of life; UnreachableError if Ray does not answer."""
    try:
        return ask_routers(cluster, "pulse", _LOOK_SECONDS)
    except (ray.exceptions.RayError, ValueError) as error:
        raise UnreachableError(f"cluster {cluster!r}: {error}") from None


def connect(cluster: str, edge: str, name: str | None = None, timeout: float = 30.0) -> Client:
    """A client host at an edge router, linked up and ready."""
    found = member(cluster, edge, name or client_name(), timeout)
    made = Client(found.plan, edge, found.ask, found.incarnation, found.elsewhere)
    return made.start(timeout)


# -- managing a cluster by its name ----------------------------------------------------------------


def ask_all(
    actors: Mapping[str, Any], method: str, timeout: float, *args: object
) -> dict[str, Any]:
    """Call a method of every actor; None for those that do not answer in time, or fail."""
    refs = {name: getattr(actor, method).remote(*args) for name, actor in actors.items()}
    if refs:
        ray.wait(list(refs.values()), num_returns=len(refs), timeout=timeout)
    return {name: _result(ref) for name, ref in refs.items()}


def _result(ref: Any) -> Any:
    try:
        return ray.get(ref, timeout=0)
    except ray.exceptions.RayError:
        return None


def statuses(cluster: str, timeout: float = 5.0) -> dict[str, Any]:
    """Every router's status; None where there is no answer."""
    return ask_routers(cluster, "status", timeout)


def ask_routers(cluster: str, method: str, timeout: float, *args: object) -> dict[str, Any]:
    """Call a method of every router; None for those that do not answer in time, or fail."""
    actors = {name: ray.get_actor(name, namespace=cluster) for name in routers(cluster)}
    return ask_all(actors, method, timeout, *args)


def explained(
    cluster: str, namespace: str, nodes: Sequence[int], known: Sequence[str]
) -> list[dict[str, Any]]:
    """Whom a notification would reach: what each router on its way says, from the root down."""

    def ask(name: str, header: Sequence[int] | None) -> Any:
        actor = ray.get_actor(name, namespace=cluster)
        try:
            ref: Any = actor.explain.remote(namespace, header, list(nodes))
            return ray.get(ref, timeout=_CALL_SECONDS)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, ProtocolError) else error from None

    return way_down(ask, namespace, known)


def administer(cluster: str, namespace: str, events: Sequence[InsertNode | RemoveNode]) -> None:
    """Change a content graph; ProtocolError where that is impossible, and the rest is done.

    UnreachableError if the rendezvous point does not answer.
    """
    for start in range(0, len(events), _EVENTS_AT_ONCE):
        some = events[start : start + _EVENTS_AT_ONCE]
        try:
            actor = ray.get_actor(namespace, namespace=cluster)
            ray.get(actor.events.remote(some), timeout=_CALL_SECONDS)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, ProtocolError) else error from None
        except (ray.exceptions.RayError, ValueError) as error:
            raise _unreachable(cluster, namespace, error) from None


# -- many subscribers ------------------------------------------------------------------------------


class SubscriberHost:
    """A crowd as a Ray actor: it lives where Ray places it, and its subscribers with it."""

    def __init__(self, cluster: str, edge: str, name: str, record: bool) -> None:
        found = member(cluster, edge, name, _CALL_SECONDS)
        self._crowd = Crowd(
            found.plan, edge, found.ask, found.incarnation, record, found.elsewhere
        ).start()

    def subscribe(
        self, wanted: Sequence[tuple[str, str, int]], timeout: float
    ) -> dict[tuple[str, str, int], str]:
        """Subscribe (client, namespace, node) each; returns those refused, with the reason."""
        return self._crowd.subscribe(wanted, timeout)

    def unsubscribe(
        self, held: Sequence[tuple[str, str, int]], timeout: float
    ) -> dict[tuple[str, str, int], str]:
        """End subscriptions (client, namespace, node) each; returns those that were none."""
        return self._crowd.unsubscribe(held, timeout)

    def deliveries(self) -> int:
        """Notifications handed to subscribers so far."""
        return self._crowd.deliveries

    def received(self) -> dict[str, list[tuple[str, int]]]:
        """Per subscriber, the (namespace, position) of all that it got, in order."""
        return self._crowd.received()

    def status(self) -> dict[str, Any]:
        """Everything worth showing."""
        return self._crowd.host.status()

    def stop(self) -> None:
        """End in good order."""
        self._crowd.close()
