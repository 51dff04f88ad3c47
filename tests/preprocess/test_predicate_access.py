"""Runs of boxes sorted by a narrow demand hold what a look at every box holds."""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess import predicate_access
from preprocess.columns import Table
from preprocess.predicate_access import Bucket
from tests.preprocess import laws
from tests.preprocess.test_predicates import LANGUAGE, random_note, some_filter

MAX = sys.float_info.max

#: Few and close, so that ends meet; and all that is extreme.
NUMBERS = st.integers(-4, 4).map(float) | st.sampled_from(
    (-MAX, MAX, -MAX / 3, -1e300, 5e-324, -5e-324, 1e-300, 0.1, 0.3, 2.0**53, 2.0**53 + 2, 2.0**127)
)
SPANS = st.none() | st.lists(NUMBERS, min_size=2, max_size=2).map(sorted)
BOXES = st.lists(st.tuples(SPANS, SPANS, SPANS), min_size=1, max_size=40)
POINTS = st.lists(st.tuples(*[st.none() | NUMBERS] * 3), max_size=10)


@pytest.fixture(autouse=True)
def small_piles(monkeypatch):
    """What takes hundreds of boxes otherwise happens with a few."""
    monkeypatch.setattr(predicate_access, "_PILE_MAX", 6)
    monkeypatch.setattr(predicate_access, "_RUN_MIN", 2)


def filled(boxes) -> Bucket:
    """A bucket of these boxes, numbered from 0."""
    table = Table(6)
    bucket = Bucket(table)
    for slot, box in enumerate(boxes):
        lows = [math.inf if span is None else -span[0] for span in box]
        highs = [math.inf if span is None else span[1] for span in box]
        table.add([*lows, *highs])
        bucket.add([*lows, *highs], slot)
    return bucket


def reached(bucket: Bucket, values) -> list[int]:
    point = [math.inf if value is None else value for value in values]
    found: list = []
    bucket.reached(np.array([*(-number for number in point), *point])[:, None], found)
    return sorted(np.concatenate([np.empty(0, np.int64), *found]).tolist())


def held(box, values) -> bool:
    return all(
        span is None or (value is not None and span[0] <= value <= span[1])
        for span, value in zip(box, values, strict=True)
    )


@given(BOXES, POINTS)
def test_a_bucket_reaches_what_holds_the_point(boxes, points):
    bucket = filled(boxes)
    for values in points:
        expected = [slot for slot, box in enumerate(boxes) if held(box, values)]
        assert reached(bucket, values) == expected


def test_the_boxes_go_into_runs_of_several_attributes_and_widths():
    """Narrow in one attribute or the other, of four magnitudes; some are too wide everywhere."""
    rng = random.Random(2)
    boxes = []
    for _ in range(3000):
        first, width = rng.uniform(0, 1000), rng.choice((0, 0.01, 1, 20))
        spans = [[first, first + width], [0, rng.uniform(600, 1000)], None]
        spans = [[0, 900], [0, 950], None] if rng.random() < 0.1 else rng.sample(spans, 3)
        boxes.append(spans)
    bucket = filled(boxes)
    runs = bucket._runs
    assert {run._attribute for run in runs} == {None, 0, 1, 2}
    assert len({run._width for run in runs}) >= 4
    looked_at = 0
    for _ in range(200):
        values = [rng.uniform(0, 1000) for _ in range(3)]
        expected = [slot for slot, box in enumerate(boxes) if held(box, values)]
        assert reached(bucket, values) == expected
        for run in runs:
            if run._attribute is not None:
                value = values[run._attribute]
                near = (run._firsts >= value - run._width) & (run._firsts <= value)
                looked_at += int(near.sum())
    assert looked_at < 200 * 3000 / 10, "runs do not narrow anything down"


def test_filters_of_every_kind_in_small_piles():
    rng = random.Random(8)
    topics = list(dict.fromkeys(LANGUAGE.parse(some_filter(rng)) for _ in range(400)))
    preprocessor = laws.grown(LANGUAGE, topics)
    runs = [run for b in preprocessor.index._access._buckets.values() for run in b._runs]
    assert len({run._attribute for run in runs}) >= 4
    notes = [LANGUAGE.parse_notification(random_note(rng)) for _ in range(60)]
    laws.check_headers(preprocessor, topics, notes)
    laws.check_removal(preprocessor, topics, notes, rng)
