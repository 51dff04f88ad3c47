"""Transit-stub networks: the model of GT-ITM (Zegura, Calvert, Bhattacharjee, INFOCOM 1996).

Transit domains are joined to one another; every transit router serves some stub domains; every
domain is a random graph, drawn again until it is connected. A stub domain hangs on its transit
router by one link, and extra links from stub domains to other transit routers or to each other
may be asked for. Without extra links no shortest path crosses a stub domain that it does not end
in, which GT-ITM otherwise ensures by its policy weights; those are absent here.

Differences from GT-ITM: a domain has exactly the asked number of routers (there it is an
average), so that the counts of the papers are met; latency follows from the positions in a plane,
in which stub domains lie around their transit router.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from topology.overlay import Overlay, Site, TopologyError, fibre_latency, overlay
from topology.shapes import ROUTERS_MAX, numbered

#: A domain that is still in parts after so many draws has too low an edge probability.
DRAWS_MAX = 10_000
#: A larger domain is no domain: its pairs are drawn one by one.
DOMAIN_MAX = 2000

_PLANE_KM = 4000.0


@dataclass(frozen=True, slots=True)
class TransitStub:
    """The parameters of the model; N = domains * transit * (1 + stubs * size)."""

    #: Transit domains.
    domains: int
    #: Routers of a transit domain.
    transit: int
    #: Stub domains at each transit router.
    stubs: int
    #: Routers of a stub domain.
    size: int
    #: Probability of a link between two transit domains, two routers of a transit domain, two
    #: routers of a stub domain.
    p_domains: float = 0.5
    p_transit: float = 0.6
    p_stub: float = 0.42
    extra_transit_stub: int = 0
    extra_stub_stub: int = 0

    @property
    def routers(self) -> int:
        """How many routers the network has."""
        return self.domains * self.transit * (1 + self.stubs * self.size)


#: The networks of the papers. Ji, Ge, Kurose, Towsley (their simulation section): 100 routers, 4
#: of them transit in one domain, 12 stub domains, hence 8 routers each. Chand, Felber 2003,
#: section 6.1: 64 routers, nothing more; three stub domains of five at each of four transit
#: routers are ours (24 consumers make two to a stub domain). Kulik 2004, section 4.1.1: 1200
#: routers, nothing more; four domains of 12 with the stub domains of Ji et al. are ours. No
#: paper gives edge probabilities: all of them are ours.
PRESETS = {
    64: TransitStub(domains=1, transit=4, stubs=3, size=5),
    100: TransitStub(domains=1, transit=4, stubs=3, size=8),
    1200: TransitStub(domains=4, transit=12, stubs=3, size=8),
}


def transit_stub(parameters: TransitStub | int, seed: int) -> Overlay:
    """A transit-stub network from its parameters, or that of a paper from its size."""
    if isinstance(parameters, int):
        if parameters not in PRESETS:
            known = ", ".join(map(str, sorted(PRESETS)))
            raise TopologyError(f"no paper has a transit-stub network of {parameters}: {known}")
        parameters = PRESETS[parameters]
    _check(parameters)
    return _Draft(parameters, random.Random(seed)).finish()


@dataclass(slots=True)
class _Draft:
    """A network while it is being drawn; every random choice is made in a fixed order."""

    model: TransitStub
    rng: random.Random
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    stub_domains: list[list[str]] = field(default_factory=list)

    def finish(self) -> Overlay:
        """Draw everything and put it together."""
        domains = self._transit_domains()
        for domain in domains:
            for router in domain:
                self._stub_domains(router)
        transit = [router for domain in domains for router in domain]
        self._extras(transit)
        made = [(a, b, self._latency(a, b)) for a, b in self.links]
        kinds = dict.fromkeys(transit, "transit")
        sites = [Site(name, kinds.get(name, "stub"), at) for name, at in self.places.items()]
        return overlay(made, sites).require_connected()

    def _transit_domains(self) -> list[list[str]]:
        model, rng = self.model, self.rng
        domains = [numbered(f"t{d}.", model.transit) for d in range(model.domains)]
        for d, domain in enumerate(domains):
            self._spread(domain, _on_circle(d, model.domains, _PLANE_KM), self._reach())
            self._join(domain, model.p_transit)
        for a, b in _connected(rng, len(domains), model.p_domains):
            self.links.append((rng.choice(domains[a]), rng.choice(domains[b])))
        return domains

    def _stub_domains(self, router: str) -> None:
        model, rng = self.model, self.rng
        turn = rng.random()
        for s in range(model.stubs):
            domain = numbered(f"s{router[1:]}.{s}.", model.size)
            spacing = 2 * self._reach() / math.sqrt(model.transit)
            east, north = _on_circle(s, model.stubs, 0.35 * spacing, turn)
            x, y = self.places[router]
            self._spread(domain, (x + east, y + north), 0.15 * spacing)
            self._join(domain, model.p_stub)
            self.links.append((router, rng.choice(domain)))
            self.stub_domains.append(domain)

    def _extras(self, transit: Sequence[str]) -> None:
        """Further links, each between two places that have none yet."""
        rng, domains = self.rng, self.stub_domains
        for kind in ["transit"] * self.model.extra_transit_stub + (
            ["stub"] * self.model.extra_stub_stub
        ):
            for _ in range(DRAWS_MAX):
                own = rng.choice(domains)
                far = transit if kind == "transit" else rng.choice(domains)
                pair = (rng.choice(far), rng.choice(own))
                if far is not own and pair not in self.links and pair[::-1] not in self.links:
                    break
            else:
                raise TopologyError(f"no place is left for another {kind}-stub link")
            self.links.append(pair)

    def _reach(self) -> float:
        """The radius of a transit domain, in kilometres."""
        return _PLANE_KM / (1 + math.sqrt(self.model.domains))

    def _spread(self, names: Sequence[str], centre: tuple[float, float], reach: float) -> None:
        """Place routers around a centre, each in a sector of its own."""
        for i, name in enumerate(names):
            far = reach * (0.4 + 0.6 * self.rng.random())
            x, y = _on_circle(i, len(names), far, 0.7 * self.rng.random() / len(names))
            self.places[name] = (round(centre[0] + x, 3), round(centre[1] + y, 3))

    def _join(self, names: Sequence[str], probability: float) -> None:
        pairs = _connected(self.rng, len(names), probability)
        self.links += [(names[a], names[b]) for a, b in pairs]

    def _latency(self, a: str, b: str) -> float:
        return fibre_latency(math.dist(self.places[a], self.places[b]))


def _connected(rng: random.Random, count: int, probability: float) -> list[tuple[int, int]]:
    """A random graph in which every pair is joined with a probability, drawn until connected."""
    pairs = [(a, b) for b in range(count) for a in range(b)]
    for _ in range(DRAWS_MAX):
        chosen = [pair for pair in pairs if rng.random() < probability]
        if _joins_all(chosen, count):
            return chosen
    raise TopologyError(
        f"{count} routers joined with probability {probability} stay in parts; raise it"
    )


def _joins_all(pairs: Sequence[tuple[int, int]], count: int) -> bool:
    owner = list(range(count))

    def find(x: int) -> int:
        while owner[x] != x:
            owner[x] = x = owner[owner[x]]
        return x

    for a, b in pairs:
        owner[find(a)] = find(b)
    return len({find(x) for x in range(count)}) == 1


def _on_circle(index: int, count: int, radius: float, turn: float = 0.0) -> tuple[float, float]:
    if count == 1 and not turn:
        return 0.0, 0.0
    angle = 2 * math.pi * (index / count + turn)
    return radius * math.cos(angle), radius * math.sin(angle)


def _check(model: TransitStub) -> None:
    for name in ("domains", "transit"):
        if not 1 <= getattr(model, name) <= DOMAIN_MAX:
            raise TopologyError(f"{name} must be 1 to {DOMAIN_MAX}, not {getattr(model, name)}")
    for name in ("stubs", "size"):
        if not 0 <= getattr(model, name) <= DOMAIN_MAX:
            raise TopologyError(f"{name} must be 0 to {DOMAIN_MAX}, not {getattr(model, name)}")
    for name in ("p_domains", "p_transit", "p_stub"):
        if not 0 < getattr(model, name) <= 1:
            raise TopologyError(f"{name} must be above 0 and at most 1, not {getattr(model, name)}")
    if (model.stubs == 0) != (model.size == 0):
        raise TopologyError("stubs and size are both 0, or neither is")
    if (model.extra_transit_stub or model.extra_stub_stub) and not model.stubs:
        raise TopologyError("extra links need stub domains")
    if model.routers > ROUTERS_MAX:
        raise TopologyError(f"{model.routers} routers are too many")
