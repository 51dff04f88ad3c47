"""The load of `f3 bench router` and `f3 bench peers`: who holds what, and who is due what.

Subscribers choose among ten neighbours at random; a neighbour asks once for what several of its
subscribers want. Notifications are drawn once and published over and over; those that
nobody wants would end at the rendezvous point, and are left out. What each neighbour is
due of them follows from the scenario's graph and from what the neighbours hold, and from nothing
that the systems under test have worked out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from f3.bench.scenarios import ATTRIBUTES, SCENARIOS, VALUES, Scenario, attribute_value
from routing.batch import Header
from routing.content_graph import NodeId

NEIGHBORS = 10
BODY_BYTES = 100

Counts = npt.NDArray[np.int64]
"""A row for each neighbour."""


def scenario(name: str, seed: int) -> Scenario:
    """A scenario by name; here, attribute-value notifications have all their attributes."""
    rng = random.Random(seed)
    return attribute_value(rng, present=1.0) if name == "attribute-value" else SCENARIOS[name](rng)


@dataclass(frozen=True)
class Load:
    """One scenario at one size."""

    scenario: Scenario
    subscribers: int
    #: Per neighbour, what it asks for, in this order.
    held: list[list[NodeId]]
    #: Each by the lowest nodes of the whole graph.
    notifications: list[Header]

    @classmethod
    def draw(cls, scenario: Scenario, subscribers: int, notifications: int, seed: int) -> Load:
        """The load of a population."""
        rng = random.Random(seed)
        held: list[dict[NodeId, None]] = [{} for _ in range(NEIGHBORS)]
        wanted = scenario.subscriptions.draw(rng, subscribers)
        for (node,), neighbor in zip(
            wanted, random.Random(seed + 1).choices(held, k=subscribers), strict=True
        ):
            neighbor[node] = None
        load = cls(scenario, subscribers, list(map(list, held)), [])
        masks = load.masks
        while len(load.notifications) < notifications:
            drawn = scenario.notifications.draw(rng, notifications)
            load.notifications.extend(h for h in drawn if any(masks[node] for node in h))
        del load.notifications[notifications:]
        return load

    @cached_property
    def due(self) -> Counts:
        """Per neighbour and notification, 1 where it is due."""
        wanted = [0] * len(self.notifications)
        for k, header in enumerate(self.notifications):
            for node in header:
                wanted[k] |= self.masks[node]
        bits = np.array(wanted)
        return np.stack([(bits >> i) & 1 for i in range(NEIGHBORS)])

    @cached_property
    def masks(self) -> dict[NodeId, int]:
        """Per node, a bit for each neighbour that holds it or something above it."""
        masks = dict.fromkeys(self.scenario.topics, 0)
        for i, nodes in enumerate(self.held):
            for node in nodes:
                masks[node] |= 1 << i
        for setup in self.scenario.setups:  # parents first
            for parent in setup.parents:
                masks[setup.node] |= masks[parent]
        return masks

    @cached_property
    def matches(self) -> Counts:
        """Per neighbour and notification, how many of its subscriptions match (attribute-value).

        By content alone: an attribute matches its own value and the wildcard, and what matches a
        whole notification is summed up one attribute after the other.
        """
        cells = np.zeros((NEIGHBORS, *[VALUES + 1] * ATTRIBUTES), dtype=np.int64)
        for i, nodes in enumerate(self.held):
            for node in nodes:
                cells[(i, *self.scenario.topics[node])] = 1
        for axis in range(1, ATTRIBUTES + 1):
            first = np.take(cells, [0], axis=axis)
            cells[_all_but_first(axis)] += first
        points = np.array([self.topic(k) for k in range(len(self.notifications))])
        return cells[(slice(None), *points.T)]

    def points(self) -> list[tuple[Any, int]]:
        """Every possible notification (attribute-value), and a bit for each who is due it."""
        topics, masks = self.scenario.topics, self.masks
        return [(topic, masks[node]) for node, topic in topics.items() if all(topic)]

    def topic(self, notification: int) -> Any:
        """What a notification of a single node stands for."""
        (node,) = self.notifications[notification]
        return self.scenario.topics[node]


def _all_but_first(axis: int) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(1, None))


def mean_points(scenario: Scenario) -> float:
    """How many notifications a subscriber's choice matches on average (attribute-value)."""
    mix, before, total = scenario.subscriptions, 0.0, 0.0
    for (node,), cumulative in zip(mix.things, mix.cumulative, strict=True):
        total += (cumulative - before) * VALUES ** scenario.topics[node].count(0)
        before = cumulative
    return total / before
