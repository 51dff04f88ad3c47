"""Shortest-path dissemination trees and next-hop tables (Kulik 2004, sections 3.4.1 and 4.1.1).

A rendezvous point's tree is the union of the shortest paths to it, by latency or by hops; a tie
goes to the neighbour that comes first by name, so every router finds the same tree. Latencies are
compared as whole nanoseconds: sums of floats would break ties by rounding.

When a link or a router is lost, compute `next_hops` on what `Overlay.without` leaves and compare
with `changes`; if somebody is cut off, CutOffError names them. Nothing here is incremental.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from topology.overlay import CutOffError, Overlay, TopologyError

Metric = Literal["latency", "hops"]
NextHops = dict[str, dict[str, str]]
"""Per router, per root, the neighbour towards the root; the root itself has none."""


@dataclass(frozen=True)
class Tree:
    """A dissemination tree: per router but the root, the neighbour towards the root."""

    root: str
    parents: Mapping[str, str]

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Per router, those that reach the root through it, sorted."""
        found: dict[str, list[str]] = {self.root: [], **{name: [] for name in self.parents}}
        for name in sorted(self.parents):
            found[self.parents[name]].append(name)
        return {name: tuple(below) for name, below in found.items()}

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """Per router, how many hops it is from the root; parents before children."""
        found, level, depth = {self.root: 0}, [self.root], 0
        while level:
            depth += 1
            level = [child for name in level for child in self.children[name]]
            found.update(dict.fromkeys(level, depth))
        return found

    @property
    def depth(self) -> int:
        """Hops from the root to the farthest router."""
        return max(self.depths.values())


def tree(overlay: Overlay, root: str, by: Metric = "latency") -> Tree:
    """The dissemination tree of a rendezvous point; CutOffError if it misses a router."""
    weights = _weights(overlay, by)
    if root not in weights:
        raise TopologyError(f"the overlay has no router {root!r} to be a rendezvous point")
    distance = _distances(weights, root)
    if len(distance) < len(weights):
        raise CutOffError(root, weights.keys() - distance.keys())
    return Tree(root, {name: _towards(weights, distance, name) for name in weights if name != root})


def next_hops(overlay: Overlay, roots: Iterable[str], by: Metric = "latency") -> NextHops:
    """The next-hop table of every router; TopologyError for an unknown root or one cut off."""
    table: NextHops = {name: {} for name in overlay.routers}
    for root in sorted(set(roots)):
        for name, hop in tree(overlay, root, by).parents.items():
            table[name][root] = hop
    return table


def changes(
    before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """What is different in two tables: per router, per root, the old hop and the new one.

    None stands for no hop: the router or the root is new, or gone. Routers without a change are
    left out.
    """
    found: dict[str, dict[str, tuple[str | None, str | None]]] = {}
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        moved = {
            root: (old.get(root), new.get(root))
            for root in sorted(old.keys() | new.keys())
            if old.get(root) != new.get(root)
        }
        if moved:
            found[name] = moved
    return found


def diameter(overlay: Overlay) -> int:
    """Hops between the two routers that are farthest apart; CutOffError if two are not joined."""
    overlay.require_connected()
    neighbors = overlay.neighbors
    return max(_eccentricity(neighbors, name) for name in neighbors)


def centre(overlay: Overlay) -> str:
    """A router from which the farthest is nearest, in hops; the first by name of several."""
    neighbors = overlay.require_connected().neighbors
    return min(neighbors, key=lambda name: (_eccentricity(neighbors, name), name))


def _weights(overlay: Overlay, by: Metric) -> dict[str, dict[str, int]]:
    if by not in ("latency", "hops"):
        raise TopologyError(f"paths are shortest by 'latency' or by 'hops', not by {by!r}")
    return {
        name: {
            other: 1 if by == "hops" else max(1, round(latency * 1e9))
            for other, latency in beside.items()
        }
        for name, beside in overlay.neighbors.items()
    }


def _distances(weights: Mapping[str, Mapping[str, int]], root: str) -> dict[str, int]:
    """Dijkstra's algorithm: the distance of every router that a path joins to the root."""
    distance = {root: 0}
    done: set[str] = set()
    heap = [(0, root)]
    while heap:
        so_far, name = heapq.heappop(heap)
        if name in done:
            continue
        done.add(name)
        for other, weight in weights[name].items():
            through = so_far + weight
            if other not in distance or through < distance[other]:
                distance[other] = through
                heapq.heappush(heap, (through, other))
    return distance


def _towards(
    weights: Mapping[str, Mapping[str, int]], distance: Mapping[str, int], name: str
) -> str:
    """The first neighbour by name that is on a shortest path."""
    near = distance[name]
    return min(other for other, w in weights[name].items() if distance[other] + w == near)


def _eccentricity(neighbors: Mapping[str, Collection[str]], start: str) -> int:
    seen, level, hops = {start}, [start], -1
    while level:
        hops += 1
        following = []
        for name in level:
            for other in neighbors[name]:
                if other not in seen:
                    seen.add(other)
                    following.append(other)
        level = following
    return hops
