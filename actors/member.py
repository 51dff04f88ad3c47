"""What makes a member of the overlay: the plan from which a host is built, and built again.

A plan is plain data, so that it reaches the process that runs the member, survives its restarts
and can be shown. Every life of a member has a greater incarnation number than the last.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from actors.host import HostOptions, Observer, RouterHost
from actors.security import Keys
from routing.api import Config, Router, View
from routing.registry import protocol
from routing.store import Store

#: The longest body that a client may publish, in bytes.
BODY_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """A member: its name, its protocol and its way to every rendezvous point."""

    address: str
    protocol: str = "f3"
    next_hop: Mapping[str, str] = field(default_factory=dict)
    config: Config = field(default_factory=Config)
    options: HostOptions = field(default_factory=HostOptions)
    keys: Keys | None = None

    def host(
        self,
        incarnation: int,
        open_store: Callable[[], Store] | None = None,
        observe: Observer | None = None,
    ) -> RouterHost:
        """A host for one life of the member; it opens its store in its own thread."""
        kind = protocol(self.protocol)

        def make() -> Router:
            view = View(
                neighbors=(),  # hello goes out on each link as it comes up
                next_hop=dict(self.next_hop),
                rng=random.Random(f"{self.address} {incarnation}"),  # noqa: S311
                incarnation=incarnation,
                config=self.config,
                store=None if open_store is None else open_store(),
            )
            return kind(self.address, view)

        return RouterHost(self.address, make, self.options, self.keys, observe)
