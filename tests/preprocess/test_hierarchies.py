"""Keyword ontologies, type hierarchies and active subscriptions."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.active import Active
from preprocess.errors import LanguageError
from preprocess.ontology import Ontology
from preprocess.type_hierarchy import TypeHierarchy, name_of
from tests.preprocess import laws

BASEBALL = """
# Figure 3-3 of the thesis, in part
Baseball
  American League
    Boston
    New York
  National League
    Chicago
  Rivals
    Boston
    New York
"""


@st.composite
def ontologies(draw):
    """A random hierarchy in which keywords have several parents."""
    ontology = Ontology()
    words = [chr(ord("a") + i) for i in range(draw(st.integers(1, 9)))]
    for i, word in enumerate(words):
        ontology.add(word, draw(st.lists(st.sampled_from(words[:i]), max_size=2)) if i else ())
    choices = st.lists(st.sampled_from(words), min_size=1, max_size=3)
    return ontology, draw(st.lists(choices, max_size=12)), draw(st.lists(choices, max_size=6))


@given(ontologies(), st.integers(0, 2**32))
def test_ontologies_agree_with_brute_force(drawn, seed):
    laws.check_language(*drawn, seed)


def test_covering_is_containment_of_all_that_can_be_published():
    """Exhaustively, on a small hierarchy: covers says no more and no less than the sets do."""
    ontology = Ontology.from_text(BASEBALL)
    words = sorted(ontology._up)
    topics = {ontology.parse(list(c)) for n in (1, 2, 3) for c in itertools.combinations(words, n)}
    notes = [ontology.parse_notification(word) for word in words]
    held = {t: {n for n in notes if ontology.matches(t, n)} for t in topics}
    for a in topics:
        for b in topics:
            assert ontology.covers(a, b) == (held[a] >= held[b])
            assert (held[a] == held[b]) == (a == b)


def test_boston_or_new_york_goes_between_league_and_teams():
    """Figure 3-22: the new topic is a child of the league and a parent of both teams."""
    ontology = Ontology.from_text(BASEBALL)
    first = ["American League", "Boston", "New York"]
    preprocessor = laws.grown(ontology, [ontology.parse(word) for word in first])
    preprocessor.load([(9, ["New York", "Boston"])])
    assert preprocessor.graph.parents(9) == {0}
    assert preprocessor.graph.children(9) == {1, 2}
    assert preprocessor.graph.children(0) == {9}
    assert preprocessor.notification("Boston").nodes == (1,)
    assert preprocessor.notification(["Boston", "Chicago", "New York"]).nodes == (1, 2)


def test_equal_choices_are_one_topic():
    ontology = Ontology.from_text(BASEBALL)
    forms = (
        *("Rivals", ["Boston", "Rivals"], '["Rivals", "New York"]', ("Rivals", "Rivals")),
        *({"keyword": "Rivals"}, '{"keyword": ["Boston", "Rivals"]}', '"Rivals"'),
        *('<s keyword="Rivals"/>', "<s><keyword>Boston</keyword><keyword>Rivals</keyword></s>"),
    )
    assert len({ontology.parse(form) for form in forms}) == 1
    labels = (["Boston", "New York"], '{"keyword": ["New York", "Boston"]}')
    xml = "<n><keyword>Boston</keyword><keyword>New York</keyword></n>"
    assert len({ontology.parse_notification(form) for form in (*labels, xml)}) == 1


def test_an_ontology_comes_from_a_file(tmp_path):
    path = tmp_path / "baseball.txt"
    path.write_text(BASEBALL)
    ontology = Ontology.from_file(path)
    assert ontology.up("Boston") == {"Boston", "American League", "Rivals", "Baseball"}
    path.write_bytes(b"Baseball\n  \xff")
    with pytest.raises(LanguageError, match=r"at byte 11 of .*baseball\.txt: not UTF-8"):
        Ontology.from_file(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  a", "line 1: 'a' is indented under nothing"),
        ("a\n\tb", "line 2: indent with spaces"),
        ("a\n  b\nb\n  a", "is above and below"),
        ("a\n  a", "is above and below"),
    ],
)
def test_a_wrong_file_says_where(text, message):
    with pytest.raises(LanguageError, match=message):
        Ontology.from_text(text)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Cricket", "'Cricket': not a keyword"),
        ([], "can match nothing"),
        (7, "a name or a list"),
        ([7], "a name is a text"),
        ('["Boston"', "not JSON"),
        ("7", "'7': not a keyword"),
        ('{"keyword": []}', "can match nothing"),
        ("<s/>", "can match nothing"),
        ("<s><word>Boston</word></s>", "line 1, column 16: only keyword can be named"),
    ],
)
def test_wrong_keywords_say_why(source, message):
    with pytest.raises(LanguageError, match=message):
        Ontology.from_text(BASEBALL).parse(source)


# -- types -------------------------------------------------------------------------------------


@given(st.data())
def test_types_agree_with_brute_force(data):
    classes: list[type] = [object]
    for i in range(data.draw(st.integers(1, 7))):
        bases = data.draw(st.lists(st.sampled_from(classes), min_size=1, max_size=2, unique=True))
        try:
            classes.append(type(f"C{i}", tuple(bases), {}))
        except TypeError:
            continue  # these bases have no common order
    language = TypeHierarchy(classes)
    choice = st.sampled_from(classes)
    topics = data.draw(st.lists(choice | st.lists(choice, min_size=1, max_size=2), max_size=8))
    notes = [cls() for cls in data.draw(st.lists(choice, max_size=5))]
    laws.check_language(language, topics, notes, 1)
    for a, b in itertools.product(classes, repeat=2):
        assert language.covers(language.parse(a), language.parse(b)) == issubclass(b, a)


def test_classes_are_known_by_name_and_unions_are_choices():
    language = TypeHierarchy([OSError, ValueError])
    assert language.parse("builtins.OSError") == language.parse(OSError)
    either = language.parse(OSError | ValueError)
    assert either == language.parse(["builtins.ValueError", "builtins.OSError"])
    assert either == language.parse('{"type": ["builtins.ValueError", "builtins.OSError"]}')
    xml = "<s><type>builtins.OSError</type><type>builtins.ValueError</type></s>"
    assert either == language.parse(xml)
    assert language.matches(either, language.parse_notification(FileNotFoundError()))
    assert not language.matches(either, language.parse_notification(KeyError()))


def test_an_unknown_class_is_refused_and_never_imported():
    language = TypeHierarchy([int])
    with pytest.raises(LanguageError, match="not a class that this preprocessor knows"):
        language.parse("os.PathLike")
    with pytest.raises(LanguageError, match=f"'{name_of(random.Random)}': not a class"):
        language.parse(random.Random)


def test_two_classes_of_one_name_are_refused():
    first, second = (type("Same", (), {}) for _ in range(2))
    with pytest.raises(LanguageError, match="another class has this name"):
        TypeHierarchy([first, second])


# -- active ------------------------------------------------------------------------------------


def _active(count: int) -> Active:
    language = Active()
    for divisor in range(1, count + 1):
        language.add(f"divides by {divisor}", lambda n, d=divisor: n % d == 0)
    return language


@given(st.lists(st.integers(1, 9), max_size=9), st.lists(st.integers(0, 99), max_size=9))
def test_active_subscriptions_agree_with_brute_force(divisors, notes):
    laws.check_language(_active(9), [f"divides by {d}" for d in divisors], notes, 1)


def test_a_predicate_that_raises_is_counted_and_harms_no_other():
    language = _active(1)
    language.add("broken", lambda n: n == 1 // 0)
    preprocessor = laws.grown(language, ["broken", "divides by 1"])
    assert preprocessor.notification(4).nodes == (1,)
    count, error = language.failures["broken"]
    assert count == 1
    assert isinstance(error, ZeroDivisionError)


def test_a_predicate_is_named_in_every_form():
    language = _active(1)
    language.add("<odd name", bool)
    forms = ("divides by 1", {"predicate": "divides by 1"}, '{"predicate": "divides by 1"}')
    xml = "<s><predicate>divides by 1</predicate></s>"
    assert {language.parse(form) for form in (*forms, xml)} == {"divides by 1"}
    assert language.parse("<odd name") == "<odd name"


@pytest.mark.parametrize("source", [7, {}, [], "<s/>", {"predicate": ["divides by 1", "x"]}])
def test_what_names_no_predicate_is_refused(source):
    with pytest.raises(LanguageError, match="not the name of a predicate"):
        _active(1).parse(source)


def test_an_unknown_predicate_is_refused():
    language = _active(1)
    with pytest.raises(LanguageError, match="not the name of a predicate"):
        language.parse("__import__('os')")
    with pytest.raises(LanguageError, match="another predicate"):
        language.add("divides by 1", bool)
