"""Brute force over topics and notifications: what every language and its index must agree with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from preprocess.language import GraphIndex, Language
from preprocess.preprocessor import Preprocessor

AnyLanguage = Language[Any, Any]


def check_order(language: AnyLanguage, topics: Sequence[Any], notes: Sequence[Any]) -> None:
    """covers is a partial order, and implies that matches are contained."""
    for a in topics:
        assert language.covers(a, a)
        assert language.parse(language.text(a)) == a
        for b in topics:
            if not language.covers(a, b):
                continue
            assert a == b or not language.covers(b, a), f"{a} and {b} cover each other"
            for note in notes:
                assert language.matches(a, note) or not language.matches(b, note), (a, b, note)
            for c in topics:
                assert language.covers(a, c) or not language.covers(b, c), (a, b, c)


def lowest(language: AnyLanguage, topics: Sequence[Any], note: Any) -> set[Any]:
    """The lowest topics that match, by definition."""
    held = [topic for topic in topics if language.matches(topic, note)]
    return {a for a in held if not any(a != b and language.covers(a, b) for b in held)}


def edges(language: AnyLanguage, topics: Sequence[Any]) -> set[tuple[Any, Any]]:
    """The transitive reduction of the order, by definition."""
    pairs = {(a, b) for a in topics for b in topics if a != b and language.covers(a, b)}
    return {
        (a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in topics)
    }


def grown(language: AnyLanguage, topics: Sequence[Any]) -> Preprocessor[Any, Any]:
    """A preprocessor that has met these topics in this order."""
    preprocessor: Preprocessor[Any, Any] = Preprocessor(language)
    preprocessor.load((node, language.text(topic)) for node, topic in enumerate(topics))
    preprocessor.graph.check()
    return preprocessor


def edges_of(preprocessor: Preprocessor[Any, Any]) -> set[tuple[Any, Any]]:
    """The edges of a preprocessor's graph, between topics."""
    graph, topics = preprocessor.graph, preprocessor.index.topics
    return {(topics[a], topics[b]) for a in graph for b in graph.children(a)}


def check_headers(
    preprocessor: Preprocessor[Any, Any], topics: Sequence[Any], notes: Sequence[Any]
) -> None:
    """Single and batched headers are the lowest matching topics."""
    language, index = preprocessor.language, preprocessor.index
    batched = index.lowest_of(notes)
    for note, batch in zip(notes, batched, strict=True):
        expected = lowest(language, topics, note)
        found = index.lowest(note)
        assert {index.topics[node] for node in found} == expected
        assert len(found) == len(expected)
        assert sorted(batch) == sorted(found)
        assert {index.topics[n] for n in index.matching(note)} == {
            topic for topic in topics if language.matches(topic, note)
        }


def check_language(
    language: AnyLanguage, subscriptions: Sequence[Any], notifications: Sequence[Any], seed: int
) -> None:
    """Everything at once: order, edges, headers, any order of arrival, removal, plain search."""
    topics = list(dict.fromkeys(language.parse(s) for s in subscriptions))
    notes = [language.parse_notification(n) for n in notifications]
    check_order(language, topics, notes)
    expected = edges(language, topics)
    rng = random.Random(seed)
    for _ in range(2):
        preprocessor = grown(language, topics)
        assert edges_of(preprocessor) == expected
        check_headers(preprocessor, topics, notes)
        rng.shuffle(topics)
    check_removal(preprocessor, topics, notes, rng)
    check_search(language, topics, notes)


def check_removal(
    preprocessor: Preprocessor[Any, Any],
    topics: list[Any],
    notes: Sequence[Any],
    rng: random.Random,
) -> None:
    """What remains after some topics have gone, and after one has come back."""
    gone = rng.sample(topics, len(topics) // 2)
    for topic in gone:
        preprocessor._remove(preprocessor.nodes[topic])
    left = [topic for topic in topics if topic not in gone]
    language = preprocessor.language
    assert edges_of(preprocessor) == edges(language, left)
    check_headers(preprocessor, left, notes)
    if gone:
        preprocessor.load([(len(topics), language.text(gone[0]))])
        assert edges_of(preprocessor) == edges(language, [*left, gone[0]])
        check_headers(preprocessor, [*left, gone[0]], notes)


def check_search(language: AnyLanguage, topics: Sequence[Any], notes: Sequence[Any]) -> None:
    """The thesis's breadth-first search gives the same graph and headers."""
    preprocessor: Preprocessor[Any, Any] = Preprocessor(language)
    preprocessor.index = GraphIndex(language, preprocessor.graph)
    preprocessor.load((node, language.text(topic)) for node, topic in enumerate(topics))
    assert edges_of(preprocessor) == edges(language, topics)
    check_headers(preprocessor, topics, notes)
