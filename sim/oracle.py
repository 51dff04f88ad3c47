"""The oracle: who must receive what, by brute force over the sets that subscriptions stand for.

It knows nothing of graphs, labels or routers. A node is a set of items, a publication is an
item, and a subscription wants a publication if its item is in the set.

Safety: nothing that was not asked for, nothing twice. Completeness: whoever had a subscription
in force before the publication, and has not withdrawn it, has received it in the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from routing.content_graph import NodeId

Item = Hashable


class ViolationError(AssertionError):
    """The network has broken its promise."""


@dataclass(slots=True)
class _Client:
    #: Subscriptions by (namespace, node): when confirmed, or None while they are not.
    nodes: dict[tuple[str, NodeId], float | None] = field(default_factory=dict)
    received: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Publication:
    namespace: str
    item: Item
    time: float


class Oracle:
    """Hears of everything that clients do and receive."""

    def __init__(self, meanings: Mapping[tuple[str, NodeId], frozenset[Item]]) -> None:
        self._meanings = meanings
        self._clients: dict[str, _Client] = {}
        self._publications: dict[bytes, _Publication] = {}
        self._accepted: set[bytes] = set()
        self._abandoned: set[bytes] = set()
        self.deliveries = 0

    # -- what clients do -----------------------------------------------------------------

    def subscribes(self, client: str, namespace: str, node: NodeId) -> None:
        """A client asks for a node."""
        self._clients.setdefault(client, _Client()).nodes.setdefault((namespace, node), None)

    def confirmed(self, client: str, namespace: str, node: NodeId, now: float) -> None:
        """A client was told that its subscription is in force."""
        nodes = self._clients[client].nodes
        if (namespace, node) not in nodes:
            raise ViolationError(f"{client} holds no subscription to {node} to be confirmed")
        if nodes[namespace, node] is None:
            nodes[namespace, node] = now

    def withdrawn(self, client: str, namespace: str, node: NodeId) -> None:
        """A client has unsubscribed, or was refused."""
        self._clients[client].nodes.pop((namespace, node), None)

    def holds(self, client: str, namespace: str, node: NodeId) -> bool:
        """Whether a client has asked for a node, and not withdrawn."""
        state = self._clients.get(client)
        return state is not None and (namespace, node) in state.nodes

    def gone(self, client: str) -> None:
        """A client has ceased to exist, with all its subscriptions."""
        self._clients.pop(client, None)

    def published(self, body: bytes, namespace: str, item: Item, now: float) -> None:
        """Somebody publishes an item; bodies are unique."""
        self._publications[body] = _Publication(namespace, item, now)

    def abandoned(self, body: bytes) -> None:
        """The publisher is gone and will not hear: the publication may arrive or not."""
        self._abandoned.add(body)

    def accepted(self, body: bytes) -> None:
        """The publisher was told that the publication is in the log."""
        self._accepted.add(body)

    # -- what the network does -----------------------------------------------------------

    def delivered(self, client: str, namespace: str, body: bytes) -> None:
        """Safety, checked at each delivery."""
        publication = self._publications.get(body)
        if publication is None or publication.namespace != namespace:
            raise ViolationError(f"{client} received {body!r}, which nobody published")
        state = self._clients.get(client)
        if state is None or not self._wanted(state, publication):
            raise ViolationError(f"{client} received {body!r} without asking for it")
        if body in state.received:
            raise ViolationError(f"{client} received {body!r} twice")
        state.received.add(body)
        self.deliveries += 1

    def missing(self) -> list[tuple[str, bytes]]:
        """Completeness, checked at the end: what has not arrived and should have."""
        return [
            (client, body)
            for body in sorted(self._accepted)
            for client, state in sorted(self._clients.items())
            if body not in state.received and self._due(state, self._publications[body])
        ]

    def unsettled(self) -> list[bytes]:
        """Publications of which their publisher has heard nothing."""
        return sorted(self._publications.keys() - self._accepted - self._abandoned)

    def forget_publication(self, body: bytes) -> None:
        """A publication was refused: nobody may receive it."""
        del self._publications[body]

    # -- brute force ---------------------------------------------------------------------

    def _wanted(self, client: _Client, publication: _Publication) -> bool:
        return any(
            namespace == publication.namespace
            and publication.item in self._meanings[namespace, node]
            for namespace, node in client.nodes
        )

    def _due(self, client: _Client, publication: _Publication) -> bool:
        return any(
            namespace == publication.namespace
            and publication.item in self._meanings[namespace, node]
            and since is not None
            and since <= publication.time
            for (namespace, node), since in client.nodes.items()
        )
