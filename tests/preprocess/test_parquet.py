"""A static preprocessor from a graph on disk."""

from __future__ import annotations

import pytest

from preprocess.attribute_value import AttributeValue
from preprocess.errors import LanguageError, UnknownTopicError
from preprocess.language import Language
from preprocess.parquet import load_graph
from preprocess.ranges import Ranges
from routing.errors import ProtocolError
from tests.preprocess import laws

pa = pytest.importorskip("pyarrow", reason="pyarrow reads the graphs")
pq = pytest.importorskip("pyarrow.parquet")

CUBE = ["anything", *(f"a{i}={v}" for i in range(2) for v in range(2)), "a0=1 a1=0", "a0=1 a1=1"]
EXITS = [f"exits {a} to {b}" for a in range(4) for b in range(a, 4)]


def _chunks(rows, size):
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def write(folder, texts, edges):
    """As the job does: several files in two folders."""
    (folder / "nodes").mkdir()
    (folder / "edges").mkdir()
    for part, rows in enumerate(_chunks(list(enumerate(texts)), 3)):
        table = pa.table({"node": [r[0] for r in rows], "text": [r[1] for r in rows]})
        pq.write_table(table, folder / "nodes" / f"part-{part}.parquet")
    table = pa.table(
        {
            "parent": pa.array([e[0] for e in edges], pa.int64()),
            "child": pa.array([e[1] for e in edges], pa.int64()),
        }
    )
    pq.write_table(table, folder / "edges" / "part-0.parquet")


def edges_of(language: Language, texts):
    topics = [language.parse(text) for text in texts]
    edges = laws.edges(language, topics)
    return sorted((topics.index(a), topics.index(b)) for a, b in edges)


@pytest.mark.parametrize(
    ("language", "texts"), [(AttributeValue(), CUBE), (Ranges(), EXITS)], ids=["pairs", "exits"]
)
def test_a_graph_on_disk_becomes_a_static_preprocessor(tmp_path, language, texts):
    write(tmp_path, texts, edges_of(language, texts))
    preprocessor = load_graph(language, tmp_path)
    topics = [language.parse(text) for text in texts]
    assert laws.edges_of(preprocessor) == laws.edges(language, topics)
    assert [preprocessor.subscription(text) for text in texts] == list(range(len(texts)))
    notes = [topic if isinstance(topic, tuple) else dict(topic) for topic in topics]
    laws.check_headers(preprocessor, topics, notes)


def test_a_static_preprocessor_names_the_topic_it_does_not_know(tmp_path):
    write(tmp_path, EXITS, edges_of(Ranges(), EXITS))
    with pytest.raises(UnknownTopicError, match=r"ranges topic \[0, 9\] is not among the 10"):
        load_graph(Ranges(), tmp_path).subscription((0, 9))


@pytest.mark.parametrize(
    ("texts", "edges", "message"),
    [
        (["0..3", "x"], [], "node 1: "),
        (["0..3", "1..2"], [(0, 7)], "node 7: an edge names it"),
        (["0..3", "1..2"], [(0, 1), (1, 0)], "node 1 does not cover node 0"),
        (["0..3", "1..4"], [(0, 1)], "node 0 does not cover node 1"),
        (["0..3", "0..3"], [], "node 1 has the topic of node 0"),
    ],
)
def test_a_wrong_graph_names_the_node(tmp_path, texts, edges, message):
    write(tmp_path, texts, edges)
    with pytest.raises((LanguageError, ProtocolError), match=message):
        load_graph(Ranges(), tmp_path)


def test_a_missing_graph_says_what_to_do(tmp_path):
    with pytest.raises(LanguageError, match="has the workload job run"):
        load_graph(Ranges(), tmp_path)
