"""Hosts of clients: linked to an edge router, and to another one when that is lost for good.

A client host is itself a router, with local clients and a single neighbour. While its edge router
is away it waits, as any neighbour does; after `patience` it looks at all routers, chooses one that
still reaches the rendezvous points, links up with it, and its subscriptions follow as those of a
router do when trees change. It stays there: where it came from may be lost again.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Self

from actors.host import RouterHost
from actors.member import Plan
from actors.wiring import Ask, Pulses, Wiring
from routing.api import Effect, Reroute

_log = logging.getLogger("f3")
_CALL_SECONDS = 5.0
_LOOK_AGAIN = 1.0


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """How to find another edge router."""

    #: Every router's sign of life; UnreachableError.
    look: Callable[[], Pulses]
    ask: Callable[[str], Ask]
    #: Seconds to wait for one before another is looked for.
    patience: float


class ClientHost:
    """What hosts of clients have in common: a router of their own, and its link; a base class."""

    def __init__(
        self, plan: Plan, edge: str, ask: Ask, incarnation: int, elsewhere: Elsewhere | None
    ) -> None:
        self.plan = plan
        self.host = plan.host(incarnation, observe=self._observe)
        self._wiring = EdgeWiring(self.host, edge, ask, tuple(plan.next_hop), elsewhere)

    @property
    def edge(self) -> str:
        """The edge router at present."""
        return self._wiring.edge

    def start(self, timeout: float = 30.0) -> Self:
        """Link up with the edge router."""
        self.host.start()
        self._wiring.start()
        try:
            self._wiring.wait(timeout)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Leave."""
        self._wiring.stop()
        self.host.stop()

    def _observe(self, effect: Effect) -> None:
        """What the router has to say to local clients; called in the host's thread."""
        raise NotImplementedError


class EdgeWiring(Wiring):
    """Keeps a host linked to one edge router at a time."""

    def __init__(
        self,
        host: RouterHost,
        edge: str,
        ask: Ask,
        namespaces: Collection[str],
        elsewhere: Elsewhere | None,
    ) -> None:
        super().__init__(host, {edge: ask})
        self.edge = edge
        self._chosen = edge
        self._namespaces = namespaces
        self._elsewhere = elsewhere
        #: When to look for another router, while there is no link.
        self._look_at: float | None = None

    def _attend(self, down: list[str]) -> None:
        now = time.monotonic()
        if not down:
            self._look_at = None
            if self._chosen != self.edge:
                self._move()
        elif self._elsewhere is not None:
            if self._look_at is None:
                self._look_at = now + self._elsewhere.patience
            elif now >= self._look_at:
                self._look_at = now + _LOOK_AGAIN
                self._choose(self._elsewhere)

    def _choose(self, elsewhere: Elsewhere) -> None:
        pulses = elsewhere.look()
        found = choose(pulses, self._chosen, self._namespaces, self._host.address)
        if found is not None:
            self._chosen = found
            self._neighbors = {found: elsewhere.ask(found)}
            self.trouble.clear()
            self._look_at = None

    def _move(self) -> None:
        """The other router is linked: subscriptions go there, and the old link goes."""
        new = self._chosen
        reroute = Reroute(dict.fromkeys(self._namespaces, new))
        self._host.event(reroute).result(_CALL_SECONDS)
        for name in self._host.links_up():
            if name != new:
                self._host.detach(name)
        _log.warning(
            "%r has moved from %r, which is lost, to %r", self._host.address, self.edge, new
        )
        self.edge = new


def choose(pulses: Pulses, lost: str, namespaces: Collection[str], client: str) -> str | None:
    """The router that reaches most rendezvous points, a neighbour of the lost one if possible.

    Of equals the client's name decides, so that many clients spread. None if nobody reaches any.
    """

    def rank(name: str) -> tuple[int, bool, int]:
        pulse = pulses[name]
        beside = pulse is not None and lost in pulse.links
        reached = sum(reaches(pulses, name, namespace) for namespace in namespaces)
        return reached, beside, zlib.crc32(f"{client} {name}".encode())

    ranked = sorted((rank(name), name) for name in pulses if name != lost)
    return ranked[-1][1] if ranked and ranked[-1][0][0] else None


def reaches(pulses: Pulses, router: str, namespace: str) -> bool:
    """Whether a router's way to a rendezvous point leads there, over links that are up."""
    at = router
    for _ in pulses:
        pulse = pulses.get(at)
        if pulse is None or at == namespace:
            return pulse is not None
        at = pulse.next_hop.get(namespace, "")
        if not pulse.links.get(at, False):
            return False
    return False
