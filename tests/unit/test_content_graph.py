"""The content graph against the partial order of sets, by brute force (Kulik 2004, 3.3)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.content_graph import ContentGraph
from routing.errors import ProtocolError

Sets = dict[int, frozenset[int]]

families = st.lists(
    st.frozensets(st.integers(0, 5), min_size=1), min_size=1, max_size=9, unique=True
).map(lambda sets: dict(enumerate(sets)))


def low(sets: Sets, nodes: set[int]) -> set[int]:
    return {n for n in nodes if not any(sets[m] < sets[n] for m in nodes)}


def high(sets: Sets, nodes: set[int]) -> set[int]:
    return {n for n in nodes if not any(sets[m] > sets[n] for m in nodes)}


def build(sets: Sets, order: list[int]) -> ContentGraph:
    graph = ContentGraph()
    for node in order:
        above = {n for n in graph if sets[n] > sets[node]}
        below = {n for n in graph if sets[n] < sets[node]}
        graph.insert(node, low(sets, above), high(sets, below))
    return graph


def reduction(sets: Sets) -> set[tuple[int, int]]:
    pairs = {(a, b) for a in sets for b in sets if sets[a] > sets[b]}
    return {(a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in sets)}


def edges(graph: ContentGraph) -> set[tuple[int, int]]:
    return {(parent, child) for parent in graph for child in graph.children(parent)}


@given(families, st.randoms(use_true_random=False))
def test_any_order_of_insertion_gives_the_transitive_reduction(
    sets: Sets, rng: random.Random
) -> None:
    order = rng.sample(sorted(sets), len(sets))
    graph = build(sets, order)
    graph.check()
    assert edges(graph) == reduction(sets)


@given(families, st.randoms(use_true_random=False))
def test_removal_leaves_the_reduction_of_the_rest(sets: Sets, rng: random.Random) -> None:
    graph = build(sets, sorted(sets))
    for node in rng.sample(sorted(sets), len(sets)):
        graph.remove(node)
        sets = {n: s for n, s in sets.items() if n != node}
        graph.check()
        assert edges(graph) == reduction(sets)


@given(families)
def test_what_covers_what(sets: Sets) -> None:
    graph = build(sets, sorted(sets))
    for node in sets:
        assert graph.ancestors(node) == {n for n in sets if sets[n] > sets[node]}
        assert graph.descendants(node) == {n for n in sets if sets[n] < sets[node]}
        assert graph.covering((node,)) == {n for n in sets if sets[n] >= sets[node]}


@given(families, st.data())
def test_lowest_highest_and_position(sets: Sets, data: st.DataObject) -> None:
    graph = build(sets, sorted(sets))
    some = data.draw(st.sets(st.sampled_from(sorted(sets))))
    assert graph.low(some) == low(sets, some)
    assert graph.high(some) == high(sets, some)
    node = data.draw(st.sampled_from(sorted(sets)))
    above = {n for n in some if sets[n] > sets[node]}
    below = {n for n in some if sets[n] < sets[node]}
    assert graph.position(node, some) == (low(sets, above), high(sets, below))


@given(families, st.randoms(use_true_random=False))
def test_links_told_one_by_one_give_the_reduction(sets: Sets, rng: random.Random) -> None:
    graph = ContentGraph()
    for node in sets:
        graph.insert(node, (), ())
    pairs = [(a, b) for a in sets for b in sets if sets[a] > sets[b]]
    for a, b in rng.sample(pairs, len(pairs)):
        known = a in graph.ancestors(b)
        assert graph.link(a, b) is not known
        graph.check()
    assert edges(graph) == reduction(sets)


@given(families)
def test_topological_order_puts_parents_first(sets: Sets) -> None:
    graph = build(sets, sorted(sets))
    order = graph.topological()
    assert sorted(order) == sorted(sets)
    place = {node: i for i, node in enumerate(order)}
    assert all(place[a] < place[b] for a, b in edges(graph))


@pytest.mark.parametrize(
    ("node", "parents", "children", "message"),
    [
        (1, (), (), "node 1 is in the graph already"),
        (9, (8,), (), "node 9 cannot be placed beside node 8: unknown"),
        (9, (2,), (1,), "2 does not cover 1"),
        (9, (1, 2), (), "cover one another"),
    ],
)
def test_a_wrong_place_is_refused_and_nothing_changes(
    node: int, parents: tuple[int, ...], children: tuple[int, ...], message: str
) -> None:
    graph = ContentGraph()
    graph.insert(1, (), ())
    graph.insert(2, (1,), ())
    with pytest.raises(ProtocolError, match=message):
        graph.insert(node, parents, children)
    assert sorted(graph) == [1, 2]
    assert edges(graph) == {(1, 2)}


def test_a_circle_is_refused() -> None:
    graph = ContentGraph()
    graph.insert(1, (), ())
    graph.insert(2, (1,), ())
    with pytest.raises(ProtocolError, match="it is covered by it"):
        graph.link(2, 1)
    with pytest.raises(ProtocolError, match="node 7 is not in the graph"):
        graph.remove(7)
