"""One namespace at one router: subscriptions, graph set-up, soft state and forwarding.

Kulik 2004, sections 3.4.5 to 3.4.8, over any table. A node is in one of three phases here:

    PENDING   asked for upstream, not in the table yet
    ACTIVE    in the table
    CLOSING   given up and still in the table until the upstream neighbour says that no
              notification naming it follows; whoever wants it meanwhile waits, and it is then
              asked for anew

so that never more than one request for a node is under way, and every graph set-up arrives in
exactly the table for which it was worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from routing import messages
from routing.api import LOCAL, Address, Effect, Report, Send, View
from routing.batch import Batch
from routing.content_graph import NodeId
from routing.digest import NodeSet
from routing.errors import ProtocolError
from routing.messages import UNKNOWN, Session, Setup
from routing.rendezvous import RendezvousPoint
from routing.session import Answer, Downstream, Rejected, Released, Told, Upstream
from routing.store import Entry
from routing.subscriber import SubscriberEnd
from routing.table import Neighbor, Table, whole
from routing.trace import pack_traces

#: How often the wait before the next listing doubles while none is answered.
_BACKOFF_MAX = 3


class Phase(Enum):
    """Where a node is in its life at a router."""

    PENDING = "pending"
    ACTIVE = "active"
    CLOSING = "closing"


@dataclass(slots=True)
class NodeState:
    """A node's phase, and who waits for it: per neighbour, whether it needs a graph set-up."""

    phase: Phase
    waiting: dict[Neighbor, bool] = field(default_factory=dict)
    #: Kept until then although nobody holds it: a restarted neighbour will ask for it again.
    linger: float = 0.0


class Namespace:
    """The state of one namespace at one router."""

    def __init__(
        self,
        name: Address,
        view: View,
        table: Table,
        end: SubscriberEnd,
        emit: Callable[[Effect], None],
        rendezvous: RendezvousPoint | None,
    ) -> None:
        self.name = name
        self.table = table
        self.end = end
        self.rendezvous = rendezvous
        self.nodes: dict[NodeId, NodeState] = {}
        self.up = Upstream(view.next_hop.get(name, LOCAL), view.incarnation)
        self.down: dict[Neighbor, Downstream] = {}
        self._config = view.config
        self._rng = view.rng
        self._emit = emit
        self._requests: list[NodeId] = []
        self._releases: list[NodeId] = []
        #: Nodes that nobody holds, kept for now; none is given up before `_linger_until`.
        self._lingering: set[NodeId] = set()
        self._linger_until = 0.0
        # The stream from the rendezvous point: without a break in (since, mark], and nothing
        # seen beyond upper. At the rendezvous point itself, see `stream`.
        self._since, self._mark, self._upper = 0, UNKNOWN, 0
        if rendezvous is not None and table.whole_graph:
            for setup in whole(rendezvous.store.graph):
                table.learn(setup)

    # -- the stream of notifications -----------------------------------------------------

    def stream(self) -> tuple[int, int, int]:
        """(since, mark, upper): see messages.ResubscribeAck."""
        if self.rendezvous is not None:
            last = self.rendezvous.store.last
            return 0, last, last
        return self._since, self._mark, self._upper

    # -- subscriptions from below --------------------------------------------------------

    def subscribe(self, neighbor: Neighbor, node: NodeId, marked: bool) -> None:
        """A neighbour, or the local clients, want a node; `marked` asks for a graph set-up."""
        if neighbor != LOCAL:
            self.down[neighbor].held.add(node)
        state = self.nodes.get(node)
        if state is None:
            state = self.nodes[node] = NodeState(Phase.PENDING)
            self._request(node)
        if neighbor in self.table.subscribers(node):
            return
        if state.phase is Phase.ACTIVE:
            self._admit(neighbor, node, state, marked)
        else:
            state.waiting[neighbor] = marked
            if neighbor != LOCAL and not marked:
                self.down[neighbor].owed.add(node)

    def unsubscribe(self, neighbor: Neighbor, node: NodeId, linger: float = 0.0) -> None:
        """A neighbour, or the last local client, gives a node up."""
        state = self.nodes.get(node)
        if state is not None:
            self._withdraw(neighbor, node, state)
            self._release_if_unused(node, state, linger)
        if neighbor != LOCAL:
            down = self.down[neighbor]
            down.held.discard(node)
            self._no_longer_owed(down, node)

    def _admit(self, neighbor: Neighbor, node: NodeId, state: NodeState, marked: bool) -> None:
        """Subscribe a neighbour to an active node, or defer it until its table can be matched."""
        if neighbor == LOCAL:
            self.table.attach(node, LOCAL)
            self.end.confirmed(self.table.topic(node), self.stream()[2])
            return
        down = self.down[neighbor]
        if marked and down.owed:
            state.waiting[neighbor] = True
            down.deferred.append(node)
            return
        if marked:
            for setup in self.table.setups(node, neighbor):
                down.answer(setup)
        self.table.attach(node, neighbor)
        self._no_longer_owed(down, node)

    def _no_longer_owed(self, down: Downstream, node: NodeId) -> None:
        """Once nothing is owed, both tables match again and set-ups can go out."""
        if node not in down.owed:
            return
        down.owed.discard(node)
        if not down.owed:
            self._in_step(down)

    def _in_step(self, down: Downstream) -> None:
        down.synced = self.stream()[2]
        deferred, down.deferred = down.deferred, []
        for node in deferred:
            state = self.nodes.get(node)
            if state is None or state.phase is not Phase.ACTIVE:
                continue
            if state.waiting.pop(down.neighbor, False):
                self._admit(down.neighbor, node, state, True)
        self._acknowledge(down)

    def _withdraw(self, neighbor: Neighbor, node: NodeId, state: NodeState) -> None:
        state.waiting.pop(neighbor, None)
        if neighbor in self.table.subscribers(node):
            self.table.detach(node, neighbor)

    def _release_if_unused(self, node: NodeId, state: NodeState, linger: float = 0.0) -> None:
        if state.phase is not Phase.ACTIVE or state.waiting or self.table.subscribers(node):
            return
        if linger:
            state.linger = linger
            self._linger_until = min(self._linger_until, linger) if self._lingering else linger
            self._lingering.add(node)
        else:
            self._close(node, state)

    def _close(self, node: NodeId, state: NodeState) -> None:
        state.phase = Phase.CLOSING
        self._lingering.discard(node)
        self.up.wanted.discard(node)
        self._releases.append(node)

    def _request(self, node: NodeId) -> None:
        self.up.wanted.add(node)
        self._requests.append(node)

    # -- answers from above --------------------------------------------------------------

    def _set_up(self, setup: Setup) -> None:
        """Figure 3-24: the node enters the table, and whoever waits for it is subscribed."""
        state = self.nodes.get(setup.node)
        if state is None or state.phase is not Phase.PENDING:
            raise ProtocolError(f"node {setup.node} was set up and not asked for")
        self.table.insert(setup)
        state.phase = Phase.ACTIVE
        waiting, state.waiting = state.waiting, {}
        for neighbor, marked in waiting.items():
            self._admit(neighbor, setup.node, state, marked)
        self._release_if_unused(setup.node, state)

    def _learn(self, setup: Setup) -> None:
        """A node that nobody here asked for, told to routers that hold whole graphs."""
        for neighbor in self.table.learn(setup):
            self.down[neighbor].answer(Told(setup))

    def _closed(self, node: NodeId) -> None:
        """No notification naming the node follows: it can go, and be asked for anew."""
        state = self.nodes.get(node)
        if state is None or state.phase is not Phase.CLOSING:
            return
        self.table.remove(node)
        if state.waiting:
            state.phase = Phase.PENDING
            self._request(node)
        else:
            del self.nodes[node]

    def _rejected(self, node: NodeId, reason: str) -> None:
        """The node does not exist (any more): nothing of it stays, and its subscribers are told."""
        state = self.nodes.pop(node, None)
        if state is None:
            return
        self.up.wanted.discard(node)
        self._lingering.discard(node)
        for neighbor in sorted({*state.waiting, *self.table.subscribers(node)}):
            self._withdraw(neighbor, node, state)
            if neighbor == LOCAL:
                self.end.refused(self.table.topic(node), reason)
                continue
            down = self.down[neighbor]
            down.held.discard(node)
            down.answer(Rejected(node, reason))
            self._no_longer_owed(down, node)
        if state.phase is not Phase.PENDING:
            self.table.remove(node)

    # -- messages from below -------------------------------------------------------------

    def receive_up(self, src: Neighbor, message: messages.UpMessage, now: float) -> None:
        """Subscribe, Unsubscribe or Resubscribe from a downstream neighbour."""
        down = self.down.get(src)
        if isinstance(message, messages.Resubscribe):
            if message.listed:
                self._open_downstream(src, message, now)
            elif self._in_session(src, down, message.session):
                self._refresh_downstream(self.down[src], message, now)
            return
        if not self._in_session(src, down, message.session):
            return
        down = self.down[src]
        if message.number != down.received + 1:
            if message.number > down.received:
                self._ask_to_reopen(down)
            return
        down.received += 1
        down.heard = now
        if isinstance(message, messages.Subscribe):
            for node in message.nodes:
                self.subscribe(src, node, marked=True)
        else:
            for node in message.nodes:
                self._unsubscribe_down(down, node)

    def _unsubscribe_down(self, down: Downstream, node: NodeId) -> None:
        # The acknowledgement goes first: set-ups that this sets free are for the table without.
        down.answer(Released(node))
        if node in down.held:
            self.unsubscribe(down.neighbor, node)

    def _in_session(self, src: Neighbor, down: Downstream | None, session: Session) -> bool:
        """Whether a message belongs to the neighbour's live session; asks for a new one if not."""
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
        refusal = messages.ResubscribeAck(self.name, down.session, down.sent, ok=False)
        self._emit(Send(down.neighbor, refusal))

    def _open_downstream(self, src: Neighbor, message: messages.Resubscribe, now: float) -> None:
        """Bring a neighbour's subscriptions in step with its listing (sections 3.4.7, 3.4.6)."""
        down = self.down.setdefault(src, Downstream(src))
        if message.session < down.session or (down.live and message.session == down.session):
            return
        restarted = message.session[0] > down.session[0] > 0
        linger = now + self._config.lifetime if restarted else 0.0
        down.open(message.session, now)
        for node in sorted(down.held.nodes.difference(message.nodes, message.requests)):
            self.unsubscribe(src, node, linger)
        down.sent = 1
        down.owed = {node for node in message.nodes if src not in self.table.subscribers(node)}
        if not down.owed:
            down.synced = self.stream()[2]
        self._acknowledge(down, opened=True)
        down.outbox.extend(map(Told, self.table.opening(src)))
        for node in message.nodes:
            self.subscribe(src, node, marked=False)
        # All requests are withdrawn before any is answered: a set-up must not name, as parent or
        # child, a node that the neighbour has lost and is only about to be told of.
        for node in message.requests:
            if node in down.held:
                self._withdraw(src, node, self.nodes[node])
        for node in message.requests:
            self.subscribe(src, node, marked=True)

    def _refresh_downstream(
        self, down: Downstream, message: messages.Resubscribe, now: float
    ) -> None:
        if message.number < down.received:
            return
        current = message.received == down.sent
        if message.number > down.received or (current and message.digest != down.held.digest()):
            self._ask_to_reopen(down)
            return
        down.heard = now
        down.interrupted = False
        self._acknowledge(down)

    def _acknowledge(self, down: Downstream, opened: bool = False) -> None:
        """Say what this side has sent and, once in step, how far the stream is whole."""
        if not down.live:
            return
        self._flush_down(down)
        since, mark, upper = self.stream()
        if down.owed:
            mark = UNKNOWN
        ack = messages.ResubscribeAck(
            self.name,
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

    # -- messages from above -------------------------------------------------------------

    def receive_down(self, src: Neighbor, message: messages.DownMessage, now: float) -> None:
        """GraphSetup, UnsubscribeAck, Reject, ResubscribeAck or Notify from upstream."""
        if src != self.up.neighbor or self.rendezvous is not None:
            self._report("misrouted", src=src)
            return
        if isinstance(message, messages.Notify):
            self._notified(message, now)
            return
        if message.session != self.up.session:
            return
        if isinstance(message, messages.ResubscribeAck):
            self._acknowledged(message, now)
            return
        if message.number != self.up.received + 1 or not self.up.opened:
            if message.number > self.up.received:
                self._open_upstream(now)
            return
        self.up.received += 1
        try:
            self._answered(message)
        except ProtocolError as error:
            self._report("bad-setup", reason=str(error))
            self.up.opened = False

    def _answered(
        self, message: messages.GraphSetup | messages.UnsubscribeAck | messages.Reject
    ) -> None:
        if isinstance(message, messages.GraphSetup):
            self._upper = max(self._upper, message.upper)
            for setup in message.graph:
                self._learn(setup)
            for setup in message.setups:
                self._set_up(setup)
        elif isinstance(message, messages.UnsubscribeAck):
            for node in message.nodes:
                self._closed(node)
        else:
            for node in message.nodes:
                self._rejected(node, message.reason)

    def _acknowledged(self, ack: messages.ResubscribeAck, now: float) -> None:
        up = self.up
        if not ack.ok:
            self._open_upstream(now)
            return
        if ack.opened and not up.opened:
            self._opened()
        elif ack.number > up.received:
            self._open_upstream(now)
            return
        elif ack.number < up.received or ack.notified < up.notified:
            return  # an old one, doubled on its way
        up.heard = now
        if up.interrupted:
            up.interrupted = False
            self._report("restored")
        self._follow_stream(ack, now)

    def _opened(self) -> None:
        """The listing has arrived: what was given up before it is no longer on the wire."""
        self.up.opened = True
        self.up.attempts = 0
        self.up.received = 1
        closing, self.up.closing = self.up.closing, []
        for node in closing:
            self._closed(node)

    def _follow_stream(self, ack: messages.ResubscribeAck, now: float) -> None:
        """Whether the stream is whole, and passing it on if that has changed."""
        up = self.up
        up.broken |= ack.notified != up.notified
        up.notified = ack.notified
        if ack.mark == UNKNOWN:
            return
        since = max(self._since, ack.upper if up.broken else ack.since)
        news = since != self._since or self._mark == UNKNOWN
        up.broken = False
        self._since = since
        self._mark = max(self._mark, ack.mark)
        self._upper = max(self._upper, ack.upper)
        self._tell_stream(news, now)

    def _tell_stream(self, news: bool, now: float) -> None:
        since, mark, upper = self.stream()
        self.end.advance(mark, since, upper, now)
        if news:
            for down in self._live():
                if len(down.held):
                    self._acknowledge(down)

    # -- notifications -------------------------------------------------------------------

    def _notified(self, message: messages.Notify, now: float) -> None:
        batch, up = message.batch, self.up
        if not len(batch):
            return
        if message.session == up.session:
            if message.number <= up.notified:
                self._report("duplicate")
                return
            if message.number > up.notified + 1:
                self._since = max(self._since, batch.first() - 1)
                self._tell_stream(True, now)
            up.notified = message.number + len(batch) - 1
        if batch.first() <= self._upper:
            batch = self._without_stale(batch, now)
            if not len(batch):
                return
        self._upper = batch.last()
        self.forward(batch, now)

    def _without_stale(self, batch: Batch, now: float) -> Batch:
        """Positions rise along a tree: an older one is doubled, or comes while trees change.

        Then it may be going round in a circle of routers that have not all heard of the new
        tree yet, so it goes no farther; whoever is due it still finds it in the log.
        """
        rows = [row for row in range(len(batch)) if batch.position(row) > self._upper]
        self._report("stale", notifications=len(batch) - len(rows))
        self._since = max(self._since, min(self._upper, batch.last()))
        self._tell_stream(True, now)
        headers = list(batch.headers())
        return batch.select(rows, [headers[row] for row in rows])

    def forward(self, batch: Batch, now: float) -> None:
        """Send a batch on to whoever is due, with headers of their own (Figure 3-18)."""
        routed = self.table.route_batch(batch)
        if routed.unknown:
            self._report("unknown-node", notifications=routed.unknown)
        for neighbor in sorted(routed.batches):
            due = routed.batches[neighbor]
            if neighbor == LOCAL:
                self._deliver(due, now)
            else:
                self._notify(self.down[neighbor], due)

    def _deliver(self, due: Batch, now: float) -> None:
        contexts = due.contexts()
        for row, (header, position, payload) in enumerate(due.rows()):
            covering = self.table.covering(header)
            self.end.notified(covering, position, payload, now, contexts.get(row, b""))

    def publish(self, entries: Sequence[Entry], now: float) -> None:
        """Send new publications from the rendezvous point down its tree."""
        assert self.rendezvous is not None
        graph, root_headers = self.rendezvous.store.graph, self.table.root_headers
        headers = {nodes: root_headers(graph, nodes) for nodes in {e.nodes for e in entries}}
        copies = [(entry, header) for entry in entries for header in headers[entry.nodes]]
        rows = [(header, entry.position, entry.payload) for entry, header in copies]
        traces = pack_traces((row, e.trace) for row, (e, _) in enumerate(copies) if e.trace)
        self.forward(Batch.of(rows, traces), now)
        last = entries[-1].position
        self.end.advance(last, 0, last, now)

    def _notify(self, down: Downstream, batch: Batch) -> None:
        if not down.live:
            return
        self._flush_down(down)
        notify = messages.Notify(self.name, down.session, down.notified + 1, batch)
        down.notified += len(batch)
        self._emit(Send(down.neighbor, notify))

    # -- the rendezvous point's graph ----------------------------------------------------

    def node_inserted(self, setup: Setup) -> None:
        """A new node of the graph: only protocols with whole graphs tell anybody."""
        if self.table.whole_graph:
            self._learn(setup)

    def node_removed(self, node: NodeId) -> None:
        """A node has left the graph: so do the subscriptions to it."""
        for each in sorted(each for each in self.nodes if self.table.topic(each) == node):
            self._rejected(each, f"node {node} was removed from the content graph")

    # -- links ---------------------------------------------------------------------------

    def link_down(self, neighbor: Neighbor) -> None:
        """Nothing can be sent; subscriptions stay until they expire."""
        if neighbor == self.up.neighbor:
            self.up.up = False
            self.up.session = None
        if neighbor in self.down:
            self.down[neighbor].live = False

    def link_up(self, neighbor: Neighbor, now: float) -> None:
        """Whatever was on the link may be lost: start over, both ways."""
        if neighbor == self.up.neighbor:
            self.up.up = True
            self._reopen(now)
        down = self.down.get(neighbor)
        if down is not None and len(down.held):
            self._ask_to_reopen(down)

    def reroute(self, neighbor: Neighbor, up: bool, now: float) -> None:
        """The way to the rendezvous point has changed: take all subscriptions there."""
        if neighbor == self.up.neighbor or self.rendezvous is not None:
            return
        if self.up.session is not None and self.up.up:
            # An empty listing: the old neighbour need not keep anything.
            session = self.up.open([], now)
            digest = NodeSet().digest()
            self._send_up(messages.Resubscribe(self.name, session, 0, 0, digest, listed=True))
        if neighbor in self.down:
            self._drop(self.down[neighbor])
        self.up.neighbor, self.up.up = neighbor, up
        self._reopen(now)

    def restarted(self, neighbor: Neighbor, incarnation: int, now: float) -> None:
        """A neighbour has forgotten everything."""
        if neighbor == self.up.neighbor:
            self._reopen(now)
        down = self.down.get(neighbor)
        if down is not None and down.session[0] < incarnation:
            self._drop(down, linger=now + self._config.lifetime)

    def _reopen(self, now: float) -> None:
        self.up.session = None
        self.up.attempts = 0
        if self.nodes:
            self._open_upstream(now)

    def _drop(self, down: Downstream, linger: float = 0.0) -> None:
        """Forget what a neighbour was subscribed to."""
        down.live = False
        down.outbox.clear()
        for node in sorted(down.held.nodes):
            self.unsubscribe(down.neighbor, node, linger)

    # -- sending -------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Send what has gathered: answers down, requests up."""
        if not self.nodes:
            self.up.refresh_at = None
        if self.rendezvous is not None:
            self._ask_rendezvous(self.rendezvous)
        elif self._requests or self._releases:
            self._ask_upstream(now)
        for down in self._live():
            self._flush_down(down)

    def _flush_down(self, down: Downstream) -> None:
        """One message for each run of answers of a kind, in the order in which they arose."""
        if not down.outbox:
            return
        outbox, down.outbox = down.outbox, []
        for kind, run in groupby(outbox, type):
            for message in _answers(self.name, down, kind, list(run), self.stream()[2]):
                self._emit(Send(down.neighbor, message))

    def _ask_rendezvous(self, rendezvous: RendezvousPoint) -> None:
        """At the root, the authority answers at once."""
        graph = rendezvous.store.graph
        while self._requests or self._releases:
            requests, self._requests = self._requests, []
            releases, self._releases = self._releases, []
            for node in releases:
                self._closed(node)
            for node in requests:
                topic = self.table.topic(node)
                if topic not in graph:
                    self._rejected(node, f"node {topic} is not in the content graph")
                    continue
                for setup in self.table.root_setups(graph, node):
                    self._set_up(setup)

    def _ask_upstream(self, now: float) -> None:
        requests, self._requests = self._requests, []
        releases, self._releases = self._releases, []
        up = self.up
        if not up.up:
            return
        if up.session is None:
            self._open_upstream(now)
            return
        if up.refresh_at is None:
            up.heard, up.refresh_at = now, now + self._period()
        if releases:
            up.sent += 1
            self._send_up(messages.Unsubscribe(self.name, up.session, up.sent, tuple(releases)))
        if requests:
            up.sent += 1
            self._send_up(messages.Subscribe(self.name, up.session, up.sent, tuple(requests)))

    def _send_up(self, message: messages.UpMessage) -> None:
        self._emit(Send(self.up.neighbor, message))

    def _open_upstream(self, now: float) -> None:
        """Open a session with a listing of everything wanted."""
        self._requests.clear()
        self._releases.clear()
        up = self.up
        if not up.up or self.rendezvous is not None:
            return
        session = up.open(sorted(self._in_phase(Phase.CLOSING)), now)
        up.refresh_at = now + self._period(up.attempts)
        self._send_up(
            messages.Resubscribe(
                self.name,
                session,
                0,
                0,
                up.wanted.digest(),
                True,
                tuple(sorted(self._in_phase(Phase.ACTIVE))),
                tuple(sorted(self._in_phase(Phase.PENDING))),
            )
        )

    def _period(self, attempts: int = 0) -> float:
        """Between two refreshes; spread so that routers do not fall into step."""
        spread: float = self._rng.uniform(0.75, 1.25)
        return self._config.period * spread * 2.0 ** min(attempts, _BACKOFF_MAX)

    # -- time ----------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Refresh, expire and give up what is due (sections 3.4.7, Figure 3-28)."""
        self.end.tick(now)
        if self.up.refresh_at is not None and self.up.refresh_at <= now:
            self._refresh_upstream(now)
        for down in list(self.down.values()):
            self._expire(down, now)
        if self._lingering and self._linger_until <= now:
            for node in sorted(self._lingering):
                self._give_up(node, now)
            left = (self.nodes[node].linger for node in self._lingering)
            self._linger_until = min(left, default=now)

    def _refresh_upstream(self, now: float) -> None:
        up = self.up
        if not self.nodes or not up.up:
            up.refresh_at = None
            return
        silent = now - up.heard > self._config.lifetime
        if silent and not up.interrupted:
            up.interrupted = True
            self._report("interrupted", neighbor=up.neighbor)
        if up.session is None or not up.opened or silent:
            self._open_upstream(now)
            return
        up.refresh_at = now + self._period()
        self._send_up(
            messages.Resubscribe(self.name, up.session, up.sent, up.received, up.wanted.digest())
        )

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

    def _give_up(self, node: NodeId, now: float) -> None:
        state = self.nodes[node]
        if state.waiting or self.table.subscribers(node):
            self._lingering.discard(node)
        elif state.linger <= now:
            self._close(node, state)

    def next_timeout(self) -> float | None:
        """When a tick is due."""
        times = [self._linger_until] if self._lingering else []
        if self.up.refresh_at is not None and self.nodes:
            times.append(self.up.refresh_at)
        lifetime = self._config.lifetime
        times.extend(
            down.heard + lifetime * (2 if down.interrupted else 1)
            for down in self.down.values()
            if len(down.held)
        )
        end = self.end.next_timeout()
        if end is not None:
            times.append(end)
        return min(times, default=None)

    # -- small things --------------------------------------------------------------------

    def _live(self) -> Iterator[Downstream]:
        return (self.down[i] for i in sorted(self.down) if self.down[i].live)

    def _in_phase(self, phase: Phase) -> Iterator[NodeId]:
        return (node for node, state in self.nodes.items() if state.phase is phase)

    def _report(self, name: str, **fields: object) -> None:
        self._emit(Report(name, {"namespace": self.name, **fields}))

    def check(self) -> None:
        """Assert that phases, table and sessions agree."""
        self.table.check()
        wanted = {n for n, state in self.nodes.items() if state.phase is not Phase.CLOSING}
        assert self.up.wanted.nodes == wanted
        for node, state in self.nodes.items():
            if state.phase is Phase.PENDING:
                assert not self.table.subscribers(node)
            if state.phase is Phase.ACTIVE and not self._lingering:
                assert state.waiting or self.table.subscribers(node), f"node {node} is unused"
        for neighbor, down in self.down.items():
            held = {n for n, state in self.nodes.items() if neighbor in state.waiting}
            assert held | self.table.subs(neighbor) == down.held.nodes
            assert down.owed <= down.held.nodes


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
    down.sent += 1
    if kind is Released:
        nodes = tuple(item.node for item in run if isinstance(item, Released))
        yield messages.UnsubscribeAck(name, down.session, down.sent, nodes)
    else:
        setups = tuple(item for item in run if isinstance(item, Setup))
        graph = tuple(item.setup for item in run if isinstance(item, Told))
        yield messages.GraphSetup(name, down.session, down.sent, upper, setups, graph)
