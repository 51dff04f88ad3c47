"""What preprocessing costs: each language at several sizes, beside the thesis's search.

A scene is a language, a finished graph of distinct topics, and a source of notifications and of
topics that are not in the graph. Times are CPU times of this process. The graph is frozen out of
the garbage collector's sight, as a long-running preprocessor would do; notifications are fresh
objects, so that the index is as cold as its size makes it and the input is not.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from preprocess.language import GraphIndex
from preprocess.preprocessor import Preprocessor

#: Notifications in one batch.
BATCH = 1000

#: Identifiers from here on are for topics that the graph did not have.
_NEWCOMERS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Scene:
    """Something to measure."""

    name: str
    preprocessor: Preprocessor[Any, Any]
    notification: Callable[[random.Random], Any]
    #: A subscription that is, most likely, not in the graph.
    newcomer: Callable[[random.Random], Any]


Row = dict[str, Any]


def build(make: Callable[[], Scene]) -> tuple[Scene, float]:
    """A scene and the CPU time it took; nothing that is built is garbage, so none is looked for."""
    gc.disable()
    try:
        start = time.process_time()
        return make(), time.process_time() - start
    finally:
        gc.enable()


def measure(scene: Scene, seconds: float, search_seconds: float, seed: int = 1) -> list[Row]:
    """Two rows for a scene: the language's index, and breadth-first search."""
    gc.collect()
    gc.freeze()
    try:
        # Not the numbers that the scene was drawn with: newcomers would be no news.
        rng = random.Random(f"measure {seed}")  # noqa: S311 - a workload, not a secret
        index, search = _index_row(scene, rng, seconds), _search_row(scene, rng, search_seconds)
        # Last, for it changes the graph.
        index["us_per_subscription"] = _subscriptions(scene, rng, seconds)
        return [index, search]
    finally:
        gc.unfreeze()


def _row(scene: Scene, method: str) -> Row:
    graph = scene.preprocessor.graph
    return {
        "language": scene.name,
        "subscriptions": len(graph),
        "edges": graph.edges(),
        "method": method,
    }


def _index_row(scene: Scene, rng: random.Random, seconds: float) -> Row:
    row = _row(scene, "index")
    row["us_per_notification"], row["lowest_nodes"] = _single(scene, rng, seconds)
    row["us_per_notification_batched"] = _batched(scene, rng, seconds)
    return row


def _search_row(scene: Scene, rng: random.Random, seconds: float) -> Row:
    """The same graph, searched from the roots; a subscription costs finding its place."""
    preprocessor = scene.preprocessor
    index = _search_index(preprocessor)
    parse = preprocessor.language.parse_notification
    row: Row = _row(scene, "bfs")
    spent, count = 0.0, 0
    while count < 2 or (spent < seconds and count < BATCH):
        note = parse(scene.notification(rng))
        spent += _timed(partial(index.lowest, note))
        count += 1
    row["us_per_notification"] = round(spent / count * 1e6, 2)
    row["us_per_notification_batched"] = None
    row["us_per_subscription"] = _search_positions(index, scene, rng, seconds)
    return row


def _search_index(preprocessor: Preprocessor[Any, Any]) -> GraphIndex[Any, Any]:
    graph = preprocessor.graph
    index: GraphIndex[Any, Any] = GraphIndex(preprocessor.language, graph)
    index.take_over(preprocessor.index)
    return index


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _single(scene: Scene, rng: random.Random, seconds: float) -> tuple[float, float]:
    spent, count, nodes = 0.0, 0, 0
    notification = scene.preprocessor.notification
    while count < 2 or spent < seconds:
        notes = [scene.notification(rng) for _ in range(2 if count < 2 else 100)]
        start = time.process_time()
        headers = [notification(note) for note in notes]
        spent += time.process_time() - start
        count += len(notes)
        nodes += sum(len(header.nodes) for header in headers)
    return round(spent / count * 1e6, 2), round(nodes / count, 2)


def _batched(scene: Scene, rng: random.Random, seconds: float) -> float | None:
    """None where a batch would take far longer than the time there is."""
    headers = scene.preprocessor.notifications
    notes = [scene.notification(rng) for _ in range(2)]
    if _timed(partial(headers, notes)) / len(notes) * BATCH > 20 * seconds:
        return None
    # The first batch may have a table to build.
    headers([scene.notification(rng) for _ in range(BATCH)])
    spent, count = 0.0, 0
    while not count or spent < seconds:
        notes = [scene.notification(rng) for _ in range(BATCH)]
        spent += _timed(partial(headers, notes))
        count += BATCH
    return round(spent / count * 1e6, 3)


def _subscriptions(scene: Scene, rng: random.Random, seconds: float) -> float | None:
    """New topics, parsed, placed and inserted one by one; None if all that come are known."""
    preprocessor = scene.preprocessor
    spent, count, tries = 0.0, 0, 0
    while (not count or spent < seconds) and count < BATCH and tries < 20 * BATCH:
        tries += 1
        subscription = scene.newcomer(rng)
        if preprocessor.language.parse(subscription) in preprocessor.nodes:
            continue
        spent += _timed(partial(preprocessor.load, [(_NEWCOMERS + count, subscription)]))
        count += 1
    return round(spent / count * 1e6, 1) if count else None


def _search_positions(
    index: GraphIndex[Any, Any], scene: Scene, rng: random.Random, seconds: float
) -> float | None:
    preprocessor = scene.preprocessor
    spent, count, tries = 0.0, 0, 0
    while (not count or spent < seconds) and count < BATCH and tries < 20 * BATCH:
        tries += 1
        topic = preprocessor.language.parse(scene.newcomer(rng))
        if topic not in preprocessor.nodes:
            spent += _timed(partial(index.position, topic))
            count += 1
    return round(spent / count * 1e6, 1) if count else None
