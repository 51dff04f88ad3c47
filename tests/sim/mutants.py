"""Each exact rule broken alone, back to the thesis's literal reading (Kulik 2004, 3.4.3-3.4.8).

A mutant patches one function. The tests demand that random schedules notice every one of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from routing import messages
from routing.api import LOCAL
from routing.content_graph import ContentGraph, NodeId
from routing.messages import Setup
from routing.nodes import Nodes, NodeState, Phase
from routing.protocols.minimal_graph import MinimalTable
from routing.table import LabelTable
from sim.network import Network


@dataclass(frozen=True)
class Mutant:
    """A rule, what is done instead of it, and where."""

    rule: int
    what: str
    owner: type
    name: str
    function: Callable[..., Any]
    protocol: str = "f3-python"

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(self.owner, self.name, self.function)


def label_where_there_is_none(self: LabelTable, node: NodeId, neighbor: str) -> None:
    for each in self.graph.descendants(node):
        self._labels[each].setdefault(neighbor, {node})


def only_direct_subscribers(self: LabelTable, header: tuple[int, ...]) -> dict[str, Any]:
    union: dict[str, set[int]] = {}
    for node in header:
        for neighbor in self.subscribers(node):
            union.setdefault(neighbor, set()).update(self.label(node, neighbor))
    return {i: self._minimal(union[i]) for i in sorted(union)}


def inherit_the_union(self: LabelTable, setup: Setup) -> dict[str, set[NodeId]]:
    union: dict[str, set[NodeId]] = {}
    for parent in setup.parents:
        for neighbor, label in self._labels[parent].items():
            union.setdefault(neighbor, set()).update(label)
    return union


def breadth_first(self: LabelTable, node: NodeId, neighbor: str) -> list[NodeId]:
    order, queue = [node], deque([node])
    while queue:
        for child in sorted(self.graph.children(queue.popleft())):
            if child not in order and node in self.label(child, neighbor):
                order.append(child)
                queue.append(child)
    return order


def merge_the_union(self: LabelTable, node: NodeId, neighbor: str) -> None:
    union: set[NodeId] = set()
    for parent in self.graph.parents(node):
        union |= self.label(parent, neighbor)
    self._labels[node].pop(neighbor)
    if union:
        self._labels[node][neighbor] = union


def headers_as_they_come(self: LabelTable, label: Iterable[NodeId]) -> tuple[NodeId, ...]:
    return tuple(sorted(label))


def bottom_up_breadth_first(self: MinimalTable, superset: Iterable[NodeId]) -> list[NodeId]:
    among = set(superset)
    lowest = sorted(n for n in among if not self.graph.children(n) & among)
    order, queue = list(lowest), deque(lowest)
    while queue:
        for parent in sorted(self.graph.parents(queue.popleft())):
            if parent not in order:
                order.append(parent)
                queue.append(parent)
    return order


def first_on_each_path(
    self: ContentGraph, node: NodeId, held: Any
) -> tuple[set[NodeId], set[NodeId]]:
    return _walk(self.parents, node, held), _walk(self.children, node, held)


def _walk(step: Callable[[NodeId], Any], node: NodeId, held: Any) -> set[NodeId]:
    found: set[NodeId] = set()
    for near in step(node):
        found |= {near} if near in held else _walk(step, near, held)
    return found


def no_relatives_in_between(
    self: ContentGraph, node: NodeId, held: Any
) -> tuple[set[NodeId], set[NodeId]]:
    above, below = self.ancestors(node), self.descendants(node)
    parents = {a for a in above & held if not self.descendants(a) & above}
    return parents, {d for d in below & held if not self.ancestors(d) & below}


def keep_short_cuts(
    self: ContentGraph, node: NodeId, parents: Iterable[int], children: Iterable[int]
) -> None:
    self._parents[node], self._children[node] = set(parents), set(children)
    self._set_level(node)
    for parent in self._parents[node]:
        self._children[parent].add(node)
    for child in self._children[node]:
        self._parents[child].add(node)


def link_one_way(
    self: ContentGraph, node: NodeId, parents: Iterable[int], children: Iterable[int]
) -> None:
    self._parents[node], self._children[node] = set(parents), set(children)
    self._set_level(node)


def leave_a_hole(self: ContentGraph, node: NodeId) -> None:
    for parent in self._parents.pop(node):
        self._children[parent].discard(node)
    for child in self._children.pop(node):
        self._parents[child].discard(node)
    if self._levels is not None:
        del self._levels[node]


def ask_only_for_the_marked(original: Callable[..., None]) -> Callable[..., None]:
    def subscribe(self: Nodes, neighbor: str, node: NodeId, marked: bool) -> None:
        known, at_root = node in self.states, self._stream._store is not None
        original(self, neighbor, node, marked)
        if not known and neighbor == LOCAL and not at_root and node in self.requests:
            self.requests.remove(node)  # a subscriber's own subscription carries no mark

    return subscribe


def data_overtakes_control(original: Callable[..., None]) -> Callable[..., None]:
    """A link with two channels: notifications do not wait for control messages."""

    def transmit(self: Network, src: str, dst: str, message: messages.Message) -> None:
        kept = self._arrival.get((src, dst), 0.0)
        if isinstance(message, messages.Notify):
            self._arrival[src, dst] = 0.0
        original(self, src, dst, message)
        self._arrival[src, dst] = max(kept, self._arrival[src, dst])

    return transmit


def forget_at_once(self: Nodes, node: NodeId, state: NodeState) -> None:
    """No waiting for an acknowledgement: the node is gone, headers on the wire or not."""
    self._lingering.discard(node)
    self.wanted.discard(node)
    self.releases.append(node)
    self._table.remove(node)
    del self.states[node]


def reuse_without_asking(original: Callable[..., None]) -> Callable[..., None]:
    def subscribe(self: Nodes, neighbor: str, node: NodeId, marked: bool) -> None:
        state = self.states.get(node)
        if state is not None and state.phase is Phase.CLOSING:
            state.phase = Phase.ACTIVE
            self.wanted.add(node)
        original(self, neighbor, node, marked)

    return subscribe


def drop_what_is_going(original: Callable[..., None]) -> Callable[..., None]:
    """A set-up that names a node which was given up: the name is left out."""

    def set_up(self: Nodes, setup: Setup) -> None:
        going = {n for n, state in self.states.items() if state.phase is Phase.CLOSING}
        parents = tuple(n for n in setup.parents if n not in going)
        children = tuple(n for n in setup.children if n not in going)
        original(self, Setup(setup.node, parents, children))

    return set_up


MUTANTS = [
    Mutant(1, "labels only where there is none", LabelTable, "_label_descendants",
           label_where_there_is_none),
    Mutant(2, "only direct subscribers are due", LabelTable, "route", only_direct_subscribers),
    Mutant(3, "a new node inherits the union", LabelTable, "_inherited", inherit_the_union),
    Mutant(4, "unsubscription walks breadth-first", LabelTable, "_affected", breadth_first),
    Mutant(4, "merging takes the union", LabelTable, "_merge_parent_labels", merge_the_union),
    Mutant(5, "headers are not reduced", LabelTable, "_minimal", headers_as_they_come),
    Mutant(6, "minimal graphs are walked breadth-first", MinimalTable, "_lowest_first",
           bottom_up_breadth_first, "minimal-graph"),
    Mutant(7, "the first held node on each path", ContentGraph, "position", first_on_each_path),
    Mutant(7, "nothing at all in between", ContentGraph, "position", no_relatives_in_between),
    Mutant(8, "short cuts stay", ContentGraph, "insert", keep_short_cuts),
    Mutant(8, "linked one way", ContentGraph, "insert", link_one_way),
    Mutant(9, "removal leaves a hole", ContentGraph, "remove", leave_a_hole),
    Mutant(10, "unmarked subscriptions stay here", Nodes, "subscribe",
           ask_only_for_the_marked(Nodes.subscribe)),
    Mutant(11, "data overtakes control", Network, "_transmit",
           data_overtakes_control(Network._transmit)),
    Mutant(12, "no acknowledgement of unsubscription", Nodes, "_close", forget_at_once),
    Mutant(13, "a node given up is reused", Nodes, "subscribe",
           reuse_without_asking(Nodes.subscribe)),
    Mutant(14, "names of nodes given up are left out", Nodes, "set_up",
           drop_what_is_going(Nodes.set_up)),
]  # fmt: skip
