"""A folder is there in full or not at all."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from workloads import output
from workloads.errors import ScenarioError, WorkloadError
from workloads.output import MANIFEST, staged, tidy, write_manifest


def make(out: Path, content: str, overwrite: bool = False) -> None:
    with staged(out, overwrite) as folder:
        (folder / "data").write_text(content)
        write_manifest(folder, {"content": content})


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_appears_when_finished(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with staged(out, overwrite=False) as folder:
        assert not out.exists()
        assert folder.parent == out.parent
        write_manifest(folder, {})
    assert names(out) == {MANIFEST}
    assert names(out.parent) == {"out"}


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with staged(tmp_path / "out", overwrite=False) as folder:
            write_manifest(folder, {})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names(tmp_path) == set()


def test_a_failure_keeps_what_was_there(tmp_path: Path) -> None:
    make(tmp_path / "out", "old")

    def fail() -> None:
        with staged(tmp_path / "out", overwrite=True):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "out" / "data").read_text() == "old"
    assert names(tmp_path) == {"out"}


def test_what_a_killed_job_left_is_cleared(tmp_path: Path) -> None:
    left = tmp_path / ".out.partial" / "subscriptions"
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_text("half")
    make(tmp_path / "out", "new")
    assert names(tmp_path / "out") == {"data", MANIFEST}
    assert names(tmp_path) == {"out"}


def test_one_job_at_a_time(tmp_path: Path) -> None:
    partial = tmp_path / ".out.partial"
    partial.mkdir()
    lock = os.open(partial, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with pytest.raises(WorkloadError, match="another job is writing"):
            make(tmp_path / "out", "new")
        assert partial.exists(), "the other job's folder is its own"
    finally:
        os.close(lock)
    make(tmp_path / "out", "new")


def test_taken_outputs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out, "old")
    with pytest.raises(ScenarioError, match="holds a workload already; --overwrite replaces it"):
        make(out, "new")
    make(out, "new", overwrite=True)
    assert (out / "data").read_text() == "new"
    assert names(tmp_path) == {"out"}


def test_what_is_not_a_workload_is_never_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "letters").write_text("dear")
    with pytest.raises(ScenarioError, match="not a workload"):
        make(home, "new", overwrite=True)
    with pytest.raises(ScenarioError, match="is not a folder"):
        make(home / "letters", "new", overwrite=True)
    link = tmp_path / "link"
    link.symlink_to(home)
    with pytest.raises(ScenarioError, match="is not a folder"):
        make(link, "new", overwrite=True)
    assert (home / "letters").read_text() == "dear"


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    make(tmp_path / "out", "new")
    assert (tmp_path / "out" / "data").read_text() == "new"


def test_without_an_exchange_call_two_renames_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "out", "old")
    monkeypatch.setattr(output, "_exchange", lambda one, other: False)
    make(tmp_path / "out", "new", overwrite=True)
    assert (tmp_path / "out" / "data").read_text() == "new"
    assert names(tmp_path) == {"out"}


def test_files_get_names_that_stay(tmp_path: Path) -> None:
    for name in ("part-00000-aa-c000.zstd.parquet", "part-00003-bb-c000.zstd.parquet"):
        (tmp_path / name).write_text(name)
        (tmp_path / f".{name}.crc").write_text("x")
    files = tidy(tmp_path)
    assert [path.name for path in files] == ["part-00000.parquet", "part-00001.parquet"]
    assert files[1].read_text().startswith("part-00003")
    assert names(tmp_path) == {"part-00000.parquet", "part-00001.parquet"}
