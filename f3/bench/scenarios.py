"""The three scenarios of the thesis's second study (Kulik 2004, section 4.2), as content graphs.

    baseball         100 teams: all games, the games of a team, the games between two teams
    traffic          60 exits: stretches of road, from exit to exit
    attribute-value  six attributes of five values or a wildcard

Each is a whole content graph with the probability of every subscription and of every
notification, which is given by the lowest nodes that cover it. Identifiers are random numbers:
a table must not gain from small ones that follow each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, combinations, product
from math import prod
from typing import Any

from routing.batch import Header
from routing.content_graph import NodeId
from routing.messages import Setup

TEAMS, EXITS, ATTRIBUTES, VALUES = 100, 60, 6, 5
WILDCARD, PRESENT = 0.3, 0.7
_ANY = 0
"""The value of an attribute that a subscription does not care about, or a notification lacks."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Things with their probabilities."""

    things: list[Header]
    cumulative: list[float]

    @classmethod
    def of(cls, weighted: Iterable[tuple[Header, float]]) -> Mix:
        things, weights = zip(*weighted, strict=True)
        return cls(list(things), list(accumulate(weights)))

    def draw(self, rng: random.Random, count: int) -> list[Header]:
        """Independent draws."""
        return rng.choices(self.things, cum_weights=self.cumulative, k=count)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A content graph, what subscribers ask for, and what is published."""

    name: str
    #: Every node, after its parents.
    setups: list[Setup]
    #: A subscription is one node.
    subscriptions: Mix
    #: A notification is the lowest nodes of the graph that cover it.
    notifications: Mix
    #: What each node stands for.
    topics: dict[NodeId, Any]


def baseball(rng: random.Random) -> Scenario:
    """40% of the subscribers follow one team, 50% the games between two, 10% all games."""
    teams = range(TEAMS)
    pairs = list(combinations(teams, 2))
    order: dict[Hashable, list[Hashable]] = {"all": []}
    order |= {team: ["all"] for team in teams}
    order |= {pair: list(pair) for pair in pairs}
    ids = _identify(order, rng)
    wanted = (
        {"all": 0.1} | dict.fromkeys(teams, 0.4 / TEAMS) | dict.fromkeys(pairs, 0.5 / len(pairs))
    )
    return Scenario(
        "baseball",
        _setups(order, ids),
        Mix.of(((ids[topic],), weight) for topic, weight in wanted.items()),
        Mix.of(((ids[pair],), 1.0) for pair in pairs),
        _topics(ids),
    )


def traffic(rng: random.Random) -> Scenario:
    """Stretches between two random exits; ordered by containment, matched by overlap."""
    stretches = [(a, b) for a in range(EXITS) for b in range(a, EXITS)]
    stretches.sort(key=lambda s: s[0] - s[1])
    order = {(a, b): [s for s in ((a - 1, b), (a, b + 1)) if _on_road(s)] for a, b in stretches}
    ids = _identify(order, rng)
    likely = {(a, b): 1.0 if a == b else 2.0 for a, b in stretches}
    return Scenario(
        "traffic",
        _setups(order, ids),
        Mix.of(((ids[s],), likely[s]) for s in stretches),
        Mix.of((_overlapping(s, ids), likely[s]) for s in stretches),
        _topics(ids),
    )


def _on_road(stretch: tuple[int, int]) -> bool:
    return stretch[0] >= 0 and stretch[1] < EXITS


def _overlapping(stretch: tuple[int, int], ids: dict[Hashable, NodeId]) -> Header:
    """The lowest nodes that overlap a stretch: its exits, one by one."""
    return tuple(sorted(ids[e, e] for e in range(stretch[0], stretch[1] + 1)))


def attribute_value(rng: random.Random, present: float = PRESENT) -> Scenario:
    """Subscriptions with wildcards; notifications in which each attribute may be absent."""
    topics = list(product(range(VALUES + 1), repeat=ATTRIBUTES))
    topics.sort(key=lambda topic: -topic.count(_ANY))
    order = {topic: _generalised(topic) for topic in topics}
    ids = _identify(order, rng)
    return Scenario(
        "attribute-value",
        _setups(order, ids),
        Mix.of(((ids[topic],), _likely(topic, WILDCARD)) for topic in topics),
        Mix.of(((ids[topic],), _likely(topic, 1 - present)) for topic in topics),
        _topics(ids),
    )


def _generalised(topic: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A topic with one value more that does not matter."""
    return [(*topic[:k], _ANY, *topic[k + 1 :]) for k, value in enumerate(topic) if value != _ANY]


def _likely(topic: tuple[int, ...], nothing: float) -> float:
    return prod(nothing if value == _ANY else (1 - nothing) / VALUES for value in topic)


def _identify(order: Iterable[Hashable], rng: random.Random) -> dict[Hashable, NodeId]:
    topics = list(order)
    return dict(zip(topics, rng.sample(range(2**32), len(topics)), strict=True))


def _topics(ids: dict[Hashable, NodeId]) -> dict[NodeId, Any]:
    return {node: topic for topic, node in ids.items()}


def _setups(order: Mapping[Any, Iterable[Any]], ids: dict[Hashable, NodeId]) -> list[Setup]:
    return [
        Setup(ids[topic], tuple(sorted(ids[parent] for parent in parents)), ())
        for topic, parents in order.items()
    ]


SCENARIOS: dict[str, Callable[[random.Random], Scenario]] = {
    "baseball": baseball,
    "traffic": traffic,
    "attribute-value": attribute_value,
}
