"""Tables of routers and links, as `f3 status` and `f3 demo` print them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

_HEADINGS = (
    "links",
    "nodes",
    "held",
    "received",
    "sent",
    "queued",
    "dropped",
    "hop p50",
    "hop p99",
    "MB",
)
_WIDTH = 110


def show_routers(routers: Mapping[str, Any], rendezvous: Collection[str]) -> None:
    """One line for each router, on stdout."""
    table = Table(title="Routers (* rendezvous points; a hop is from queue to queue, in us)")
    table.add_column("router", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name in sorted(routers):
        table.add_row(*_row(name, routers[name], name in rendezvous))
    Console(width=max(_WIDTH, Console().width)).print(table)


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
        str(total(links, "notifications_dropped")),
        f"{hops['p50']:.0f}",
        f"{hops['p99']:.0f}",
        f"{status['process']['rss_mb']:.0f}",
    ]


def total(links: Collection[Mapping[str, Any]], key: str) -> int:
    """The sum of one figure over links that have it."""
    return sum(int(link.get(key, 0)) for link in links)
