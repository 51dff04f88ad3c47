"""Overlays: routers, the links between them, and how long a message takes on each.

An overlay is a value: immutable, comparable, the same under any PYTHONHASHSEED. Links have no
direction. What a router does with its links is not known here; trees and next-hop tables are in
`topology.paths`. This module needs nothing but the standard library, so that runtimes may import
it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

#: The longest name of a router, in bytes of UTF-8: names travel in messages and become addresses.
NAME_MAX = 200

DEFAULT_LATENCY = 0.001
"""Seconds on a link of which nothing better is known."""

#: Light in fibre needs 5 us a kilometre; routers in one building are not at distance nothing.
_SECONDS_PER_KM = 5e-6
_LATENCY_MIN = 1e-4


def fibre_latency(km: float) -> float:
    """Seconds on a link of this length, in whole nanoseconds."""
    return round(max(_LATENCY_MIN, km * _SECONDS_PER_KM), 9)


class TopologyError(ValueError):
    """An overlay, or a file that describes one, that cannot be used; says which part and why."""


class CutOffError(TopologyError):
    """Some routers have no path to where they must have one; `routers` names them, sorted."""

    def __init__(self, root: str, routers: Iterable[str], where: str = "") -> None:
        self.root = root
        self.routers = tuple(sorted(routers))
        self.where = where
        shown = ", ".join(map(repr, self.routers[:10]))
        rest = len(self.routers) - 10
        more = f" and {rest} more" if rest > 0 else ""
        super().__init__(
            f"{where}no path leads to {root!r} from {shown}{more}: add a link or remove them"
        )

    def __reduce__(self) -> tuple[type[CutOffError], tuple[str, tuple[str, ...], str]]:
        return CutOffError, (self.root, self.routers, self.where)


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A link between two routers, the first by name first; its latency is in seconds."""

    a: str
    b: str
    latency: float = DEFAULT_LATENCY

    @property
    def ends(self) -> tuple[str, str]:
        """Both routers, in order."""
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class Site:
    """A router's place: its name, what it is in its overlay, and where it is drawn."""

    name: str
    #: Transit, stub, core, inner, edge …; empty where the overlay makes no difference.
    kind: str = ""
    position: tuple[float, float] | None = None


@dataclass(frozen=True)
class Overlay:
    """Routers and undirected links; sorted by name, each link once."""

    sites: tuple[Site, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.sites, key=lambda site: site.name))
        object.__setattr__(self, "sites", ordered)
        object.__setattr__(self, "links", tuple(sorted(map(_in_order, self.links))))
        _check_sites(ordered)
        _check_links(self.links, {site.name for site in ordered})

    @cached_property
    def routers(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(site.name for site in self.sites)

    @cached_property
    def neighbors(self) -> Mapping[str, Mapping[str, float]]:
        """Per router, its neighbours by name and the latency to each."""
        found: dict[str, dict[str, float]] = {name: {} for name in self.routers}
        for link in self.links:
            found[link.a][link.b] = link.latency
            found[link.b][link.a] = link.latency
        return {name: dict(sorted(beside.items())) for name, beside in found.items()}

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """The routers of a kind, sorted."""
        return tuple(site.name for site in self.sites if site.kind == kind)

    def without(
        self, routers: Collection[str] = (), links: Collection[tuple[str, str]] = ()
    ) -> Overlay:
        """What is left when routers, with their links, and single links are gone."""
        gone = set(routers)
        cut = {(min(pair), max(pair)) for pair in links}
        _require_known("router", gone, set(self.routers))
        _require_known("link", cut, {link.ends for link in self.links})
        return Overlay(
            tuple(site for site in self.sites if site.name not in gone),
            tuple(
                link for link in self.links if link.ends not in cut and gone.isdisjoint(link.ends)
            ),
        )

    def require_connected(self) -> Overlay:
        """This overlay; CutOffError if it falls into parts, naming all but the largest part."""
        if not self.sites:
            raise TopologyError("an overlay needs one router at least")
        parts = _parts(self.neighbors)
        largest = max(parts, key=len)
        if len(parts) > 1:
            raise CutOffError(min(largest), set(self.routers) - largest)
        return self


def overlay(
    links: Iterable[tuple[str, str] | tuple[str, str, float]], sites: Iterable[Site] = ()
) -> Overlay:
    """An overlay from pairs of names, with or without a latency; sites only where they say more."""
    made = tuple(Link(*link) for link in links)
    known = {site.name: site for site in sites}
    for link in made:
        for name in link.ends:
            known.setdefault(name, Site(name))
    return Overlay(tuple(known.values()), made)


def _in_order(link: Link) -> Link:
    return link if link.a <= link.b else Link(link.b, link.a, link.latency)


def _require_known(what: str, wanted: Collection[object], known: Collection[object]) -> None:
    unknown = sorted(map(repr, set(wanted) - set(known)))
    if unknown:
        raise TopologyError(f"the overlay has no {what} {', '.join(unknown)}")


def check_name(name: object) -> str:
    """A router's name, if it is one: printable text, not empty, not too long."""
    if not isinstance(name, str) or not name:
        raise TopologyError(f"a router's name must be text and not empty, not {name!r}")
    if not name.isprintable() or name != name.strip():
        raise TopologyError(f"router name {name!r} has blanks around it or unprintable characters")
    if len(name.encode(errors="surrogatepass")) > NAME_MAX:
        raise TopologyError(f"router name {name[:20]!r}… is longer than {NAME_MAX} bytes")
    return name


def _check_sites(sites: tuple[Site, ...]) -> None:
    previous = ""
    for site in sites:
        if check_name(site.name) == previous:
            raise TopologyError(f"router {site.name!r} appears twice")
        previous = site.name
        if site.position is not None and not all(map(math.isfinite, site.position)):
            raise TopologyError(f"router {site.name!r} has no finite position: {site.position}")


def _check_links(links: tuple[Link, ...], names: Collection[str]) -> None:
    previous = ("", "")
    for link in links:
        for name in link.ends:
            if name not in names:
                raise TopologyError(f"link {link.a!r} – {link.b!r}: there is no router {name!r}")
        if link.a == link.b:
            raise TopologyError(f"router {link.a!r} has a link to itself")
        if link.ends == previous:
            raise TopologyError(f"link {link.a!r} – {link.b!r} appears twice")
        previous = link.ends
        if not (math.isfinite(link.latency) and link.latency > 0):
            raise TopologyError(
                f"link {link.a!r} – {link.b!r}: latency must be above 0 s, not {link.latency}"
            )


def _parts(neighbors: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The connected components, each router in one of them."""
    parts: list[set[str]] = []
    seen: set[str] = set()
    for start in neighbors:
        if start in seen:
            continue
        part, stack = {start}, [start]
        while stack:
            for other in neighbors[stack.pop()]:
                if other not in part:
                    part.add(other)
                    stack.append(other)
        seen |= part
        parts.append(part)
    return parts
