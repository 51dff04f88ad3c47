"""Overlays of a fixed shape: chains, stars, balanced trees, and the one of Chen et al.

Positions are for drawing only. Every link has the same latency.
"""

from __future__ import annotations

import itertools
import math

from topology.overlay import DEFAULT_LATENCY, Overlay, Site, TopologyError, overlay

#: More routers than this are a slip of the keyboard.
ROUTERS_MAX = 1_000_000
DEPTH_MAX = 64


def chain(length: int, latency: float = DEFAULT_LATENCY) -> Overlay:
    """r0 – r1 – … : the longest way for so many routers."""
    names = numbered("r", _count("a chain", "routers", length))
    sites = [Site(name, position=(float(i), 0.0)) for i, name in enumerate(names)]
    return overlay([(a, b, latency) for a, b in itertools.pairwise(names)], sites)


def star(leaves: int, latency: float = DEFAULT_LATENCY) -> Overlay:
    """One hub, and so many routers around it."""
    names = numbered("r", _count("a star", "leaves", leaves))
    sites = [Site("hub", "hub", (0.0, 0.0))]
    for i, name in enumerate(names):
        angle = 2 * math.pi * i / leaves
        sites.append(Site(name, "leaf", (math.cos(angle), math.sin(angle))))
    return overlay([("hub", name, latency) for name in names], sites)


def balanced_tree(fan_out: int, depth: int, latency: float = DEFAULT_LATENCY) -> Overlay:
    """A root, so many children for every router above the last level, and so many levels below it.

    Names say where a router is: r, then r.0, r.1 …, then r.0.0 …
    """
    _count("a tree", "children", fan_out)
    if not 0 <= depth <= DEPTH_MAX:
        raise TopologyError(f"a tree has 0 to {DEPTH_MAX} levels below its root, not {depth}")
    if fan_out**depth > ROUTERS_MAX:
        raise TopologyError(f"a tree of fan-out {fan_out} and depth {depth} is too large")
    sites, links, level = [Site("r", "root", (0.0, 0.0))], [], ["r"]
    for hops in range(1, depth + 1):
        kind = "leaf" if hops == depth else "inner"
        below = [(up, name) for up in level for name in numbered(f"{up}.", fan_out)]
        level = [name for _, name in below]
        links += [(up, name, latency) for up, name in below]
        for i, name in enumerate(level):
            sites.append(Site(name, kind, ((i + 0.5) / len(level) - 0.5, -float(hops))))
    return overlay(links, sites)


#: Inner brokers beside each core broker, and how many edge brokers each of those has.
_CHEN_BRANCHES = {
    "A": (2, 2, 1, 2, 1),
    "B": (2, 1, 2, 1),
    "C": (2, 1, 2, 1),
    "D": (2, 2, 1, 2, 2),
    "E": (),
}
_CHEN_PUBLISHERS = 3


def chen(latency: float = DEFAULT_LATENCY) -> Overlay:
    """The 55 brokers of Chen, Hu, Muthusamy, Jacobsen, Liu (section V-A, Fig. 6).

    From the text: no cycle; 23 inner brokers without clients, five of them the core, A to E; 32
    edge brokers, exactly three of them at E, for the publishers. That the core is a line with E
    at its end follows from the load that grows from A to E (section V-B, Fig. 7(d)). How the
    other 18 inner and 29 edge brokers hang together is seen only in the picture: here every
    other core broker has four or five inner brokers and each of those one or two edge brokers,
    which gives groups of two or three adjacent brokers (the text has regions of two to four).
    """
    sites, links, column = [], [], 0
    core = list(_CHEN_BRANCHES)
    links += [(a, b, latency) for a, b in itertools.pairwise(core)]
    for name, branches in _CHEN_BRANCHES.items():
        first = column
        for i, edges in enumerate(branches, 1):
            inner = f"{name}{i}"
            links.append((name, inner, latency))
            links += [(inner, f"{inner}.{j}", latency) for j in range(1, edges + 1)]
            sites.append(Site(inner, "inner", (column + (edges - 1) / 2, -1.0)))
            sites += [Site(f"{inner}.{j + 1}", "edge", (column + j, -2.0)) for j in range(edges)]
            column += edges
        if not branches:
            edge = [f"{name}.{j}" for j in range(1, _CHEN_PUBLISHERS + 1)]
            links += [(name, one, latency) for one in edge]
            sites += [Site(one, "edge", (column + j, -1.0)) for j, one in enumerate(edge)]
            column += len(edge)
        sites.append(Site(name, "core", ((first + column - 1) / 2, 0.0)))
    return overlay(links, sites)


def _count(shape: str, what: str, number: int) -> int:
    if not 1 <= number <= ROUTERS_MAX:
        raise TopologyError(f"{shape} has 1 to {ROUTERS_MAX} {what}, not {number}")
    return number


def numbered(prefix: str, count: int) -> list[str]:
    """Names of equal length, so that their order is that of their numbers."""
    digits = len(str(count - 1))
    return [f"{prefix}{i:0{digits}}" for i in range(count)]
