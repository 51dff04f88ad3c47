"""The sessions with the neighbours below: their subscriptions, kept in step with their listings.

Kulik 2004, sections 3.4.6 and 3.4.7. A neighbour says what it wants in numbered messages; what
it is answered, and the notifications that it is due, are numbered too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from routing import messages
from routing.api import Address, Config, Effect, Report, Send
from routing.batch import Batch
from routing.content_graph import NodeId
from routing.messages import UNKNOWN, Session, Setup
from routing.nodes import Nodes
from routing.session import Answer, Downstream, Rejected, Released, Stream, Told
from routing.table import Neighbor, Table

#: Identifiers and counts, of four bytes each, in one message of set-ups; a single one may be more.
_SETUP_WORDS = 200_000


class DownstreamSessions:
    """Every session of one namespace in which this router is the upper end."""

    def __init__(
        self,
        name: Address,
        config: Config,
        table: Table,
        nodes: Nodes,
        stream: Stream,
        emit: Callable[[Effect], None],
    ) -> None:
        self._name = name
        self._config = config
        self._table = table
        self._nodes = nodes
        self._stream = stream
        self._emit = emit
        self._sessions = nodes.down

    # -- messages ------------------------------------------------------------------------

    def receive(self, src: Neighbor, message: messages.UpMessage, now: float) -> None:
        """Subscribe, Unsubscribe or Resubscribe from a downstream neighbour."""
        if isinstance(message, messages.Resubscribe) and message.listed:
            self._open(src, message, now)
            return
        if not self._in_session(src, message.session):
            return
        down = self._sessions[src]
        if isinstance(message, messages.Resubscribe):
            self._refresh(down, message, now)
            return
        if message.number != down.received + 1:
            if message.number > down.received:
                self._ask_to_reopen(down)
            return
        down.received += 1
        down.heard = now
        if isinstance(message, messages.Subscribe):
            for node in message.nodes:
                self._nodes.subscribe(src, node, marked=True)
        else:
            for node in message.nodes:
                self._unsubscribe(down, node)

    def _unsubscribe(self, down: Downstream, node: NodeId) -> None:
        # The acknowledgement goes first: set-ups that this sets free are for the table without.
        down.answer(Released(node))
        if node in down.held:
            self._nodes.unsubscribe(down.neighbor, node)

    def _in_session(self, src: Neighbor, session: Session) -> bool:
        """Whether a message belongs to the neighbour's live session; asks for a new one if not."""
        down = self._sessions.get(src)
        if down is not None and session < down.session:
            return False
        if down is not None and down.live and session == down.session:
            return True
        stranger = down or Downstream(src)
        stranger.session = max(stranger.session, session)
        self._ask_to_reopen(stranger)
        return False

    def _ask_to_reopen(self, down: Downstream) -> None:
        down.live = False
        down.outbox.clear()
        self._report("resynchronise", neighbor=down.neighbor)
        refusal = messages.ResubscribeAck(self._name, down.session, down.sent, ok=False)
        self._emit(Send(down.neighbor, refusal))

    def _open(self, src: Neighbor, message: messages.Resubscribe, now: float) -> None:
        """Bring a neighbour's subscriptions in step with its listing (sections 3.4.7, 3.4.6)."""
        down = self._sessions.setdefault(src, Downstream(src))
        if message.session < down.session or (down.live and message.session == down.session):
            return
        restarted = message.session[0] > down.session[0] > 0
        linger = now + self._config.lifetime if restarted else 0.0
        down.open(message.session, now)
        for node in sorted(down.held.nodes.difference(message.nodes, message.requests)):
            self._nodes.unsubscribe(src, node, linger)
        down.sent = 1
        down.owed = {node for node in message.nodes if src not in self._table.subscribers(node)}
        if not down.owed:
            down.synced = self._stream.now()[2]
        self.acknowledge(down, opened=True)
        down.outbox.extend(map(Told, self._table.opening(src)))
        for node in message.nodes:
            self._nodes.subscribe(src, node, marked=False)
        # All requests are withdrawn before any is answered: a set-up must not name, as parent or
        # child, a node that the neighbour has lost and is only about to be told of.
        for node in message.requests:
            if node in down.held:
                self._nodes.withdraw(src, node)
        for node in message.requests:
            self._nodes.subscribe(src, node, marked=True)

    def _refresh(self, down: Downstream, message: messages.Resubscribe, now: float) -> None:
        if message.number < down.received:
            return
        current = message.received == down.sent
        if message.number > down.received or (current and message.digest != down.held.digest()):
            self._ask_to_reopen(down)
            return
        down.heard = now
        down.interrupted = False
        self.acknowledge(down)

    # -- sending -------------------------------------------------------------------------

    def acknowledge(self, down: Downstream, opened: bool = False) -> None:
        """Say what this side has sent and, once in step, how far the stream is whole."""
        if not down.live:
            return
        self._flush(down)
        since, mark, upper = self._stream.now()
        if down.owed:
            mark = UNKNOWN
        ack = messages.ResubscribeAck(
            self._name,
            down.session,
            down.sent,
            True,
            opened,
            down.notified,
            max(since, down.synced),
            mark,
            upper,
        )
        self._emit(Send(down.neighbor, ack))

    def acknowledge_all(self) -> None:
        """The stream has changed in a way that whoever listens must hear of."""
        for down in self._live():
            if len(down.held):
                self.acknowledge(down)

    def notify(self, neighbor: Neighbor, batch: Batch) -> None:
        """Send notifications to a neighbour, after every answer that they rely on."""
        down = self._sessions[neighbor]
        if not down.live:
            return
        self._flush(down)
        notify = messages.Notify(self._name, down.session, down.notified + 1, batch)
        down.notified += len(batch)
        self._emit(Send(down.neighbor, notify))

    def flush(self) -> None:
        """Send the answers that have gathered."""
        for down in self._live():
            self._flush(down)

    def _flush(self, down: Downstream) -> None:
        """One message for each run of answers of a kind, in the order in which they arose."""
        if not down.outbox:
            return
        outbox, down.outbox = down.outbox, []
        for kind, run in groupby(outbox, type):
            for message in _answers(self._name, down, kind, list(run), self._stream.now()[2]):
                self._emit(Send(down.neighbor, message))

    # -- links and time ------------------------------------------------------------------

    def link_down(self, neighbor: Neighbor) -> None:
        """Nothing can be sent; subscriptions stay until they expire."""
        if neighbor in self._sessions:
            self._sessions[neighbor].live = False

    def link_up(self, neighbor: Neighbor) -> None:
        """Whatever was on the link may be lost: start over."""
        down = self._sessions.get(neighbor)
        if down is not None and len(down.held):
            self._ask_to_reopen(down)

    def restarted(self, neighbor: Neighbor, incarnation: int, now: float) -> None:
        """A neighbour has forgotten everything, and will soon ask for most of it again."""
        down = self._sessions.get(neighbor)
        if down is not None and down.session[0] < incarnation:
            self._drop(down, linger=now + self._config.lifetime)

    def drop(self, neighbor: Neighbor) -> None:
        """A neighbour is no longer below this router."""
        if neighbor in self._sessions:
            self._drop(self._sessions[neighbor])

    def _drop(self, down: Downstream, linger: float = 0.0) -> None:
        """Forget what a neighbour was subscribed to."""
        down.live = False
        down.outbox.clear()
        for node in sorted(down.held.nodes):
            self._nodes.unsubscribe(down.neighbor, node, linger)

    def tick(self, now: float) -> None:
        """Give up on neighbours that have fallen silent (Figure 3-28)."""
        for down in list(self._sessions.values()):
            self._expire(down, now)

    def _expire(self, down: Downstream, now: float) -> None:
        """A silent neighbour's subscriptions are interrupted, asked after, and then dropped."""
        if not len(down.held):
            return
        lifetime = self._config.lifetime
        if now >= down.heard + 2 * lifetime:
            self._report("expired", neighbor=down.neighbor, nodes=len(down.held))
            self._drop(down)
        elif now >= down.heard + lifetime and not down.interrupted:
            down.interrupted = True
            self._report("interrupted", neighbor=down.neighbor)
            self._ask_to_reopen(down)

    def timeouts(self) -> Iterator[float]:
        """When a tick is due."""
        lifetime = self._config.lifetime
        for down in self._sessions.values():
            if len(down.held):
                yield down.heard + lifetime * (2 if down.interrupted else 1)

    # -- small things --------------------------------------------------------------------

    def _live(self) -> Iterator[Downstream]:
        sessions = self._sessions
        return (sessions[i] for i in sorted(sessions) if sessions[i].live)

    def _report(self, name: str, **fields: object) -> None:
        self._emit(Report(name, {"namespace": self._name, **fields}))


def _answers(
    name: Address, down: Downstream, kind: type, run: list[Answer], upper: int
) -> Iterator[messages.DownMessage]:
    """The messages for a run of answers of one kind."""
    if kind is Rejected:
        for item in run:
            assert isinstance(item, Rejected)
            down.sent += 1
            yield messages.Reject(name, down.session, down.sent, (item.node,), item.reason)
        return
    if kind is Released:
        down.sent += 1
        nodes = tuple(item.node for item in run if isinstance(item, Released))
        yield messages.UnsubscribeAck(name, down.session, down.sent, nodes)
        return
    for some in _bounded(run):
        down.sent += 1
        setups = tuple(item for item in some if isinstance(item, Setup))
        graph = tuple(item.setup for item in some if isinstance(item, Told))
        yield messages.GraphSetup(name, down.session, down.sent, upper, setups, graph)


def _bounded(run: list[Answer]) -> Iterator[list[Answer]]:
    """Set-ups in pieces that fit into frames: a listing may ask for a million nodes."""
    some: list[Answer] = []
    words = 0
    for item in run:
        setup = item.setup if isinstance(item, Told) else item
        assert isinstance(setup, Setup)
        words += 3 + len(setup.parents) + len(setup.children)
        if some and words > _SETUP_WORDS:
            yield some
            some, words = [], 3 + len(setup.parents) + len(setup.children)
        some.append(item)
    yield some
