"""Overlays as JSON or TOML: the form in which users write their own.

    [[links]]
    between = ["berlin", "paris"]
    latency_ms = 8.5                # optional

    [[routers]]                     # optional: only to say more about a router
    name = "berlin"
    kind = "core"                   # optional
    position = [13.4, 52.5]         # optional

JSON has the same members. A router without any link stands in `routers` alone. Members that are
not known are an error, so that a misspelt one is not passed over.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from topology.overlay import DEFAULT_LATENCY, Link, Overlay, Site, TopologyError, check_name


def read_json(data: bytes) -> Overlay:
    """The overlay in a JSON document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"this is not JSON: {error}") from error
    return from_document(document)


def read_toml(data: bytes) -> Overlay:
    """The overlay in a TOML document."""
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"this is not TOML: {error}") from error
    return from_document(document)


def from_document(document: object) -> Overlay:
    """The overlay that a parsed document describes; TopologyError names what is wrong."""
    table = _table("the document", document, required=(), optional=("links", "routers"))
    sites = [_site(i, one) for i, one in enumerate(_list("routers", table.get("routers", [])), 1)]
    links = [_link(i, one) for i, one in enumerate(_list("links", table.get("links", [])), 1)]
    named = {site.name for site in sites}
    ends = sorted({name for link in links for name in link.ends} - named)
    if not (named or ends):
        raise TopologyError("there are neither links nor routers in it")
    return Overlay((*sites, *map(Site, ends)), tuple(links))


def to_document(overlay: Overlay) -> dict[str, Any]:
    """What `from_document` makes the same overlay of."""
    routers: list[dict[str, Any]] = []
    for site in overlay.sites:
        one: dict[str, Any] = {"name": site.name}
        if site.kind:
            one["kind"] = site.kind
        if site.position is not None:
            one["position"] = list(site.position)
        routers.append(one)
    links = [
        {"between": list(link.ends), "latency_ms": round(link.latency * 1000, 9)}
        for link in overlay.links
    ]
    return {"routers": routers, "links": links}


def _site(number: int, value: object) -> Site:
    where = f"router number {number}"
    table = _table(where, value, required=("name",), optional=("kind", "position"))
    kind = table.get("kind", "")
    if not isinstance(kind, str):
        raise TopologyError(f"{where}: kind must be text, not {kind!r}")
    position = table.get("position")
    if position is None:
        return Site(check_name(table["name"]), kind)
    if not (isinstance(position, list) and len(position) == 2 and all(map(_is_number, position))):
        raise TopologyError(f"{where}: position must be two numbers, not {position!r}")
    return Site(check_name(table["name"]), kind, (float(position[0]), float(position[1])))


def _link(number: int, value: object) -> Link:
    where = f"link number {number}"
    table = _table(where, value, required=("between",), optional=("latency_ms",))
    ends = table["between"]
    if not (isinstance(ends, list) and len(ends) == 2):
        raise TopologyError(f"{where}: between must be two routers, not {ends!r}")
    latency = table.get("latency_ms", DEFAULT_LATENCY * 1000)
    if not _is_number(latency):
        raise TopologyError(f"{where}: latency_ms must be a number, not {latency!r}")
    return Link(check_name(ends[0]), check_name(ends[1]), round(float(latency) / 1000, 12))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _list(what: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise TopologyError(f"{what} must be a list, not {value!r:.60}")
    return value


def _table(
    where: str, value: object, required: Collection[str], optional: Collection[str]
) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TopologyError(f"{where} must be a table of members, not {value!r:.60}")
    for name in required:
        if name not in value:
            raise TopologyError(f"{where} has no {name!r}")
    for name in value:
        if name not in required and name not in optional:
            known = ", ".join([*required, *optional])
            raise TopologyError(f"{where}: unknown member {name!r}; known are {known}")
    return value
