"""Files of overlays: real ones, our own form, and hostile ones."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import networkx as nx
import pytest

from topology.catalogue import load
from topology.files import from_document, read_json, read_toml, to_document
from topology.graphml import read_graphml
from topology.overlay import CutOffError, TopologyError, overlay
from topology.shapes import chen
from topology.transit_stub import transit_stub

DATA = Path(os.environ.get("F3_DATA", Path(__file__).parents[3] / "shared" / "data"))

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEYS = (
    '<key id="l" for="node" attr.name="label"/><key id="x" for="node" attr.name="Longitude"/>'
    '<key id="y" for="node" attr.name="Latitude"/><key id="t" for="edge" attr.name="latency_ms"/>'
)


def graphml(body: str) -> bytes:
    """A document with one graph."""
    return f"{HEAD}{KEYS}<graph edgedefault='undirected'>{body}</graph></graphml>".encode()


@pytest.mark.parametrize(
    ("name", "routers", "links"), [("Abilene", 11, 14), ("AttMpls", 25, 56), ("Geant2012", 40, 61)]
)
def test_topology_zoo(name: str, routers: int, links: int) -> None:
    path = DATA / "topologies" / f"{name}.graphml"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; F3_DATA names the folder of third-party data")
    network = load(str(path))
    assert (len(network.routers), len(network.links)) == (routers, links)
    theirs = nx.Graph(nx.read_graphml(path))
    labels = nx.get_node_attributes(theirs, "label")
    mine = {link.ends for link in network.links}
    assert mine == {tuple(sorted((labels[a], labels[b]))) for a, b in theirs.edges}


def test_latency_follows_the_globe() -> None:
    """Berlin and Paris are 878 km apart: 4.4 ms of fibre."""
    body = (
        '<node id="1"><data key="x">13.405</data><data key="y">52.52</data></node>'
        '<node id="2"><data key="x">2.3522</data><data key="y">48.8566</data></node>'
        '<node id="3"/><edge source="1" target="2"/><edge source="2" target="3"/>'
        '<edge source="1" target="3"><data key="t">7.5</data></edge>'
    )
    network = read_graphml(graphml(body))
    assert network.neighbors["1"]["2"] == pytest.approx(0.00439, rel=0.01)
    assert network.neighbors["2"]["3"] == 0.001
    assert network.neighbors["1"]["3"] == 0.0075


def test_parallel_edges_are_one_link_and_equal_labels_no_names() -> None:
    body = (
        '<node id="1"><data key="l">hub</data></node><node id="2"><data key="l">hub</data></node>'
        '<edge source="1" target="2"><data key="t">9</data></edge>'
        '<edge source="2" target="1"><data key="t">3</data></edge>'
    )
    network = read_graphml(graphml(body))
    assert network == overlay([("1", "2", 0.003)])


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "not well-formed"),
        (b"\x00\xff\xfe garbage", "not well-formed"),
        (b"<graphml><graph>", "not well-formed"),
        (b'<?xml version="1.0" encoding="no-such"?><graphml/>', "not well-formed"),
        (b"<html/>", "not <graphml>"),
        (b"<graphml/>", "one <graph>, not 0"),
        (b"<graphml><graph/><graph/></graphml>", "one <graph>, not 2"),
        (graphml(""), "no <node>"),
        (graphml("<node/>"), "node number 1 has no id"),
        (graphml('<node id=""/>'), "node number 1 has no id"),
        (graphml('<node id="a"/><node id="a"/>'), "'a' appears 2 times"),
        (graphml('<node id="a"/><edge source="a"/>'), "edge number 1 has no target"),
        (graphml('<node id="a"/><edge source="a" target="b"/>'), "no node with the id 'b'"),
        (graphml('<node id="a"/><edge source="a" target="a"/>'), "link to itself"),
        (graphml('<node id="a"><data key="x">east</data></node>'), "not a number: 'east'"),
        (graphml('<node id="a"><data key="y">nan</data></node>'), "not a number"),
        (graphml('<node id="a"><graph/></node>'), "<graph> inside"),
        (graphml('<node id="a"/><hyperedge/>'), "<hyperedge> inside"),
        (
            graphml(
                '<node id="a"/><node id="b"/>'
                '<edge source="a" target="b"><data key="t">-1</data></edge>'
            ),
            "above 0 s",
        ),
    ],
)
def test_malformed_graphml_is_refused(document: bytes, reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        read_graphml(document)


def test_entities_are_refused_unread(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    bomb = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    reach = f'<!DOCTYPE g [<!ENTITY i SYSTEM "file://{secret}">'
    for start in (bomb, reach):
        document = f'{start}]><graphml><graph><node id="&i;"/></graph></graphml>'
        with pytest.raises(TopologyError, match="document type declarations"):
            read_graphml(document.encode())


def test_mutilated_files_never_raise_anything_else() -> None:
    good = graphml(
        '<node id="a"><data key="x">1</data><data key="y">2</data></node><node id="b"/>'
        '<edge source="a" target="b"><data key="t">1</data></edge>'
    )
    rng = random.Random(1)
    refused = 0
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at] = rng.randrange(256)
            else:
                del data[at : at + rng.randrange(20)]
        try:
            read_graphml(bytes(data))
        except TopologyError:
            refused += 1
    assert 1000 < refused < 2000


def test_our_own_form_keeps_everything() -> None:
    for network in (chen(), transit_stub(100, 3), overlay([("a", "b", 1e-9 * 123)])):
        text = json.dumps(to_document(network))
        assert read_json(text.encode()) == network


def test_toml_as_documented() -> None:
    network = read_toml(
        b"""
        [[links]]
        between = ["berlin", "paris"]
        latency_ms = 8.5
        [[links]]
        between = ["paris", "rome"]
        [[routers]]
        name = "berlin"
        kind = "core"
        position = [13.4, 52.5]
        """
    )
    assert network.routers == ("berlin", "paris", "rome")
    assert network.neighbors["paris"] == {"berlin": 0.0085, "rome": 0.001}
    assert network.sites[0].position == (13.4, 52.5)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "must be a table"),
        ({}, "neither links nor routers"),
        ({"link": []}, "unknown member 'link'"),
        ({"links": {}}, "links must be a list"),
        ({"links": [["a", "b"]]}, "link number 1 must be a table"),
        ({"links": [{}]}, "link number 1 has no 'between'"),
        ({"links": [{"between": ["a"]}]}, "two routers"),
        ({"links": [{"between": ["a", 5]}]}, "name must be text"),
        ({"links": [{"between": ["a", "a"]}]}, "link to itself"),
        ({"links": [{"between": ["a", "b"]}, {"between": ["b", "a"]}]}, "appears twice"),
        ({"links": [{"between": ["a", "b"], "latency_ms": "1"}]}, "must be a number"),
        ({"links": [{"between": ["a", "b"], "latency_ms": True}]}, "must be a number"),
        ({"links": [{"between": ["a", "b"], "latency_ms": 0}]}, "above 0 s"),
        ({"links": [{"between": ["a", "b"], "latency_ms": float("nan")}]}, "must be a number"),
        ({"links": [{"between": ["a", "b"], "latency_ms": 10**400}]}, "must be a number"),
        ({"routers": [{"kind": "x"}]}, "router number 1 has no 'name'"),
        ({"routers": [{"name": "a"}, {"name": "a"}]}, "'a' appears twice"),
        ({"routers": [{"name": "a", "kind": 3}]}, "kind must be text"),
        ({"routers": [{"name": "a", "position": [1]}]}, "two numbers"),
    ],
)
def test_malformed_documents_are_refused(document: object, reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        from_document(document)


def test_files_that_are_no_documents(tmp_path: Path) -> None:
    for name, data in {
        "a.json": b"{",
        "b.json": b"[" * 200_000,
        "c.toml": b"= 3",
        "d.toml": b"\xff",
        "e.json": b'"\xff"',
        "f.graphml": b"<",
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(TopologyError, match=name):
            load(str(path))
    with pytest.raises(TopologyError, match=r"none\.json: No such file"):
        load(str(tmp_path / "none.json"))


def test_a_file_in_two_parts_names_them(tmp_path: Path) -> None:
    path = tmp_path / "parts.json"
    links = [{"between": ["a", "b"]}, {"between": ["b", "c"]}, {"between": ["x", "y"]}]
    path.write_text(json.dumps({"links": links}))
    with pytest.raises(CutOffError, match=r"parts\.json: .*'x', 'y'"):
        load(str(path))
