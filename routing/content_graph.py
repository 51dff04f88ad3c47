"""Content graphs: the partial order of subscription topics (Kulik 2004, section 3.3).

A node stands for a set of notifications; a covers b (a is an ancestor of b) where a's set
contains b's. The graph keeps the transitive reduction: an edge only where no other path leads
from parent to child. Nodes enter and leave one at a time, and neither ever changes the order
among the others, so what a router has once been told about two nodes stays true.

Every node has a level below all that it covers and above all that cover it. A new node's lies
between those of its parents and of its children, so that no other ever changes. Whether one node
covers another is then a walk between two levels, and not through all ancestors.

What the topics mean is not known here: preprocessors decide that (section 3.4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping
from collections.abc import Set as AbstractSet

from routing.errors import ProtocolError

NodeId = int

NODE_MAX = 0xFFFF_FFFF
"""Identifiers have 32 bits on the wire."""

_NOTHING: frozenset[NodeId] = frozenset()


def check_node(node: NodeId) -> None:
    """ProtocolError unless a number can be an identifier."""
    if not 0 <= node <= NODE_MAX:
        raise ProtocolError(f"{node} is no node identifier: they go from 0 to {NODE_MAX}")


class ContentGraph:
    """A transitively reduced, directed acyclic graph of node IDs."""

    def __init__(self) -> None:
        self._parents: dict[NodeId, set[NodeId]] = {}
        self._children: dict[NodeId, set[NodeId]] = {}
        #: Numbers that rise along every edge; made when they are first needed.
        self._levels: dict[NodeId, float] | None = None

    @classmethod
    def of_parents(cls, parents: Mapping[NodeId, Iterable[NodeId]]) -> ContentGraph:
        """The graph in which these are the lowest ancestors of each node; see `check`."""
        graph = cls()
        graph._parents = {node: set(above) for node, above in parents.items()}
        graph._children = {node: set() for node in parents}
        for node, above in graph._parents.items():
            for parent in above:
                graph._children[parent].add(node)
        return graph

    # -- looking -------------------------------------------------------------------------

    def __contains__(self, node: object) -> bool:
        return node in self._parents

    def __len__(self) -> int:
        return len(self._parents)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._parents)

    def nodes(self) -> KeysView[NodeId]:
        """All nodes, as a set."""
        return self._parents.keys()

    def parents(self, node: NodeId) -> AbstractSet[NodeId]:
        """The lowest ancestors; empty for a root."""
        return self._parents[node]

    def children(self, node: NodeId) -> AbstractSet[NodeId]:
        """The highest descendants; empty for a leaf."""
        return self._children[node]

    def edges(self) -> int:
        """How many edges the reduced graph has."""
        return sum(map(len, self._children.values()))

    def ancestors(self, node: NodeId) -> set[NodeId]:
        """A(node): every node that covers it, itself left out."""
        return _reach(self._parents, (node,))

    def descendants(self, node: NodeId) -> set[NodeId]:
        """D(node): every node that it covers, itself left out."""
        return _reach(self._children, (node,))

    def covering(self, nodes: Iterable[NodeId]) -> set[NodeId]:
        """The superset graph of a header: its nodes and all their ancestors (section 3.4.3)."""
        start = tuple(nodes)
        return _reach(self._parents, start).union(start)

    def low(self, nodes: Collection[NodeId]) -> set[NodeId]:
        """The nodes without those that are ancestors of others among them."""
        if len(nodes) < 2:
            return set(nodes)
        levels = self._leveled()
        top = min(map(levels.__getitem__, nodes))
        return set(nodes).difference(_walk(self._parents, nodes, lambda n: levels[n] >= top))

    def high(self, nodes: Collection[NodeId]) -> set[NodeId]:
        """The nodes without those that are descendants of others among them."""
        if len(nodes) < 2:
            return set(nodes)
        levels = self._leveled()
        bottom = max(map(levels.__getitem__, nodes))
        return set(nodes).difference(_walk(self._children, nodes, lambda n: levels[n] <= bottom))

    def position(self, node: NodeId, held: AbstractSet[NodeId]) -> tuple[set[NodeId], set[NodeId]]:
        """Where a node stands among held ones: its lowest held ancestors, highest held descendants.

        This is what a graph set-up says (section 3.4.6). The first held node on each path is
        only a candidate: another path may meet a lower (or higher) one.
        """
        above = _first_met(self._parents, node, held)
        below = _first_met(self._children, node, held)
        return self.low(above), self.high(below)

    def below_in_order(self, node: NodeId, follow: Callable[[NodeId], bool]) -> list[NodeId]:
        """The node and what it reaches through nodes that are followed, parents first."""
        order: list[NodeId] = []
        entered: set[NodeId] = {node}
        stack: list[tuple[NodeId, Iterator[NodeId]]] = [(node, iter(self._children[node]))]
        while stack:
            current, rest = stack[-1]
            for child in rest:
                if child not in entered and follow(child):
                    entered.add(child)
                    stack.append((child, iter(self._children[child])))
                    break
            else:
                stack.pop()
                order.append(current)
        order.reverse()
        return order

    def topological(self, among: Collection[NodeId] | None = None) -> list[NodeId]:
        """All nodes, or those of a set that holds all its ancestors: parents first, then by ID."""
        parents = self._parents
        waiting = {node: len(parents[node]) for node in (parents if among is None else among)}
        ready = sorted(node for node, count in waiting.items() if not count)
        order: list[NodeId] = []
        while ready:
            order.extend(ready)
            freed: list[NodeId] = []
            for node in ready:
                for child in self._children[node]:
                    if child in waiting:
                        waiting[child] -= 1
                        if not waiting[child]:
                            freed.append(child)
            ready = sorted(freed)
        return order

    # -- changing ------------------------------------------------------------------------

    def insert(self, node: NodeId, parents: Iterable[NodeId], children: Iterable[NodeId]) -> None:
        """Add a node between its parents and children, and drop the edges that it replaces.

        Parents must be its lowest ancestors, children its highest descendants, and every parent
        must cover every child already: a new node reveals no new order among old ones.
        """
        above, below = set(parents), set(children)
        self._check_insertion(node, above, below)
        self._parents[node] = above
        self._children[node] = below
        self._set_level(node)
        for parent in above:
            siblings = self._children[parent]
            siblings -= below
            siblings.add(node)
        for child in below:
            owners = self._parents[child]
            owners -= above
            owners.add(node)

    def link(self, parent: NodeId, child: NodeId) -> bool:
        """Note that a node covers another; false if that was known."""
        for node in (parent, child):
            if node not in self._parents:
                raise ProtocolError(f"node {node} is not in the graph, so it cannot be linked")
        above = _reach(self._parents, (parent,))
        if parent == child or child in above:
            raise ProtocolError(f"node {parent} cannot cover node {child}: it is covered by it")
        if parent in _reach(self._parents, (child,)):
            return False
        below = {child, *_reach(self._children, (child,))}
        for high in {parent, *above}:
            for shortcut in self._children[high] & below:
                self._children[high].discard(shortcut)
                self._parents[shortcut].discard(high)
        self._parents[child].add(parent)
        self._children[parent].add(child)
        if self._levels is not None:
            # All that the child covers moves down with it: edges into it only grow longer.
            shift = max(0.0, self._levels[parent] + 1 - self._levels[child])
            self._levels.update((low, self._levels[low] + shift) for low in below)
        return True

    def remove(self, node: NodeId) -> None:
        """Take a node out and join its parents to its children where no other path does."""
        if node not in self._parents:
            raise ProtocolError(f"node {node} is not in the graph, so it cannot be removed")
        above, below = self._parents[node], self._children[node]
        if above and below:
            self._leveled()  # now, while no edge is missing
        if self._levels is not None:
            del self._levels[node]
        del self._parents[node], self._children[node]
        for parent in above:
            self._children[parent].discard(node)
        for child in below:
            self._parents[child].discard(node)
        for child in below:
            for parent in self._not_covering(above, child):
                self._children[parent].add(child)
                self._parents[child].add(parent)

    def _check_insertion(self, node: NodeId, above: set[NodeId], below: set[NodeId]) -> None:
        if node in self._parents:
            raise ProtocolError(f"node {node} is in the graph already")
        for other in sorted(above | below):
            if other not in self._parents:
                raise ProtocolError(f"node {node} cannot be placed beside node {other}: unknown")
        for child in sorted(below):
            missing = self._not_covering(above, child)
            if missing:
                raise ProtocolError(
                    f"node {node} cannot stand between {min(missing)} and {child}: "
                    f"{min(missing)} does not cover {child}"
                )
        if len(self.low(above)) != len(above) or len(self.high(below)) != len(below):
            raise ProtocolError(f"the parents or the children of node {node} cover one another")

    def check(self) -> None:
        """Assert that edges go both ways, that there is no cycle, and that none is redundant."""
        for node, parents in self._parents.items():
            assert all(node in self._children[parent] for parent in parents), f"node {node}"
            assert self.low(parents) == parents, f"redundant edge above node {node}"
        for node, children in self._children.items():
            assert all(node in self._parents[child] for child in children), f"node {node}"
        assert len(self.topological()) == len(self._parents), "the graph has a cycle"
        levels = self._leveled()
        for node, parents in self._parents.items():
            assert all(levels[parent] < levels[node] for parent in parents), f"level of {node}"

    # -- levels --------------------------------------------------------------------------

    def _leveled(self) -> dict[NodeId, float]:
        """The levels of all nodes: at first, the longest way from a root."""
        if self._levels is None:
            self._levels = levels = dict.fromkeys(self._parents, 0.0)
            for node in self.topological():
                for child in self._children[node]:
                    levels[child] = max(levels[child], levels[node] + 1)
        return self._levels

    def _set_level(self, node: NodeId) -> None:
        """Half-way between parents and children; all are made anew where numbers end."""
        levels = self._levels
        if levels is None:
            return
        above = max((levels[parent] for parent in self._parents[node]), default=None)
        below = min((levels[child] for child in self._children[node]), default=None)
        if above is None:
            levels[node] = 0.0 if below is None else below - 1
        elif below is None:
            levels[node] = above + 1
        else:
            levels[node] = (above + below) / 2
            if not above < levels[node] < below:
                self._levels = None

    def _not_covering(self, nodes: set[NodeId], child: NodeId) -> set[NodeId]:
        """Those of the nodes that are not above a child; most often they are very near."""
        missing = nodes - self._parents[child]
        if not missing:
            return missing
        levels = self._leveled()
        top = min(map(levels.__getitem__, missing))
        for met in _walk(self._parents, (child,), lambda n: levels[n] >= top):
            missing.discard(met)
            if not missing:
                break
        return missing


def _walk(
    edges: Mapping[NodeId, AbstractSet[NodeId]],
    start: Iterable[NodeId],
    follow: Callable[[NodeId], bool],
) -> Iterator[NodeId]:
    """What paths from these lead to through nodes that are followed, step by step outwards."""
    seen: set[NodeId] = set()
    front: Iterable[NodeId] = start
    while front:
        further: list[NodeId] = []
        for node in front:
            for near in edges[node]:
                if near not in seen and follow(near):
                    seen.add(near)
                    further.append(near)
                    yield near
        front = further


def _reach(edges: Mapping[NodeId, AbstractSet[NodeId]], start: Iterable[NodeId]) -> set[NodeId]:
    """Every node that a non-empty path leads to from one of these."""
    reached: set[NodeId] = set()
    stack: list[NodeId] = []
    for node in start:
        stack.extend(edges[node])
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack.extend(edges[node])
    return reached


def _first_met(
    edges: Mapping[NodeId, AbstractSet[NodeId]], node: NodeId, held: AbstractSet[NodeId]
) -> set[NodeId]:
    """The first held node on every path from a node, the node itself left out."""
    met: set[NodeId] = set()
    seen: set[NodeId] = set()
    stack = list(edges.get(node, _NOTHING))
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in held:
            met.add(current)
        else:
            stack.extend(edges[current])
    return met
