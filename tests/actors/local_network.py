"""Routers on real links in threads of the test's own process: no Ray, no sleeping."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial

from actors.client import Client
from actors.edge import Elsewhere
from actors.host import Attachment, HostOptions, RouterHost
from actors.link import Kind
from actors.member import Plan
from actors.security import make_keys
from actors.wiring import Ask, Pulse, UnreachableError, Wiring
from routing.api import Config, InsertNode
from routing.store import Store
from topology.overlay import overlay
from topology.paths import next_hops

DEADLINE = 20.0


def until(
    condition: Callable[[], object], what: str = "condition", limit: float = DEADLINE
) -> None:
    """Wait for a condition, with a deadline."""
    pause = threading.Event()
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit} s: {what}"
        pause.wait(0.002)


class LocalNetwork:
    """A cluster without Ray: one thread a router, wired by direct calls."""

    incarnations = itertools.count(time.time_ns())

    def __init__(
        self,
        links: list[tuple[str, str]],
        roots: list[str],
        *,
        protocol: str = "f3",
        config: Config | None = None,
        options: HostOptions | None = None,
        secure: bool = False,
        slow_hosts: Kind = Kind.HOST,
        patience: float = DEADLINE,
    ) -> None:
        self.links, self.roots = links, roots
        self.secure, self.slow_hosts, self.patience = secure, slow_hosts, patience
        self.config = config or Config(period=0.2, lifetime=1.0, retry=0.3)
        self.options = options or HostOptions()
        self.protocol = protocol
        self.stores = {root: Store(window=self.config.window) for root in roots}
        self.hops = next_hops(overlay(links), roots)
        names = sorted({name for link in links for name in link} | set(roots))
        self.plans = {name: self.plan(name, self.hops.get(name, {})) for name in names}
        self.hosts: dict[str, RouterHost] = {}
        self.wirings: dict[str, Wiring] = {}
        self.clients: list[Client] = []
        for name in names:
            self.boot(name)
        self.wait()

    def plan(self, name: str, next_hop: dict[str, str]) -> Plan:
        keys = make_keys() if self.secure else None
        return Plan(name, self.protocol, next_hop, self.config, self.options, keys)

    def boot(self, name: str) -> None:
        """Start a router, the first time or again."""
        store = self.stores.get(name)
        open_store = None if store is None else (lambda: store)
        host = self.plans[name].host(next(self.incarnations), open_store)
        self.hosts[name] = host.start()
        beside = sorted({a if b == name else b for a, b in self.links if name in (a, b)})
        asks = {other: self.ask(other, Kind.ROUTER) for other in beside}
        self.wirings[name] = Wiring(host, asks).start()

    def kill(self, name: str) -> None:
        """Stop a router; it forgets everything but its store."""
        self.wirings[name].stop()
        self.hosts[name].stop()

    def ask(self, name: str, kind: Kind) -> Ask:
        def attach(caller: str, here: Attachment) -> Attachment:
            host = self.hosts.get(name)
            if host is None or not host.running:
                raise UnreachableError(f"{name} is down")
            return host.attach(caller, here.endpoint, here.public, kind)

        return attach

    def wait(self) -> None:
        """Wait until all links are up."""
        for wiring in self.wirings.values():
            wiring.wait(DEADLINE)

    def client(self, edge: str, name: str | None = None) -> Client:
        plan = self.plan(name or f"client-{len(self.clients)}", dict.fromkeys(self.roots, edge))
        ask = partial(self.ask, kind=self.slow_hosts)
        elsewhere = Elsewhere(self.look, ask, self.patience)
        made = Client(plan, edge, ask(edge), next(self.incarnations), elsewhere)
        self.clients.append(made.start(DEADLINE))
        return made

    def look(self) -> dict[str, Pulse | None]:
        """Every router's sign of life, as a supervisor would see it."""
        return {name: self._pulse(host) for name, host in self.hosts.items()}

    def _pulse(self, host: RouterHost) -> Pulse | None:
        if not host.running:
            return None
        view = host.router.view
        hops = host.submit(lambda: dict(view.next_hop)).result(DEADLINE)
        return Pulse(host.links_up(), hops, {})

    def insert(self, root: str, node: int, parents: tuple = (), children: tuple = ()) -> None:
        self.hosts[root].event(InsertNode(node, parents, children)).result(DEADLINE)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for wiring in self.wirings.values():
            wiring.stop()
        for host in self.hosts.values():
            host.stop()
        failures = [h.failure for h in (*self.hosts.values(), *(c.host for c in self.clients))]
        assert not any(failures), failures
