"""What routers say to one another.

Three kinds travel on a link. *Session* messages keep the subscriptions of a router and its
upstream neighbour in step, per namespace: Subscribe, Unsubscribe and Resubscribe go up;
GraphSetup, UnsubscribeAck, Reject, ResubscribeAck and Notify come down. Each carries its session
and a number in it, so that a lost or doubled message is noticed. *End-to-end* messages go up the
tree to the rendezvous point and back along the recorded path. Hello names a router's life.

Wire form: `routing.wire`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from routing.batch import Batch

Session = tuple[int, int]
"""(incarnation of the downstream router, count of its sessions): later ones are greater."""

Trace = bytes
"""A context (`routing.trace`) or, for most messages, nothing."""

Digest = tuple[int, int]
"""(how many nodes, order-free hash of them)."""

PATH_MAX = 64
"""Routers between a client and a rendezvous point, at the most."""

UNKNOWN = -1
"""A position that is not known (yet)."""


class Setup(NamedTuple):
    """Where one node stands in the receiver's graph (Kulik 2004, section 3.4.6)."""

    node: int
    parents: tuple[int, ...]
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hello:
    """I have come up; a new incarnation has forgotten everything that its last life knew."""

    incarnation: int


# -- up a session --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscriptions to nodes that the sender lacks: each asks for a graph set-up (3.4.6)."""

    namespace: str
    session: Session
    number: int
    nodes: tuple[int, ...]
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The sender no longer wants these; it keeps them until they are acknowledged (3.4.8)."""

    namespace: str
    session: Session
    number: int
    nodes: tuple[int, ...]
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """Refresh a session by its digest; or, with `listed`, open a new one with the whole set.

    `number` and `received` count the session messages sent and received so far. In a listing,
    `nodes` are those the sender has in its graph and `requests` those it wants set up.
    """

    namespace: str
    session: Session
    number: int
    received: int
    digest: Digest
    listed: bool = False
    nodes: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()
    trace: Trace = b""


# -- down a session ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphSetup:
    """The nodes are subscribed to; this is where they stand in the receiver's graph (3.4.6).

    Whatever has a position beyond `upper` will come. `graph` tells of nodes for their own sake,
    to routers that hold whole graphs (3.4.3).
    """

    namespace: str
    session: Session
    number: int
    upper: int
    setups: tuple[Setup, ...]
    graph: tuple[Setup, ...] = ()
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class UnsubscribeAck:
    """No notification naming these nodes follows on this link."""

    namespace: str
    session: Session
    number: int
    nodes: tuple[int, ...]
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class Reject:
    """These subscriptions do not exist, or no longer (6.1)."""

    namespace: str
    session: Session
    number: int
    nodes: tuple[int, ...]
    reason: str
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class ResubscribeAck:
    """The sender's view of the session (3.4.7) and of its own stream of notifications.

    `number` counts the session messages sent, `notified` the notifications. Where `mark` is
    known, the stream on this link holds everything due with a position in (since, mark], and
    nothing sent so far is beyond `upper`. Not `ok`: the receiver must open a new session.
    """

    namespace: str
    session: Session
    number: int
    ok: bool
    opened: bool = False
    notified: int = 0
    since: int = UNKNOWN
    mark: int = UNKNOWN
    upper: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Notify:
    """A batch of notifications: headers for the routers, payloads for the subscribers.

    `number` is that of the first one: a session's notifications are numbered one by one, so
    that batches which follow each other can be joined on the way.
    """

    namespace: str
    session: Session
    number: int
    batch: Batch


# -- end to end ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SequenceRequest:
    """Which sequence numbers do a node and its descendants have? (3.4.9, Figure 3-31)"""

    namespace: str
    path: tuple[str, ...]
    request: int
    node: int
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class SequenceReply:
    """The numbers that are not zero, and the last position of the log."""

    namespace: str
    path: tuple[str, ...]
    request: int
    position: int
    numbers: tuple[tuple[int, int], ...]
    trace: Trace = b""


@dataclass(frozen=True, slots=True)
class RecoverRequest:
    """Send again what these nodes cover with a position in (after, upto]."""

    namespace: str
    path: tuple[str, ...]
    request: int
    nodes: tuple[int, ...]
    after: int
    upto: int


@dataclass(frozen=True, slots=True)
class RecoverReply:
    """What the log has up to `through`; below `first` it has forgotten.

    Each header lists every node that covers the notification, so that the receiver finds all
    of its own among them.
    """

    namespace: str
    path: tuple[str, ...]
    request: int
    first: int
    through: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Publish:
    """Publications of one publisher on their way to the rendezvous point.

    (publisher, host, incarnation, number) names one for good: however often it arrives, it is
    published once. Their numbers stand where a batch has positions; a payload is the tag that
    authenticates the publisher (6.1) and the body (`routing.publications`).
    """

    namespace: str
    path: tuple[str, ...]
    publisher: str
    host: str
    incarnation: int
    version: int
    batch: Batch


class Refusal(IntEnum):
    """Why a publication was refused, for programs; numbers never change."""

    NONE = 0
    NO_ACCESS = 1
    UNKNOWN_NODE = 2
    #: The header was made before the graph's latest insertion.
    OLD_VERSION = 3
    TOO_MANY_NODES = 4


class Placed(NamedTuple):
    """Publications with numbers and positions in the log that follow each other."""

    number: int
    position: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class PublishAck:
    """These publications are in the log."""

    namespace: str
    path: tuple[str, ...]
    publisher: str
    incarnation: int
    placed: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class PublishRefusal:
    """A publication was refused, for this reason."""

    namespace: str
    path: tuple[str, ...]
    publisher: str
    incarnation: int
    number: int
    reason: str
    code: Refusal


UpMessage = Subscribe | Unsubscribe | Resubscribe
DownMessage = GraphSetup | UnsubscribeAck | Reject | ResubscribeAck | Notify
RequestMessage = SequenceRequest | RecoverRequest | Publish
ReplyMessage = SequenceReply | RecoverReply | PublishAck | PublishRefusal
Message = Hello | UpMessage | DownMessage | RequestMessage | ReplyMessage
