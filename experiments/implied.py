"""What the definitions of Study 1's systems imply (Kulik 2004, section 4.1.1), without a network.

A link of the dissemination tree carries what the subscribers beyond it want: a copy for each
subscriber (unicast), for each topic (overlapping identifiers), or one (disjunctive identifiers,
F3). This counts it from who sits where and what matches what, so that the simulator's messages
and tables have something to agree with that knows of no protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from experiments.work import Bools, Work
from routing.api import Address
from routing.registry import protocol
from routing.router import TreeRouter

Counts = dict[Address, int]


@dataclass
class Implied:
    """Per router other than the root, its link from upstream; per router, its table."""

    crossed: Counts = field(default_factory=dict)
    carried: Counts = field(default_factory=dict)
    tables: Counts = field(default_factory=dict)
    #: Identifiers that each router's own subscription becomes; unicast has none.
    asked: Counts = field(default_factory=dict)

    def differs(self, other: Implied) -> str:
        """The first difference in words; empty if there is none."""
        for name, ours in vars(self).items():
            theirs: Counts = vars(other)[name]
            for at in sorted(ours.keys() | theirs.keys()):
                if ours.get(at, 0) != theirs.get(at, 0):
                    return f"{name} of {at!r} is {ours.get(at, 0)}, implied is {theirs.get(at, 0)}"
        return ""


class Definitions:
    """One run's subscriptions, notifications and tree."""

    def __init__(
        self, work: Work, hosts: list[Address], upstream: Mapping[Address, Address]
    ) -> None:
        self._work = work
        self._upstream = upstream
        self._own = dict(zip(hosts, work.nodes.tolist(), strict=True))
        codes, self._often = np.unique(work.notices, return_counts=True)
        self._matching = work.matching(codes)
        self._below = self._subscribers_below(hosts)

    def _subscribers_below(self, hosts: list[Address]) -> dict[Address, list[Address]]:
        """Who sits at each router or beyond it."""
        below: dict[Address, list[Address]] = {host: [] for host in hosts}
        for host in hosts:
            at = host
            below[at].append(host)
            while at in self._upstream:
                at = self._upstream[at]
                below[at].append(host)
        return below

    def of(self, system: str) -> Implied:
        """What a system must send and hold."""
        found = Implied()
        for router, hosts in self._below.items():
            if system == "unicast":
                self._unicast(found, router, hosts)
            else:
                self._multicast(found, router, hosts, system)
        # Nothing leads to the root from upstream.
        root = next(router for router in self._below if router not in self._upstream)
        for counts in (found.crossed, found.carried, found.asked):
            counts.pop(root, None)
        return found

    def _unicast(self, found: Implied, router: Address, hosts: list[Address]) -> None:
        """A copy for each host; those that have drawn the same number share theirs."""
        numbered: dict[int, set[int]] = {}
        for host, number in zip(hosts, host_numbers(hosts), strict=True):
            numbered.setdefault(number, set()).add(self._own[host])
        matching = [self._matching[sorted(topics)] for topics in numbered.values()]
        found.crossed[router] = sum(int(each.any(axis=0) @ self._often) for each in matching)
        found.carried[router] = sum(int(each.sum(axis=0) @ self._often) for each in matching)
        found.tables[router] = sum(map(len, numbered.values()))

    def _multicast(
        self, found: Implied, router: Address, hosts: list[Address], system: str
    ) -> None:
        """A copy for each topic that matches, or one with the lowest topics, or the category."""
        topics = sorted({self._own[host] for host in hosts})
        matching = self._matching[topics]
        copies = matching.sum(axis=0) if system == "overlapping-id" else matching.any(axis=0)
        found.crossed[router] = found.carried[router] = int(copies @ self._often)
        found.tables[router], found.asked[router] = len(topics), 1
        if system == "disjunctive-id":
            found.tables[router] = int(self._covers[topics].any(axis=0).sum())
            found.asked[router] = int(self._covers[self._own[router]].sum())
        elif system == "f3":
            lowest = _lowest(matching, self._descendants[np.ix_(topics, topics)])
            found.carried[router] = int(lowest.sum(axis=0) @ self._often)

    @cached_property
    def _covers(self) -> Bools:
        """Whether each topic (row) covers each category (column)."""
        return self._work.matching(self._work.categories())

    @cached_property
    def _descendants(self) -> Bools:
        return _descendants(self._work)

    def unicast(self) -> float:
        """Unicast's copies per link if no two hosts drew the same number."""
        each = self._matching @ self._often
        beyond = [hosts for router, hosts in self._below.items() if router in self._upstream]
        return sum(int(each[self._own[host]]) for hosts in beyond for host in hosts) / len(beyond)


def host_numbers(hosts: list[Address]) -> list[int]:
    """The numbers by which unicast tells hosts apart."""
    router = protocol("unicast")
    assert issubclass(router, TreeRouter)
    table = router.table()
    return [table.identifier(0, host) for host in hosts]


def _descendants(work: Work) -> Bools:
    """Whether a node (row) is above another one (column) in the content graph."""
    count = len(work.topics)
    above = np.zeros((count, count), dtype=np.bool_)
    for node in work.graph().topological():
        for parent in work.parents[node]:
            above[:, node] |= above[:, parent]
            above[parent, node] = True
    return above


def _lowest(matching: Bools, descendants: Bools) -> Bools:
    """Of the topics that match, those without one below them that does."""
    covered: NDArray[np.float32] = descendants.astype(np.float32) @ matching.astype(np.float32)
    lowest: Bools = matching & (covered == 0)
    return lowest
