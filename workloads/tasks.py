"""What the Python workers of a job do: Arrow batches of row numbers in, Arrow batches out.

Each task is a pure function of row numbers (see workloads.population); nothing here depends on
how the rows were cut into partitions, and nothing here needs Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from workloads.errors import ScenarioError
from workloads.kinds import Codes, ContentKind, Pairs
from workloads.kinds.lookup import Lookup
from workloads.population import EVENTS, Population
from workloads.randomness import Ints

Batches = Iterator[pa.RecordBatch]


def count_topics(population: Population, batches: Batches) -> Batches:
    """Distinct topics, with the number of subscribers at the start; each maybe in many batches."""
    for numbers in _numbers(batches):
        which, topics = population.subscriptions(numbers)
        distinct, at = np.unique(topics, return_inverse=True)
        at_start = numbers[which] < population.initial
        counts = np.bincount(at[at_start], minlength=len(distinct))
        yield _batch(topic=code_array(distinct), subscribers=pa.array(counts))


def subscriptions(population: Population, topics: Codes, batches: Batches) -> Batches:
    """Who subscribes to which node at which router."""
    find = Lookup(topics)
    for numbers in _numbers(batches):
        which, wanted = population.subscriptions(numbers)
        yield _batch(
            subscriber=pa.array(numbers[which]),
            router=_narrow(population.router(numbers)[which]),
            node=pa.array(find(wanted)),
        )


def nodes(kind: ContentKind, topics: Codes, counts: Ints, batches: Batches) -> Batches:
    """The topics by their node IDs, with their subscribers at the start."""
    for numbers in _numbers(batches):
        codes = topics[numbers]
        yield _batch(
            node=pa.array(numbers),
            topic=code_array(codes),
            text=kind.text(codes),
            subscribers=pa.array(counts[numbers]),
        )


def edges(kind: ContentKind, topics: Codes, limit: int, batches: Batches) -> Batches:
    """The edges above each node, refused beyond a limit."""
    order = kind.order(topics)
    made = 0
    for numbers in _numbers(batches):
        start, stop = int(numbers[0]), int(numbers[-1]) + 1
        assert stop - start == len(numbers), "the numbers of a batch follow one another"
        children, parents = _sorted(order.parents(start, stop))
        made += len(children)
        if made > limit:
            raise ScenarioError(too_many_edges(limit))
        yield _batch(parent=pa.array(parents), child=pa.array(children))


def notifications(population: Population, topics: Codes, batches: Batches) -> Batches:
    """Notifications with their headers: the lowest nodes that match them."""
    order = population.kind.order(topics)
    for numbers in _numbers(batches):
        notices = population.notices(numbers)
        rows, found = _sorted(order.headers(notices))
        ends = np.cumsum(np.bincount(rows, minlength=len(numbers)))
        offsets = pa.array(np.concatenate([[0], ends]), type=pa.int32())
        time, router = population.published(numbers)
        yield _batch(
            notification=pa.array(numbers),
            time_us=pa.array(time),
            router=_narrow(router),
            content=code_array(notices),
            text=population.kind.text(notices),
            nodes=pa.ListArray.from_arrays(offsets, pa.array(found)),
        )


def churn(population: Population, topics: Codes, slices: int, batches: Batches) -> Batches:
    """Arrivals, departures and moves, one row for each topic that the subscriber has."""
    find = Lookup(topics)
    names = pa.array(EVENTS)
    width = -(-population.period_us // slices)
    for numbers in _numbers(batches):
        events = population.churn(numbers)
        which, wanted = population.subscriptions(events.subscriber)
        time = events.time_us[which]
        yield _batch(
            # A departure may fall on the very end of the period.
            slice=_narrow(np.minimum(time // width, slices - 1)),
            time_us=pa.array(time),
            event=names.take(pa.array(events.event[which])),
            subscriber=pa.array(events.subscriber[which]),
            from_router=_narrow(events.from_router[which]),
            to_router=_narrow(events.to_router[which]),
            node=pa.array(find(wanted)),
        )


def code_array(codes: Codes) -> pa.Array:
    """Topic or notice codes as Arrow has them: whole numbers, or bytes."""
    return pa.array(codes) if codes.dtype == np.int64 else pa.array(codes.tolist(), pa.binary())


def too_many_edges(limit: int) -> str:
    """What to say about a graph that is too large."""
    return (
        f"the content graph has more than {limit:,} edges; use fewer subscribers or topics, "
        "or raise --max-edges"
    )


def _numbers(batches: Batches) -> Iterator[Ints]:
    for batch in batches:
        if batch.num_rows:
            yield batch.column(0).to_numpy()


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def _narrow(numbers: Ints) -> pa.Array:
    return pa.array(numbers.astype(np.int32))


def _sorted(pairs: Pairs) -> Pairs:
    """By the first, then by the second: the order in which a file lists them."""
    first, second = pairs
    by = np.lexsort((second, first))
    return first[by], second[by]
