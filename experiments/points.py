"""Points of a study: each is measured once, kept as a file, and never measured again.

A study is a list of points. What a point gives is written as JSON into the study's folder as soon
as it is there, so a run that was stopped goes on where it stopped. Progress and the time that is
left are told on stderr. Tables, pages and plots are made from the files alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: a name that can be a file's, and what it is a measurement of."""

    name: str
    parameters: dict[str, Any]


def measure(
    points: Sequence[Point],
    run: Callable[..., Result],
    folder: Path,
    *,
    force: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[Result]:
    """The results of all points, in order; only those without a file are run."""
    say = say or _on_stderr
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    missing = [point for point in points if force or not kept(folder, point)]
    if len(missing) < len(points):
        say(f"{len(points) - len(missing)} of {len(points)} points are there already")
    started = time.monotonic()
    for done, point in enumerate(missing):
        spent = time.monotonic() - started
        left = f", about {_duration(spent / done * (len(missing) - done))} left" if done else ""
        say(f"[{done + 1}/{len(missing)}] {point.name}{left}")
        before = time.process_time()
        result = run(**point.parameters)
        _keep(folder / "raw", point, result, time.process_time() - before)
    return [kept(folder, point) or {} for point in points]


def kept(folder: Path, point: Point) -> Result | None:
    """A point's result, unless it is missing, torn or of other parameters."""
    found = _file(folder, point)
    return found["result"] if found else None


def spent(folder: Path, points: Sequence[Point]) -> str:
    """How many of the points are there, and what they took, in words."""
    found = [each for each in (_file(folder, point) for point in points) if each]
    taken = _duration(sum(each["cpu_seconds"] for each in found))
    return f"{len(found)} of {len(points)} points are measured; they took {taken} of CPU time."


def _file(folder: Path, point: Point) -> dict[str, Any] | None:
    try:
        text = (folder / "raw" / f"{point.name}.json").read_text(encoding="utf-8")
        found = json.loads(text)
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("parameters") != point.parameters:
        return None
    return found


def _keep(raw: Path, point: Point, result: Result, cpu_seconds: float) -> None:
    """Write beside and rename: a file is whole or not there."""
    kept = {"parameters": point.parameters, "cpu_seconds": cpu_seconds, "result": result}
    text = json.dumps(kept, indent=1)
    staged = raw / f".{point.name}.{os.getpid()}"
    staged.write_text(text + "\n", encoding="utf-8")
    staged.replace(raw / f"{point.name}.json")


def _on_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
