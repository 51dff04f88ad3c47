"""A network, its clients and the oracle that watches them.

Nodes are sets of items here, so that headers, orders and the oracle's answers all come from the
same sets by brute force, and the graphs under test have to agree with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from routing import messages
from routing.api import (
    Accepted,
    Address,
    Confirmed,
    Deliver,
    Effect,
    InsertNode,
    Publication,
    Publish,
    Refused,
    RemoveNode,
    Report,
    Send,
    Subscribe,
    Unsubscribe,
)
from routing.content_graph import NodeId
from routing.nodes import Phase
from routing.router import TreeRouter
from sim.network import Network
from sim.oracle import Item, Oracle, ViolationError

Meanings = Mapping[tuple[Address, NodeId], frozenset[Item]]


class World:
    """Clients on hosts of a network, with every promise checked as things happen."""

    def __init__(
        self, network: Network, meanings: Meanings, check: bool = True, minimal: bool = False
    ) -> None:
        self.network = network
        self.meanings = meanings
        self.oracle = Oracle(meanings)
        #: Reports by name; "recovered" and "lost" count notifications.
        self.reports: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._hosts: dict[str, Address] = {}
        self._tickets: dict[tuple[str, int], bytes] = {}
        self._count = 0
        self._minimal = minimal
        network.observers.append(self._observe)
        if check:
            network.after_event = lambda _, router: router.check()

    # -- what clients and administrators do ----------------------------------------------

    def client(self, name: str, host: Address) -> None:
        """Put a client on a host."""
        self._hosts[name] = host

    def subscribe(self, client: str, namespace: Address, node: NodeId) -> None:
        """A client subscribes; the oracle expects it, if the node exists."""
        self.oracle.subscribes(client, namespace, node)
        self.network.event(self._hosts[client], Subscribe(client, namespace, node))

    def holds(self, client: str, namespace: Address, node: NodeId) -> bool:
        """Whether a client has a subscription that was not refused."""
        return self.oracle.holds(client, namespace, node)

    def unsubscribe(self, client: str, namespace: Address, node: NodeId) -> None:
        """A client unsubscribes."""
        self.oracle.withdrawn(client, namespace, node)
        self.network.event(self._hosts[client], Unsubscribe(client, namespace, node))

    def publish(self, client: str, namespace: Address, item: Item, key: bytes = b"") -> bytes:
        """A client publishes an item; returns the body that stands for it."""
        return self.publish_all(client, namespace, [item], key)[0]

    def publish_all(
        self, client: str, namespace: Address, items: Sequence[Item], key: bytes = b""
    ) -> list[bytes]:
        """A client publishes items together; returns the bodies that stand for them."""
        store, first = self.network.stores[namespace], self._count + 1
        said: list[Publication] = []
        for item in items:
            self._count += 1
            body = b"%d" % self._count
            said.append(Publication(self.lowest(namespace, item, store.graph), body))
            self.oracle.published(body, namespace, item, self.network.now)
            self._tickets[client, self._count] = body
        event = Publish(client, namespace, tuple(said), first, key, store.version)
        self.network.event(self._hosts[client], event)
        return [each.body for each in said]

    def insert(self, namespace: Address, node: NodeId) -> None:
        """The administrator adds a node where its meaning places it."""
        graph, meaning = self.network.stores[namespace].graph, self.meanings[namespace, node]
        above = [n for n in graph if self.meanings[namespace, n] > meaning]
        below = [n for n in graph if self.meanings[namespace, n] < meaning]
        lowest, highest = self._low(namespace, above), self._high(namespace, below)
        self.network.event(namespace, InsertNode(node, lowest, highest))

    def remove(self, namespace: Address, node: NodeId) -> None:
        """The administrator takes a node out."""
        self.network.event(namespace, RemoveNode(node))

    def crash_host(self, host: Address, noticed: bool = True) -> None:
        """A host goes down, and its clients with it."""
        for client in [name for name, at in self._hosts.items() if at == host]:
            self.oracle.gone(client)
            del self._hosts[client]
            for ticket in [key for key in self._tickets if key[0] == client]:
                self.oracle.abandoned(self._tickets.pop(ticket))
        self.network.crash(host, noticed)

    # -- brute force over meanings -------------------------------------------------------

    def lowest(self, namespace: Address, item: Item, among: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """The header of an item: the lowest nodes that hold it."""
        matching = [node for node in among if item in self.meanings[namespace, node]]
        return self._low(namespace, matching)

    def _low(self, namespace: Address, nodes: Iterable[NodeId]) -> tuple[NodeId, ...]:
        sets = {node: self.meanings[namespace, node] for node in nodes}
        return tuple(sorted(n for n, s in sets.items() if not any(t < s for t in sets.values())))

    def _high(self, namespace: Address, nodes: Iterable[NodeId]) -> tuple[NodeId, ...]:
        sets = {node: self.meanings[namespace, node] for node in nodes}
        return tuple(sorted(n for n, s in sets.items() if not any(t > s for t in sets.values())))

    # -- what the network does -----------------------------------------------------------

    def _observe(self, _: Address, effect: Effect, now: float) -> None:
        match effect:
            case Deliver(client, notification):
                self.oracle.delivered(client, notification.namespace, notification.body)
            case Confirmed(client, namespace, node):
                self.oracle.confirmed(client, namespace, node, now)
            case Accepted(client, _, ticket, _, count):
                for each in range(ticket, ticket + count):
                    self.oracle.accepted(self._tickets.pop((client, each)))
            case Refused(client, namespace, reason, node, ticket):
                self._refuse(client, namespace, reason, node, ticket)
            case Report(name, fields):
                self.reports[name] += int(fields.get("deliveries", 1))
            case Send(_, messages.Notify(namespace, _, _, batch)) if self._minimal:
                for row in batch.rows():
                    self._check_header(namespace, row[0])

    def _refuse(
        self, client: str, namespace: Address, reason: str, node: int | None, ticket: int | None
    ) -> None:
        self.refused["publication" if node is None else "subscription"] += 1
        if node is not None:
            self.oracle.withdrawn(client, namespace, node)
        elif ticket is not None:
            self.oracle.forget_publication(self._tickets.pop((client, ticket)))

    def _check_header(self, namespace: Address, header: tuple[NodeId, ...]) -> None:
        known = [node for node in header if (namespace, node) in self.meanings]
        if self._low(namespace, known) != tuple(sorted(known)):
            raise ViolationError(f"header {header} is not minimal")

    # -- at rest -------------------------------------------------------------------------

    def check_at_rest(self) -> None:
        """Everything due has arrived, and every router mirrors its upstream neighbour."""
        missing = self.oracle.missing()
        if missing:
            raise ViolationError(f"not delivered: {missing[:5]}")
        unsettled = self.oracle.unsettled()
        if unsettled:
            raise ViolationError(f"neither accepted nor refused: {unsettled[:5]}")
        for address, router in self.network.routers.items():
            assert isinstance(router, TreeRouter)
            for namespace in sorted(self.network.stores):
                if namespace != address:
                    self._check_mirror(router, namespace)

    def _check_mirror(self, router: TreeRouter, namespace: Address) -> None:
        upstream = self.network.routers[router.view.next_hop[namespace]]
        assert isinstance(upstream, TreeRouter)
        nodes = router.namespace(namespace).nodes.states
        phases = {state.phase for state in nodes.values()}
        above = upstream.namespace(namespace).table.subs(router.address)
        if phases - {Phase.ACTIVE} or set(nodes) != set(above):
            raise ViolationError(
                f"{router.address} holds {sorted(nodes)} ({phases}) of {namespace}, "
                f"{upstream.address} holds {sorted(above)} for it"
            )
