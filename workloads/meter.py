"""Progress, time and memory of a job while it runs.

While Spark works, a background thread looks a few times a second: it adds up the resident memory of
this process and all its descendants (the JVM and its Python workers; pages that they share count
once for each) and says on stderr how far the stage is: on a terminal that is one live line, else a
line now and then. It does not run while the JVM starts: pyspark forks then, which is not safe
beside other threads.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import psutil
from rich.console import Console
from rich.status import Status

_LOOK_S = 0.25
_SAY_S = 5.0

HOW_RSS = (
    "largest sum of resident memory over the driver's Python, its JVM and all their child "
    f"processes, looked at every {_LOOK_S} s; pages that processes share count for each"
)

Tasks = Callable[[], tuple[int, int]]


class Meter:
    """Times stages, watches memory and tells how far they are."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self.rows_per_s: dict[str, int] = {}
        self.peak_rss_bytes = 0
        self._quiet = quiet
        self._console = Console(file=stream or sys.stderr)
        self._process = psutil.Process()
        self._started = time.perf_counter()
        self._stop = threading.Event()
        self._lock = threading.Lock()  # held while looking, so that no look outlives its stage
        self._status: Status | None = None
        self._stage: tuple[str, float] | None = None
        self._said = 0.0
        self._watching = False

    @contextmanager
    def watching(self, tasks: Tasks) -> Iterator[None]:
        """Look at memory and progress meanwhile; `tasks` tells (tasks done, tasks known)."""
        thread = threading.Thread(target=self._watch, args=(tasks,), name="meter", daemon=True)
        self._stop.clear()
        self._watching = True
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._watching = False

    def elapsed(self) -> float:
        """Seconds since the meter was made."""
        return round(time.perf_counter() - self._started, 3)

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, int]]:
        """Time a stage; the dict that it gets takes `rows`, once known, for the rate."""
        result: dict[str, int] = {}
        begun = self._said = time.perf_counter()
        self._open(name)
        with self._lock:
            self._stage = (name, begun)
        try:
            yield result
        finally:
            with self._lock:
                self._stage = None
            self._close()
        took = time.perf_counter() - begun
        self.seconds[name] = round(took, 3)
        if "rows" in result:
            self.rows_per_s[name] = round(result["rows"] / max(took, 1e-9))
        self._say(self._summary(name, took, result))

    def _summary(self, name: str, took: float, result: dict[str, int]) -> str:
        rows = f", {result['rows']:,} rows, {self.rows_per_s[name]:,}/s" if "rows" in result else ""
        return f"{name}: {took:.1f} s{rows}"

    def _watch(self, tasks: Tasks) -> None:
        while not self._stop.wait(_LOOK_S):
            self._look_at_memory()
            with self._lock:
                if self._stage is not None:
                    self._show(tasks, *self._stage)

    def _show(self, tasks: Tasks, name: str, begun: float) -> None:
        now = time.perf_counter()
        done, known = tasks()
        line = f"{name}: {now - begun:.0f} s, {done} of {known} tasks"
        status = self._status
        if status is not None:
            status.update(line)
        elif now - self._said >= _SAY_S:
            self._said = now
            self._say(line)

    def _look_at_memory(self) -> None:
        total = self._process.memory_info().rss
        jvms: dict[int, list[str]] = {}
        for process in self._process.children(recursive=True):
            try:
                if process.name() == "java":
                    jvms[process.pid] = command = process.cmdline()
                    if jvms.get(process.ppid()) == command:
                        continue  # on its way to be a tool, still in its parent's memory
                total += process.memory_info().rss
            except psutil.Error:
                continue  # it has just ended
        self.peak_rss_bytes = max(self.peak_rss_bytes, total)

    # -- saying --------------------------------------------------------------------------

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._console.print(line, highlight=False, markup=False)

    def _open(self, name: str) -> None:
        if self._watching and self._console.is_terminal and not self._quiet:
            self._status = self._console.status(name)
            self._status.start()
        else:
            self._say(f"{name} …")

    def _close(self) -> None:
        status, self._status = self._status, None
        if status is not None:
            status.stop()
