"""A host's status as OpenTelemetry metrics: gauges, sums and histograms of all its traffic."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)

from actors.telemetry.names import DROPS

#: Upper ends of the buckets of durations, in microseconds: 10 us to 10 s.
_BOUNDS = [float(step * 10**power) for power in range(1, 7) for step in (1, 2, 5)] + [1e7]
_CUMULATIVE = AggregationTemporality.CUMULATIVE

#: Per link: the key in its status, the name and the unit of its metric.
_LINK_GAUGES = (
    ("queued_messages", "messaging.f3.queue.size", "{message}"),
    ("queued_bytes", "messaging.f3.queue.bytes", "By"),
    ("capacity_messages", "messaging.f3.queue.capacity", "{message}"),
    ("capacity_bytes", "messaging.f3.queue.capacity_bytes", "By"),
)
_LINK_SUMS = (
    ("messages_sent", "messaging.f3.link.sent", "{message}"),
    ("messages_received", "messaging.f3.link.received", "{message}"),
    ("bytes_sent", "messaging.f3.link.sent_bytes", "By"),
    ("refresh_bytes", "messaging.f3.link.refresh_bytes", "By"),
)
_HISTOGRAMS = (
    ("hop_us", "messaging.f3.hop.duration", "us"),
    ("wait_us", "messaging.f3.queue.wait", "us"),
    ("batch_size", "messaging.f3.batch.size", "{notification}"),
)


def metrics_of(status: Mapping[str, Any]) -> list[Metric]:
    """Everything worth a curve in a host's status."""
    now_ns = time.time_ns()
    return [*_of_links(status["links"], now_ns), *_of_host(status, now_ns)]


def _of_links(links: Mapping[str, Mapping[str, Any]], now_ns: int) -> Iterator[Metric]:
    for key, name, unit in _LINK_GAUGES:
        points = [_point(link.get(key, 0), now_ns, {"link": far}) for far, link in links.items()]
        yield Metric(name, "", unit, Gauge(points))
    for key, name, unit in _LINK_SUMS:
        points = [_point(link.get(key, 0), now_ns, {"link": far}) for far, link in links.items()]
        yield Metric(name, "", unit, Sum(points, _CUMULATIVE, is_monotonic=True))
    drops = [
        _point(link.get(reason, 0), now_ns, {"link": far, "reason": reason})
        for far, link in links.items()
        for reason in DROPS
    ]
    dropped = Sum(drops, _CUMULATIVE, is_monotonic=True)
    yield Metric("messaging.f3.link.dropped", "", "{message}", dropped)


def _of_host(status: Mapping[str, Any], now_ns: int) -> Iterator[Metric]:
    sizes = dict(status["state"])
    occupied = [_point(sizes.pop("bytes", 0), now_ns, {})]
    yield Metric("messaging.f3.table.bytes", "", "By", Gauge(occupied))
    table = [_point(count, now_ns, {"kind": kind}) for kind, count in sizes.items()]
    yield Metric("messaging.f3.table.size", "", "{entry}", Gauge(table))
    unroutable = [_point(status["counts"].get("messages_unroutable", 0), now_ns, {})]
    lost = Sum(unroutable, _CUMULATIVE, is_monotonic=True)
    yield Metric("messaging.f3.unroutable", "", "{message}", lost)
    memory = [_point(status["process"]["rss_mb"], now_ns, {})]
    yield Metric("messaging.f3.process.memory", "", "MBy", Gauge(memory))
    reports = [_point(n, now_ns, {"report": name}) for name, n in status["reports"].items()]
    yield Metric("messaging.f3.reports", "", "1", Sum(reports, _CUMULATIVE, is_monotonic=True))
    told = status["telemetry"]
    dropped = [_point(told.get("dropped", 0), now_ns, {})]
    spans = Sum(dropped, _CUMULATIVE, is_monotonic=True)
    yield Metric("messaging.f3.spans.dropped", "", "{span}", spans)
    restarts = [_point(status.get("restarts", 0), now_ns, {})]
    yield Metric("messaging.f3.restarts", "", "1", Sum(restarts, _CUMULATIVE, is_monotonic=True))
    for key, name, unit in _HISTOGRAMS:
        point = _histogram(status["buckets"][key], now_ns)
        yield Metric(name, "", unit, Histogram([point], _CUMULATIVE))


def _point(value: float, now_ns: int, attributes: dict[str, str]) -> NumberDataPoint:
    return NumberDataPoint(attributes, 0, now_ns, value)


def _histogram(buckets: Mapping[float, int], now_ns: int) -> HistogramDataPoint:
    """A host's fine buckets (by their middle) in the few that everybody's tools understand."""
    counts = [0] * (len(_BOUNDS) + 1)
    for middle, count in buckets.items():
        counts[bisect_left(_BOUNDS, middle)] += count
    total = sum(middle * count for middle, count in buckets.items())
    low, high = min(buckets, default=0.0), max(buckets, default=0.0)
    return HistogramDataPoint({}, 0, now_ns, sum(counts), total, counts, _BOUNDS, low, high)
