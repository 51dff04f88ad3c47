"""Protocols by name: a file in `routing/protocols/` registers what it defines."""

from __future__ import annotations

import importlib
import pkgutil

from routing.api import Router
from routing.errors import ProtocolError

_protocols: dict[str, type[Router]] = {}


def register(name: str, router: type[Router]) -> None:
    """Make a protocol known; called once, by the file that defines it."""
    if name in _protocols:
        raise ValueError(f"two protocols are called {name!r}")
    _protocols[name] = router


def protocols() -> dict[str, type[Router]]:
    """Every protocol by name, sorted."""
    import routing.protocols as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_protocols.items()))


def protocol(name: str) -> type[Router]:
    """One protocol; ProtocolError that lists the known ones if there is none of that name."""
    known = protocols()
    if name not in known:
        raise ProtocolError(f"unknown protocol {name!r} (known: {', '.join(known)})")
    return known[name]
