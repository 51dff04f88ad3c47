"""Ranges: ordered by containment, matched by overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.errors import LanguageError
from preprocess.ranges import Ranges
from tests.preprocess import laws

LANGUAGE = Ranges()

STRETCHES = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda ends: sorted(ends))


@given(st.lists(STRETCHES, max_size=16), st.lists(STRETCHES, max_size=8), st.integers(0, 2**32))
def test_agrees_with_brute_force(subscriptions, notifications, seed):
    laws.check_language(LANGUAGE, subscriptions, notifications, seed)


def test_a_header_names_the_lowest_topics_that_overlap():
    """The thesis's four exits (Figure 4-3): a jam from 2 to 3 concerns each exit and both."""
    exits = [(a, b) for a in range(1, 5) for b in range(a, 5)]
    preprocessor = laws.grown(LANGUAGE, exits)
    nodes = preprocessor.notification((2, 3)).nodes
    assert {preprocessor.index.topics[node] for node in nodes} == {(2, 2), (3, 3)}
    assert {len(preprocessor.graph.children(n)) for n in preprocessor.graph} == {0, 2}


def test_equal_meaning_is_one_topic_in_every_form():
    forms = (
        *((5, 12), [5, 12.0], "5..12", "[5, 12]", "5 to 12", "exits 5 to 12", b" 5..12.0 "),
        *({"first": 5, "last": 12}, '{"last": 12, "first": 5}', '<jam first="5" last="12"/>'),
        "<jam><first>5.0</first><last>12</last></jam>",
    )
    assert len({LANGUAGE.parse(form) for form in forms}) == 1
    assert LANGUAGE.parse("7") == LANGUAGE.parse(7) == (7, 7)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ((3, 2), "can match nothing"),
        ("a..b", "not JSON"),
        ((1, 2, 3), "two ends"),
        ((1, "2"), "at the last end: a finite number"),
        (True, "a finite number"),
        (float("nan"), "a finite number"),
        ((1, float("inf")), "a finite number"),
        ({"a": 1}, "at attribute 'a': only first, last can be named"),
        ({"first": 1}, "at attribute 'last': one number expected, not 0"),
        ({"first": [1, 2], "last": 3}, "at attribute 'first': one number expected, not 2"),
        ('<jam first="5" last="x"/>', "not JSON"),
        ('<jam first="5" last="true"/>', "at the last end: a finite number"),
        ('<jam first="5"><last op="lt">7</last></jam>', "only = is known"),
    ],
)
def test_what_does_not_parse_says_why(source, reason):
    with pytest.raises(LanguageError, match=reason):
        LANGUAGE.parse(source)
