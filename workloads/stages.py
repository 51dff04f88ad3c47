"""The stages of a job: topics, graph, subscriptions, notifications, churn.

Rows are made from their numbers (see workloads.population), so a stage that needs them again makes
them again: nothing is cached and nothing is joined. The distinct topics are collected, numbered in
canonical order and broadcast; node IDs, edges and headers follow from them alone.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from workloads import tasks
from workloads.errors import ScenarioError
from workloads.kinds import Codes
from workloads.meter import Meter
from workloads.output import tidy
from workloads.population import Population
from workloads.randomness import Ints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_PER_PARTITION = 250_000
# Rows a file: what they are cut into must not depend on the partitions, or the files would.
_NODES_PER_FILE = 250_000
_CHILDREN_PER_FILE = 16_384
_NOTIFICATIONS_PER_FILE = 100_000
_CHURN_PER_FILE = 500_000


@dataclass(frozen=True)
class Limits:
    """The largest content graph that a job builds."""

    topics: int = 5_000_000
    edges: int = 100_000_000


class Stages:
    """The stages of one job, in order."""

    def __init__(
        self,
        population: Population,
        limits: Limits,
        partitions: int | None,
        spark: SparkSession,
        folder: Path,
        meter: Meter,
    ) -> None:
        self._population = population
        self._limits = limits
        self._spark = spark
        self._folder = folder
        self._meter = meter
        self._code = "long" if self._population.kind.code_type is np.int64 else "binary"
        cores = spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", str(cores))
        enough = math.ceil(population.total / _ROWS_PER_PARTITION)
        self._partitions = partitions or max(2 * cores, enough)
        self.counts: dict[str, int] = {
            "subscribers": population.initial,
            "arrivals": population.total - population.initial,
        }

    def run(self) -> None:
        """Topics first, then what depends on them."""
        topics, counts = self._topics()
        shared = self._spark.sparkContext.broadcast(topics)
        self._graph(shared, counts)
        self._subscriptions(shared)
        self._notifications(shared)
        self._churn(shared)

    def _topics(self) -> tuple[Codes, Ints]:
        """All topics that anyone ever subscribes to, sorted, and their subscribers at the start."""
        limit = self._limits.topics
        with self._meter.stage("topics") as result:
            result["rows"] = self._population.total
            counted = self._rows(self._population.total, self._partitions).mapInArrow(
                partial(tasks.count_topics, self._population),
                f"topic {self._code}, subscribers long",
            )
            # By way of files: collecting to the driver cannot be interrupted.
            if self._write("topics", counted.groupBy("topic").sum("subscribers")) > limit:
                raise ScenarioError(
                    f"the subscriptions have more than {limit:,} different topics; "
                    "use fewer subscribers, attributes or values, or raise --max-topics"
                )
            table = pq.read_table(self._folder / "topics")
            shutil.rmtree(self._folder / "topics")
        return _sorted_topics(table, self._population.kind.code_type)

    def _graph(self, shared: Any, counts: Ints) -> None:
        kind, limit = self._population.kind, self._limits.edges
        topics = shared.value
        shared_counts = self._spark.sparkContext.broadcast(counts)
        with self._meter.stage("graph") as result:
            nodes = self._rows(len(topics), math.ceil(len(topics) / _NODES_PER_FILE)).mapInArrow(
                lambda batches: tasks.nodes(kind, shared.value, shared_counts.value, batches),
                f"node long, topic {self._code}, text string, subscribers long",
            )
            edges = self._rows(len(topics), math.ceil(len(topics) / _CHILDREN_PER_FILE)).mapInArrow(
                lambda batches: tasks.edges(kind, shared.value, limit, batches),
                "parent long, child long",
            )
            self.counts["topics"] = self._write("nodes", nodes)
            self.counts["edges"] = self._write("edges", edges)
            if self.counts["edges"] > limit:
                raise ScenarioError(tasks.too_many_edges(limit))
            result["rows"] = self.counts["topics"] + self.counts["edges"]

    def _subscriptions(self, shared: Any) -> None:
        population = self._population
        with self._meter.stage("subscriptions") as result:
            rows = self._rows(population.initial, self._partitions).mapInArrow(
                lambda batches: tasks.subscriptions(population, shared.value, batches),
                "subscriber long, router int, node long",
            )
            by_router = rows.repartition(self._partitions, "router").sortWithinPartitions(
                "router", "subscriber", "node"
            )
            result["rows"] = self._write("subscriptions", by_router, "router")
            self.counts["subscriptions"] = result["rows"]

    def _notifications(self, shared: Any) -> None:
        population = self._population
        count = population.scenario.notifications.count
        with self._meter.stage("notifications") as result:
            rows = self._rows(count, math.ceil(count / _NOTIFICATIONS_PER_FILE)).mapInArrow(
                lambda batches: tasks.notifications(population, shared.value, batches),
                "notification long, time_us long, router int, "
                f"content {self._code}, text string, nodes array<long>",
            )
            result["rows"] = self._write("notifications", rows)
            self.counts["notifications"] = result["rows"]

    def _churn(self, shared: Any) -> None:
        population, rates = self._population, self._population.scenario.churn
        expected = self.counts["arrivals"] + population.total * (rates.departures + rates.moves)
        slices = max(1, math.ceil(expected * population.topics_each / _CHURN_PER_FILE))
        with self._meter.stage("churn") as result:
            rows = self._rows(population.total if expected else 0, self._partitions).mapInArrow(
                lambda batches: tasks.churn(population, shared.value, slices, batches),
                "slice int, time_us long, event string, subscriber long, "
                "from_router int, to_router int, node long",
            )
            by_time = rows.repartition(min(slices, self._partitions), "slice").sortWithinPartitions(
                "slice", "time_us", "subscriber", "node"
            )
            result["rows"] = self._write("churn", by_time, "slice")
            self.counts["churn"] = result["rows"]

    def _rows(self, count: int, partitions: int) -> DataFrame:
        return self._spark.range(0, count, 1, max(1, partitions))

    def _write(self, name: str, rows: DataFrame, *by: str) -> int:
        """Write a table and return how many rows its files say they have."""
        table = self._folder / name
        rows.write.partitionBy(*by).parquet(f"file://{table}")
        files = tidy(table)
        if "router" in by or "slice" in by:
            assert len({path.parent for path in files}) == len(files), "one file for each"
        return sum(pq.read_metadata(path).num_rows for path in files)


def _sorted_topics(table: Any, code_type: Any) -> tuple[Codes, Ints]:
    topics = table.column(0).to_numpy().astype(code_type)
    by = np.argsort(topics, kind="stable")
    return topics[by], table.column(1).to_numpy()[by]


def tasks_now(spark: SparkSession) -> tuple[int, int]:
    """Tasks done and known of the Spark jobs that run now."""
    done = known = 0
    status = spark.sparkContext.statusTracker()
    for job in status.getActiveJobsIds():
        info = status.getJobInfo(job)
        for stage in info.stageIds if info else ():
            at = status.getStageInfo(stage)
            if at:
                done, known = done + at.numCompletedTasks, known + at.numTasks
    return done, known
