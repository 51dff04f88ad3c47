"""A router of a dissemination tree: takes events apart and hands them to their namespace.

Protocols differ in their table alone; `tree_router` makes a Router of a table. Requests to a
rendezvous point climb the tree and note their path, replies go back along it (Kulik 2004,
section 3.4.9, sends them by the Internet instead).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from routing import messages
from routing.api import (
    LOCAL,
    Address,
    Effect,
    Event,
    InsertNode,
    LinkDown,
    LinkUp,
    Publish,
    Received,
    RemoveNode,
    Report,
    Reroute,
    Router,
    Send,
    Start,
    Subscribe,
    Unsubscribe,
    View,
)
from routing.content_graph import check_node
from routing.errors import ProtocolError
from routing.messages import PATH_MAX, Setup
from routing.namespace import Namespace
from routing.publisher import PublisherEnd
from routing.rendezvous import RendezvousPoint
from routing.subscriber import SubscriberEnd
from routing.table import Table


class TreeRouter(Router):
    """A router, a rendezvous point or a host of clients: what its view makes of it."""

    #: The protocol's forwarding table.
    table: ClassVar[type[Table]]

    def __init__(self, address: Address, view: View) -> None:
        super().__init__(address, view)
        if not address:
            raise ProtocolError("a router's address must not be empty")
        self._effects: list[Effect] = []
        self._spaces: dict[Address, Namespace] = {}
        self._publishers: dict[Address, PublisherEnd] = {}
        self._lives: dict[Address, int] = {}
        #: Neighbours that cannot be reached now.
        self._broken: set[Address] = set()
        self._rendezvous = (
            None if view.store is None else RendezvousPoint(view.store, view.config.recover_batch)
        )

    # -- the contract --------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> list[Effect]:
        try:
            self._handle(event, now)
            for name in sorted(self._spaces):
                self._spaces[name].flush(now)
        finally:
            effects, self._effects = self._effects, []
        return effects

    def next_timeout(self) -> float | None:
        times = [space.next_timeout() for space in self._spaces.values()]
        times += [end.next_timeout() for end in self._publishers.values()]
        return min((time for time in times if time is not None), default=None)

    def state_size(self) -> dict[str, int]:
        total: dict[str, int] = {"namespaces": len(self._spaces)}
        for space in self._spaces.values():
            sizes = {**space.table.size(), "bytes": space.table.bytes(), **space.end.size()}
            for kind, count in sizes.items():
                total[kind] = total.get(kind, 0) + count
        return total

    def check(self) -> None:
        for space in self._spaces.values():
            space.check()

    def namespace(self, name: Address) -> Namespace:
        """The state of a namespace; made when first needed."""
        space = self._spaces.get(name)
        if space is None:
            owned = self._rendezvous if name == self.address else None
            end = SubscriberEnd(name, self.view.config, self._emit, self._ask)
            space = Namespace(name, self.view, self.table(), end, self._emit, owned)
            self._spaces[name] = space
        return space

    # -- events --------------------------------------------------------------------------

    def _handle(self, event: Event, now: float) -> None:
        match event:
            case Received(src, message):
                self._received(src, message, now)
            case Subscribe(client, namespace, node):
                self._route_to(namespace)
                check_node(node)
                space = self.namespace(namespace)
                space.table.identifier(node, self.address)  # refuses what it has no room for
                space.end.subscribe(client, node, now)
            case Unsubscribe(client, namespace, node):
                self._unsubscribe(client, namespace, node)
            case Publish():
                self._route_to(event.namespace)
                self._publisher(event.namespace).publish(event, now)
            case InsertNode() | RemoveNode():
                self._change_graph(event)
            case LinkUp(neighbor):
                self._broken.discard(neighbor)
                self._emit(Send(neighbor, messages.Hello(self.view.incarnation)))
                for space in self._sorted():
                    space.link_up(neighbor, now)
            case LinkDown(neighbor):
                self._broken.add(neighbor)
                for space in self._sorted():
                    space.link_down(neighbor)
            case Reroute(next_hop):
                self._reroute(next_hop, now)
            case Start():
                for neighbor in sorted(self.view.neighbors):
                    self._emit(Send(neighbor, messages.Hello(self.view.incarnation)))
            case _:
                self._tick(now)

    def _unsubscribe(self, client: str, namespace: Address, node: int) -> None:
        self._route_to(namespace)
        space = self.namespace(namespace)
        if space.end.unsubscribe(client, node):
            space.unsubscribe(space.table.identifier(node, self.address))

    def _change_graph(self, event: InsertNode | RemoveNode) -> None:
        if self._rendezvous is None:
            raise ProtocolError(f"{self.address!r} is no rendezvous point and has no graph")
        space = self.namespace(self.address)
        store = self._rendezvous.store
        if isinstance(event, InsertNode):
            if event.version not in (None, store.version):
                raise ProtocolError(
                    f"node {event.node} was placed in graph version {event.version}; "
                    f"the graph is at {store.version}"
                )
            if space.table.fixed_graph and (space.nodes.states or store.last):
                raise ProtocolError(
                    f"node {event.node} comes too late: this protocol's graph must be complete "
                    "before the first subscription"
                )
            store.insert_node(event.node, event.parents, event.children)
            space.node_inserted(Setup(event.node, event.parents, event.children))
        else:
            store.remove_node(event.node)
            space.node_removed(event.node)

    def _reroute(self, next_hop: Mapping[Address, Address], now: float) -> None:
        self.view.next_hop = dict(next_hop)
        for name in sorted(self._spaces):
            hop = next_hop.get(name, LOCAL)
            self._spaces[name].reroute(hop, hop != LOCAL and hop not in self._broken, now)

    def _tick(self, now: float) -> None:
        for space in self._sorted():
            space.tick(now)
        for name in sorted(self._publishers):
            self._publishers[name].tick(now)

    # -- messages ------------------------------------------------------------------------

    def _received(self, src: Address, message: messages.Message, now: float) -> None:
        match message:
            case messages.Hello(incarnation):
                self._hello(src, incarnation, now)
            case messages.Subscribe() | messages.Unsubscribe() | messages.Resubscribe():
                if self._is_downstream(src, message.namespace):
                    self.namespace(message.namespace).receive_up(src, message, now)
            case messages.SequenceRequest() | messages.RecoverRequest():
                self._request(src, message, now)
            case messages.Publish():
                self._request(src, message, now)
            case messages.SequenceReply() | messages.RecoverReply():
                self._reply(message, now)
            case messages.PublishAck() | messages.PublishRefusal():
                self._reply(message, now)
            case _:
                if message.namespace in self._spaces:
                    self._spaces[message.namespace].receive_down(src, message, now)

    def _hello(self, src: Address, incarnation: int, now: float) -> None:
        known = self._lives.get(src, 0)
        if incarnation > known:
            self._lives[src] = incarnation
            for space in self._sorted():
                space.restarted(src, incarnation, now)

    def _is_downstream(self, src: Address, namespace: Address) -> bool:
        """Whether subscriptions to a namespace may come from a neighbour."""
        if self._owns(namespace):
            return True
        hop = self.view.next_hop.get(namespace)
        if hop is None or hop == src:
            why = "no-route" if hop is None else "misrouted"
            self._emit(Report(why, {"namespace": namespace, "src": src}))
            return False
        return True

    # -- requests to the rendezvous point and their replies ------------------------------

    def _ask(self, message: messages.RequestMessage, now: float) -> None:
        """Send a request of a local end on its way."""
        self._request(LOCAL, message, now)

    def _request(self, src: Address, message: messages.RequestMessage, now: float) -> None:
        if self._owns(message.namespace):
            self._answer(src, message, now)
            return
        hop = self.view.next_hop.get(message.namespace)
        if hop is None or hop == src or len(message.path) >= PATH_MAX:
            self._emit(Report("no-route", {"namespace": message.namespace, "src": src}))
            return
        if src != LOCAL:
            message = replace(message, path=(*message.path, src))
        self._emit(Send(hop, message))

    def _answer(self, src: Address, message: messages.RequestMessage, now: float) -> None:
        """At the rendezvous point: a publication is acknowledged before it is sent on."""
        assert self._rendezvous is not None
        if isinstance(message, messages.Publish):
            try:
                answers, entries = self._rendezvous.publish(message)
            except ProtocolError as error:
                self._emit(Report("bad-publications", {"src": src, "reason": str(error)}))
                return
            for each in answers:
                self._reply_to(src, each, now)
            if entries:
                self.namespace(self.address).publish(entries, now)
        elif isinstance(message, messages.SequenceRequest):
            self._reply_to(src, self._rendezvous.sequence(message), now)
        else:
            self._reply_to(src, self._rendezvous.recover(message), now)

    def _reply_to(self, src: Address, reply: messages.ReplyMessage, now: float) -> None:
        if src == LOCAL:
            self._reply(reply, now)
        else:
            self._emit(Send(src, reply))

    def _reply(self, reply: messages.ReplyMessage, now: float) -> None:
        """Pass a reply on, or take it in at the end of its path."""
        if reply.path:
            self._emit(Send(reply.path[-1], replace(reply, path=reply.path[:-1])))
        elif isinstance(reply, messages.PublishAck | messages.PublishRefusal):
            self._publisher(reply.namespace).answered(reply, now)
        elif reply.namespace in self._spaces:
            self._take(self._spaces[reply.namespace], reply, now)

    def _take(
        self,
        space: Namespace,
        reply: messages.SequenceReply | messages.RecoverReply,
        now: float,
    ) -> None:
        if isinstance(reply, messages.RecoverReply):
            space.end.recovered(reply, now)
            return
        node = space.end.sequenced(reply)
        if node is not None:
            space.subscribe(space.table.identifier(node, self.address))

    # -- small things --------------------------------------------------------------------

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _sorted(self) -> list[Namespace]:
        return [self._spaces[name] for name in sorted(self._spaces)]

    def _owns(self, namespace: Address) -> bool:
        return self._rendezvous is not None and namespace == self.address

    def _publisher(self, namespace: Address) -> PublisherEnd:
        end = self._publishers.get(namespace)
        if end is None:
            view = self.view
            end = PublisherEnd(self.address, view.incarnation, view.config, self._emit, self._ask)
            self._publishers[namespace] = end
        return end

    def _route_to(self, namespace: Address) -> None:
        """ProtocolError unless a local client's namespace can be reached."""
        if not self._owns(namespace) and namespace not in self.view.next_hop:
            known = ", ".join(sorted(self.view.next_hop)) or "none"
            raise ProtocolError(f"unknown namespace {namespace!r} (known here: {known})")
