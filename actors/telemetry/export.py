"""Export by OTLP/HTTP: a thread that never holds up whoever makes the spans.

Spans wait in a bounded queue; what finds it full, or is refused by the collector, is dropped and
counted. OpenTelemetry's exporters are imported by the thread when there is something to export,
so that a router that is not traced never loads them. A collector that is away is reported once,
whatever was to go there; one that has no place for metrics (Jaeger has none) is not sent any.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from actors.telemetry.spans import Span

_log = logging.getLogger("f3")

#: Spans that wait to be exported, and that go at once.
QUEUE_MAX = 8192
_AT_ONCE = 512
_PERIOD = 1.0
#: Seconds for one attempt; and for the last one when a host closes.
_TIMEOUT = 2.0
_CLOSE_SECONDS = 1.5

Snapshot = Callable[[], dict[str, Any]]
"""A host's status, for its metrics."""


class Exporter:
    """One host's way to a collector."""

    def __init__(self, service: str, endpoint: str) -> None:
        self._service, self._endpoint = service, endpoint.rstrip("/")
        self._queue: deque[Span] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._snapshot: Snapshot | None = None
        self._period = 0.0
        self._otlp: Any = None
        self.exported = 0
        self.dropped = 0
        #: Whether metrics go out, and when next; and per signal that does not, why.
        self._metrics_wanted, self._due = True, 0.0
        self._troubles: dict[str, str] = {}

    @property
    def trouble(self) -> str:
        """Why something does not get through; empty where all does."""
        return next(iter(dict(self._troubles).values()), "")

    def offer(self, span: Span) -> None:
        """Queue a span; never waits."""
        if len(self._queue) >= QUEUE_MAX:
            self.dropped += 1
            return
        self._queue.append(span)
        if self._thread is None:
            self._start()
        if len(self._queue) >= _AT_ONCE:
            self._wake.set()

    def watch(self, snapshot: Snapshot, period: float) -> None:
        """Export metrics every so often, from now on."""
        self._snapshot, self._period = snapshot, period
        self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                name = f"f3 export {self._service}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def status(self) -> dict[str, Any]:
        """What became of the spans."""
        return {
            "exported": self.exported,
            "dropped": self.dropped,
            "waiting": len(self._queue),
            "trouble": self.trouble,
            "metrics": self._metrics_wanted,
        }

    def close(self) -> None:
        """Try once more to export what is left, for a moment only."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
            if self._thread.is_alive() and self._otlp is not None:
                self._otlp.shutdown()

    # -- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping or self._queue:
            if not self._stopping:
                self._wake.wait(_PERIOD)
            self._wake.clear()
            while self._queue and self._export_some():
                pass
            wanted = self._snapshot is not None and self._metrics_wanted and not self._stopping
            if wanted and time.monotonic() >= self._due:
                self._due = time.monotonic() + self._period
                self._export_metrics()
            if self._stopping and self.trouble:
                break
        self._shut()

    def _export_some(self) -> bool:
        """One request; false if the collector does not take it."""
        some = [self._queue.popleft() for _ in range(min(_AT_ONCE, len(self._queue)))]
        taken = self._try("spans", lambda: self._wire().spans(some))
        if taken:
            self.exported += len(some)
        else:
            self.dropped += len(some)
        return taken

    def _export_metrics(self) -> None:
        assert self._snapshot is not None
        try:
            status = self._snapshot()
        except (RuntimeError, OSError, TimeoutError):
            return  # the host is about to end

        def send() -> bool:
            wire = self._wire()
            taken: bool = wire.metrics(status)
            self._metrics_wanted = taken or wire.takes_metrics()
            return taken or not self._metrics_wanted

        self._try("metrics", send)

    def _wire(self) -> Any:
        if self._otlp is None:
            from actors.telemetry.otlp import Otlp

            self._otlp = Otlp(self._service, self._endpoint, _TIMEOUT)
        return self._otlp

    def _try(self, signal: str, send: Callable[[], bool]) -> bool:
        """Whether the collector took it; what it does not take is reported once."""
        try:
            taken, why = send(), "it refuses what is sent, or does not answer"
        except Exception as error:
            taken, why = False, f"{type(error).__name__}: {error}"[:200]
        if taken:
            self._troubles.pop(signal, None)
            if self._troubles:
                self._due = 0.0  # it is back: what else was to go there need not wait
            return True
        trouble = f"no export of {signal} to {self._endpoint}: {why}"
        if not self._troubles:
            _log.warning("%s: %s", self._service, trouble)
        self._troubles.setdefault(signal, trouble)
        return False

    def _shut(self) -> None:
        self.dropped += len(self._queue)
        self._queue.clear()
        if self._otlp is not None:
            self._otlp.shutdown()
