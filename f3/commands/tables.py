"""Tables of routers and links, as `f3 status` and `f3 demo` print them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from actors.telemetry.names import DROPS

_HEADINGS = (
    "links",
    "nodes",
    "held",
    "received",
    "sent",
    "queued",
    "dropped",
    "refresh B",
    "wait p50",
    "hop p50",
    "hop p99",
    "MB",
    "restarts",
    "spans",
)
_WIDTH = 140


def show_routers(routers: Mapping[str, Any], rendezvous: Collection[str]) -> None:
    """One line for each router, on stdout."""
    table = Table(title="Routers (* rendezvous points; a hop is from queue to queue, in us)")
    table.add_column("router", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name in sorted(routers):
        table.add_row(*_row(name, routers[name], name in rendezvous))
    console = Console(width=max(_WIDTH, Console().width))
    console.print(table)
    for line in _trouble(routers):
        console.print(line, markup=False, highlight=False)


def _row(name: str, status: Any, root: bool) -> list[str]:
    shown = f"{name} *" if root else name
    if status is None:
        return [shown, "no answer"]
    links = list(status["links"].values())
    state, hops = status["state"], status["hop_us"]
    return [
        shown,
        f"{sum(link['up'] for link in links)}/{len(links)}",
        str(state.get("nodes", 0)),
        str(state.get("subscriptions", 0)),
        str(total(links, "messages_received")),
        str(total(links, "messages_sent")),
        str(total(links, "queued_messages")),
        str(sum(total(links, reason) for reason in DROPS)),
        str(total(links, "refresh_bytes")),
        f"{status['wait_us']['p50']:.0f}",
        f"{hops['p50']:.0f}",
        f"{hops['p99']:.0f}",
        f"{status['process']['rss_mb']:.0f}",
        str(status.get("restarts", 0)),
        str(status["telemetry"]["spans"]),
    ]


def _trouble(routers: Mapping[str, Any]) -> list[str]:
    """What keeps spans from being seen, router by router."""
    told = {name: one["telemetry"] for name, one in sorted(routers.items()) if one is not None}
    lines = [f"{name}: {one['trouble']}" for name, one in told.items() if one.get("trouble")]
    dropped = sum(one.get("dropped", 0) for one in told.values())
    return [*lines, f"{dropped} spans were dropped"] if dropped else lines


def total(links: Collection[Mapping[str, Any]], key: str) -> int:
    """The sum of one figure over links that have it."""
    return sum(int(link.get(key, 0)) for link in links)
