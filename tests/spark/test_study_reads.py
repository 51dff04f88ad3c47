"""What the studies read from the Spark job's output is what they draw without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from experiments import study2
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


def test_study_2_measures_what_the_job_wrote(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip(
        "experiments.opponents",
        reason="the compiled opponents were not built",
        exc_type=ImportError,
    )
    assert study2.generate(tmp_path, 300, spark) == list(study2.SCENARIOS)
    assert study2.generate(tmp_path, 300, spark) == [], "what is there is left alone"
    for scenario in study2.SCENARIOS:
        for system in study2.SYSTEMS:
            result = study2.run(scenario, system, 200, 40, str(tmp_path))
            drawn = study2.run(scenario, system, 200, 40)
            assert (result["topics"], result["due"]) == (drawn["topics"], drawn["due"])
