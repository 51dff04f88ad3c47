"""The front door: the public Python API and the `f3` command line.

    import f3

    with f3.Cluster(f3.topology("chain:4"), rendezvous=["r0"]) as cluster:
        ...

Names are looked up when first used, so that `import f3` costs nothing that is not needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.answers import RefusedError
    from actors.client import Client
    from actors.cluster import Cluster, ClusterError, Options
    from actors.connect import UnknownRouterError, connect
    from actors.host import HostOptions
    from actors.link import LinkError, LinkOptions
    from actors.publisher import Publisher
    from actors.subscriber import Subscriber
    from routing.api import Config, Notification, ProtocolError
    from topology.catalogue import load as topology
    from topology.overlay import Overlay, TopologyError, overlay

__all__ = [
    "Client",
    "Cluster",
    "ClusterError",
    "Config",
    "HostOptions",
    "LinkError",
    "LinkOptions",
    "Notification",
    "Options",
    "Overlay",
    "ProtocolError",
    "Publisher",
    "RefusedError",
    "Subscriber",
    "TopologyError",
    "UnknownRouterError",
    "connect",
    "overlay",
    "topology",
]

_HOMES = {
    "actors.answers": ("RefusedError",),
    "actors.client": ("Client",),
    "actors.cluster": ("Cluster", "ClusterError", "Options"),
    "actors.connect": ("UnknownRouterError", "connect"),
    "actors.host": ("HostOptions",),
    "actors.link": ("LinkError", "LinkOptions"),
    "actors.publisher": ("Publisher",),
    "actors.subscriber": ("Subscriber",),
    "routing.api": ("Config", "Notification", "ProtocolError"),
    "topology.overlay": ("Overlay", "TopologyError", "overlay"),
}
_FOUND = {name: (home, name) for home, names in _HOMES.items() for name in names}
_FOUND["topology"] = ("topology.catalogue", "load")


def __getattr__(name: str) -> Any:
    if name not in _FOUND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, original = _FOUND[name]
    return getattr(importlib.import_module(home), original)
