"""Scenarios in the thesis's notation: graphs as `1>4 4>31`, tables as text, one letter a router.

`Chart` is a small network in virtual time; `Sheet` is a single table without any network.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from routing import messages
from routing.api import (
    Address,
    Config,
    Confirmed,
    Deliver,
    Effect,
    Publication,
    Publish,
    Refused,
    Report,
    Send,
    Subscribe,
    Unsubscribe,
)
from routing.content_graph import ContentGraph
from routing.messages import Message
from routing.namespace import Namespace
from routing.registry import protocol
from routing.router import TreeRouter
from routing.store import Store
from routing.table import GraphTable, LabelTable
from sim.network import Link, Network
from topology.overlay import overlay as overlay_of
from topology.paths import next_hops


def parse_graph(text: str) -> ContentGraph:
    """`0>1>2 0>3` or `0,1>2`: nodes in order of appearance, parents first."""
    edges: list[tuple[int, int]] = []
    nodes: dict[int, None] = {}
    for chain in text.split():
        steps = [[int(node) for node in step.split(",")] for step in chain.split(">")]
        nodes.update(dict.fromkeys(node for step in steps for node in step))
        for above, below in pairwise(steps):
            edges += [(a, b) for a in above for b in below]
    graph = ContentGraph()
    for node in nodes:
        graph.insert(node, (), ())
    for a, b in edges:
        graph.link(a, b)
    return graph


def labels(table: LabelTable) -> str:
    """One line a node: what a notification for it becomes, per neighbour."""
    lines = []
    for node in sorted(table.graph):
        by = {i: table.label(node, i) for i in sorted(table.neighbors())}
        outputs = [f"{i}:{','.join(map(str, sorted(o)))}" for i, o in by.items() if o]
        lines.append(" ".join([f"{node} ->", *outputs]))
    return "\n".join(lines)


def edges(table: GraphTable) -> str:
    """The table's graph, as `1>4 4>31`."""
    graph = table.graph
    return " ".join(f"{a}>{b}" for a in sorted(graph) for b in sorted(graph.children(a)))


class Sheet:
    """One table, filled by steps such as `A+0` (A subscribes to 0) and `A-0`."""

    def __init__(self, graph: str, steps: str = "", table: GraphTable | None = None) -> None:
        self.whole = parse_graph(graph)
        self.table = LabelTable() if table is None else table
        self.do(steps)

    def do(self, steps: str) -> None:
        for step in steps.split():
            neighbor, node = step[0], int(step[2:])
            if step[1] == "+":
                if node not in self.table.graph:
                    for setup in self.table.root_setups(self.whole, node):
                        self.table.insert(setup)
                self.table.attach(node, neighbor)
            else:
                self.table.detach(node, neighbor)
                if not self.table.subscribers(node):
                    self.table.remove(node)
            self.table.check()

    def __str__(self) -> str:
        assert isinstance(self.table, LabelTable)
        return labels(self.table)


class Chart:
    """Routers on a tree such as `A-B B-C C-F`; the first one is the rendezvous point."""

    def __init__(self, overlay: str, graph: str, name: str = "f3", **store: object) -> None:
        pairs = [(pair.split("-")[0], pair.split("-")[1]) for pair in overlay.split()]
        self.root: Address = pairs[0][0]
        self.store = Store(**store)  # type: ignore[arg-type]
        whole = parse_graph(graph)
        for node in whole.topological():
            self.store.insert_node(node, whole.parents(node), ())
        self.network = Network(
            protocol(name),
            {pair: Link(latency=0.001) for pair in pairs},
            next_hops(overlay_of(pairs), [self.root], by="hops"),
            {self.root: self.store},
            config=Config(period=1.0, lifetime=4.0, retry=2.0),
        )
        self.network.observers.append(self._observe)
        self.network.after_event = lambda _, router: router.check()
        #: What happened since it was last asked for.
        self._sent: list[str] = []
        self._delivered: dict[Address, list[str]] = {}
        self.confirmed: set[tuple[Address, int]] = set()
        self.refused: dict[Address, str] = {}
        self.reports: list[str] = []
        #: Messages that the network loses: (sender, receiver, kind).
        self._tickets = 0

    # -- what people do ------------------------------------------------------------------

    def subscribe(self, *wishes: str) -> Chart:
        """`F:31`: the subscriber at F asks for 31, and the network comes to rest."""
        for wish in wishes:
            host, node = wish.split(":")
            self.network.event(host, Subscribe("me", self.root, int(node)))
            self.run()
        return self

    def unsubscribe(self, *wishes: str) -> Chart:
        for wish in wishes:
            host, node = wish.split(":")
            self.network.event(host, Unsubscribe("me", self.root, int(node)))
            self.run()
        return self

    def publish(self, nodes: Iterable[int], body: str = "news") -> Chart:
        """The source, at the rendezvous point, sends a notification with these lowest nodes."""
        self._tickets += 1
        event = Publish(
            "source", self.root, (Publication(tuple(nodes), body.encode()),), self._tickets
        )
        self.network.event(self.root, event)
        self.run()
        return self

    def run(self, seconds: float = 0.2) -> None:
        self.network.run(self.network.now + seconds)

    # -- what can be seen ----------------------------------------------------------------

    def sent(self, *kinds: str) -> list[str]:
        """Messages since the last call, as `C>B Subscribe 4`; only of these kinds."""
        sent, self._sent = self._sent, []
        return [line for line in sent if not kinds or line.split()[1] in kinds]

    def delivered(self) -> dict[Address, list[str]]:
        """Who received what since the last call."""
        delivered, self._delivered = self._delivered, {}
        return delivered

    def space(self, address: Address) -> Namespace:
        router = self.network.routers[address]
        assert isinstance(router, TreeRouter)
        return router.namespace(self.root)

    def table(self, address: Address) -> Any:
        """A table with a graph, compiled or not."""
        return self.space(address).table

    def labels(self, address: Address) -> str:
        return labels(self.table(address))

    def edges(self, address: Address) -> str:
        return edges(self.table(address))

    def _observe(self, address: Address, effect: Effect, now: float) -> None:
        match effect:
            case Send(dst, message):
                self._sent.append(f"{address}>{dst} {describe(message)}")
            case Deliver(_, notification):
                self._delivered.setdefault(address, []).append(notification.body.decode())
            case Confirmed(_, _, node):
                self.confirmed.add((address, node))
            case Refused(_, _, reason):
                self.refused[address] = reason
            case Report(name):
                self.reports.append(f"{address} {name}")


def describe(message: Message) -> str:
    """A message in a few words."""
    match message:
        case messages.Subscribe(nodes=nodes) | messages.Unsubscribe(nodes=nodes):
            details = _list(nodes)
        case messages.UnsubscribeAck(nodes=nodes) | messages.Reject(nodes=nodes):
            details = _list(nodes)
        case messages.GraphSetup(setups=setups):
            places = (f"{_list(s.parents)}>{s.node}>{_list(s.children)}" for s in setups)
            details = " ".join(places)
        case messages.Notify(batch=batch):
            details = " ".join(_list(header) for header, _, _ in batch.rows())
        case messages.Resubscribe(nodes=nodes, requests=requests, listed=listed):
            details = f"has {_list(nodes)} wants {_list(requests)}" if listed else "digest"
        case messages.SequenceReply(numbers=numbers):
            details = " ".join(f"{node}={number}" for node, number in numbers)
        case _:
            details = ""
    return f"{type(message).__name__} {details}".strip()


def _list(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))
