"""Where a notification would go, read off a router's table: which links, by which labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routing.api import LOCAL, Router
from routing.errors import ProtocolError
from routing.router import TreeRouter


def explain(
    router: Router, namespace: str, header: Sequence[int] | None, nodes: Sequence[int]
) -> dict[str, Any]:
    """Per neighbour, the header it would be sent and why.

    At the rendezvous point `header` is None: there the lowest of the publication's nodes make it.
    ProtocolError for nodes that the content graph does not have.
    """
    if not isinstance(router, TreeRouter):
        raise ProtocolError(f"{router.address!r} has no forwarding table to look at")
    space = router.namespace(namespace)
    table = space.table
    if header is None:
        if space.rendezvous is None:
            raise ProtocolError(f"{router.address!r} is not the rendezvous point of {namespace!r}")
        graph = space.rendezvous.store.graph
        unknown = sorted(node for node in nodes if node not in graph)
        if unknown:
            raise ProtocolError(f"node {unknown[0]} is not in the content graph")
        header = table.root_header(graph, tuple(sorted(graph.low(nodes))))
    label = getattr(table, "label", None)
    return {
        "router": router.address,
        "header": list(header),
        "links": {
            neighbor or "local clients": {
                "header": list(due),
                "local": neighbor == LOCAL,
                "labels": _labels(label, header, neighbor),
            }
            for neighbor, due in table.route(tuple(header)).items()
        },
    }


def _labels(label: Any, header: Sequence[int], neighbor: str) -> list[tuple[int, list[int]]]:
    """Which node of the header has which label for a neighbour; only F3's tables have labels."""
    if label is None:
        return []
    return [(node, sorted(label(node, neighbor))) for node in header if label(node, neighbor)]
