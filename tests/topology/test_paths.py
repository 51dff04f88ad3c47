"""Trees and tables against networkx, against all simple paths, and against the simulator's."""

from __future__ import annotations

import random
from collections import Counter

import networkx as nx
import pytest

from topology.overlay import CutOffError, Overlay, TopologyError, overlay
from topology.paths import Metric, centre, changes, diameter, next_hops, tree
from topology.transit_stub import transit_stub

RING = overlay([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])


def random_overlay(rng: random.Random, size: int) -> Overlay:
    """A connected overlay with few distinct latencies, so that many paths tie."""
    names = [f"n{i}" for i in range(size)]
    pairs = {(names[rng.randrange(i)], names[i]) for i in range(1, size)}
    for _ in range(rng.randrange(size)):
        a, b = sorted(rng.sample(range(size), 2))
        pairs.add((names[a], names[b]))
    return overlay([(a, b, rng.choice((0.1, 0.2, 0.3))) for a, b in sorted(pairs)])


def as_graph(network: Overlay) -> nx.Graph:
    """The same overlay, with whole milliseconds as weights."""
    graph = nx.Graph()
    graph.add_nodes_from(network.routers)
    for link in network.links:
        graph.add_edge(link.a, link.b, latency=round(link.latency * 1000), hops=1)
    return graph


def best_first_hop(graph: nx.Graph, start: str, root: str, by: str) -> tuple[str, int]:
    """The first hop by name among all shortest simple paths, and how many first hops tie."""
    cost: dict[str, int] = {}
    for path in nx.all_simple_paths(graph, start, root):
        length = nx.path_weight(graph, path, by)
        cost[path[1]] = min(length, cost.get(path[1], length))
    least = min(cost.values())
    tied = sorted(hop for hop, length in cost.items() if length == least)
    return tied[0], len(tied)


@pytest.mark.parametrize("by", ["latency", "hops"])
def test_every_hop_is_the_first_of_the_best(by: Metric) -> None:
    rng = random.Random(7)
    seen: Counter[str] = Counter()
    for _ in range(100):
        network = random_overlay(rng, rng.randint(2, 8))
        graph = as_graph(network)
        roots = rng.sample(network.routers, min(2, len(network.routers)))
        table = next_hops(network, roots, by)
        for root in roots:
            assert root not in table[root]
            for name in set(network.routers) - {root}:
                hop, ties = best_first_hop(graph, name, root, by)
                assert table[name][root] == hop
                seen["tie" if ties > 1 else "one"] += 1
    assert seen["tie"] > 30
    assert seen["one"] > 30


def test_distances_agree_with_networkx_on_a_large_network() -> None:
    network = transit_stub(1200, seed=3)
    weights = {link.ends: round(link.latency * 1e9) for link in network.links}
    graph = nx.Graph()
    for (a, b), weight in weights.items():
        graph.add_edge(a, b, weight=weight)
    root = network.of_kind("transit")[5]
    found = tree(network, root)
    lengths = nx.single_source_dijkstra_path_length(graph, root)
    for name, parent in found.parents.items():
        step = weights[min(name, parent), max(name, parent)]
        assert lengths[name] == lengths[parent] + step
    assert len(found.parents) == 1199
    hops = nx.single_source_shortest_path_length(graph, root)
    assert dict(tree(network, root, "hops").depths) == dict(hops)
    assert tree(network, root, "hops").depth == max(hops.values())
    assert diameter(network) == nx.diameter(graph)


def test_latency_sums_tie_exactly() -> None:
    """0.1 + 0.2 s and 0.3 s are the same time; as floats they are not."""
    network = overlay([("r", "m", 0.1), ("m", "z", 0.2), ("r", "b", 0.25), ("b", "z", 0.05)])
    assert next_hops(network, ["r"])["z"]["r"] == "b"
    direct = overlay([("r", "m", 0.1), ("m", "z", 0.2), ("r", "z", 0.3)])
    assert next_hops(direct, ["r"])["z"]["r"] == "m"


def test_a_tree_knows_its_children_and_depths() -> None:
    found = tree(RING, "a")
    assert found.children == {"a": ("b", "d"), "b": ("c",), "c": (), "d": ()}
    assert found.depths == {"a": 0, "b": 1, "d": 1, "c": 2}
    assert centre(overlay([("x", "y"), ("y", "z")])) == "y"


def test_a_lost_link_moves_only_who_used_it() -> None:
    before = next_hops(RING, ["a"])
    after = next_hops(RING.without(links=[("a", "b")]), ["a"])
    assert changes(before, after) == {"b": {"a": ("a", "c")}, "c": {"a": ("b", "d")}}
    assert changes(before, before) == {}


def test_a_lost_router_leaves_the_table() -> None:
    before = next_hops(RING, ["a", "c"])
    after = next_hops(RING.without(routers=["b"]), ["a", "c"])
    moved = changes(before, after)
    assert moved["b"] == {"a": ("a", None), "c": ("c", None)}
    assert moved["a"] == {"c": ("b", "d")}
    assert "d" not in moved


def test_who_is_cut_off_is_named() -> None:
    line = overlay([("a", "b"), ("b", "c"), ("c", "d")])
    with pytest.raises(CutOffError, match="'c', 'd'") as caught:
        next_hops(line.without(links=[("b", "c")]), ["a"])
    assert caught.value.routers == ("c", "d")
    rest = line.without(routers=caught.value.routers)
    assert next_hops(rest, ["a"]) == {"a": {}, "b": {"a": "a"}}


def test_random_losses_reach_everybody_or_name_the_rest() -> None:
    """After any loss the new table leads everybody to the root, or the error is exact."""
    rng = random.Random(5)
    seen: Counter[str] = Counter()
    for _ in range(200):
        network = random_overlay(rng, rng.randint(3, 12))
        root, *others = rng.sample(network.routers, len(network.routers))
        gone = rng.sample(others, rng.randint(0, 2))
        cut = [link.ends for link in rng.sample(network.links, 1)]
        left = network.without(routers=gone, links=cut)
        reached = nx.node_connected_component(as_graph(left), root)
        if lost := set(left.routers) - reached:
            with pytest.raises(CutOffError) as caught:
                next_hops(left, [root])
            assert set(caught.value.routers) == lost
            seen["cut off"] += 1
            continue
        table = next_hops(left, [root])
        seen["changed" if changes(next_hops(network, [root]), table) else "same"] += 1
        for name in left.routers:
            steps = 0
            while name != root:
                name, steps = table[name][root], steps + 1
                assert steps < len(left.routers)
    assert min(seen["cut off"], seen["changed"], seen["same"]) > 10


def test_bad_roots_and_metrics() -> None:
    with pytest.raises(TopologyError, match="no router 'x'"):
        next_hops(RING, ["x"])
    with pytest.raises(TopologyError, match="not by 'cost'"):
        next_hops(RING, ["a"], "cost")  # type: ignore[arg-type]
