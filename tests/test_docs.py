"""Every command in the documentation is run, each block as one script in an empty folder.

A block that cannot be run here says why, in a comment in front of it: `<!-- not run: … -->`.
One that takes long says so: `<!-- slow -->`; `make test-long` runs it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!--\s*(?P<note>[^>]*?)\s*-->\s*)?```sh\n(?P<text>.*?)```", re.DOTALL)
SECONDS = 300


def blocks() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text()), 1):
            note, text = match["note"] or "", match["text"]
            if note.startswith("not run") or text.startswith("make "):
                continue
            marks = [pytest.mark.slow] if note == "slow" else []
            name = f"{page.relative_to(ROOT)} {number}"
            found.append(pytest.param(text, id=name, marks=marks))
    return found


@pytest.mark.parametrize("text", blocks())
def test_commands_in_the_documentation_work(text: str, tmp_path: Path) -> None:
    script = "set -euo pipefail\n" + text.replace(".venv/bin/", "")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_links_between_pages_lead_somewhere() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []


def test_the_project_speaks_of_itself_alone() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"/(?:work|root|home|tmp)/\w|TODO|FIXME")
    found = [
        f"{name}: {match.group()}"
        for name in tracked
        if (ROOT / name).suffix in {".py", ".md", ".toml", ".yaml", ".cpp", ".h"}
        and name != "tests/test_docs.py"
        and (ROOT / name).is_file()
        for match in pattern.finditer((ROOT / name).read_text())
    ]
    assert found == []
