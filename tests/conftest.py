"""What every test can rely on."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from time import sleep

import pytest
from hypothesis import HealthCheck, settings

#: `make test-long` asks for thousands of schedules, and gets ten times as many examples, too.
LONG = int(os.environ.get("F3_SCHEDULES", "0")) >= 1000

# Random examples are counted, not timed: how long one takes says more of the machine.
settings.register_profile(
    "f3",
    deadline=None,
    max_examples=1000 if LONG else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("f3")

#: Tests in these folders run without Ray, without Spark and without waiting.
PURE = ("unit", "contract", "scenarios", "sim")
TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def _pure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sleeps in a pure test has mistaken its layer."""
    if request.path.relative_to(TESTS).parts[0] in PURE:

        def refuse(seconds: float) -> None:
            # Threads that other tests' libraries have left behind may do as they like.
            if threading.current_thread() is not threading.main_thread():
                sleep(seconds)
                return
            raise AssertionError(f"a pure test sleeps for {seconds} s")

        monkeypatch.setattr(time, "sleep", refuse)


@pytest.fixture
def data() -> Path:
    """Third-party data, where there is any; tests that need it are skipped elsewhere."""
    folder = Path(os.environ.get("F3_DATA", TESTS.parents[1] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no third-party data at {folder} (set F3_DATA to its folder)")
    return folder
