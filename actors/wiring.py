"""Keeping links up: while one is down, ask the neighbour where it listens now.

Both ends of a link do this, routers and client hosts alike, so it does not matter which of them
was restarted, moved to another machine or came first. The question is a management call (with
Ray, a method of the neighbour's actor): it hands over this side's address and key, and brings
back the other's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import NamedTuple

from actors.host import Attachment, HostStoppedError, RouterHost
from actors.link import Kind

Ask = Callable[[str, Attachment], Attachment]
"""(name of this side, where it listens) -> where the neighbour listens; UnreachableError."""


class Pulse(NamedTuple):
    """A router's sign of life: what supervisors and clients in search of one want to know."""

    links: dict[str, bool]
    next_hop: dict[str, str]
    #: Why neighbours cannot be linked to, where that is known.
    trouble: dict[str, str]


Pulses = Mapping[str, Pulse | None]
"""Per router, its sign of life, or None if it gave none."""

#: Between two attempts, and between two looks at links that are all up.
_AGAIN, _LOOK = 0.1, 1.0


class UnreachableError(ConnectionError):
    """A neighbour does not answer (yet)."""


class Wiring:
    """A thread that keeps a host linked to its neighbours."""

    def __init__(self, host: RouterHost, neighbors: Mapping[str, Ask]) -> None:
        self._host = host
        self._neighbors = dict(neighbors)
        self._stopped = threading.Event()
        self._ask_at = 0.0
        #: Per neighbour that could not be asked, why.
        self.trouble: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="f3 wiring", daemon=True)

    def start(self, grace: float = 0.0) -> Wiring:
        """Begin, if that has not happened; returns at once. Nobody is asked during `grace`."""
        if self._thread.ident is None:
            self._ask_at = time.monotonic() + grace
            self._thread.start()
        return self

    def stop(self, timeout: float = 10.0) -> None:
        """End the thread; links stay as they are."""
        self._stopped.set()
        self._host.links_changed.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def wait(self, timeout: float) -> None:
        """Wait until every link is up; TimeoutError that says which is not, and why."""
        deadline = time.monotonic() + timeout
        while down := self._down():
            if time.monotonic() > deadline or not self._host.running:
                why = "; ".join(f"{name}: {self.trouble.get(name, 'no answer')}" for name in down)
                raise TimeoutError(
                    f"{self._host.address!r} is not linked after {timeout} s ({why})"
                )
            self._stopped.wait(0.002)

    def _down(self) -> list[str]:
        up = self._host.links_up()
        return [name for name in self._neighbors if not up.get(name, False)]

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._host.links_changed.clear()
            down = self._down()
            if time.monotonic() >= self._ask_at:
                for name in down:
                    self._try(name, partial(self._link, name))
            self._try("", partial(self._attend, down))
            if down:
                self._stopped.wait(_AGAIN)
            else:
                self._host.links_changed.wait(_LOOK)

    def _try(self, name: str, step: Callable[[], None]) -> None:
        try:
            step()
            self.trouble.pop(name, None)
        except (UnreachableError, OSError, HostStoppedError, FutureTimeoutError) as error:
            self.trouble[name] = str(error)

    def _attend(self, down: list[str]) -> None:
        """What else has to be done now that these links are down."""

    def _link(self, name: str) -> None:
        ask = self._neighbors[name]
        here = self._host.listen(name, Kind.ROUTER)
        if here.public:
            # Keys first: a socket that calls before its key is known is turned away, and is slow
            # to call again.
            there = ask(self._host.address, Attachment("", here.public))
            self._host.attach(name, there.endpoint, there.public, Kind.ROUTER)
        there = ask(self._host.address, here)
        self._host.attach(name, there.endpoint, there.public, Kind.ROUTER)
