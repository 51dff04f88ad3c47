"""Where a notification would go, read off a router's table: which links, by which labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from routing.api import LOCAL, Router
from routing.errors import ProtocolError
from routing.router import TreeRouter

Step = dict[str, Any]
"""What one router says: its name, the header that it gets, and per link what goes out and why."""


def way_down(
    ask: Callable[[str, Sequence[int] | None], Step], root: str, known: Collection[str]
) -> list[Step]:
    """What each router on the way of a notification says, from the root down; `ask` asks one."""
    steps: list[Step] = []
    waiting: list[tuple[str, Sequence[int] | None]] = [(root, None)]
    while waiting:
        step = ask(*waiting.pop(0))
        steps.append(step)
        waiting += [(far, due["header"]) for far, due in step["links"].items() if far in known]
    return steps


def explain(
    router: Router, namespace: str, header: Sequence[int] | None, nodes: Sequence[int]
) -> Step:
    """Per neighbour, the header it would be sent and why.

    At the rendezvous point `header` is None: there the lowest of the publication's nodes make it.
    Protocols that send a copy to each host are told about all copies at once.
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
        copies = table.root_headers(graph, tuple(sorted(graph.low(nodes))))
        header = sorted({node for copy in copies for node in copy})
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
