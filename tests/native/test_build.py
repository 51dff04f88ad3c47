"""The installation with a compiler, and without one."""

from __future__ import annotations

import importlib.machinery
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHICH = "from routing.registry import protocol; print(protocol('f3').table.__name__)"


def install(folder: Path, environment: dict[str, str]) -> None:
    """Install a copy of the sources into a folder, without downloading anything."""
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "build", "*.so", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignored)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    where = ["--no-deps", "--no-build-isolation", "--no-compile", "--target", str(folder / "site")]
    subprocess.run([*pip, *where, str(source)], check=True, env=environment, timeout=300)


def which_table(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    environment.pop("F3_TABLE", None)
    run = subprocess.run(
        [sys.executable, "-c", WHICH],
        check=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return run.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"CC": "/bin/false", "CXX": "/bin/false"}, {"PATH": "/nowhere"}],
    ids=["compiling fails", "no compiler"],
)
def test_without_a_compiler(tmp_path: Path, changes: dict[str, str]) -> None:
    """The installation succeeds, and routers take the Python table."""
    install(tmp_path, {**os.environ, **changes})
    assert which_table(tmp_path) == "LabelTable"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler on PATH")
def test_with_a_compiler(tmp_path: Path) -> None:
    """An ordinary installation has the compiled table in it."""
    install(tmp_path, dict(os.environ))
    assert which_table(tmp_path) == "NativeTable"
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    built = [
        f for f in (tmp_path / "site" / "routing").iterdir() if f.name.endswith(tuple(suffixes))
    ]
    assert len(built) == 1


def test_the_environment_chooses() -> None:
    """F3_TABLE=python is heard; a word that means nothing is refused."""
    for wish, expected in (("python", "LabelTable"), ("gold", "F3_TABLE is 'gold'")):
        run = subprocess.run(
            [sys.executable, "-c", WHICH],
            env={**os.environ, "F3_TABLE": wish},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert expected in run.stdout + run.stderr
        assert (run.returncode == 0) == (wish == "python")
