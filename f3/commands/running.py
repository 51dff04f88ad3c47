"""Clusters that run on this machine: a small file for each, locked while it is alive."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class NotRunningError(LookupError):
    """No cluster of that name runs here; says what to do."""


def run_directory() -> Path:
    """Where the files are: F3_RUN_DIR, the user's run directory, or a private one in /tmp."""
    chosen = os.environ.get("F3_RUN_DIR")
    if chosen:
        folder = Path(chosen)
    elif runtime := os.environ.get("XDG_RUNTIME_DIR"):
        folder = Path(runtime) / "f3"
    else:
        folder = Path(tempfile.gettempdir()) / f"f3-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise PermissionError(f"{folder} belongs to somebody else, or others may write to it")
    return folder


def state_file(name: str) -> Path:
    """The file of a cluster."""
    if not name or "/" in name or name.startswith("."):
        raise ValueError(f"a cluster cannot be called {name!r}")
    return run_directory() / f"{name}.json"


@contextmanager
def announced(name: str, state: dict[str, Any]) -> Iterator[Path]:
    """Say that a cluster runs, for as long as it does; RuntimeError if one of that name does."""
    path = state_file(name)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"a cluster {name!r} runs already: `f3 down --name {name}` ends it"
            ) from None
        file.truncate(0)
        file.write(json.dumps({"name": name, "pid": os.getpid(), **state}))
        file.flush()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def find(name: str) -> dict[str, Any]:
    """What is known of a running cluster; a file that a killed one has left is removed."""
    path = state_file(name)
    try:
        with open(path, "r+") as file:
            if _is_locked(file.fileno()):
                found: dict[str, Any] = json.loads(file.read())
                return found
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    raise NotRunningError(f"no cluster {name!r} runs here: start one with `f3 up --name {name}`")


def is_running(name: str) -> bool:
    """Whether a cluster of that name runs here."""
    try:
        find(name)
    except NotRunningError:
        return False
    return True


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
