"""A collector of our own: standard OTLP/HTTP in, a small JSON interface and one page out.

It is what a first run shows its traces in, where no OTEL_EXPORTER_OTLP_ENDPOINT is set. Everything
is in memory and bounded: the oldest traces go first, and how many went is told.

    POST /v1/traces, /v1/metrics        OTLP, protobuf or JSON, plain or gzip
    GET  /api/traces?service=&operation=&min_us=&limit=    summaries, newest first
    GET  /api/traces/<trace id>         the spans of one trace, in the order of time
    GET  /api/services, /api/metrics, /api/status
    GET  /                              the page
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

#: What a collector keeps by default.
SPANS_MAX = 100_000
_METRICS_MAX = 20_000

Row = dict[str, Any]


class Collector:
    """Spans by trace, and the latest value of every metric; any thread may call it."""

    def __init__(self, spans_max: int = SPANS_MAX) -> None:
        self._lock = threading.Lock()
        self._spans_max = spans_max
        self._traces: OrderedDict[str, list[Row]] = OrderedDict()
        self._metrics: dict[tuple[str, str, str], Row] = {}
        self.spans = 0
        self.received = 0
        #: Spans that had to go for newer ones; and requests that made no sense.
        self.evicted = 0
        self.refused = 0

    def add_spans(self, rows: Iterable[Row]) -> None:
        """Keep spans."""
        with self._lock:
            for row in rows:
                self._traces.setdefault(row["trace"], []).append(row)
                self.spans += 1
                self.received += 1
            while self.spans > self._spans_max:
                _, gone = self._traces.popitem(last=False)
                self.spans -= len(gone)
                self.evicted += len(gone)

    def add_metrics(self, rows: Iterable[Row]) -> None:
        """Keep the latest value of each metric."""
        with self._lock:
            for row in rows:
                key = (row["service"], row["name"], str(sorted(row["attributes"].items())))
                if key in self._metrics or len(self._metrics) < _METRICS_MAX:
                    self._metrics[key] = row

    # -- questions -----------------------------------------------------------------------

    def services(self) -> list[str]:
        """Whoever has sent a span."""
        with self._lock:
            return sorted({row["service"] for rows in self._traces.values() for row in rows})

    def trace(self, trace: str) -> list[Row]:
        """The spans of a trace, in the order of time; empty if there is none."""
        with self._lock:
            rows = list(self._traces.get(trace, ()))
        return sorted(rows, key=lambda row: (row["start_ns"], row["end_ns"]))

    def search(
        self, service: str = "", operation: str = "", min_us: float = 0.0, limit: int = 100
    ) -> list[Row]:
        """Summaries of the newest traces that have such a span and last so long."""
        with self._lock:
            traces = [(trace, list(rows)) for trace, rows in reversed(self._traces.items())]
        found: list[Row] = []
        for trace, rows in traces:
            if len(found) >= limit:
                break
            summary = _summary(trace, rows)
            if summary["us"] >= min_us and any(_fits(row, service, operation) for row in rows):
                found.append(summary)
        return found

    def metrics(self) -> list[Row]:
        """The latest values."""
        with self._lock:
            return [self._metrics[key] for key in sorted(self._metrics)]

    def status(self) -> Row:
        """How much is here, and what is not any more."""
        with self._lock:
            return {
                "traces": len(self._traces),
                "spans": self.spans,
                "received": self.received,
                "evicted": self.evicted,
                "refused": self.refused,
                "dropped": self._dropped(),
            }

    def _dropped(self) -> float:
        """Spans that hosts could not export, as far as they say."""
        name = "messaging.f3.spans.dropped"
        return float(sum(r["value"] for r in self._metrics.values() if r["name"] == name))


def _fits(row: Row, service: str, operation: str) -> bool:
    return (not service or row["service"] == service) and operation in row["name"]


def _summary(trace: str, rows: list[Row]) -> Row:
    first = min(rows, key=lambda row: (bool(row["parent"]), row["start_ns"]))
    start = min(row["start_ns"] for row in rows)
    end = max(row["end_ns"] for row in rows)
    return {
        "trace": trace,
        "name": first["name"],
        "service": first["service"],
        "start_ns": start,
        "us": (end - start) / 1000,
        "spans": len(rows),
        "services": len({row["service"] for row in rows}),
        "errors": sum(bool(row["error"]) for row in rows),
    }
