"""An index for languages whose topics are sets of atoms: a topic matches what contains it.

The thesis asks for something better than breadth-first search (Kulik 2004, section 6.3). Here
every topic is a path through a trie of its atoms in a fixed order (a set-trie, Savnik 2013), and
the trie is flat: a prefix is known by the sum of random weights of its atoms, so that a step down
is one addition and one hash probe. Sums may collide; what they find is therefore compared with
the topic itself, and weights are drawn anew should two topics collide.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from preprocess.language import Index, Language
from routing.content_graph import ContentGraph, NodeId

A = TypeVar("A", bound=Hashable)
"""Atoms, such as (attribute, value)."""

#: Sums of TERMS_MAX weights stay below 2**63, where numpy can follow.
WEIGHT_BITS = 53

#: In the table: a prefix that is no topic.
_PREFIX = -1


class SetIndex(Index[frozenset[A], frozenset[A]], Generic[A]):
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
        self._ranks: dict[Hashable, int] = {}
        self._clear()

    def family(self, atom: A) -> Hashable:
        """Atoms of a family exclude one another, in topics and in notifications alike."""
        return atom

    def _clear(self) -> None:
        """Draw new weights; the ranks of families stay."""
        #: Per atom its family's rank and its weight.
        self._atoms: dict[A, tuple[int, int]] = {}
        #: Every prefix of a topic by its sum, and the topic's node where it is one.
        self._table: dict[int, NodeId] = {0: _PREFIX}
        #: Per prefix, what may follow: by the rank of a family, the weights of its atoms.
        self._next: dict[int, dict[int, list[int]]] = {}
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
        for rank, weight in sorted(map(self._atom, topic)):
            successor = key + weight
            if successor not in table:
                table[successor] = _PREFIX
            followers = self._next.setdefault(key, {}).setdefault(rank, [])
            if weight not in followers:
                followers.append(weight)
            key = successor
        if table[key] != _PREFIX:
            return False
        table[key] = node
        return True

    def _atom(self, atom: A) -> tuple[int, int]:
        entry = self._atoms.get(atom)
        if entry is None:
            rank = self._ranks.setdefault(self.family(atom), len(self._ranks))
            entry = self._atoms[atom] = (rank, self._rng.randrange(1, 1 << self._bits))
        return entry

    def _known(self, atoms: Iterable[A]) -> list[tuple[int, int]]:
        """Ranks and weights of those atoms that any topic has, in order."""
        return sorted(entry for entry in map(self._atoms.get, atoms) if entry is not None)

    # -- looking up ----------------------------------------------------------------------

    def lowest(self, notification: frozenset[A]) -> list[NodeId]:
        known = self._known(notification)
        # The topic of all that is known, if there is one, lies below all others.
        node = self._table.get(sum([weight for _, weight in known]), _PREFIX)
        if node >= 0 and self.topics[node] <= notification and len(self.topics[node]) == len(known):
            return [node]
        return self.low(self._contained(known, notification))

    def matching(self, notification: frozenset[A]) -> set[NodeId]:
        return self._contained(self._known(notification), notification)

    def above(self, topic: frozenset[A]) -> set[NodeId]:
        return self._contained(self._known(topic), topic)

    def _contained(self, known: list[tuple[int, int]], atoms: frozenset[A]) -> set[NodeId]:
        """The nodes of all stored sets within the atoms."""
        table, topics = self._table, self.topics
        keys = [0]
        for _, weight in known:
            keys += [key for key in map(weight.__add__, keys) if key in table]
        nodes = [node for node in map(table.__getitem__, keys) if node >= 0]
        return {node for node in nodes if topics[node] <= atoms}

    def below(self, topic: frozenset[A]) -> set[NodeId]:
        wanted = self._known(topic)
        if len(wanted) < len(topic):
            return set()
        table, topics = self._table, self.topics
        nodes = [node for node in map(table.__getitem__, self._reach(wanted)) if node >= 0]
        return {node for node in nodes if topic <= topics[node]}

    def _reach(self, wanted: list[tuple[int, int]]) -> list[int]:
        """The prefixes that hold everything wanted: walk down, skipping no wanted atom."""
        stack, complete = [(0, 0)], []
        while stack:
            key, done = stack.pop()
            if done == len(wanted):
                complete.append(key)
            following = self._next.get(key)
            if following is None:
                continue
            needed, weight = wanted[done] if done < len(wanted) else (len(self._ranks), 0)
            for rank, followers in following.items():
                if rank < needed:
                    stack.extend([(key + follower, done) for follower in followers])
                elif rank == needed and weight in followers:
                    stack.append((key + weight, done + 1))
        return complete
