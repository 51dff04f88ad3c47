"""`f3 bench start` on a small network: the figures hang together."""

from __future__ import annotations

import pytest

from f3.commands.bench_start import measure
from topology.shapes import chain

pytestmark = pytest.mark.ray


def test_a_start_is_measured_beside_empty_actors(local_ray):
    told: list[str] = []
    found = measure(chain(2), told.append)
    assert (found["routers"], found["links"]) == (2, 1)
    assert found["seconds"] >= found["seconds.routers"] > 0
    for kind in ("", ".empty_actor"):
        assert 1 < found[f"uss_mb{kind}"] <= found[f"pss_mb{kind}"] <= found[f"rss_mb{kind}"]
    assert found["cpu_s"] > found["cpu_s.empty_actor"] > 0
    assert "links up: 1 of 1" in told
