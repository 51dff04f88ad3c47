"""Writing a folder so that it is there in full or not at all.

A job writes into a hidden sibling, `.<name>.partial`, which it holds locked; the manifest goes in
last, and one rename makes the folder appear under its name. A job that dies leaves only the
sibling: nothing reads it, and the next job for the same output clears it away.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workloads.errors import ScenarioError, WorkloadError

MANIFEST = "manifest.json"
#: Counts up when a reader of older workloads would be misled.
FORMAT = 1
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_AT_FDCWD = -100


@contextmanager
def staged(out: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to write into; it becomes `out` if the block ends well, and goes if it does not."""
    out = out.absolute()
    check_free(out, overwrite)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.parent / f".{out.name}.partial"
    lock = _locked(partial)
    try:
        _clear(partial)
        yield partial
        check_free(out, overwrite)
        _replace(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def check_free(out: Path, overwrite: bool) -> None:
    """Refuse an output that is taken, and never replace what is not a workload."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise ScenarioError(f"{out} exists and is not a folder; choose another output")
    if not any(out.iterdir()):
        return
    if not (out / MANIFEST).is_file():
        raise ScenarioError(
            f"{out} holds something that is not a workload; choose another output or empty it"
        )
    if not overwrite:
        raise ScenarioError(
            f"{out} holds a workload already; --overwrite replaces it, or choose another output"
        )


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest and see it on the disk before anything depends on it."""
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def tidy(table: Path) -> list[Path]:
    """Give Spark's files names that do not change from run to run; the files, in order."""
    for path in sorted(table.rglob(".*.crc")):
        path.unlink()
    files = []
    for folder in sorted({path.parent for path in table.rglob("*.parquet")}):
        # Spark numbers its files by partition first, so their names sort in the order of rows.
        for number, path in enumerate(sorted(folder.glob("*.parquet"))):
            files.append(path.rename(folder / f"part-{number:05}.parquet"))
    return files


def _locked(partial: Path) -> int:
    """Make or take over the partial folder and lock it; the lock goes with its descriptor."""
    while True:
        partial.mkdir(exist_ok=True)
        lock = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise WorkloadError(
                f"another job is writing {partial}; wait for it or end it"
            ) from None
        if _is_open_folder(partial, lock):
            return lock
        os.close(lock)  # the job that held it has just finished and renamed it


def _is_open_folder(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _clear(folder: Path) -> None:
    """Remove what an interrupted job left in the folder."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _replace(partial: Path, out: Path) -> None:
    """Put the finished folder in its place; an older one is exchanged for it, then removed."""
    if not out.exists() or not any(out.iterdir()):
        os.rename(partial, out)
        return
    if not _exchange(partial, out):
        # No such call here: for an instant the output is missing, never half there.
        old = out.parent / f".{out.name}.old"
        shutil.rmtree(old, ignore_errors=True)
        os.rename(out, old)
        os.rename(partial, out)
        partial = old
    shutil.rmtree(partial)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step (Linux); whether the system could."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code), str(other))
