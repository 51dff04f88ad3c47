"""Static preprocessors on the graphs of the Spark job, beside the headers that the job found."""

from __future__ import annotations

from itertools import pairwise

import pytest

from preprocess.attribute_value import AttributeValue
from preprocess.language import Language
from preprocess.parquet import load_graph
from preprocess.ranges import Ranges
from tests.spark.conftest import Make

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("name", "language"), [("traffic-zipf", Ranges()), ("varying-attributes", AttributeValue())]
)
def test_headers_are_those_of_the_job(name: str, language: Language, small: Make) -> None:
    workload = small(name)
    preprocessor = load_graph(language, workload.path)
    graph = workload.graph
    assert len(preprocessor.graph) == len(graph.text) > 50
    assert preprocessor.graph.edges() == len(graph.parent) > 50
    for node, text in enumerate(graph.text):
        assert preprocessor.subscription(text) == node
    texts: list[str] = []
    headers: list[tuple[int, ...]] = []
    for batch in workload.notifications():
        texts += list(batch.text)
        starts, nodes = batch.offsets.tolist(), batch.nodes.tolist()
        headers += [tuple(sorted(nodes[a:b])) for a, b in pairwise(starts)]
    assert len(texts) == len(headers) > 50
    assert max(map(len, headers)) > 1
    assert [preprocessor.notification(text).nodes for text in texts] == headers
    assert preprocessor.notifications(texts)[0] == headers
