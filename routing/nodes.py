"""The nodes of one namespace at one router, from the first request for them to their removal.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from routing.api import LOCAL
from routing.content_graph import ContentGraph, NodeId
from routing.digest import NodeSet
from routing.errors import ProtocolError
from routing.messages import Setup
from routing.session import Downstream, Rejected, Stream, Told
from routing.subscriber import SubscriberEnd
from routing.table import Neighbor, Table


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


class Nodes:
    """Who wants which node, and what has to be said about it upstream and downstream."""

    def __init__(
        self,
        table: Table,
        end: SubscriberEnd,
        stream: Stream,
        in_step: Callable[[Downstream], None],
    ) -> None:
        self.states: dict[NodeId, NodeState] = {}
        #: What the upstream neighbour should hold for this router: asked for or set up, and not
        #: given up. `requests` and `releases` are what it has not been told of yet.
        self.wanted = NodeSet()
        self.requests: list[NodeId] = []
        self.releases: list[NodeId] = []
        #: What is known of each downstream neighbour.
        self.down: dict[Neighbor, Downstream] = {}
        self._table = table
        self._end = end
        self._stream = stream
        #: Called when a neighbour's table and this one match again.
        self._in_step = in_step
        #: Nodes that nobody holds, kept for now; none is given up before `_linger_until`.
        self._lingering: set[NodeId] = set()
        self._linger_until = 0.0

    # -- wishes from below ---------------------------------------------------------------

    def subscribe(self, neighbor: Neighbor, node: NodeId, marked: bool) -> None:
        """A neighbour, or the local clients, want a node; `marked` asks for a graph set-up."""
        if neighbor != LOCAL:
            self.down[neighbor].held.add(node)
        state = self.states.get(node)
        if state is None:
            state = self.states[node] = NodeState(Phase.PENDING)
            self._request(node)
        if neighbor in self._table.subscribers(node):
            return
        if state.phase is Phase.ACTIVE:
            self._admit(neighbor, node, state, marked)
        else:
            state.waiting[neighbor] = marked
            if neighbor != LOCAL and not marked:
                self.down[neighbor].owed.add(node)

    def unsubscribe(self, neighbor: Neighbor, node: NodeId, linger: float = 0.0) -> None:
        """A neighbour, or the last local client, gives a node up."""
        state = self.states.get(node)
        if state is not None:
            self._withdraw(neighbor, node, state)
            self._release_if_unused(node, state, linger)
        if neighbor != LOCAL:
            down = self.down[neighbor]
            down.held.discard(node)
            self._no_longer_owed(down, node)

    def withdraw(self, neighbor: Neighbor, node: NodeId) -> None:
        """A neighbour has lost a node that it holds, and is about to ask for it again."""
        self._withdraw(neighbor, node, self.states[node])

    def _admit(self, neighbor: Neighbor, node: NodeId, state: NodeState, marked: bool) -> None:
        """Subscribe a neighbour to an active node, or defer it until its table can be matched."""
        if neighbor == LOCAL:
            self._table.attach(node, LOCAL)
            self._end.confirmed(self._table.topic(node), self._stream.now()[2])
            return
        down = self.down[neighbor]
        if marked and down.owed:
            state.waiting[neighbor] = True
            down.deferred.append(node)
            return
        if marked:
            for setup in self._table.setups(node, neighbor):
                down.answer(setup)
        self._table.attach(node, neighbor)
        self._no_longer_owed(down, node)

    def _no_longer_owed(self, down: Downstream, node: NodeId) -> None:
        """Once nothing is owed, both tables match again and set-ups can go out."""
        if node not in down.owed:
            return
        down.owed.discard(node)
        if not down.owed:
            self._match(down)

    def _match(self, down: Downstream) -> None:
        down.synced = self._stream.now()[2]
        deferred, down.deferred = down.deferred, []
        for node in deferred:
            state = self.states.get(node)
            if state is None or state.phase is not Phase.ACTIVE:
                continue
            if state.waiting.pop(down.neighbor, False):
                self._admit(down.neighbor, node, state, True)
        self._in_step(down)

    def _withdraw(self, neighbor: Neighbor, node: NodeId, state: NodeState) -> None:
        state.waiting.pop(neighbor, None)
        if neighbor in self._table.subscribers(node):
            self._table.detach(node, neighbor)

    def _release_if_unused(self, node: NodeId, state: NodeState, linger: float = 0.0) -> None:
        if state.phase is not Phase.ACTIVE or state.waiting or self._table.subscribers(node):
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
        self.wanted.discard(node)
        self.releases.append(node)

    def _request(self, node: NodeId) -> None:
        self.wanted.add(node)
        self.requests.append(node)

    # -- answers from above --------------------------------------------------------------

    def set_up(self, setup: Setup) -> None:
        """Figure 3-24: the node enters the table, and whoever waits for it is subscribed."""
        state = self.states.get(setup.node)
        if state is None or state.phase is not Phase.PENDING:
            raise ProtocolError(f"node {setup.node} was set up and not asked for")
        self._table.insert(setup)
        state.phase = Phase.ACTIVE
        waiting, state.waiting = state.waiting, {}
        for neighbor, marked in waiting.items():
            self._admit(neighbor, setup.node, state, marked)
        self._release_if_unused(setup.node, state)

    def learn(self, setup: Setup) -> None:
        """A node that nobody here asked for, told to routers that hold whole graphs."""
        for neighbor in self._table.learn(setup):
            self.down[neighbor].answer(Told(setup))

    def closed(self, node: NodeId) -> None:
        """No notification naming the node follows: it can go, and be asked for anew."""
        state = self.states.get(node)
        if state is None or state.phase is not Phase.CLOSING:
            return
        self._table.remove(node)
        if state.waiting:
            state.phase = Phase.PENDING
            self._request(node)
        else:
            del self.states[node]

    def rejected(self, node: NodeId, reason: str) -> None:
        """The node does not exist (any more): nothing of it stays, and its subscribers are told."""
        state = self.states.pop(node, None)
        if state is None:
            return
        self.wanted.discard(node)
        self._lingering.discard(node)
        for neighbor in sorted({*state.waiting, *self._table.subscribers(node)}):
            self._withdraw(neighbor, node, state)
            if neighbor == LOCAL:
                self._end.refused(self._table.topic(node), reason)
                continue
            down = self.down[neighbor]
            down.held.discard(node)
            down.answer(Rejected(node, reason))
            self._no_longer_owed(down, node)
        if state.phase is not Phase.PENDING:
            self._table.remove(node)

    def answer_all(self, graph: ContentGraph) -> None:
        """At the rendezvous point, which knows the graph, there is nobody to ask."""
        while self.requests or self.releases:
            requests, releases = self.take()
            for node in releases:
                self.closed(node)
            for node in requests:
                topic = self._table.topic(node)
                if topic not in graph:
                    self.rejected(node, f"node {topic} is not in the content graph")
                    continue
                for setup in self._table.root_setups(graph, node):
                    self.set_up(setup)

    # -- what to say upstream ------------------------------------------------------------

    def take(self) -> tuple[list[NodeId], list[NodeId]]:
        """The requests and releases that have gathered."""
        requests, self.requests = self.requests, []
        releases, self.releases = self.releases, []
        return requests, releases

    def in_phase(self, phase: Phase) -> list[NodeId]:
        """The nodes in a phase, sorted."""
        return sorted(node for node, state in self.states.items() if state.phase is phase)

    # -- time ----------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Give up nodes that were kept for a neighbour which has not asked again."""
        if not self._lingering or self._linger_until > now:
            return
        for node in sorted(self._lingering):
            self._give_up(node, now)
        left = (self.states[node].linger for node in self._lingering)
        self._linger_until = min(left, default=now)

    def _give_up(self, node: NodeId, now: float) -> None:
        state = self.states[node]
        if state.waiting or self._table.subscribers(node):
            self._lingering.discard(node)
        elif state.linger <= now:
            self._close(node, state)

    def timeouts(self) -> Iterator[float]:
        """When a tick is due."""
        if self._lingering:
            yield self._linger_until

    def check(self) -> None:
        """Assert that phases, table and sessions agree."""
        assert self.wanted.nodes == {
            n for n, state in self.states.items() if state.phase is not Phase.CLOSING
        }
        for node, state in self.states.items():
            if state.phase is Phase.PENDING:
                assert not self._table.subscribers(node)
            if state.phase is Phase.ACTIVE and not self._lingering:
                assert state.waiting or self._table.subscribers(node), f"node {node} is unused"
        for neighbor, down in self.down.items():
            held = {n for n, state in self.states.items() if neighbor in state.waiting}
            assert held | self._table.subs(neighbor) == down.held.nodes
            assert down.owed <= down.held.nodes
