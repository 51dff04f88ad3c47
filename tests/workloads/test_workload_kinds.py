"""Content kinds against brute force, closed forms and their own probabilities."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.workloads import workload_brute as brute
from workloads.graph import Graph
from workloads.kinds import Codes, ContentKind, kind_named
from workloads.kinds.lookup import DENSE_LIMIT
from workloads.randomness import Choice, Draws
from workloads.schema import fill

SCENARIOS_PER_KIND = 80


def kind_of(name: str, **parameters: object) -> ContentKind:
    found = kind_named(name)
    return found(fill(found.parameter_type, parameters, "content"))


def random_baseball(rng: random.Random) -> tuple[ContentKind, brute.Brute]:
    teams, one = rng.randint(3, 7), rng.choice([0.0, 0.3, 0.6])
    two = rng.choice([0.4, 1 - one])
    rest = {"one_team": one, "two_teams": two, "all_teams": 1 - one - two}
    skews = {"skew": rng.choice([0.0, 1.2]), "notice_skew": rng.choice([0.0, 1.2])}
    return kind_of("baseball", teams=teams, **rest, **skews), brute.baseball(teams)


def random_ranges(rng: random.Random) -> tuple[ContentKind, brute.Brute]:
    exits, one_exit = rng.randint(2, 9), rng.random() < 0.5
    skew = rng.choice([0.0, 1.0])
    return kind_of("ranges", exits=exits, one_exit=one_exit, skew=skew), brute.ranges(
        exits, one_exit
    )


def random_attribute_value(rng: random.Random) -> tuple[ContentKind, brute.Brute]:
    attributes = rng.randint(1, 4)
    values = rng.randint(1, 3 if attributes < 4 else 2)
    made = kind_of(
        "attribute-value",
        attributes=attributes,
        values=values,
        wildcard=rng.choice([0.1, 0.3, 0.7]),
        appears=rng.choice([0.4, 0.7, 1.0]),
        skew=rng.choice([0.0, 1.0]),
    )
    return made, brute.attribute_value(attributes, values)


def random_layers(rng: random.Random) -> tuple[ContentKind, brute.Brute]:
    depth, width = rng.randint(1, 5), rng.randint(1, 6)
    size = {"nodes": depth * width, "depth": depth, "degree": rng.randint(1, width)}
    return kind_of("layers", **size), brute.layers(**size)


def random_tree(rng: random.Random) -> tuple[ContentKind, brute.Brute]:
    depth, degree = rng.randint(1, 4), rng.randint(1, 3)
    least = sum(degree**level for level in range(depth))
    size = {"nodes": rng.randint(least, least + 30), "depth": depth, "degree": degree}
    return kind_of("tree", **size), brute.tree(**size)


MAKERS: dict[str, Callable[[random.Random], tuple[ContentKind, brute.Brute]]] = {
    "baseball": random_baseball,
    "ranges": random_ranges,
    "attribute_value": random_attribute_value,
    "layers": random_layers,
    "tree": random_tree,
}


@pytest.mark.parametrize("name", MAKERS)
def test_graph_and_headers_equal_brute_force(name: str) -> None:
    rng = random.Random(f"brute {name}")
    met: Counter[str] = Counter()
    for seed in range(SCENARIOS_PER_KIND):
        kind, truth = MAKERS[name](rng)
        size = rng.randint(1, 12) if seed % 2 else rng.randint(1, 200)
        topics = np.unique(kind.topics(Draws(seed, "subscription", np.arange(size))))
        notices = kind.notices(Draws(seed, "notification", np.arange(20)))
        assert set(topics.tolist()) <= truth.topics.keys()
        assert set(notices.tolist()) <= truth.notices.keys()
        check_graph(kind, truth, topics, rng, met)
        check_headers(kind, truth, topics, notices, met)
    needed = {"skips an absent topic", "several parents", "roots beside edges"}
    needed |= {"several identifiers", "empty header", "own node"}
    if name == "tree":  # a node has one parent at most
        needed -= {"several parents", "several identifiers"}
    assert all(met[what] >= 5 for what in needed), met


def check_graph(
    kind: ContentKind, truth: brute.Brute, topics: Codes, rng: random.Random, met: Counter[str]
) -> None:
    order = kind.order(topics)
    cut = rng.randint(0, len(topics))
    parts = [order.parents(0, cut), order.parents(cut, len(topics))]
    children = np.concatenate([part[0] for part in parts])
    parents = np.concatenate([part[1] for part in parts])
    edges = list(zip(topics[parents].tolist(), topics[children].tolist(), strict=True))
    expected = truth.edges(topics.tolist())
    assert set(edges) == expected
    assert len(edges) == len(expected)
    per_child = Counter(child for _, child in edges)
    met["skips an absent topic"] += any(truth.between(*edge) for edge in edges)
    met["several parents"] += any(count > 1 for count in per_child.values())
    met["roots beside edges"] += bool(edges) and len(per_child) < len(topics)


def check_headers(
    kind: ContentKind, truth: brute.Brute, topics: Codes, notices: Codes, met: Counter[str]
) -> None:
    rows, found = kind.order(topics).headers(notices)
    for row, notice in enumerate(notices.tolist()):
        header = topics[found[rows == row]].tolist()
        assert len(header) == len(set(header))
        assert set(header) == truth.header(topics.tolist(), notice)
        met["empty header"] += not header
        met["several identifiers"] += len(header) > 1
        met["own node"] += header == [notice]


# -- closed forms ------------------------------------------------------------------------


def complete(kind: ContentKind, codes: list[int]) -> Graph:
    topics = np.array(sorted(codes), dtype=np.int64)
    child, parent = kind.order(topics).parents(0, len(topics))
    words = np.array([""] * len(topics), dtype=object)
    return Graph(words, np.ones(len(topics), dtype=np.int64), parent, child)


def facts(graph: Graph) -> tuple[int, int, int, int, int]:
    """Topics, edges, depth, most parents, most children."""
    return (
        len(graph),
        len(graph.parent),
        int(graph.level.max()) + 1,
        int(graph.parents.degree.max()),
        int(graph.children.degree.max()),
    )


@pytest.mark.parametrize("teams", [30, 100])
def test_complete_league(teams: int) -> None:
    pairs = [1 + teams + a * teams + b for a, b in combinations(range(teams), 2)]
    kind = kind_of("baseball", teams=teams, one_team=0.4, two_teams=0.5, all_teams=0.1)
    graph = complete(kind, [*range(teams + 1), *pairs])
    games = teams * (teams - 1) // 2
    assert facts(graph) == (1 + teams + games, teams + 2 * games, 3, 2, teams)
    assert graph.children.degree[1] == teams - 1  # the degree in Table 4.1 is a team's


@pytest.mark.parametrize(("exits", "one_exit"), [(20, False), (20, True), (60, True)])
def test_complete_road(exits: int, one_exit: bool) -> None:
    codes = [a * exits + b for a in range(exits) for b in range(a + (not one_exit), exits)]
    graph = complete(kind_of("ranges", exits=exits, one_exit=one_exit), codes)
    ends = exits if one_exit else exits - 1
    assert facts(graph) == (ends * (ends + 1) // 2, ends * (ends - 1), ends, 2, 2)


@pytest.mark.parametrize(("attributes", "values"), [(5, 4), (6, 5), (7, 3)])
def test_complete_attribute_value(attributes: int, values: int) -> None:
    kind = kind_of("attribute-value", attributes=attributes, values=values)
    base = values + 1
    graph = complete(kind, list(range(base**attributes)))
    edges = attributes * values * base ** (attributes - 1)
    most = attributes * values
    assert facts(graph) == (base**attributes, edges, attributes + 1, attributes, most)


@pytest.mark.parametrize("degree", [1, 2, 10, 20])
def test_complete_layers(degree: int) -> None:
    graph = complete(kind_of("layers", nodes=100, depth=5, degree=degree), list(range(100)))
    assert facts(graph) == (100, 4 * 20 * degree, 5, degree, degree)


@pytest.mark.parametrize("depth", [2, 3, 10])
def test_complete_trees(depth: int) -> None:
    graph = complete(kind_of("tree", nodes=1024, depth=depth, degree=2), list(range(1024)))
    whole, rest = divmod(1024, 2**depth - 1)
    edges = whole * (2**depth - 2) + max(rest - 1, 0)
    assert facts(graph) == (1024, edges, depth, 1, 2)


def test_a_forest_of_depth_1_has_no_edges() -> None:
    graph = complete(kind_of("tree", nodes=1024, depth=1, degree=2), list(range(1024)))
    assert facts(graph) == (1024, 0, 1, 0, 0)


# -- probabilities -----------------------------------------------------------------------


def assert_fits(codes: Codes, expected: dict[int, float]) -> None:
    """Chi-square: codes were drawn with these probabilities (one in 10,000 seeds would fail)."""
    assert sum(expected.values()) == pytest.approx(1)
    seen = Counter(codes.tolist())
    assert seen.keys() <= {code for code, share in expected.items() if share > 0}
    statistic, cells = 0.0, 0
    for code, share in expected.items():
        if share:
            mean = share * len(codes)
            assert mean >= 5, "too few draws for this cell"
            statistic += (seen[code] - mean) ** 2 / mean
            cells += 1
    # Wilson and Hilferty's approximation of the 99.99 % quantile.
    free = cells - 1
    limit = free * (1 - 2 / (9 * free) + 3.719 * (2 / (9 * free)) ** 0.5) ** 3
    assert statistic < limit


def drawn(kind: ContentKind, what: str) -> Codes:
    draws = Draws(7, what, np.arange(200_000))
    return kind.topics(draws) if what == "topics" else kind.notices(draws)


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_baseball_proportions(skew: float) -> None:
    shares: dict[str, Any] = {"one_team": 0.4, "two_teams": 0.5, "all_teams": 0.1}
    kind = kind_of("baseball", teams=6, **shares, skew=skew, notice_skew=skew)
    p = Choice(6, skew).probabilities
    games = {
        7 + a * 6 + b: p[a] * p[b] / (1 - p[a]) + p[b] * p[a] / (1 - p[b])
        for a, b in combinations(range(6), 2)
    }
    assert_fits(drawn(kind, "notices"), games)
    expected = {0: 0.1} | {1 + team: 0.4 * p[team] for team in range(6)}
    assert_fits(drawn(kind, "topics"), expected | {g: 0.5 * share for g, share in games.items()})


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("one_exit", [False, True])
def test_traffic_proportions(skew: float, one_exit: bool) -> None:
    kind = kind_of("ranges", exits=6, one_exit=one_exit, skew=skew)
    p = Choice(6, skew).probabilities
    expected = {a * 6 + a: p[a] ** 2 if one_exit else 0.0 for a in range(6)}
    for a, b in combinations(range(6), 2):
        both = p[a] * p[b]
        expected[a * 6 + b] = 2 * both if one_exit else both / (1 - p[a]) + both / (1 - p[b])
    assert_fits(drawn(kind, "topics"), expected)


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_attribute_value_proportions(skew: float) -> None:
    kind = kind_of("attribute-value", attributes=3, values=2, wildcard=0.3, appears=0.6, skew=skew)
    for what, given, weights in (
        ("topics", 0.7, Choice(2, skew).probabilities),
        ("notices", 0.6, Choice(2, 0.0).probabilities),
    ):
        digit = [1 - given, *(given * weights)]
        expected = {
            a * 9 + b * 3 + c: digit[a] * digit[b] * digit[c]
            for a in range(3)
            for b in range(3)
            for c in range(3)
        }
        assert_fits(drawn(kind, what), expected)


@pytest.mark.parametrize("name", ["layers", "tree"])
def test_abstract_graph_proportions(name: str) -> None:
    kind = kind_of(name, nodes=15, depth=3, degree=2, skew=0.8)
    p = Choice(15, 0.8).probabilities
    assert_fits(drawn(kind, "topics"), dict(enumerate(p.tolist())))
    leaves = range(10, 15) if name == "layers" else [3, 4, 5, 6, 10, 11, 12, 13, 14]
    assert_fits(drawn(kind, "notices"), dict.fromkeys(leaves, 1 / len(leaves)))


# -- text and limits ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "codes", "words"),
    [
        (
            kind_of("baseball", teams=30, one_team=1, two_teams=0, all_teams=0),
            [0, 4, 1 + 30 + 3 * 30 + 17],
            ["all games", "team 3", "team 3 v team 17"],
        ),
        (kind_of("ranges", exits=20), [3 * 20 + 7], ["exits 3 to 7"]),
        (
            kind_of("attribute-value", attributes=4, values=4),
            [0, 2 * 125 + 1, 4],
            ["anything", "a0=2 a3=1", "a3=4"],
        ),
        (kind_of("layers", nodes=100, depth=5, degree=2), [54], ["layer 2 place 14"]),
        (
            kind_of("tree", nodes=1024, depth=10, degree=2),
            [14, 1023],
            ["tree 0 node 14", "tree 1 node 0"],
        ),
    ],
    ids=["baseball", "ranges", "attribute-value", "layers", "tree"],
)
def test_text(kind: ContentKind, codes: list[int], words: list[str]) -> None:
    assert kind.text(np.array(codes)).to_pylist() == words


def test_searching_finds_what_a_table_finds() -> None:
    """Code spaces too large for a table are searched; the graph must not depend on it."""
    small = kind_of("attribute-value", attributes=4, values=4)
    large = kind_of("attribute-value", attributes=4, values=999)
    digits = np.random.default_rng(3).integers(0, 5, size=(300, 4))
    graphs = []
    for kind, base in ((small, 5), (large, 1000)):
        topics = np.unique(digits @ base ** np.arange(3, -1, -1))
        child, parent = kind.order(topics).parents(0, len(topics))
        graphs.append(sorted(zip(child.tolist(), parent.tolist(), strict=True)))
    assert graphs[0] == graphs[1]
    assert len(graphs[0]) > 100


def test_a_dense_graph_has_a_limit() -> None:
    kind = kind_of("tree", nodes=DENSE_LIMIT, depth=2, degree=2)
    with pytest.raises(ValueError, match="too many to compare pair by pair"):
        kind.order(np.arange(DENSE_LIMIT + 1))
