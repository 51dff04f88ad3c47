"""What the Ray tests share."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

DEADLINE = 60.0


def until(condition: Callable[[], object], what: str, limit: float = DEADLINE) -> float:
    """Wait for a condition, with a deadline; returns how long it took."""
    pause = threading.Event()
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + limit, f"not within {limit} s: {what}"
        pause.wait(0.02)
    return time.monotonic() - began


def sigkill(cluster, router: str) -> int:
    """Kill a router's process the hard way; returns its incarnation."""
    status = cluster.status()["routers"][router]
    os.kill(status["process"]["pid"], signal.SIGKILL)
    return status["incarnation"]


def recovered(cluster, router: str, incarnation: int) -> bool:
    """Whether a killed router lives again with all its links."""
    status = cluster.status()["routers"]
    one = status[router]
    if one is None or one["incarnation"] <= incarnation:
        return False
    around = [status[name] for name in cluster.overlay.neighbors[router]]
    return all(one["links"][n]["up"] for n in cluster.overlay.neighbors[router]) and all(
        other is not None and other["links"][router]["up"] for other in around
    )
