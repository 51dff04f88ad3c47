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
    found: list[dict] = []

    def answers() -> bool:
        status = cluster.status()["routers"][router]
        found.extend([status] if status else [])
        return bool(found)

    until(answers, f"an answer from {router}")
    os.kill(found[0]["process"]["pid"], signal.SIGKILL)
    return found[0]["incarnation"]


def recovered(cluster, router: str, incarnation: int) -> bool:
    """Whether a killed router lives again with all its links."""
    status = cluster.status()["routers"]
    one = status[router]
    if one is None or one["incarnation"] <= incarnation:
        return False
    around = [status[name] for name in cluster.overlay.neighbors[router]]
    return all(_is_up(one, n) for n in cluster.overlay.neighbors[router]) and all(
        other is not None and _is_up(other, router) for other in around
    )


def _is_up(status: dict, neighbor: str) -> bool:
    return neighbor in status["links"] and status["links"][neighbor]["up"]
