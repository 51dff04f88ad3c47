"""One Ray for all tests of a module: private folders, and a clean end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """Ray on this machine, started once."""
    import ray

    folder = tempfile.mkdtemp(prefix="f3ray")  # sockets live there: the path must be short
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
    yield
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
