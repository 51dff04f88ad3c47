"""One small local Spark for all tests here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from workloads.job import Job, generate
from workloads.reader import Workload
from workloads.scenario import load_scenario
from workloads.session import SparkOptions, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Workload]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(SparkOptions(master="local[2]", driver_memory="1g")) as session:
        yield session


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Make:
    """Generate a small workload and open it."""

    def made(name: str, out: str = "out", **options: Any) -> Workload:
        return _made(spark, name, tmp_path / out, **options)

    return made


#: A small workload of every content kind.
SMALL: dict[str, dict[str, Any]] = {
    "baseball": {"teams": 60, "subscribers.count": 800, "subscribers.topics_each": 2},
    "traffic-zipf": {"notifications.sources": 3},
    "varying-attributes": {"churn.moves": 1.5, "churn.arrivals": 0.2},
    "varying-degree": {"subscribers.count": 90, "degree": 3},
    "varying-depth-zipf": {"subscribers.routers": 23},
}


@pytest.fixture(scope="session")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """The small workload of that name, made once; not to be changed."""

    @cache
    def made(name: str) -> Workload:
        return _made(spark, name, tmp_path_factory.mktemp("small") / name, SMALL[name], seed=5)

    return made


def _made(
    spark: SparkSession,
    name: str,
    out: Path,
    parameters: dict[str, Any] | None = None,
    **options: Any,
) -> Workload:
    scenario = load_scenario(name, {"subscribers.count": 2_000} | (parameters or {}))
    generate(Job(scenario, out, **{"partitions": 2} | options), spark=spark)
    return Workload(out)
