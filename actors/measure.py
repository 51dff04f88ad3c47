"""What a host counts about itself: durations in buckets, and the process it runs in."""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

#: Neighbouring buckets differ by a tenth.
_LOG_STEP = math.log(1.1)


class Durations:
    """Durations in microseconds, kept as counts in buckets a tenth apart."""

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0

    def add(self, microseconds: float) -> None:
        """Count one duration; clocks of two machines may make it negative."""
        bucket = int(math.log(max(microseconds, 1.0)) / _LOG_STEP)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1

    def percentile(self, percent: float) -> float:
        """The duration that so many per cent do not exceed, to a tenth; 0 without any."""
        wanted = self.count * percent / 100.0
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return round(math.exp((bucket + 0.5) * _LOG_STEP), 1)
        return 0.0

    def buckets(self) -> dict[float, int]:
        """How many durations there are around each value."""
        return {
            round(math.exp((bucket + 0.5) * _LOG_STEP), 1): count
            for bucket, count in sorted(self._buckets.items())
        }

    def summary(self) -> dict[str, float]:
        """Count, median and tail."""
        return {"count": self.count, "p50": self.percentile(50), "p99": self.percentile(99)}


#: An answer that took so long (seconds) is kept, and for so many times as long.
_DEAR, _KEEP_TIMES = 1e-3, 50


class Spared(Generic[T]):
    """An answer whose cost may grow with a table: asking often takes a fiftieth of the time."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._kept: T | None = None
        self._until = 0.0

    def get(self) -> T:
        """The answer: as of now where that is cheap, else of a moment ago."""
        began = time.perf_counter()
        if self._kept is None or began >= self._until:
            self._kept = self._ask()
            ended = time.perf_counter()
            dear = ended - began >= _DEAR
            self._until = ended + (_KEEP_TIMES * (ended - began) if dear else 0.0)
        return self._kept


def process() -> dict[str, float]:
    """The process's number, its processor seconds and its memory in megabytes."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "pid": os.getpid(),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "rss_mb": round(_rss_mb(), 1),
    }


def _rss_mb() -> float:
    """Memory in use that is the process's own; the most it ever had where the system won't say."""
    try:
        with open("/proc/self/statm") as statm:
            fields = statm.read().split()
        pages = int(fields[1]) - int(fields[2])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
