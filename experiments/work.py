"""What the studies are fed: subscriptions, notifications and content graphs of a scenario.

The rows are those of the Spark job (`f3 workload generate`): they are read from a folder that it
wrote, or drawn here by the same functions, which give the same rows for the same seed. What
matches what is also said a second time, by brute force over codes, for the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.content_graph import ContentGraph
from workloads.errors import WorkloadError
from workloads.kinds import ContentKind
from workloads.kinds.lookup import DenseKind
from workloads.population import Population
from workloads.reader import Workload, each_notification
from workloads.scenario import Scenario, load_scenario

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Matcher = Callable[[int, Ints], Bools]
"""Whether a topic's code matches each of some notices' codes."""


@dataclass
class Work:
    """A scenario's rows. Node IDs number the topics that anybody subscribed to."""

    scenario: Scenario
    #: Each subscription's router and node.
    routers: Ints
    nodes: Ints
    #: Codes of the topics by node, and of what each notification is about.
    topics: Ints
    notices: Ints

    @property
    def kind(self) -> ContentKind:
        """The scenario's language."""
        return self.scenario.content_kind()

    @cached_property
    def parents(self) -> dict[int, list[int]]:
        """The lowest ancestors of each node."""
        above: dict[int, list[int]] = {node: [] for node in range(len(self.topics))}
        children, parents = self.kind.order(self.topics).parents(0, len(self.topics))
        for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
            above[child].append(parent)
        return above

    def graph(self) -> ContentGraph:
        """The content graph."""
        return ContentGraph.of_parents(self.parents)

    def headers(self, notices: Ints) -> list[tuple[int, ...]]:
        """The lowest nodes that match each notice."""
        found: list[list[int]] = [[] for _ in range(len(notices))]
        rows, topics = self.kind.order(self.topics).headers(notices)
        for row, topic in zip(rows.tolist(), topics.tolist(), strict=True):
            found[row].append(topic)
        return [tuple(sorted(header)) for header in found]

    def matching(self, notices: Ints) -> Bools:
        """By brute force: whether each node (row) matches each notice (column)."""
        match = self.matcher()
        return np.array([match(code, notices) for code in self.topics.tolist()])

    def matcher(self) -> Matcher:
        """What matches what, by brute force."""
        return matcher(self.scenario)

    def categories(self) -> Ints:
        """Every notice that there can be, by its code: the disjoint categories."""
        return _every_notice(self.scenario)


def draw(name: str, seed: int, parameters: dict[str, Any] | None = None) -> Work:
    """A scenario's rows, drawn here as the Spark job draws them."""
    scenario = load_scenario(name, parameters)
    population = Population(scenario, seed)
    subscribers = np.arange(scenario.subscribers.count)
    which, codes = population.subscriptions(subscribers)
    topics, nodes = np.unique(codes, return_inverse=True)
    notices = population.notices(np.arange(scenario.notifications.count))
    return Work(scenario, population.router(subscribers)[which], nodes, topics, notices)


@dataclass(frozen=True)
class _Written:
    """Everything that the Spark job wrote, by subscriber."""

    scenario: Scenario
    who: Ints
    routers: Ints
    codes: Ints
    notices: Ints


def read(folder: Path, subscribers: int) -> Work:
    """The first subscribers' rows of a workload that the Spark job wrote, and all notifications.

    Codes are drawn anew from the manifest's scenario and seed, for brute force; WorkloadError
    if what the job wrote is not what they say.
    """
    written = _written(folder)
    total = written.scenario.subscribers.count
    if subscribers > total:
        raise WorkloadError(f"{folder} has {total} subscribers, not the {subscribers} asked for")
    end = int(np.searchsorted(written.who, subscribers))
    kept, nodes = np.unique(written.codes[:end], return_inverse=True)
    return Work(written.scenario, written.routers[:end], nodes, kept, written.notices)


@lru_cache(maxsize=3)
def _written(folder: Path) -> _Written:
    workload = Workload(folder)
    manifest = workload.manifest["scenario"]
    scenario = load_scenario(manifest["name"], _parameters(manifest))
    population = Population(scenario, int(workload.manifest["seed"]))
    # The graph has the topics of those who arrive later, too.
    topics = np.unique(population.subscriptions(np.arange(population.total))[1])
    rows = list(workload.subscriptions())
    who = np.concatenate([batch.subscriber for batch in rows])
    order = np.argsort(who, kind="stable")
    routers = np.concatenate([batch.router for batch in rows])[order]
    nodes = np.concatenate([batch.node for batch in rows])[order]
    codes = topics[nodes]
    notices = population.notices(np.arange(scenario.notifications.count))
    everybody = np.arange(scenario.subscribers.count)
    which, expected = population.subscriptions(everybody)
    same = np.array_equal(codes, expected)
    same &= np.array_equal(routers, population.router(everybody)[which])
    headers = [note.nodes for note in each_notification(workload.notifications())]
    whole = Work(scenario, routers, nodes, topics, notices)
    if not same or headers != whole.headers(notices):
        raise WorkloadError(f"{folder} was written by another version: generate it again")
    return _Written(scenario, who[order], routers, codes, notices)


def _parameters(manifest: dict[str, Any]) -> dict[str, Any]:
    sections = ("content", "subscribers", "notifications", "churn")
    return {
        f"{section}.{key}": value
        for section in sections
        for key, value in manifest[section].items()
    }


# -- brute force over codes --------------------------------------------------------------


def matcher(scenario: Scenario) -> Matcher:
    """What matches what, from the language's definition (Kulik 2004, section 4.1.1)."""
    content = scenario.content
    if scenario.kind == "baseball":
        return lambda topic, notices: _game(topic, notices, content.teams)
    if scenario.kind == "ranges":
        return lambda topic, notices: _overlap(topic, notices, content.exits)
    if scenario.kind == "attribute-value":
        base, digits = content.values + 1, content.attributes
        return lambda topic, notices: _agree(topic, notices, base, digits)
    kind = scenario.content_kind()
    if isinstance(kind, DenseKind):
        return lambda topic, notices: kind.matches(np.array([topic]), notices)[0]
    raise ValueError(f"no brute force for content kind {scenario.kind!r}")


def _game(topic: int, games: Ints, teams: int) -> Bools:
    """All games, the games of a team, or the one between two."""
    if topic == 0:
        return np.ones(len(games), dtype=np.bool_)
    low, high = np.divmod(games - 1 - teams, teams)
    of_team: Bools = np.logical_or(low == topic - 1, high == topic - 1)
    of_pair: Bools = games == topic
    return of_team if topic <= teams else of_pair


def _overlap(topic: int, stretches: Ints, exits: int) -> Bools:
    low, high = divmod(topic, exits)
    first, last = np.divmod(stretches, exits)
    return np.logical_and(first <= high, low <= last)


def _agree(topic: int, notices: Ints, base: int, digits: int) -> Bools:
    """Every value that the topic asks for is the notice's."""
    agree = np.ones(len(notices), dtype=np.bool_)
    for _ in range(digits):
        topic, wanted = divmod(topic, base)
        notices, given = np.divmod(notices, base)
        if wanted:
            agree &= given == wanted
    return agree


def _every_notice(scenario: Scenario) -> Ints:
    content = scenario.content
    if scenario.kind == "baseball":
        low, high = np.triu_indices(content.teams, 1)
        return np.asarray(1 + content.teams + low * content.teams + high, dtype=np.int64)
    if scenario.kind == "ranges":
        low, high = np.triu_indices(content.exits, 0 if content.one_exit else 1)
        return np.asarray(low * content.exits + high, dtype=np.int64)
    if scenario.kind == "attribute-value":
        return np.arange((content.values + 1) ** content.attributes)
    raise ValueError(f"no categories for content kind {scenario.kind!r}")
