"""Which Java is taken, and what the wrapper makes of its arguments; no Spark is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from workloads.java import Java, find_java, java_version, private_home


def fake_java(folder: Path, version: str, status: int = 0) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return tmp_path


def test_without_java_the_bundled_one_runs(bare: Path) -> None:
    java = find_java()
    assert java.bundled
    assert java_version(java.path) == java.version


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2"])
def test_a_suitable_java_is_used(bare: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    path = fake_java(bare / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(bare / "jdk"))
    assert find_java() == Java(path, version, bundled=False)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_java() == Java(path, version, bundled=False)


@pytest.mark.parametrize(("version", "status"), [("11.0.2", 0), ("1.8.0_292", 0), ("17.0.1", 1)])
def test_an_unsuitable_java_is_not(
    bare: Path, monkeypatch: pytest.MonkeyPatch, version: str, status: int
) -> None:
    fake_java(bare / "jdk", version, status)
    monkeypatch.setenv("JAVA_HOME", str(bare / "jdk"))
    assert find_java().bundled


def test_an_unsuitable_home_gives_way_to_the_path(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(bare / "old", "11.0.2")
    good = fake_java(bare / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    monkeypatch.setenv("PATH", str(good.parent))
    assert find_java().path == good


def test_the_wrapper_drops_one_option_and_keeps_the_rest(tmp_path: Path) -> None:
    target = tmp_path / "a folder" / "java"
    target.parent.mkdir()
    target.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    target.chmod(0o755)
    home = private_home(Java(target, "17", bundled=False), tmp_path / "home")
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "$HOME", "", "Main"]
    run = [str(home / "bin" / "java"), *given]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[-5:] == ["<-Xmx1g>", "<-Da=b c>", "<$HOME>", "<>", "<Main>"]
    assert all(line.startswith("<-XX:") for line in lines[:-5])
