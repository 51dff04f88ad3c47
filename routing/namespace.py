"""One namespace at one router: its table, the sessions that keep it right, and forwarding.

The parts and who knows whom: `nodes.py` has the nodes and who wants them; the sessions with the
neighbours below (`downstream.py`) and above (`upstream.py`) turn messages into calls on it and
send what it has to say. Here they are put together, and notifications pass through the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routing import messages
from routing.api import LOCAL, Address, Effect, Report, View
from routing.batch import Batch
from routing.content_graph import NodeId
from routing.downstream import DownstreamSessions
from routing.messages import Setup
from routing.nodes import Nodes
from routing.rendezvous import RendezvousPoint
from routing.session import Downstream, Stream, Upstream
from routing.store import Entry
from routing.subscriber import SubscriberEnd
from routing.table import Neighbor, Table, whole
from routing.trace import pack_traces
from routing.upstream import UpstreamSession


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
        self._emit = emit
        self._stream = Stream(None if rendezvous is None else rendezvous.store)
        self.nodes = nodes = Nodes(table, end, self._stream, self._in_step)
        self._down = DownstreamSessions(name, view.config, table, nodes, self._stream, emit)
        # Nobody is above the rendezvous point: its link upwards never comes up.
        hop = LOCAL if rendezvous is not None else view.next_hop.get(name, LOCAL)
        up = Upstream(hop, view.incarnation, up=rendezvous is None)
        self._up = UpstreamSession(
            name, view, up, nodes, self._stream, emit, self._follow, self.forward
        )
        if rendezvous is not None and table.whole_graph:
            for setup in whole(rendezvous.store.graph):
                table.learn(setup)

    # -- subscriptions -------------------------------------------------------------------

    def subscribe(self, node: NodeId) -> None:
        """The first local client wants a node."""
        self.nodes.subscribe(LOCAL, node, marked=True)

    def unsubscribe(self, node: NodeId) -> None:
        """The last local client gives a node up."""
        self.nodes.unsubscribe(LOCAL, node)

    def receive_up(self, src: Neighbor, message: messages.UpMessage, now: float) -> None:
        """Subscribe, Unsubscribe or Resubscribe from a downstream neighbour."""
        self._down.receive(src, message, now)

    def receive_down(self, src: Neighbor, message: messages.DownMessage, now: float) -> None:
        """GraphSetup, UnsubscribeAck, Reject, ResubscribeAck or Notify from upstream."""
        self._up.receive(src, message, now)

    def _in_step(self, down: Downstream) -> None:
        self._down.acknowledge(down)

    def _follow(self, news: bool, now: float) -> None:
        """The stream has moved: local clients follow it, and those below hear of news."""
        since, mark, upper = self._stream.now()
        self.end.advance(mark, since, upper, now)
        if news:
            self._down.acknowledge_all()

    # -- notifications -------------------------------------------------------------------

    def forward(self, batch: Batch, now: float) -> None:
        """Send a batch on to whoever is due, with headers of their own (Figure 3-18)."""
        routed = self.table.route_batch(batch)
        if routed.unknown:
            report = {"namespace": self.name, "notifications": routed.unknown}
            self._emit(Report("unknown-node", report))
        for neighbor in sorted(routed.batches):
            due = routed.batches[neighbor]
            if neighbor == LOCAL:
                self._deliver(due, now)
            else:
                self._down.notify(neighbor, due)

    def _deliver(self, due: Batch, now: float) -> None:
        """Hand a batch to the local clients; headers repeat, so each is looked up once."""
        contexts, held = due.contexts(), {}
        notified, covering = self.end.notified, self.table.covering
        for row, (header, position, payload) in enumerate(due.rows()):
            if header not in held:
                held[header] = self.end.held(covering(header))
            notified(held[header], position, payload, contexts.get(row, b""))
        self.end.recover_if_due(now)

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

    # -- the rendezvous point's graph ----------------------------------------------------

    def node_inserted(self, setup: Setup) -> None:
        """A new node of the graph: only protocols with whole graphs tell anybody."""
        if self.table.whole_graph:
            self.nodes.learn(setup)

    def node_removed(self, node: NodeId) -> None:
        """A node has left the graph: so do the subscriptions to it."""
        for each in sorted(each for each in self.nodes.states if self.table.topic(each) == node):
            self.nodes.rejected(each, f"node {node} was removed from the content graph")

    # -- links ---------------------------------------------------------------------------

    def link_down(self, neighbor: Neighbor) -> None:
        """Nothing can be sent; subscriptions stay until they expire."""
        self._up.link_down(neighbor)
        self._down.link_down(neighbor)

    def link_up(self, neighbor: Neighbor, now: float) -> None:
        """Whatever was on the link may be lost: start over, both ways."""
        self._up.link_up(neighbor, now)
        self._down.link_up(neighbor)

    def restarted(self, neighbor: Neighbor, incarnation: int, now: float) -> None:
        """A neighbour has forgotten everything."""
        self._up.restarted(neighbor, now)
        self._down.restarted(neighbor, incarnation, now)

    def reroute(self, neighbor: Neighbor, up: bool, now: float) -> None:
        """The way to the rendezvous point has changed: take all subscriptions there."""
        if self._up.leads_to(neighbor) or self.rendezvous is not None:
            return
        self._up.leave(now)
        self._down.drop(neighbor)
        self._up.move(neighbor, up, now)

    # -- sending, and time ---------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Send what has gathered: answers down, requests up."""
        if self.rendezvous is not None:
            self.nodes.answer_all(self.rendezvous.store.graph)
        else:
            self._up.flush(now)
        self._down.flush()

    def tick(self, now: float) -> None:
        """Refresh, expire and give up what is due (sections 3.4.7, Figure 3-28)."""
        self.end.tick(now)
        self._up.tick(now)
        self._down.tick(now)
        self.nodes.tick(now)

    def next_timeout(self) -> float | None:
        """When a tick is due."""
        times = [*self.nodes.timeouts(), *self._up.timeouts(), *self._down.timeouts()]
        end = self.end.next_timeout()
        if end is not None:
            times.append(end)
        return min(times, default=None)

    def check(self) -> None:
        """Assert that phases, table and sessions agree."""
        self.table.check()
        self.nodes.check()
