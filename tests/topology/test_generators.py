"""What the papers say of their networks, and that a seed decides everything."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import networkx as nx
import pytest

from topology.catalogue import load
from topology.overlay import Overlay, TopologyError
from topology.paths import diameter, next_hops, tree
from topology.shapes import balanced_tree, chain, chen, star
from topology.transit_stub import PRESETS, TransitStub, transit_stub


def graph_of(network: Overlay) -> nx.Graph:
    """The overlay for networkx."""
    graph = nx.Graph([link.ends for link in network.links])
    graph.add_nodes_from(network.routers)
    return graph


@pytest.mark.parametrize("size", sorted(PRESETS))
@pytest.mark.parametrize("seed", range(5))
def test_transit_stub_has_the_structure_of_the_model(size: int, seed: int) -> None:
    network, model = transit_stub(size, seed), PRESETS[size]
    assert len(network.routers) == size == model.routers
    transit, stub = network.of_kind("transit"), network.of_kind("stub")
    assert len(transit) == model.domains * model.transit
    assert len(stub) == size - len(transit)
    graph = graph_of(network)
    assert nx.is_connected(graph)
    # Without the transit routers the stub domains remain, each of the asked size and each on
    # one link; without the stubs, the transit routers are still connected.
    domains = list(nx.connected_components(graph.subgraph(stub)))
    assert len(domains) == len(transit) * model.stubs
    assert {len(domain) for domain in domains} == {model.size}
    assert all(len(list(nx.edge_boundary(graph, domain))) == 1 for domain in domains)
    assert nx.is_connected(graph.subgraph(transit))


def test_ji_et_al_have_100_routers_4_transit_and_12_stub_domains() -> None:
    model = PRESETS[100]
    assert (model.routers, model.domains, model.domains * model.transit) == (100, 1, 4)
    assert model.transit * model.stubs == 12


def test_seeds_differ_and_repeat() -> None:
    assert transit_stub(100, 1) == transit_stub(100, 1)
    assert transit_stub(100, 1) != transit_stub(100, 2)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_any_hash_seed_gives_the_same_network(hash_seed: str) -> None:
    program = (
        "from topology.catalogue import load; from topology.paths import next_hops;"
        "n = load('transit-stub-100', 4); print(n, next_hops(n, n.routers[:3]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    made = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    network = load("transit-stub-100", 4)
    here = f"{network} {next_hops(network, network.routers[:3])}\n"
    assert hashlib.sha256(made.stdout).digest() == hashlib.sha256(here.encode()).digest()


def test_extra_links_are_added_where_asked() -> None:
    plain = TransitStub(2, 3, 2, 4)
    more = TransitStub(2, 3, 2, 4, extra_transit_stub=5, extra_stub_stub=7)
    network = transit_stub(more, 9)
    assert len(network.links) == len(transit_stub(plain, 9).links) + 12
    kinds = {site.name: site.kind for site in network.sites}
    mixed = [link for link in network.links if kinds[link.a] != kinds[link.b]]
    assert len(mixed) == 2 * 3 * 2 + 5


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (65, "no paper has"),
        (TransitStub(0, 4, 3, 8), "domains must be 1"),
        (TransitStub(1, 4, 3, 0), "both 0"),
        (TransitStub(1, 4, 3, 8, p_stub=0.0), "p_stub must be above 0"),
        (TransitStub(1, 40, 0, 0, p_transit=0.001), "stay in parts"),
        (TransitStub(2000, 2000, 3, 8), "too many"),
        (TransitStub(1, 4, 0, 0, extra_stub_stub=1), "need stub domains"),
        (TransitStub(1, 1, 1, 1, extra_stub_stub=1), "no place is left"),
    ],
)
def test_impossible_models_are_refused(model: TransitStub | int, reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        transit_stub(model, 0)


def test_chen_et_al_meet_every_fact_of_the_text() -> None:
    """Section V-A: 55 brokers, 23 inner, 5 of them core, 32 edge, 3 of those at E, no cycle."""
    network = chen()
    core, inner, edge = (network.of_kind(kind) for kind in ("core", "inner", "edge"))
    assert (len(network.routers), len(core) + len(inner), len(edge)) == (55, 23, 32)
    assert core == ("A", "B", "C", "D", "E")
    assert nx.is_tree(graph_of(network))
    at_e = [name for name in network.neighbors["E"] if name in edge]
    assert len(at_e) == 3
    assert all(len(network.neighbors[name]) == 1 for name in edge)
    assert all(len(network.neighbors[name]) > 1 for name in (*core, *inner))
    # The load grows from A to E: whoever publishes at E reaches A through all the others.
    assert [tree(network, "E").depths[name] for name in core] == [4, 3, 2, 1, 0]


def test_simple_shapes() -> None:
    assert diameter(chain(12)) == 11
    assert chain(12).routers[2] == "r02"
    assert chain(1).routers == ("r0",)
    assert diameter(star(7)) == 2
    assert len(star(7).neighbors["hub"]) == 7
    thirteen = balanced_tree(3, 2)
    assert len(thirteen.routers) == 13
    assert nx.is_isomorphic(graph_of(thirteen), nx.balanced_tree(3, 2))
    assert tree(thirteen, "r").depth == 2
    assert balanced_tree(2, 0).routers == ("r",)
    assert nx.is_isomorphic(graph_of(balanced_tree(1, 5)), nx.path_graph(6))


@pytest.mark.parametrize(
    "name",
    ["chain:0", "chain:x", "chain", "tree:3", "tree:10,9", "tree:1,65", "star:-1", "star:²", "?"],
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(TopologyError):
        load(name)


def test_names_lead_to_overlays() -> None:
    assert load("chen-55") == chen()
    assert load("tree:3,2") == balanced_tree(3, 2)
    assert load("transit-stub-64", 2) == transit_stub(64, 2)


def test_a_router_process_needs_no_networkx() -> None:
    program = (
        "import sys, topology.paths, topology.catalogue;"
        "sys.exit(any(m in sys.modules for m in ('networkx', 'numpy', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
