"""Recorded runs: queue lengths over time as JSON lines, whoever made them.

The first line says what the file is: {"format": "f3-run", "version": 1, "source": "cluster"}.
Each other line is one sample: {"t": seconds, "router": name, "queued": messages}; a cluster's
samples also have "capacity". Other keys are for other readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

_FORMAT, _VERSION = "f3-run", 1

Series = dict[str, list[tuple[float, float]]]
"""Per router, (time, queue length) in the order of time."""


class RunError(ValueError):
    """A file is no recorded run; says which line and why."""


def begin(file: TextIO, source: str) -> None:
    """Write the first line."""
    file.write(json.dumps({"format": _FORMAT, "version": _VERSION, "source": source}) + "\n")


def sample(file: TextIO, t: float, router: str, queued: int, **more: Any) -> None:
    """Write one sample."""
    file.write(json.dumps({"t": round(t, 6), "router": router, "queued": queued, **more}) + "\n")


def write(path: Path, source: str, series: Mapping[str, Iterable[tuple[float, int]]]) -> None:
    """Write a whole run, such as the simulator's."""
    with open(path, "w") as file:
        begin(file, source)
        for router in sorted(series):
            for t, queued in series[router]:
                sample(file, t, router, queued)


def read(path: Path) -> Series:
    """The samples of a run; RunError, or OSError where it cannot be read."""
    series: Series = {}
    with open(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
                if number == 1:
                    if (row["format"], row["version"]) != (_FORMAT, _VERSION):
                        raise ValueError("another format, or version")
                    continue
                series.setdefault(str(row["router"]), []).append(
                    (float(row["t"]), float(row["queued"]))
                )
            except (ValueError, TypeError, KeyError) as error:
                raise RunError(f"{path}, line {number}: {error!r} in {line[:60]!r}") from None
    if not series:
        raise RunError(f"{path} has no samples")
    return {router: sorted(points) for router, points in sorted(series.items())}
