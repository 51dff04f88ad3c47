"""An index for languages whose topics are sets of atoms: a topic matches what contains it.

The thesis asks for something better than breadth-first search (Kulik 2004, section 6.3). Here
every topic is a path through a trie of its atoms in a fixed order (a set-trie, Savnik 2013), and
the trie is flat: a prefix is known by the sum of random weights of its atoms, so that a step down
is one addition and one hash probe. Sums may collide; what they find is therefore compared with
the topic itself, and weights are drawn anew should two topics collide. Topics that contain a new
one are the intersection of bitmaps, one for each atom.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from pyroaring import BitMap

from preprocess.language import Index, Language, N
from routing.content_graph import ContentGraph, NodeId

A = TypeVar("A", bound=Hashable)
"""Atoms, such as (attribute, value)."""

#: Few enough for sums of weights to be small integers, enough for them to differ.
WEIGHT_BITS = 53

#: In the table: a prefix that is no topic.
_PREFIX = -1


class AtomIndex(Index[frozenset[A], N], Generic[A, N]):
    """Which nodes have an atom: a bitmap for each."""

    def __init__(self, language: Language[frozenset[A], N], graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._having: dict[A, BitMap] = {}

    def insert(self, topic: frozenset[A], node: NodeId) -> None:
        super().insert(topic, node)
        for atom in topic:
            self._having.setdefault(atom, BitMap()).add(node)

    def remove(self, topic: frozenset[A], node: NodeId) -> None:
        super().remove(topic, node)
        for atom in topic:
            self._having[atom].remove(node)

    def below(self, topic: frozenset[A]) -> set[NodeId]:
        if not topic:
            return set(self.topics)
        having = [self._having.get(atom) for atom in topic]
        bitmaps = sorted((nodes for nodes in having if nodes), key=len)
        if len(bitmaps) < len(having):
            return set()
        found = bitmaps[0]
        for nodes in bitmaps[1:]:
            found = found & nodes
        return set(found)


class SetIndex(AtomIndex[A, frozenset[A]]):
    """Finds the stored sets that are contained in a set, or contain it."""

    def __init__(
        self,
        language: Language[frozenset[A], frozenset[A]],
        graph: ContentGraph,
        weight_bits: int = WEIGHT_BITS,
    ) -> None:
        super().__init__(language, graph)
        self._rng = random.Random()  # noqa: S311 - unpredictable is enough, results do not differ
        self._bits = weight_bits
        self._clear()

    def _clear(self) -> None:
        """Draw new weights."""
        #: Per atom its rank and its weight.
        self._atoms: dict[A, tuple[int, int]] = {}
        #: Every prefix of a topic by its sum, and the topic's node where it is one.
        self._table: dict[int, NodeId] = {0: _PREFIX}
        self._stale = 0

    # -- changes -------------------------------------------------------------------------

    def insert(self, topic: frozenset[A], node: NodeId) -> None:
        super().insert(topic, node)
        if not self._place(topic, node):
            self._rebuild()

    def remove(self, topic: frozenset[A], node: NodeId) -> None:
        """Prefixes stay behind, until half of the table is of no use."""
        super().remove(topic, node)
        self._table[sum(weight for _, weight in self._known(topic))] = _PREFIX
        self._stale += 1
        if 2 * self._stale > len(self.topics):
            self._rebuild()

    def _rebuild(self) -> None:
        self._clear()
        if not all(self._place(topic, node) for node, topic in self.topics.items()):
            self._bits = max(WEIGHT_BITS, self._bits)
            self._rebuild()

    def _place(self, topic: frozenset[A], node: NodeId) -> bool:
        """Add a path; false if another topic has the same sum."""
        table, key = self._table, 0
        for _, weight in sorted(map(self._atom, topic)):
            key += weight
            if key not in table:
                table[key] = _PREFIX
        if table[key] != _PREFIX:
            return False
        table[key] = node
        return True

    def _atom(self, atom: A) -> tuple[int, int]:
        entry = self._atoms.get(atom)
        if entry is None:
            entry = (len(self._atoms), self._rng.randrange(1, 1 << self._bits))
            self._atoms[atom] = entry
        return entry

    def _known(self, atoms: Iterable[A]) -> list[tuple[int, int]]:
        """Ranks and weights of those atoms that any topic has, in order."""
        return sorted(entry for entry in map(self._atoms.get, atoms) if entry is not None)

    # -- looking up ----------------------------------------------------------------------

    def lowest(self, notification: frozenset[A]) -> list[NodeId]:
        """Only the lowest need a second look: a node found by mistake has no child that is not."""
        lowest = self.low(self._found(notification))
        if all(self.topics[node] <= notification for node in lowest):
            return lowest
        return self.low(self.matching(notification))

    def matching(self, notification: frozenset[A]) -> set[NodeId]:
        topics = self.topics
        return {node for node in self._found(notification) if topics[node] <= notification}

    def above(self, topic: frozenset[A]) -> set[NodeId]:
        return self.matching(topic)

    def _found(self, atoms: frozenset[A]) -> set[NodeId]:
        """The nodes whose sums are sums of these atoms: all that are within, perhaps more."""
        table = self._table
        keys = [0]
        for _, weight in self._known(atoms):
            keys += [key for key in map(weight.__add__, keys) if key in table]
        return {node for node in map(table.__getitem__, keys) if node >= 0}
