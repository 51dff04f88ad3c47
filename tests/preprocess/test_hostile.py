"""Whatever comes in, every language answers with a topic or with a LanguageError."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.active import Active
from preprocess.attribute_value import AttributeValue
from preprocess.errors import LanguageError
from preprocess.feeds import Feeds
from preprocess.ontology import Ontology
from preprocess.predicates import Predicates
from preprocess.ranges import Ranges
from preprocess.type_hierarchy import TypeHierarchy


def _active() -> Active:
    language = Active()
    language.add("known", bool)
    return language


SCHEMA = {"a": "int", "s": "string", "f": "float", "d": "date", "i": "ip", "b": "bool"}
LANGUAGES = [
    AttributeValue(),
    Predicates(SCHEMA),
    Ranges(),
    Ontology.from_text("a\n  b\n  c"),
    TypeHierarchy([int, OSError]),
    Feeds(),
    _active(),
]
every_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda found: found.name)

NAMES = st.sampled_from(
    [*SCHEMA, "first", "last", "keyword", "type", "predicate", "feed", "words", "category", "", "*"]
)
OPERATORS = st.sampled_from(
    ["=", "!=", "<", "in", "range", "prefix", "suffix", "contains", "exists", "span", "?"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["a", "known", "builtins.int", "10.0.0.0/8", "2004-05-24", 10**400, "*"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(OPERATORS, inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)
SOURCES = st.one_of(
    OBJECTS,
    st.lists(OBJECTS, max_size=3),
    VALUES,
    OBJECTS.map(json.dumps),
    VALUES.map(json.dumps),
    st.text("<>/=\"'{}[]:,ab1 .", max_size=20),
    st.binary(max_size=10),
    st.sampled_from(["a = 1", "s prefix x and (f < 2 or b exists)", "exits 3 to 7", "a=1 b=2"]),
)


@every_language
@given(source=SOURCES)
def test_anything_is_a_topic_or_an_error(language, source):
    try:
        topic = language.parse(source)
    except LanguageError:
        return
    assert language.parse(language.text(topic)) == topic
    assert language.covers(topic, topic)


@every_language
@given(source=SOURCES)
def test_anything_is_a_notification_or_an_error(language, source):
    try:
        language.parse_notification(source)
    except LanguageError:
        return


@every_language
@pytest.mark.parametrize(
    "source",
    [
        '{"a": %s}' % ("9" * 5000),
        "[%s, 1]" % ("9" * 5000),
        '{"first": 0, "last": 1e999}',
        [10**400, 10**400],
        {"a": 10**5000},
        {"s": 10**5000, "first": 10**5000, "feed": 10**5000},
        [10**5000, "x"],
        '<s a="%s"/>' % ("x" * 70_000),
        "<s>" * 40,
        "[" * 5000,
        "(" * 5000,
    ],
    ids=range(11),
)
def test_what_is_too_large_or_too_deep_is_refused(language, source):
    with pytest.raises(LanguageError) as caught:
        language.parse(source)
    assert len(str(caught.value)) < 500, "the error repeats all of it"
