"""Reading a workload back: pyarrow only, one batch at a time, in the order that a replay needs.

    workload = Workload("out/baseball")
    for batch in workload.subscriptions(router=3):  # numpy columns
        ...
    for notification in each_notification(workload.notifications()):  # plain Python
        ...

A folder without a manifest is not a workload, whatever else it holds. Opening checks that all files
are there in their size; `verify` reads them all and compares checksums. Memory stays bounded by
the batch and by one row group (16 MB) of one file; the graph alone is held whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from workloads.checksums import sha256
from workloads.errors import WorkloadError
from workloads.graph import Graph, Words
from workloads.output import FORMAT, MANIFEST
from workloads.randomness import Ints

_BATCH = 65_536


class Subscriptions(NamedTuple):
    """Who subscribes to which node, and at which router."""

    subscriber: Ints
    router: Ints
    node: Ints


class Notifications(NamedTuple):
    """Notifications in order; the header of row i is nodes[offsets[i] : offsets[i + 1]]."""

    notification: Ints
    time_us: Ints
    router: Ints
    text: Words
    offsets: Ints
    nodes: Ints


class ChurnEvents(NamedTuple):
    """Arrivals, departures and moves by time; router -1 is outside the network."""

    time_us: Ints
    event: Words
    subscriber: Ints
    from_router: Ints
    to_router: Ints
    node: Ints


class Subscription(NamedTuple):
    """One row of Subscriptions."""

    subscriber: int
    router: int
    node: int


class Notification(NamedTuple):
    """One row of Notifications, its header as a tuple."""

    notification: int
    time_us: int
    router: int
    text: str
    nodes: tuple[int, ...]


class ChurnEvent(NamedTuple):
    """One row of ChurnEvents."""

    time_us: int
    event: str
    subscriber: int
    from_router: int
    to_router: int
    node: int


class Workload:
    """A finished workload on disk."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.manifest = _read_manifest(self.path)
        self.counts: dict[str, int] = self.manifest["counts"]
        self.routers: int = self.manifest["scenario"]["subscribers"]["routers"]
        self._check_files()

    def subscriptions(
        self, router: int | None = None, batch_rows: int = _BATCH
    ) -> Iterator[Subscriptions]:
        """The subscriptions of one router, or router by router, each by subscriber."""
        if router is not None and not 0 <= router < self.routers:
            raise WorkloadError(f"router {router} is not one of the workload's {self.routers}")
        for at in range(self.routers) if router is None else (router,):
            for batch in self._batches(f"subscriptions/router={at}/", batch_rows):
                subscriber, node = _column(batch, "subscriber"), _column(batch, "node")
                yield Subscriptions(subscriber, np.full(len(node), at, dtype=np.int64), node)

    def notifications(self, batch_rows: int = _BATCH) -> Iterator[Notifications]:
        """The notifications in the order of their numbers and times."""
        for batch in self._batches("notifications/", batch_rows):
            lists = batch.column("nodes")
            offsets = lists.offsets.to_numpy().astype(np.int64)
            yield Notifications(
                _column(batch, "notification"),
                _column(batch, "time_us"),
                _column(batch, "router"),
                _words(batch, "text"),
                offsets - offsets[0],
                lists.flatten().to_numpy(zero_copy_only=False),
            )

    def churn(self, batch_rows: int = _BATCH) -> Iterator[ChurnEvents]:
        """The events in the order of time; at one time, by subscriber and node."""
        for batch in self._batches("churn/slice=", batch_rows):
            yield ChurnEvents(
                _column(batch, "time_us"),
                _words(batch, "event"),
                _column(batch, "subscriber"),
                _column(batch, "from_router"),
                _column(batch, "to_router"),
                _column(batch, "node"),
            )

    @cached_property
    def graph(self) -> Graph:
        """The content graph, whole."""
        nodes = self._table("nodes/", ["node", "text", "subscribers"])
        edges = self._table("edges/", ["parent", "child"])
        if not np.array_equal(nodes["node"], np.arange(self.counts["topics"])):
            raise WorkloadError(f"{self.path}: the node IDs are not 0 to topics - 1")
        return Graph(nodes["text"], nodes["subscribers"], edges["parent"], edges["child"])

    def verify(self) -> None:
        """Read every file and compare it with its checksum."""
        for name, facts in self.manifest["files"].items():
            if sha256(self.path / name) != facts["sha256"]:
                raise WorkloadError(f"{self.path / name} is damaged: its checksum has changed")

    def _check_files(self) -> None:
        for name, facts in self.manifest["files"].items():
            path = self.path / name
            if not path.is_file():
                raise WorkloadError(f"{path} is missing; generate the workload again")
            if path.stat().st_size != facts["bytes"]:
                raise WorkloadError(f"{path} is damaged: {facts['bytes']} bytes are expected")

    def _batches(self, prefix: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        for name in self._names(prefix):
            # Not pre-buffered: that would read the whole file ahead.
            with pq.ParquetFile(self.path / name, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=batch_rows)

    def _table(self, prefix: str, columns: list[str]) -> dict[str, NDArray[Any]]:
        parts: list[pa.Table] = []
        for name in self._names(prefix):
            with pq.ParquetFile(self.path / name) as file:
                parts.append(file.read(columns=columns))
        whole = pa.concat_tables(parts)
        return {name: whole.column(name).to_numpy() for name in columns}

    def _names(self, prefix: str) -> list[str]:
        """Files of a table in the order of their slice, if any, and part."""
        names = [name for name in self.manifest["files"] if name.startswith(prefix)]
        return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def each_subscription(batches: Iterable[Subscriptions]) -> Iterator[Subscription]:
    """Plain Python, one by one."""
    for batch in batches:
        yield from map(Subscription, *(column.tolist() for column in batch))


def each_notification(batches: Iterable[Notifications]) -> Iterator[Notification]:
    """Plain Python, one by one."""
    for batch in batches:
        nodes = batch.nodes.tolist()
        ends = batch.offsets.tolist()
        headers = (tuple(nodes[a:b]) for a, b in pairwise(ends))
        yield from map(Notification, *(column.tolist() for column in batch[:4]), headers)


def each_event(batches: Iterable[ChurnEvents]) -> Iterator[ChurnEvent]:
    """Plain Python, one by one."""
    for batch in batches:
        yield from map(ChurnEvent, *(column.tolist() for column in batch))


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WorkloadError(
            f"{path} is not a workload: it has no {MANIFEST}; `f3 workload generate` makes one"
        ) from None
    except (OSError, ValueError) as error:
        raise WorkloadError(f"{path / MANIFEST} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise WorkloadError(f"{path / MANIFEST} is not a manifest of format {FORMAT}")
    return manifest


def _column(batch: pa.RecordBatch, name: str) -> Ints:
    """A column of whole numbers, 64 bits wide whatever the file has."""
    numbers: Ints = batch.column(name).to_numpy().astype(np.int64, copy=False)
    return numbers


def _words(batch: pa.RecordBatch, name: str) -> Words:
    words: Words = batch.column(name).to_numpy(zero_copy_only=False)
    return words
