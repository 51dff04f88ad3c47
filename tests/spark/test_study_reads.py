"""What the studies read from the Spark job's output is what they draw without it."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.work import draw, read
from tests.spark.conftest import Make
from workloads.errors import WorkloadError

pytestmark = pytest.mark.spark


def test_reading_and_drawing_give_the_same_rows(make: Make) -> None:
    small = {"teams": 30, "subscribers.count": 500, "notifications.count": 50}
    workload = make("baseball", parameters=small, seed=1)
    for subscribers in (500, 120):
        found = read(workload.path, subscribers)
        drawn = draw("baseball", 1, {**small, "subscribers.count": subscribers})
        assert np.array_equal(found.nodes, drawn.nodes)
        assert np.array_equal(found.routers, drawn.routers)
        assert np.array_equal(found.topics, drawn.topics)
        assert found.headers(found.notices) == drawn.headers(drawn.notices)
        assert found.parents == drawn.parents
        assert len(set(found.nodes.tolist())) > 50
    with pytest.raises(WorkloadError, match="has 500 subscribers"):
        read(workload.path, 501)
