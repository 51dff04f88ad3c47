"""When a router or link is lost for good: other trees for everybody who is left.

Ray restarts a router within seconds, and sockets reconnect by themselves; only what stays away
longer than that counts as lost. Then the trees are computed on what is left (Kulik 2004, section
3.4.1), and every router whose table differs is told. Whoever comes back is taken in again. Routers
are compared with the table that they should have at every look, so one that was restarted with an
old table is put right as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping

from actors.wiring import Pulses
from topology.overlay import CutOffError, Overlay
from topology.paths import NextHops, next_hops


class Losses:
    """Remembers since when routers and links have been away."""

    def __init__(self, overlay: Overlay, patience: float) -> None:
        self._overlay = overlay
        self._patience = patience
        self._since: dict[str | tuple[str, str], float] = {}

    def see(self, pulses: Pulses, now: float) -> None:
        """Take in a look at all routers."""
        for name in self._overlay.routers:
            self._note(name, pulses.get(name) is None, now)
        for link in self._overlay.links:
            self._note(link.ends, _is_down(pulses, *link.ends), now)

    def _note(self, what: str | tuple[str, str], away: bool, now: float) -> None:
        if away:
            self._since.setdefault(what, now)
        else:
            self._since.pop(what, None)

    def lost(self, now: float) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Routers and links that have been away for too long."""
        gone = {what for what, since in self._since.items() if now - since >= self._patience}
        routers = frozenset(what for what in gone if isinstance(what, str))
        links = frozenset(what for what in gone if not isinstance(what, str))
        return routers, links


def _is_down(pulses: Pulses, a: str, b: str) -> bool:
    """A link is down if both its ends are there and one of them says so."""
    one, other = pulses.get(a), pulses.get(b)
    if one is None or other is None:
        return False
    return not (one.links.get(b, False) and other.links.get(a, False))


def tables(
    overlay: Overlay,
    roots: Collection[str],
    routers: Collection[str],
    links: Collection[tuple[str, str]],
) -> NextHops:
    """The next hops of whoever is left, as far as they can be reached."""
    left = overlay.without(routers, [link for link in links if not set(link) & set(routers)])
    table: NextHops = {name: {} for name in left.routers}
    for root in sorted(set(roots) & set(left.routers)):
        for name, hops in _towards(left, root).items():
            table[name].update(hops)
    return table


def _towards(left: Overlay, root: str) -> NextHops:
    try:
        return next_hops(left, [root])
    except CutOffError as error:
        return next_hops(left.without(error.routers), [root])


class Supervisor:
    """A thread that looks at all routers every so often."""

    def __init__(
        self,
        overlay: Overlay,
        roots: Collection[str],
        look: Callable[[], Pulses],
        reroute: Callable[[str, Mapping[str, str]], None],
        *,
        patience: float = 10.0,
        period: float = 1.0,
    ) -> None:
        self._overlay, self._roots = overlay, tuple(roots)
        self._look, self._reroute = look, reroute
        self._period = period
        self._losses = Losses(overlay, patience)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="f3 supervisor", daemon=True)
        self.lost_routers: frozenset[str] = frozenset()
        self.lost_links: frozenset[tuple[str, str]] = frozenset()
        #: How often a router was told of another table; and what has ended the thread, if anything.
        self.reroutes = 0
        self.failure: BaseException | None = None

    def start(self) -> Supervisor:
        """Begin; returns at once."""
        self._thread.start()
        return self

    def stop(self, timeout: float = 10.0) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._stopped.wait(self._period):
                self._check(self._look(), time.monotonic())
        except BaseException as error:
            self.failure = error
            raise

    def _check(self, pulses: Pulses, now: float) -> None:
        self._losses.see(pulses, now)
        self.lost_routers, self.lost_links = self._losses.lost(now)
        wanted = tables(self._overlay, self._roots, self.lost_routers, self.lost_links)
        for name in sorted(wanted):
            pulse = pulses.get(name)
            if pulse is not None and _differs(pulse.next_hop, wanted[name]):
                self.reroutes += 1
                self._reroute(name, {**pulse.next_hop, **wanted[name]})


def _differs(has: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """A way that no longer leads anywhere may stay: there is no better one."""
    return any(has.get(root) != hop for root, hop in wanted.items())
