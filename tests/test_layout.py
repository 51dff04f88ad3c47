"""Who may import whom: the rules of ARCHITECTURE.md, held by walking the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("f3", "routing", "preprocess", "topology", "workloads", "actors", "sim", "experiments")

#: Libraries that a protocol must not know of: it has no clock, socket, thread, file or cluster.
IMPURE = {"ray", "zmq", "time", "socket", "threading", "asyncio", "os", "pathlib", "pyspark"}


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def breaches(package: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files(package)
        for name in imports(path)
        if name.split(".")[0] in forbidden
    ]


def test_the_packages_are_there() -> None:
    assert all(files(package) for package in OURS)


def test_routing_imports_no_other_package_of_ours() -> None:
    assert breaches("routing", set(OURS) - {"routing"}) == []


def test_routing_is_pure() -> None:
    allowed = {"routing/protocols/f3.py imports os"}  # which of two equal tables to use
    assert set(breaches("routing", IMPURE)) <= allowed


@pytest.mark.parametrize("package", [name for name in OURS if name != "f3"])
def test_nothing_imports_the_front_door(package: str) -> None:
    assert breaches(package, {"f3"}) == []


def test_the_two_runtimes_do_not_know_each_other() -> None:
    assert breaches("sim", {"actors"}) == []
    assert breaches("actors", {"sim"}) == []


def test_protocols_do_not_import_each_other() -> None:
    found = [
        f"{path.name} imports {name}"
        for path in files("routing/protocols")
        for name in imports(path)
        if name.startswith("routing.protocols")
    ]
    assert found == []


def test_a_router_process_imports_little() -> None:
    code = """
import sys, routing.wire, routing.registry
routing.registry.protocols()
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    heavy = {"ray", "pyspark", "numpy", "networkx", "typer", "rich", "opentelemetry", "matplotlib"}
    assert heavy.isdisjoint(done.stdout.split())
