"""GraphML files as overlays, such as those of the Internet Topology Zoo (Knight et al. 2011).

A router is named by its label where every node has one of its own, by its id otherwise. Its
position is its longitude and latitude. A link's latency is, in this order, what the file says
(`latency_ms`), the time light takes in fibre between its ends, or the default. Parallel edges are
one link, the fastest of them; the direction of edges is ignored.

Files are not trusted: a document type declaration, with which entities could grow without end or
reach other files, is refused before it is read. Hyperedges and nested graphs are refused too.
"""

from __future__ import annotations

import math
from collections import Counter
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from topology.overlay import DEFAULT_LATENCY, Link, Overlay, Site, TopologyError, fibre_latency

_EARTH_KM = 6371.0


class _Builder(ElementTree.TreeBuilder):
    """Builds the tree of a document that declares no type."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Called by the parser at the declaration, before anything in it counts."""
        raise TopologyError(f"document type declarations (<!DOCTYPE {name} …>) are not accepted")


def read_graphml(data: bytes) -> Overlay:
    """The overlay in a GraphML document; TopologyError says what is wrong with it."""
    root = _parse(data)
    if _tag(root) != "graphml":
        raise TopologyError(f"the outermost element is <{_tag(root)}>, not <graphml>")
    graphs = [child for child in root if _tag(child) == "graph"]
    if len(graphs) != 1:
        raise TopologyError(f"a file must hold one <graph>, not {len(graphs)}")
    keys = _keys(root)
    nodes = [child for child in graphs[0] if _tag(child) == "node"]
    if not nodes:
        raise TopologyError("the graph has no <node>")
    for element in graphs[0].iter():
        if element is not graphs[0] and _tag(element) in ("graph", "hyperedge"):
            raise TopologyError(f"a <{_tag(element)}> inside the graph cannot be an overlay")
    sites = _sites(nodes, keys)
    links = _links([child for child in graphs[0] if _tag(child) == "edge"], sites, keys)
    return Overlay(tuple(sites.values()), tuple(links))


def _parse(data: bytes) -> Element:
    parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314 - _Builder refuses entities
    try:
        parser.feed(data)
        root = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(f"this is not well-formed XML: {error}") from error
    assert isinstance(root, Element)
    return root


def _tag(element: Element) -> str:
    """The name without its namespace."""
    return element.tag.rpartition("}")[2]


def _keys(root: Element) -> dict[str, str]:
    """Per key id, the name of the attribute that it stands for."""
    return {key.get("id", ""): key.get("attr.name", "") for key in root if _tag(key) == "key"}


def _data(element: Element, keys: dict[str, str]) -> dict[str, str]:
    """The attributes of a node or an edge, by name."""
    return {
        keys.get(child.get("key", ""), ""): (child.text or "").strip()
        for child in element
        if _tag(child) == "data"
    }


def _sites(nodes: list[Element], keys: dict[str, str]) -> dict[str, Site]:
    """Per node id, its router."""
    ids = [node.get("id") for node in nodes]
    for number, identifier in enumerate(ids, 1):
        if not identifier:
            raise TopologyError(f"node number {number} has no id")
    for identifier, count in Counter(ids).items():
        if count > 1:
            raise TopologyError(f"node id {identifier!r} appears {count} times")
    data = [_data(node, keys) for node in nodes]
    labels = [one.get("label", "") for one in data]
    named = all(labels) and len(set(labels)) == len(labels)
    found: dict[str, Site] = {}
    for identifier, label, one in zip(ids, labels, data, strict=True):
        assert identifier is not None
        name = label if named else identifier
        where = (_number(one, "Longitude", name), _number(one, "Latitude", name))
        known = None if where[0] is None or where[1] is None else (where[0], where[1])
        found[identifier] = Site(name, one.get("kind", ""), known)
    return found


def _number(data: dict[str, str], name: str, owner: str) -> float | None:
    text = data.get(name, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise TopologyError(f"{name} of {owner!r} is not a number: {text[:40]!r}")
    return number


def _links(edges: list[Element], sites: dict[str, Site], keys: dict[str, str]) -> list[Link]:
    fastest: dict[tuple[str, str], Link] = {}
    for number, edge in enumerate(edges, 1):
        ends = [_end(edge, number, which, sites) for which in ("source", "target")]
        a, b = sorted(ends, key=lambda site: site.name)
        link = Link(a.name, b.name, _latency(a, b, _data(edge, keys)))
        known = fastest.get(link.ends)
        if known is None or link.latency < known.latency:
            fastest[link.ends] = link
    return list(fastest.values())


def _end(edge: Element, number: int, which: str, sites: dict[str, Site]) -> Site:
    identifier = edge.get(which)
    if identifier is None:
        raise TopologyError(f"edge number {number} has no {which}")
    if identifier not in sites:
        raise TopologyError(f"edge number {number}: there is no node with the id {identifier!r}")
    return sites[identifier]


def _latency(a: Site, b: Site, data: dict[str, str]) -> float:
    said = _number(data, "latency_ms", f"{a.name} – {b.name}")
    if said is not None:
        return said / 1000
    if a.position is None or b.position is None:
        return DEFAULT_LATENCY
    return fibre_latency(_great_circle_km(a.position, b.position))


def _great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The haversine formula; positions are (longitude, latitude) in degrees."""
    (x1, y1), (x2, y2) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    h = math.sin((y2 - y1) / 2) ** 2
    h += math.cos(y1) * math.cos(y2) * math.sin((x2 - x1) / 2) ** 2
    return 2 * _EARTH_KM * math.asin(math.sqrt(min(1.0, h)))
