"""A Spark session that is set up for the jobs here, and taken down again.

Runs on `local[*]` by default. With another master the output folder must be one that the driver
and all executors see under the same path, and they need this package installed.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workloads.errors import WorkloadError
from workloads.java import find_java, private_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows that a Python worker gets at once: enough for numpy, a few megabytes at most.
BATCH_ROWS = 65_536
#: How long the JVM may take to start, on a very busy machine.
START_S = 300.0
#: Parquet row groups: what a reader holds of one file.
_ROW_GROUP_BYTES = 16 * 2**20


@dataclass(frozen=True)
class SparkOptions:
    """Where a job runs and what it may take."""

    master: str = "local[*]"
    driver_memory: str = "2g"


@contextmanager
def spark_session(options: SparkOptions) -> Iterator[SparkSession]:
    """Start Spark (and a JVM for it) and stop both at the end."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(prefix="f3-spark-") as folder:
        home = private_home(find_java(), Path(folder) / "java")
        with _environment(JAVA_HOME=str(home), PYSPARK_PYTHON=sys.executable):
            builder = SparkSession.builder.appName("f3 workload").master(options.master)
            for key, value in _settings(options, folder).items():
                builder = builder.config(key, value)
            spark = None
            try:
                spark = _started(builder, options)
                yield spark
            finally:
                _stop(spark)


def java_of(spark: SparkSession) -> str:
    """The version of the Java that the session's driver runs on."""
    jvm: Any = spark.sparkContext._jvm
    return str(jvm.java.lang.System.getProperty("java.version"))


def _started(builder: Any, options: SparkOptions) -> SparkSession:
    """The session; WorkloadError if there is none to be had, such as from an unknown master."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        with _own_interrupts(), _within(START_S):
            spark: SparkSession = builder.getOrCreate()
            return spark
    except (PySparkException, Py4JError) as error:
        raise WorkloadError(
            f"Spark does not start on master {options.master!r} with {options.driver_memory!r} "
            f"of driver memory: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    """What Java objected to; where it ended without a word of it, that it did."""
    said = re.search(r"^(?:: )?(?:[\w$]+\.)+\w+: (.+)", str(error), re.MULTILINE)
    return said.group(1) if said else "Java has ended; what it said is above"


def _stop(spark: SparkSession | None) -> None:
    """End the session, if it came about, and its JVM, which pyspark would keep for the next."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if spark is not None:
        spark.stop()
    if gateway is not None:
        gateway.shutdown()
        process = gateway.proc
        process.stdin.close()
        process.wait(timeout=30)
    SparkContext._gateway = None
    SparkContext._jvm = None


def _settings(options: SparkOptions, folder: str) -> dict[str, str]:
    log = resources.files("workloads") / "log4j2.properties"
    settings = {
        "spark.driver.memory": options.driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.block.size": str(_ROW_GROUP_BYTES),
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if options.master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep Spark from handling Ctrl-C: it calls the JVM in the midst of another such call."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Give up after a while; pyspark itself would wait for its JVM for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield  # alarms reach the main thread alone
        return

    def give_up(*_: object) -> None:
        raise WorkloadError(f"Spark has not started within {seconds:.0f} s; try again")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
