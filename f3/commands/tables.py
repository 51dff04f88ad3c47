"""Tables of routers and links, as `f3 status` and `f3 top` show them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from actors.telemetry.names import DROPS

#: For whoever does not look at a terminal.
WIDTH = 130
#: Routers that a remark names; the rest are counted.
_NAMED_MAX = 4
_PARTS = re.compile(r"\d+|\D+")

Status = Mapping[str, Any]


def show(tables: Iterable[Table], notes: Collection[str]) -> None:
    """Tables on stdout, and what is to be said below them."""
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    for table in tables:
        console.print(table)
    for line in notes:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


# -- routers ---------------------------------------------------------------------------------------

_TRAFFIC = ("links", "queued", "of", "received", "sent", "batch", "wait p50", "hop p50", "hop p99")
_STATE = ("nodes", "edges", "labels", "table B", "refresh B", "dropped", "restarts", "MB")
_SPANS = ("spans", "lost")


def routers_tables(
    routers: Mapping[str, Any],
    rendezvous: Collection[str],
    before: Mapping[str, Any] | None = None,
    seconds: float = 0.0,
) -> tuple[Table, Table]:
    """One line for each router; `before`, a look so long ago, makes rates of what grows."""
    rates = "" if before is None else "; received, sent and refresh a second"
    traffic = _table(f"Traffic (us from queue to read, and to done{rates})", "router", _TRAFFIC)
    state = _table("State (* rendezvous points)", "router", (*_STATE, *_SPANS))
    for name in sorted(routers, key=_natural):
        shown = f"{name} *" if name in rendezvous else name
        status = routers[name]
        if status is None:
            traffic.add_row(shown, "no answer")
            continue
        grown = _growth(name, status, before, seconds)
        traffic.add_row(shown, *_traffic_cells(status, grown))
        state.add_row(shown, *_state_cells(status, grown))
    return traffic, state


def _natural(name: str) -> list[tuple[int, str]]:
    """r2 before r10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _PARTS.findall(name)]


def _growth(
    name: str, status: Status, before: Mapping[str, Any] | None, seconds: float
) -> Callable[[str], str]:
    """How a figure over all links of a router is told: as a sum, or as a rate."""
    links = list(status["links"].values())
    if before is None:
        return lambda key: str(total(links, key))
    if not before.get(name):
        return lambda _: ""  # it did not answer last time
    old = list(before[name]["links"].values())
    return lambda key: f"{max(0, total(links, key) - total(old, key)) / seconds:,.0f}"


def _table(title: str, first: str, headings: Collection[str]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _traffic_cells(status: Status, grown: Callable[[str], str]) -> list[str]:
    links = list(status["links"].values())
    return [
        f"{sum(link['up'] for link in links)}/{len(links)}",
        str(total(links, "queued_messages")),
        str(total(links, "capacity_messages")),
        grown("messages_received"),
        grown("messages_sent"),
        f"{status['batch_size']['p50']:.0f}",
        f"{status['wait_us']['p50']:.0f}",
        f"{status['hop_us']['p50']:.0f}",
        f"{status['hop_us']['p99']:.0f}",
    ]


def _state_cells(status: Status, grown: Callable[[str], str]) -> list[str]:
    told = status["telemetry"]
    return [
        *(str(status["state"].get(kind, 0)) for kind in ("nodes", "edges", "labels", "bytes")),
        grown("refresh_bytes"),
        str(sum(_drops(status).values())),
        str(status.get("restarts", 0)),
        f"{status['process']['rss_mb']:.0f}",
        str(told["spans"]),
        str(told.get("dropped", 0)),
    ]


def _drops(status: Status) -> dict[str, int]:
    """What a router has thrown away, by reason."""
    links = list(status["links"].values())
    found = {reason: total(links, reason) for reason in DROPS}
    found["messages_unroutable"] = status["counts"].get("messages_unroutable", 0)
    return {reason: count for reason, count in found.items() if count}


# -- links -----------------------------------------------------------------------------------------

_LINK_HEADINGS = (
    *("to", "kind", "up", "queued", "of", "bytes", "of MB", "received", "sent", "sent B"),
    *("refresh B", "dropped"),
)


def links_table(routers: Mapping[str, Any]) -> Table:
    """One line for each direction of a link, the fullest first."""
    table = _table("Links", "router", _LINK_HEADINGS)
    rows = [
        (name, far, link)
        for name, status in routers.items()
        for far, link in (status["links"].items() if status else ())
    ]
    for name, far, link in sorted(rows, key=lambda row: (-row[2]["queued_messages"], *row[:2])):
        table.add_row(name, *_link_cells(far, link))
    return table


def _link_cells(far: str, link: Status) -> list[str]:
    drops = {reason: link[reason] for reason in DROPS if link.get(reason)}
    return [
        far,
        link["kind"],
        "yes" if link["up"] else "no",
        str(link["queued_messages"]),
        str(link["capacity_messages"]),
        str(link["queued_bytes"]),
        f"{link['capacity_bytes'] / (1 << 20):.0f}",
        *(str(link.get(f"messages_{way}", 0)) for way in ("received", "sent")),
        *(str(link.get(key, 0)) for key in ("bytes_sent", "refresh_bytes")),
        _listed(drops) or "0",
    ]


# -- below the tables ------------------------------------------------------------------------------


def remarks(routers: Mapping[str, Any]) -> list[str]:
    """All of it in one line; what was dropped and why, what keeps spans from being seen."""
    whose: dict[str, list[str]] = {}
    for name in sorted(routers, key=_natural):
        status = routers[name]
        for remark in _remarks(status) if status else ():
            whose.setdefault(remark, []).append(name)
    return [_sum(routers), *(f"{_names(names)}: {remark}" for remark, names in whose.items())]


def _sum(routers: Mapping[str, Any]) -> str:
    """Enough where there are too many lines to read."""
    there = [one for one in routers.values() if one is not None]
    links = [link for one in there for link in one["links"].values()]
    dropped = sum(sum(_drops(one).values()) for one in there)
    memory = sum(one["process"]["rss_mb"] for one in there)
    return (
        f"{len(there)} of {len(routers)} routers answer; {sum(link['up'] for link in links)} of "
        f"{len(links)} ends of links are up; {total(links, 'queued_messages')} messages queued, "
        f"{dropped} dropped; {memory:,.0f} MB"
    )


def _names(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _remarks(status: Status) -> Iterator[str]:
    told = status["telemetry"]
    drops = _drops(status)
    if drops:
        yield f"dropped {_listed(drops)}"
    if told.get("dropped"):
        yield f"{told['dropped']} spans were dropped"
    if told.get("trouble"):
        yield told["trouble"]
    if not told.get("metrics", True):
        yield f"{told['endpoint']} takes no metrics, so none are sent"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{what} {count}" for what, count in counts.items())


def total(links: Collection[Mapping[str, Any]], key: str) -> int:
    """The sum of one figure over links that have it."""
    return sum(int(link.get(key, 0)) for link in links)
