"""A content graph as arrays: what the job wrote, for describing it and for loading it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from routing.content_graph import ContentGraph
from workloads.errors import WorkloadError
from workloads.randomness import Ints

Words = NDArray[np.object_]


class Graph:
    """Nodes 0 to n - 1 with their topics; edges lead from parent[j] to child[j]."""

    def __init__(self, text: Words, subscribers: Ints, parent: Ints, child: Ints) -> None:
        #: What each node's topic says, and how many subscribers it has at the start.
        self.text = text
        self.subscribers = subscribers
        self.parent = parent
        self.child = child

    def __len__(self) -> int:
        return len(self.subscribers)

    @cached_property
    def parents(self) -> Neighbours:
        """From a node to its parents."""
        return Neighbours(len(self), self.child, self.parent)

    @cached_property
    def children(self) -> Neighbours:
        """From a node to its children."""
        return Neighbours(len(self), self.parent, self.child)

    @cached_property
    def level(self) -> Ints:
        """Edges on the longest path from a root to each node."""
        waiting = self.parents.degree.copy()
        level = np.full(len(self), -1, dtype=np.int64)
        ready = np.flatnonzero(waiting == 0)
        depth = 0
        while len(ready):
            level[ready] = depth
            freed, times = np.unique(self.children.of(ready), return_counts=True)
            waiting[freed] -= times
            ready = freed[waiting[freed] == 0]
            depth += 1
        if (level < 0).any():
            raise WorkloadError("the content graph has a cycle")
        return level

    def covering(self, nodes: Ints) -> Ints:
        """These nodes and all their ancestors."""
        met = np.zeros(len(self), dtype=np.bool_)
        fresh = np.unique(nodes)
        while len(fresh):
            met[fresh] = True
            above = np.unique(self.parents.of(fresh))
            fresh = above[~met[above]]
        return np.flatnonzero(met)

    def content_graph(self) -> ContentGraph:
        """The same graph as routers know it."""
        graph = ContentGraph()
        for node in np.argsort(self.level, kind="stable").tolist():
            graph.insert(node, self.parents.of_one(node).tolist(), ())
        return graph


class Neighbours:
    """Adjacency in one direction, packed: the neighbours of a node stand together."""

    def __init__(self, nodes: int, source: Ints, target: Ints) -> None:
        by_source = np.argsort(source, kind="stable")
        self._target = target[by_source]
        self.degree: Ints = np.bincount(source, minlength=nodes)
        self._start = np.concatenate([[0], np.cumsum(self.degree)])

    def of_one(self, node: int) -> Ints:
        """The neighbours of one node."""
        return self._target[self._start[node] : self._start[node + 1]]

    def of(self, nodes: Ints) -> Ints:
        """The neighbours of several nodes, one after the other."""
        sizes = self.degree[nodes]
        ends = np.cumsum(sizes)
        within = np.arange(sizes.sum()) - np.repeat(ends - sizes, sizes)
        found: Ints = self._target[np.repeat(self._start[nodes], sizes) + within]
        return found
