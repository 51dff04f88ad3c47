"""A digest of a set of nodes: how many, and an order-free hash, kept up to date one by one.

Two routers compare digests instead of lists, so that refreshing an unchanged table costs the
same whatever its size. The hash is a sum of well-mixed words: the same on every machine and
under any PYTHONHASHSEED.
"""

from __future__ import annotations

from collections.abc import Iterable

from routing.messages import Digest

_MASK = 0xFFFFFFFFFFFFFFFF


def mix(word: int) -> int:
    """Spread a word over 64 bits (the finaliser of splitmix64: Steele, Lea and Flood 2014)."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


class NodeSet:
    """A set of nodes that knows its digest."""

    __slots__ = ("_hash", "nodes")

    def __init__(self, nodes: Iterable[int] = ()) -> None:
        self.nodes: set[int] = set()
        self._hash = 0
        for node in nodes:
            self.add(node)

    def __contains__(self, node: int) -> bool:
        return node in self.nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def add(self, node: int) -> None:
        """Add a node, if it is not there."""
        if node not in self.nodes:
            self.nodes.add(node)
            self._hash = (self._hash + mix(node)) & _MASK

    def discard(self, node: int) -> None:
        """Take a node out, if it is there."""
        if node in self.nodes:
            self.nodes.discard(node)
            self._hash = (self._hash - mix(node)) & _MASK

    def digest(self) -> Digest:
        """How many nodes, and the hash of them."""
        return len(self.nodes), self._hash
