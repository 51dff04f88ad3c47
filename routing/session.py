"""The two ends of a session: what a router and its upstream neighbour know of each other.

A session belongs to one namespace on one link. The downstream router opens it with a listing of
everything it wants; from then on both sides only say what changes, in numbered messages on a
FIFO link. Whoever misses a number, finds the digests unequal or has lost the link has a new one
opened; nothing else is ever repeated. So each side always acts on an unbroken stream, and the
set of nodes that a router holds is, message by message, what its upstream neighbour holds for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from routing.api import Address
from routing.digest import NodeSet
from routing.messages import UNKNOWN, Session, Setup
from routing.store import Store


@dataclass(frozen=True, slots=True)
class Rejected:
    """One node of a Reject that waits to be sent."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True)
class Released:
    """One node of an UnsubscribeAck that waits to be sent."""

    node: int


@dataclass(frozen=True, slots=True)
class Told:
    """One node of the graph, told for its own sake, that waits to be sent."""

    setup: Setup


Answer = Setup | Released | Rejected | Told


class Stream:
    """The notifications from the rendezvous point: without a break in (since, mark], and nothing
    seen beyond upper. At the rendezvous point itself everything in its store has been seen."""

    __slots__ = ("_store", "mark", "since", "upper")

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self.since, self.mark, self.upper = 0, UNKNOWN, 0

    def now(self) -> tuple[int, int, int]:
        """(since, mark, upper): see messages.ResubscribeAck."""
        if self._store is not None:
            return 0, self._store.last, self._store.last
        return self.since, self.mark, self.upper


@dataclass(slots=True)
class Upstream:
    """The session with the next hop towards the rendezvous point."""

    neighbor: Address
    incarnation: int
    up: bool = True
    #: None until one is needed, and after the link went down.
    session: Session | None = None
    count: int = 0
    #: Whether the neighbour has answered the listing; `attempts` counts listings until it does.
    opened: bool = False
    attempts: int = 0
    sent: int = 0
    received: int = 0
    notified: int = 0
    #: Nodes that were closing when the session was opened: its answer closes them.
    closing: list[int] = field(default_factory=list)
    #: Whether notifications may have been lost since the last acknowledgement.
    broken: bool = True
    interrupted: bool = False
    heard: float = 0.0
    refresh_at: float | None = None

    def open(self, closing: list[int], now: float) -> Session:
        """Begin a new session."""
        self.count += 1
        self.session = (self.incarnation, self.count)
        self.opened = False
        self.attempts += 1
        self.sent = self.received = self.notified = 0
        self.closing = closing
        self.broken = True
        if self.attempts == 1:
            self.heard = now
        return self.session


@dataclass(slots=True)
class Downstream:
    """The session with a neighbour farther from the rendezvous point."""

    neighbor: Address
    #: The latest one seen; nothing is sent while it is not live.
    session: Session = (0, 0)
    live: bool = False
    received: int = 0
    sent: int = 0
    notified: int = 0
    #: What the neighbour is subscribed to, waiting ones included.
    held: NodeSet = field(default_factory=NodeSet)
    #: Nodes that the neighbour has in its graph and this router has not (yet).
    owed: set[int] = field(default_factory=set)
    #: Nodes to set up once nothing is owed: before, their place could not be told.
    deferred: list[int] = field(default_factory=list)
    #: The last position sent before the neighbour's subscriptions were all in force.
    synced: int = UNKNOWN
    heard: float = 0.0
    interrupted: bool = False
    outbox: list[Answer] = field(default_factory=list)

    def answer(self, answer: Answer) -> None:
        """Have an answer sent; without a session there is nobody to read it."""
        if self.live:
            self.outbox.append(answer)

    def open(self, session: Session, now: float) -> None:
        """Begin a new session."""
        self.session = session
        self.live = True
        self.received = self.sent = self.notified = 0
        self.owed.clear()
        self.deferred.clear()
        self.outbox.clear()
        self.synced = UNKNOWN
        self.heard = now
        self.interrupted = False
