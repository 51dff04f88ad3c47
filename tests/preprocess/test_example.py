"""The worked example is right, also against brute force."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.errors import LanguageError
from tests.preprocess import laws

PATH = Path(__file__).parents[2] / "examples" / "geographic_boxes.py"


def _load():
    spec = importlib.util.spec_from_file_location("geographic_boxes", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = _load()
LANGUAGE = EXAMPLE.GeographicBoxes()

ENDS = st.lists(st.integers(-3, 3), min_size=2, max_size=2).map(sorted)
BOXES = st.tuples(ENDS, ENDS).map(lambda ends: (ends[0][0], ends[1][0], ends[0][1], ends[1][1]))
POINTS = st.tuples(st.integers(-4, 4), st.integers(-4, 4))


@given(st.lists(BOXES, max_size=12), st.lists(POINTS, max_size=8), st.integers(0, 2**32))
def test_agrees_with_brute_force(boxes, points, seed):
    laws.check_language(LANGUAGE, boxes, points, seed)


def test_it_runs_and_says_where_the_quakes_were(capsys):
    headers = EXAMPLE.main()
    assert [header.nodes for header in headers] == [(3,), (4,), (1,)]
    assert "a quake near Tokyo  carries (3,)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([1, 2, 3], "4 numbers expected"),
        ([10, 0, 5, 0], "can match nothing"),
        ([-91, 0, 5, 0], "at south: -91 is not within 90"),
        ('["a", 0, 5, 0]', "at south: a number expected"),
        ("[", "not JSON"),
    ],
)
def test_what_does_not_parse_says_why(source, message):
    with pytest.raises(LanguageError, match=message):
        LANGUAGE.parse(source)
