"""Subscribers, their lives and notifications, before any Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from workloads.population import EVENTS, NO_ROUTER, Population
from workloads.scenario import Scenario, load_scenario


def scenario(**parameters: object) -> Scenario:
    base: dict[str, object] = {"subscribers.count": 20_000, "teams": 12}
    dotted = {key.replace("__", "."): value for key, value in parameters.items()}
    return load_scenario("baseball", base | dotted)


def test_any_cut_gives_the_same_subscriptions_and_events() -> None:
    population = Population(scenario(subscribers__topics_each=3, churn__moves=1.5), seed=4)
    everyone = np.arange(population.total)
    which, topics = population.subscriptions(everyone)
    whole = population.churn(everyone)
    parts = np.array_split(everyone, 7)
    cut = [(part[w], t) for part in parts for w, t in [population.subscriptions(part)]]
    assert (np.concatenate([w for w, _ in cut]) == everyone[which]).all()
    assert (np.concatenate([t for _, t in cut]) == topics).all()
    events = [population.churn(part) for part in parts]
    for column in ("time_us", "event", "subscriber", "from_router", "to_router"):
        joined = np.concatenate([getattr(part, column) for part in events])
        assert sorted(joined.tolist()) == sorted(getattr(whole, column).tolist())


def test_a_subscriber_has_a_topic_once() -> None:
    population = Population(scenario(subscribers__topics_each=4), seed=4)
    which, topics = population.subscriptions(np.arange(5_000))
    pairs = list(zip(which.tolist(), topics.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(which.tolist()) == set(range(5_000))
    assert len(pairs) < 20_000, "some topics must have come twice"
    assert max(Counter(which.tolist()).values()) == 4


def test_routers_are_evenly_used() -> None:
    counts = np.bincount(Population(scenario(), seed=1).router(np.arange(20_000)))
    assert len(counts) == 10
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 33.7  # chi-square, 9 free: 99.99 %


@pytest.mark.parametrize("name", ["baseball-30", "traffic-20", "attribute-value-5"])
def test_study_1_has_a_subscriber_at_each_router(name: str) -> None:
    population = Population(load_scenario(name), seed=1)
    assert population.router(np.arange(population.initial)).tolist() == list(range(1_200))
    assert population.router(np.arange(1_198, 1_203)).tolist() == [1_198, 1_199, 0, 1, 2]


@pytest.mark.parametrize("moves", [0.3, 1.0, 4.5])
def test_lives_are_lived_in_order(moves: float) -> None:
    """Replay: who arrives was not there, who departs or moves is at the router it leaves."""
    life = scenario(
        churn__moves=moves,
        churn__departures=0.4,
        churn__arrivals=0.5,
        subscribers__in_turn=moves == 1.0,
    )
    population = Population(life, seed=9)
    everyone = np.arange(population.total)
    events = population.churn(everyone)
    at = dict(enumerate(population.router(everyone[: population.initial]).tolist()))
    happened: Counter[str] = Counter()
    order = np.lexsort((events.subscriber, events.time_us))
    last: dict[int, int] = {}
    for row in order.tolist():
        subscriber, time = int(events.subscriber[row]), int(events.time_us[row])
        source, target = int(events.from_router[row]), int(events.to_router[row])
        name = EVENTS[events.event[row]]
        assert 0 <= time <= population.period_us
        assert last.get(subscriber, -1) < time, "one thing at a time"
        assert at.get(subscriber, NO_ROUTER) == source
        assert (source == NO_ROUTER, target == NO_ROUTER) == (name == "arrive", name == "depart")
        assert source != target
        if name == "arrive":
            assert subscriber >= population.initial
        last[subscriber] = time
        at[subscriber] = target
        happened[name] += 1
    assert happened["arrive"] == population.total - population.initial == 10_000
    assert abs(happened["depart"] - 12_000) < 6 * (30_000 * 0.4 * 0.6) ** 0.5
    assert happened["move"] > 0.4 * moves * 20_000


def test_moves_come_at_their_rate() -> None:
    population = Population(
        scenario(churn__moves=2.25, churn__departures=0.0, churn__arrivals=0.0), seed=2
    )
    events = population.churn(np.arange(population.total))
    assert abs(len(events.event) - 45_000) < 6 * (20_000 * 0.25 * 0.75) ** 0.5
    assert set(events.event.tolist()) == {EVENTS.index("move")}
    targets = np.bincount(events.to_router, minlength=10)
    assert ((targets - targets.mean()) ** 2 / targets.mean()).sum() < 33.7


def test_a_still_population() -> None:
    still = scenario(churn__moves=0, churn__departures=0, churn__arrivals=0, subscribers__routers=1)
    population = Population(still, seed=2)
    assert population.total == population.initial
    assert len(population.churn(np.arange(population.total)).event) == 0


def test_notifications_come_in_order_from_their_sources() -> None:
    population = Population(scenario(notifications__sources=3, notifications__count=5_000), seed=6)
    time, router = population.published(np.arange(5_000))
    assert (np.diff(time) >= 0).all()
    assert time.min() >= 0
    assert time.max() < population.period_us
    assert len(set(router.tolist())) == 3
    part_time, part_router = population.published(np.arange(1_000, 2_000))
    assert (part_time == time[1_000:2_000]).all()
    assert (part_router == router[1_000:2_000]).all()
