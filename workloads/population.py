"""What happens in a scenario, row by row number: who subscribes to what, who comes, goes and moves.

Every function here takes row numbers and gives columns (numpy arrays), and is a pure function of
the scenario, the seed and those numbers, so that any cut of the rows gives the same whole.
Subscribers from `initial` on are those that arrive later. Times are whole microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workloads.kinds import Codes, ContentKind
from workloads.randomness import Draws, Ints
from workloads.scenario import Scenario

#: Stands for "outside the network": where an arrival comes from, where a departure goes to.
NO_ROUTER = -1
EVENTS = ("arrive", "depart", "move")


@dataclass(frozen=True)
class Events:
    """Columns of churn: at a time, a subscriber leaves a router, reaches another, or both."""

    time_us: Ints
    event: NDArray[np.int8]
    subscriber: Ints
    from_router: Ints
    to_router: Ints


class Population:
    """A scenario's subscribers and notifications under one seed."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._seed = seed
        self.scenario = scenario
        self.kind: ContentKind = scenario.content_kind()
        self.routers = scenario.subscribers.routers
        self.topics_each = scenario.subscribers.topics_each
        self.initial = scenario.subscribers.count
        self.total = self.initial + round(self.initial * scenario.churn.arrivals)
        self.period_us = round(scenario.seconds * 1e6)

    # -- subscribers ---------------------------------------------------------------------

    def router(self, subscribers: Ints) -> Ints:
        """The router that each subscriber attaches to when it arrives."""
        if self.scenario.subscribers.in_turn:
            return subscribers % self.routers
        return Draws(self._seed, "subscriber", subscribers).below(self.routers, "router")

    def subscriptions(self, subscribers: Ints) -> tuple[Ints, Codes]:
        """(index of the subscriber among those given, topic), a topic once for a subscriber."""
        each = self.topics_each
        rows = (subscribers[:, None] * each + np.arange(each)).ravel()
        topics = self.kind.topics(Draws(self._seed, "subscription", rows))
        table = np.sort(topics.reshape(-1, each), axis=1)
        first = np.ones(table.shape, dtype=np.bool_)
        first[:, 1:] = table[:, 1:] != table[:, :-1]
        which, _ = np.nonzero(first)
        return which, table[first]

    # -- churn ---------------------------------------------------------------------------

    def churn(self, subscribers: Ints) -> Events:
        """All that happens to these subscribers, in no particular order."""
        draws = Draws(self._seed, "churn", subscribers)
        start, end = self._lifetimes(subscribers, draws)
        times, stops = self._moves(subscribers, draws, start, end)
        row, step = np.nonzero(times > 0)
        moves = _events(
            2, subscribers[row], times[row, step], stops[row, step], stops[row, step + 1]
        )
        late = np.flatnonzero(subscribers >= self.initial)
        arrivals = _events(0, subscribers[late], start[late], NO_ROUTER, stops[late, 0])
        gone = np.flatnonzero(end <= self.period_us)
        departures = _events(1, subscribers[gone], end[gone], stops[gone, -1], NO_ROUTER)
        return _joined([arrivals, departures, moves])

    def _lifetimes(self, subscribers: Ints, draws: Draws) -> tuple[Ints, Ints]:
        """When each subscriber arrives (0: from the start) and leaves (after the period: stays)."""
        period = self.period_us
        arrival = draws.below(period, "arrival")
        start = np.where(subscribers >= self.initial, arrival, 0)
        leaves = draws.uniform("leaves") < self.scenario.churn.departures
        left = start + 1 + (draws.uniform("departure") * (period - start)).astype(np.int64)
        return start, np.where(leaves, left, period + 1)

    def _moves(self, subscribers: Ints, draws: Draws, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Times of moves (0 where there is none) and the routers before, between and after."""
        rate = self.scenario.churn.moves
        most = int(np.ceil(rate))
        shape = (len(subscribers), most)
        times = np.zeros(shape, dtype=np.int64)
        hops = np.zeros(shape, dtype=np.int64)
        for step in range(most):
            happens = draws.uniform(f"moves {step}") < rate - step
            times[:, step] = np.where(happens, draws.below(self.period_us, f"time {step}"), 0)
            hops[:, step] = 1 + draws.below(self.routers - 1, f"hop {step}")
        times.sort(axis=1)
        times[(times <= start[:, None]) | (times >= end[:, None])] = 0
        times[:, 1:][times[:, 1:] == times[:, :-1]] = 0
        hops[times == 0] = 0
        home = self.router(subscribers)[:, None]
        stops = np.concatenate([home, home + np.cumsum(hops, axis=1)], axis=1) % self.routers
        return times, stops

    # -- notifications -------------------------------------------------------------------

    def notices(self, numbers: Ints) -> Codes:
        """What each notification is about."""
        return self.kind.notices(Draws(self._seed, "notification", numbers))

    def published(self, numbers: Ints) -> tuple[Ints, Ints]:
        """When each notification is published, in the order of their numbers, and where."""
        draws = Draws(self._seed, "publication", numbers)
        count = self.scenario.notifications.count
        slot = self.period_us / max(count, 1)
        time = ((numbers + draws.uniform("time")) * slot).astype(np.int64)
        return time, self._sources()[draws.below(self.scenario.notifications.sources, "source")]

    def _sources(self) -> Ints:
        """The routers with publishers, chosen at random."""
        lot = Draws(self._seed, "source", np.arange(self.routers)).bits("lot")
        return np.argsort(lot, kind="stable")[: self.scenario.notifications.sources]


def _events(
    event: int, subscriber: Ints, time: Ints, come_from: Ints | int, go_to: Ints | int
) -> Events:
    size = len(subscriber)
    return Events(
        time_us=time,
        event=np.full(size, event, dtype=np.int8),
        subscriber=subscriber,
        from_router=np.broadcast_to(np.asarray(come_from, dtype=np.int64), size),
        to_router=np.broadcast_to(np.asarray(go_to, dtype=np.int64), size),
    )


def _joined(parts: list[Events]) -> Events:
    return Events(
        time_us=np.concatenate([part.time_us for part in parts]),
        event=np.concatenate([part.event for part in parts]),
        subscriber=np.concatenate([part.subscriber for part in parts]),
        from_router=np.concatenate([part.from_router for part in parts]),
        to_router=np.concatenate([part.to_router for part in parts]),
    )
