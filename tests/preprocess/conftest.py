"""Random examples are counted, not timed: a busy machine is no failure.

`make test-long`, which asks for thousands of schedules, gets ten times as many examples.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LONG = int(os.environ.get("F3_SCHEDULES", "0")) >= 1000

settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=1000 if LONG else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")
