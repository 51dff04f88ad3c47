"""The Spark job: from a scenario to a folder of Parquet files and a manifest.

Files: subscriptions/router=R (sorted by subscriber), nodes, edges, notifications (in order),
churn/slice=S (in order). What each file holds does not depend on partitions, cores or Java.
Not here: a graph whose topics do not fit into the memory of one worker; it is refused.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from workloads.checksums import content_sha256, sha256
from workloads.errors import ScenarioError, WorkloadError
from workloads.meter import HOW_RSS, Meter
from workloads.output import FORMAT, staged, write_manifest
from workloads.population import Population
from workloads.scenario import Scenario
from workloads.session import SparkOptions, java_of, spark_session
from workloads.stages import Limits, Stages, tasks_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Job:
    """What to make, where, and with what."""

    scenario: Scenario
    out: Path
    seed: int = 1
    overwrite: bool = False
    partitions: int | None = None
    options: SparkOptions = field(default_factory=SparkOptions)
    limits: Limits = field(default_factory=Limits)


def generate(
    job: Job, meter: Meter | None = None, spark: SparkSession | None = None
) -> dict[str, Any]:
    """Run the job and return the manifest; a session that is given is used and left running."""
    population = Population(job.scenario, job.seed)
    meter = meter or Meter(quiet=True)
    with staged(job.out, job.overwrite) as folder:
        with (
            _session(job, meter, spark) as session,
            _plain_errors(),
            meter.watching(partial(tasks_now, session)),
        ):
            stages = Stages(population, job.limits, job.partitions, session, folder, meter)
            stages.run()
            versions = _versions(session)
        with meter.stage("finish"):
            files = _files(folder)
        manifest = _manifest(job, stages.counts, files, versions, meter)
        write_manifest(folder, manifest)
    return manifest


def _manifest(
    job: Job, counts: dict[str, int], files: dict[str, Any], versions: dict[str, str], meter: Meter
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "scenario": job.scenario.as_dict(),
        "seed": job.seed,
        "counts": counts,
        "seconds": meter.seconds | {"total": meter.elapsed()},
        "rows_per_s": meter.rows_per_s,
        "peak_rss_bytes": meter.peak_rss_bytes,
        "peak_rss_is": HOW_RSS,
        "versions": versions,
        "files": files,
    }


def _files(folder: Path) -> dict[str, Any]:
    """Rows, size and checksums of every file, by its path within the folder."""
    return {
        path.relative_to(folder).as_posix(): {
            "rows": pq.read_metadata(path).num_rows,
            "bytes": path.stat().st_size,
            "sha256": sha256(path),
            "content_sha256": content_sha256(path),
        }
        for path in sorted(folder.rglob("*.parquet"))
    }


def _versions(spark: SparkSession) -> dict[str, str]:
    names = ("f3", "numpy", "pyarrow", "pyspark")
    return {
        **{name: version(name) for name in names},
        "python": platform.python_version(),
        "java": java_of(spark),
    }


@contextmanager
def _session(job: Job, meter: Meter, spark: SparkSession | None) -> Iterator[SparkSession]:
    """The session that was given, or a new one, whose start is a stage too."""
    with ExitStack() as stack:
        if spark is None:
            with meter.stage("start"):
                spark = stack.enter_context(spark_session(job.options))
        yield spark


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what comes back from Spark, pages of two languages' stacks, into a sentence."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        text = str(error)
        refused = re.search(r"workloads\.errors\.ScenarioError: (.+)", text)
        if refused:
            raise ScenarioError(refused.group(1)) from None
        raise WorkloadError(f"the Spark job failed: {_last_line(text)}") from error


def _last_line(text: str) -> str:
    """The line of a trace that says what went wrong."""
    before_java = text.split("JVM stacktrace:")[0]
    lines = [line.strip() for line in before_java.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
