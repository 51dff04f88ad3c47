"""What is measured of a router or a broker: its rate when saturated, and its latency when not.

    source -> system under test -> ten sinks

The source publishes chunks of notifications as fast as they are taken, with a bounded number of
deliveries on their way, so that no system has to drop anything; the clock stops when the sinks
have the last delivery. Every sink's count is compared with what brute force says it is due
(`f3.bench.load`). Source and sinks share the machine with the system, hence its own processor
time per notification beside the rate. Latency is taken at 200 notifications a second, of every
delivery, from before it is sent until a sink has read it; a system that cannot do twice that
number has none.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from f3.bench.children import BenchError, Child, Tally, Usage
from f3.bench.load import NEIGHBORS, Counts, Load

#: Notifications in a chunk at most; less where a system makes many deliveries of one.
CHUNK = 1000
_CHUNK_DELIVERIES = CHUNK * NEIGHBORS
#: Chunks on their way at most.
_WINDOW = 20
_LATENCY_RATE = 200
_DRAIN_SECONDS = 60.0
_PAUSE = 0.0002

Row = dict[str, Any]


class System(ABC):
    """A router or a broker, started, with its sinks connected."""

    name: str
    encoding: str
    load: Load
    tally: Tally
    sinks: Child
    usage: Usage

    @property
    @abstractmethod
    def filters(self) -> int:
        """How many subscriptions the sinks make."""

    @abstractmethod
    def expected(self) -> Counts:
        """Per sink and notification, how many deliveries there must be."""

    @abstractmethod
    def subscribe(self) -> None:
        """Make all subscriptions; returns when they are in force."""

    @abstractmethod
    def prepare(self, chunk: int) -> None:
        """Have the notifications ready in chunks of this size."""

    @abstractmethod
    def send(self, chunk: int) -> None:
        """Publish a chunk."""

    @abstractmethod
    def send_stamped(self, notification: int) -> None:
        """Publish one notification with a body that says when."""

    @abstractmethod
    def close(self) -> None:
        """End all that was started."""

    def received(self) -> list[int]:
        """Deliveries so far, per sink."""
        return list(self.tally.counts[:NEIGHBORS])

    def look_after(self) -> None:  # noqa: B027 (most have nothing to do)
        """Whatever must go on while the source waits."""

    def details(self) -> Row:
        """What else there is to tell."""
        return {}

    def check(self) -> None:  # noqa: B027
        """BenchError if something else than counts has gone wrong."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One saturated run."""

    notifications: int
    deliveries: int
    seconds: float
    cpu_s: float


def measure(start: Callable[[], System], seconds: float, repeat: int) -> Row:
    """Start a system, take every figure, and end it again."""
    system = start()
    try:
        return Measurement(system).run(seconds, repeat)
    finally:
        system.close()


class Measurement:
    """One system under one load."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._expected = system.expected()
        per_notification = float(self._expected.sum(axis=0).mean())
        self._chunk = max(1, min(CHUNK, int(_CHUNK_DELIVERIES / per_notification)))
        self._chunks = int(self._expected.shape[1]) // self._chunk
        if not self._chunks:
            raise BenchError("there are fewer notifications than one chunk has")
        used = self._expected[:, : self._chunks * self._chunk]
        self._by_chunk = used.reshape(NEIGHBORS, self._chunks, self._chunk).sum(axis=2)

    def run(self, seconds: float, repeat: int) -> Row:
        """Every figure."""
        system = self._system
        began, cpu = time.perf_counter(), system.usage.cpu_s()
        system.subscribe()
        subscribed, cpu = time.perf_counter() - began, system.usage.cpu_s() - cpu
        system.prepare(self._chunk)
        self._saturate(min(0.5, seconds))
        rates = [self._saturate(seconds) for _ in range(repeat)]
        rss = system.usage.rss_bytes()
        latency = self._latency(rates, seconds)
        system.check()
        return {
            **self._about(rates),
            "rss_bytes": rss,
            "latency_us": latency,
            "subscribe_s": round(subscribed, 3),
            "subscribe_cpu_s": round(cpu, 3),
            **system.details(),
        }

    def _about(self, rates: list[Rate]) -> Row:
        load, system = self._system.load, self._system
        notifications = sum(rate.notifications for rate in rates)
        deliveries = sum(rate.deliveries for rate in rates)
        by_rate = sorted(rate.notifications / rate.seconds for rate in rates)
        return {
            "system": system.name,
            "encoding": system.encoding,
            "scenario": load.scenario.name,
            "subscribers": load.subscribers,
            "filters": system.filters,
            "notifications_per_s": round(median(by_rate)),
            "notifications_per_s_range": [round(by_rate[0]), round(by_rate[-1])],
            "deliveries_per_s": round(median(rate.deliveries / rate.seconds for rate in rates)),
            "deliveries_per_notification": round(deliveries / notifications, 3),
            "ideal_per_notification": round(float(load.due.sum(axis=0).mean()), 3),
            "duplicates_per_notification": round(
                float((self._expected - load.due).sum(axis=0).mean()), 3
            ),
            "cpu_us_per_notification": round(
                median(1e6 * rate.cpu_s / rate.notifications for rate in rates), 3
            ),
        }

    # -- saturated -----------------------------------------------------------------------

    def _saturate(self, seconds: float) -> Rate:
        system = self._system
        before, cpu = system.received(), system.usage.cpu_s()
        base = sum(before)
        due = np.concatenate(([0], np.cumsum(self._by_chunk.sum(axis=0))))
        began = time.monotonic_ns()
        sent = done = 0
        while time.monotonic_ns() - began < 1e9 * seconds or sent < _WINDOW:
            system.send(sent % self._chunks)
            sent += 1
            deadline = time.monotonic() + _DRAIN_SECONDS
            while sent - done >= _WINDOW:
                done = self._done(sum(system.received()) - base, due)
                self._pause(sent - done >= _WINDOW, deadline)
        self._drain(before, sent)
        elapsed = (int(system.tally.counts[NEIGHBORS]) - began) / 1e9
        deliveries = int(self._due_after(sent).sum())
        return Rate(sent * self._chunk, deliveries, elapsed, system.usage.cpu_s() - cpu)

    def _done(self, delivered: int, due: Counts) -> int:
        """How many chunks have arrived, going by the number of deliveries."""
        passes, rest = divmod(delivered, int(due[-1]))
        arrived = int(np.searchsorted(due, rest, side="right")) - 1
        return passes * self._chunks + arrived

    def _pause(self, waiting: bool, deadline: float) -> None:
        self._system.look_after()
        if waiting:
            if time.monotonic() > deadline:
                raise BenchError(f"{self._system.name} stands still: {self._system.received()}")
            time.sleep(_PAUSE)

    def _due_after(self, chunks: int) -> Counts:
        passes, rest = divmod(chunks, self._chunks)
        total = passes * self._by_chunk.sum(axis=1) + self._by_chunk[:, :rest].sum(axis=1)
        return np.asarray(total, dtype=np.int64)

    def _drain(self, before: list[int], chunks: int) -> None:
        """Wait for the last delivery; BenchError unless every sink has what it is due."""
        expected = np.array(before) + self._due_after(chunks)
        self._wait_for(expected)

    def _wait_for(self, expected: Counts) -> None:
        deadline = time.monotonic() + _DRAIN_SECONDS
        while (received := np.array(self._system.received())).sum() < expected.sum():
            self._pause(True, deadline)
        if not np.array_equal(received, expected):
            raise BenchError(
                f"{self._system.name}: {received.tolist()} deliveries, due {expected.tolist()}"
            )

    # -- latency -------------------------------------------------------------------------

    def _latency(self, rates: list[Rate], seconds: float) -> Row:
        """Percentiles; none where the system cannot keep up with so few."""
        if max(rate.notifications / rate.seconds for rate in rates) < 2 * _LATENCY_RATE:
            return {"p50": None, "p99": None}
        system = self._system
        count = min(int(_LATENCY_RATE * seconds), self._expected.shape[1])
        expected = np.array(system.received()) + self._expected[:, :count].sum(axis=1)
        system.sinks.ask("watch")
        began = time.perf_counter()
        for k in range(count):
            time.sleep(max(0.0, began + k / _LATENCY_RATE - time.perf_counter()))
            system.send_stamped(k)
            system.look_after()
        self._wait_for(expected)
        found = system.sinks.ask("samples")
        if found["count"] != int(self._expected[:, :count].sum()):
            raise BenchError(f"{system.name}: {found['count']} stamps were seen")
        return {"p50": round(found["p50"], 1), "p99": round(found["p99"], 1)}
