"""Tables of routers and links, as `f3 status` and `f3 demo` print them."""

from __future__ import annotations

import re
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
_PARTS = re.compile(r"\d+|\D+")


def show_routers(routers: Mapping[str, Any], rendezvous: Collection[str]) -> None:
    """One line for each router, on stdout."""
    table = Table(title="Routers (* rendezvous points; a hop is from queue to queue, in us)")
    table.add_column("router", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name in sorted(routers, key=_natural):
        table.add_row(*_row(name, routers[name], name in rendezvous))
    console = Console(width=max(_WIDTH, Console().width))
    console.print(table)
    for line in (_sum(routers), *_trouble(routers)):
        console.print(line, markup=False, highlight=False)


def _natural(name: str) -> list[tuple[int, str]]:
    """r2 before r10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _PARTS.findall(name)]


def _sum(routers: Mapping[str, Any]) -> str:
    """All of it in one line: enough where there are too many lines to read."""
    there = [one for one in routers.values() if one is not None]
    links = [link for one in there for link in one["links"].values()]
    dropped = sum(total(links, reason) for reason in DROPS)
    memory = sum(one["process"]["rss_mb"] for one in there)
    return (
        f"{len(there)} of {len(routers)} routers answer; {sum(link['up'] for link in links)} of "
        f"{len(links)} ends of links are up; {total(links, 'queued_messages')} messages queued, "
        f"{dropped} dropped; {memory:,.0f} MB"
    )


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
