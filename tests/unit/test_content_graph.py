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


# -- levels --------------------------------------------------------------------------------------


def test_levels_are_made_anew_where_numbers_end() -> None:
    """Each node goes right below the first: a thousand times half of what is left."""
    graph = ContentGraph()
    graph.insert(0, (), ())
    graph.insert(1, (0,), ())
    graph.insert(2, (0,), ())
    assert graph.low((1, 2)) == {1, 2}, "which takes levels"
    for node in range(3, 1000):
        graph.insert(node, (0,), (1 if node == 3 else node - 1,))
        if node % 20 == 0:
            assert graph.low((1, 2, node)) == {1, 2}
    graph.check()


@given(families, st.randoms(use_true_random=False))
def test_levels_stay_true_while_nodes_come_go_and_are_linked(
    sets: Sets, rng: random.Random
) -> None:
    graph = ContentGraph()
    for node in rng.sample(sorted(sets), len(sets)):
        above = {n for n in graph if sets[n] > sets[node]}
        below = {n for n in graph if sets[n] < sets[node]}
        if rng.random() < 0.3:  # first on its own, and then told of its place
            graph.insert(node, (), ())
            for parent in above:
                graph.link(parent, node)
            for child in below:
                graph.link(node, child)
        else:
            graph.insert(node, low(sets, above), high(sets, below))
        graph.check()
        if rng.random() < 0.2:
            graph.remove(node)
            graph.check()


class Counted(dict[int, set[int]]):
    """Counts what is looked up."""

    looked_up = 0

    def __getitem__(self, node: int) -> set[int]:
        Counted.looked_up += 1
        return super().__getitem__(node)


def test_an_insertion_does_not_walk_through_all_ancestors() -> None:
    """Stretches of sixty exits: a node in the middle has hundreds of nodes above and below it."""
    exits = 60

    def number(first: int, last: int) -> int:
        return first * exits + last

    parents = {
        number(a, b): [number(c, d) for c, d in ((a - 1, b), (a, b + 1)) if c >= 0 and d < exits]
        for a in range(exits)
        for b in range(a, exits)
    }
    graph = ContentGraph.of_parents(parents)
    graph.low((number(20, 21), number(30, 31)))
    # 15..40 leaves; what it covered and was covered by stays, so that it can come back.
    graph.remove(number(15, 40))
    graph.insert(9000, [number(14, 40), number(15, 41)], [number(16, 40), number(15, 39)])
    assert len(graph.ancestors(9000)) > 250
    graph.remove(9000)
    graph._parents, graph._children = Counted(graph._parents), Counted(graph._children)
    Counted.looked_up = 0
    graph.insert(9001, [number(14, 40), number(15, 41)], [number(16, 40), number(15, 39)])
    assert 0 < Counted.looked_up < 60
    Counted.looked_up = 0
    graph.remove(9001)
    assert 0 < Counted.looked_up < 60
    graph.check()
