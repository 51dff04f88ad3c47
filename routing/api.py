"""The one contract between protocols and whatever runs them.

A router is an object with no clock, socket or thread: events in, effects out. The simulator and
the actors hold the same objects and perform the same effects. Whoever takes part in the overlay
is a router in this sense: a rendezvous point is one that owns a namespace, and a host of
subscribers is one with local clients and a single neighbour.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from routing.content_graph import NodeId
from routing.errors import ProtocolError
from routing.messages import Message, Refusal, Trace
from routing.store import Store

__all__ = [
    "LOCAL",
    "Accepted",
    "Address",
    "Config",
    "Confirmed",
    "Deliver",
    "Effect",
    "Event",
    "InsertNode",
    "LinkDown",
    "LinkUp",
    "NodeId",
    "Notification",
    "ProtocolError",
    "Publication",
    "Publish",
    "Received",
    "Refusal",
    "Refused",
    "RemoveNode",
    "Report",
    "Reroute",
    "Router",
    "Send",
    "Start",
    "Subscribe",
    "Tick",
    "Unsubscribe",
    "View",
]

Address = str
"""The name of a router; a rendezvous point's address is its namespace (Kulik 2004, 3.4.2)."""

LOCAL: Address = ""
"""The neighbour that stands for all local clients of a router."""


# -- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """The router has come up, the first time or again; always its first event."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A local client wants what the node covers."""

    client: str
    namespace: Address
    node: NodeId


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A local client no longer wants the node; nothing more is delivered to it for the node."""

    client: str
    namespace: Address
    node: NodeId


class Publication(NamedTuple):
    """The lowest nodes that match a notification, and a body that no router reads."""

    nodes: tuple[NodeId, ...]
    body: bytes
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class Publish:
    """A local client publishes, in this order.

    Tickets count up from `ticket` and come back in Accepted or Refused; `key` is the publisher's
    secret where the namespace has an access list; `version` is that of the graph the nodes were
    found in.
    """

    client: str
    namespace: Address
    publications: tuple[Publication, ...]
    ticket: int = 0
    key: bytes = b""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class InsertNode:
    """The administrator adds a node to this rendezvous point's graph (3.4.4, 3.4.6).

    With `version`, only if the graph is still at it: its place was found in that version.
    """

    node: NodeId
    parents: tuple[NodeId, ...]
    children: tuple[NodeId, ...]
    version: int | None = None


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """The administrator takes a node out; its subscribers are told so by a Reject."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Received:
    """A neighbour's message has arrived."""

    src: Address
    message: Message


@dataclass(frozen=True, slots=True)
class LinkUp:
    """A link works (again); what was on it before may be lost."""

    neighbor: Address


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A link is known to be broken."""

    neighbor: Address


@dataclass(frozen=True, slots=True)
class Reroute:
    """The dissemination trees were computed anew: these are the next hops from now on."""

    next_hop: Mapping[Address, Address]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; harmless when nothing is due."""


Event = (
    Start
    | Subscribe
    | Unsubscribe
    | Publish
    | InsertNode
    | RemoveNode
    | Received
    | LinkUp
    | LinkDown
    | Reroute
    | Tick
)


# -- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """Put a message on the link to a neighbour."""

    dst: Address
    message: Message


@dataclass(frozen=True, slots=True)
class Notification:
    """What a subscriber receives; the position numbers the namespace's publications."""

    namespace: Address
    position: int
    body: bytes
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand a notification to a local client, once."""

    client: str
    notification: Notification


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A client's subscription is in force: whatever is published from now on will reach it."""

    client: str
    namespace: Address
    node: NodeId


@dataclass(frozen=True, slots=True)
class Accepted:
    """A client's publications are in the rendezvous point's log.

    So many of them, with tickets and positions that count up from these.
    """

    client: str
    namespace: Address
    ticket: int
    position: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Refused:
    """A client's subscription (node) or publication (ticket) was turned down or withdrawn."""

    client: str
    namespace: Address
    reason: str
    node: NodeId | None = None
    ticket: int | None = None
    code: Refusal = Refusal.UNKNOWN_NODE


@dataclass(frozen=True, slots=True)
class Report:
    """Something worth counting or showing: a name and its fields."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


Effect = Send | Deliver | Confirmed | Accepted | Refused | Report


# -- the router --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Config:
    """Times in seconds and bounds, the same for every router of a network."""

    #: Between two resubscriptions of one namespace (3.4.7).
    period: float = 1.0
    #: Silence after which a neighbour's subscriptions count as interrupted; twice it drops them.
    lifetime: float = 4.0
    #: Before an unanswered end-to-end request or publication is sent again.
    retry: float = 2.0
    #: Publications of one publisher that may wait for their acknowledgement.
    window: int = 64
    #: Notifications in one recovery reply.
    recover_batch: int = 256


@dataclass(slots=True)
class View:
    """What a router knows of the world when it starts."""

    neighbors: tuple[Address, ...]
    #: The rendezvous forwarding table: per namespace, the neighbour towards it (3.4.1).
    next_hop: Mapping[Address, Address]
    rng: random.Random
    #: Counts the lives of this router; a restart has a higher one.
    incarnation: int = 1
    config: Config = field(default_factory=Config)
    #: What survives a restart, for a router that is a rendezvous point.
    store: Store | None = None


class Router(ABC):
    """A protocol's state machine at one place in the overlay."""

    def __init__(self, address: Address, view: View) -> None:
        self.address = address
        self.view = view

    @abstractmethod
    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take one event and say what to do; the only way the state changes.

        Raises ProtocolError for an illegal request of a local client or administrator, before
        anything has changed. What neighbours send never raises: it is handled or reported.
        """

    @abstractmethod
    def next_timeout(self) -> float | None:
        """A Tick is due at or after this time; None while nothing waits for time to pass."""

    @abstractmethod
    def state_size(self) -> dict[str, int]:
        """Table entries by kind, and the bytes they take, for experiments."""

    @abstractmethod
    def check(self) -> None:
        """Assert the invariants; tests and the simulator call it."""
