"""Attribute-value topics, their forms, and their index against brute force."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.attribute_value import AttributeValue
from preprocess.errors import LanguageError
from preprocess.key_table import ABSENT, DenseTable, HashTable, table_of
from tests.preprocess import laws

LANGUAGE = AttributeValue()

NAMES = st.sampled_from("abcd")
SUBSCRIPTIONS = st.lists(st.dictionaries(NAMES, st.sampled_from("12*")), max_size=14)
NOTIFICATIONS = st.lists(st.dictionaries(NAMES, st.sampled_from("123")), max_size=8)


@given(SUBSCRIPTIONS, NOTIFICATIONS, st.integers(0, 2**32))
def test_agrees_with_brute_force(subscriptions, notifications, seed):
    laws.check_language(LANGUAGE, subscriptions, notifications, seed)


def test_the_random_inputs_reach_deep_and_wide_graphs():
    """The generator above has what it takes: covering chains, several lowest nodes, none."""
    rng = random.Random(3)
    topics = [LANGUAGE.parse({name: rng.choice("12*") for name in "abcd"}) for _ in range(30)]
    preprocessor = laws.grown(LANGUAGE, list(dict.fromkeys(topics)))
    sizes = {
        len(preprocessor.notification({n: rng.choice("123") for n in "abcd"}).nodes)
        for _ in range(200)
    }
    depths = {len(preprocessor.graph.ancestors(node)) for node in preprocessor.graph}
    assert {0, 1, 2, 3} <= sizes
    assert max(depths) >= 4


def test_equal_meaning_is_one_topic_in_every_form():
    forms = [
        {"a": "5", "b": "x"},
        {"b": "x", "a": 5, "c": "*"},
        '{"a": 5, "b": "x"}',
        b'{"b": "x", "a": "5"}',
        "a=5 b=x",
        "b=x  c=* a=5",
        '<s a="5" b="x"/>',
        "<s><b> x </b><a>5</a><c>*</c></s>",
        '<?xml version="1.0"?>\n<s a="5"><b>x</b></s>',
    ]
    assert len({LANGUAGE.parse(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("source", "position", "reason"),
    [
        ('{"a": 1, ', "line 1, column 9", "not JSON"),
        ("{'a': 1}", "line 1, column 2", "not JSON"),
        ('{"a": 1, "a": 2}', "attribute 'a'", "named twice"),
        ('{"a": [1]}', "attribute 'a'", "a text, number or truth value"),
        ({"a": {"<": 1}}, "attribute 'a'", "only = is known"),
        ({"": 1}, "", "non-empty text"),
        ([1], None, "an object of attributes"),
        (7, None, "an object of attributes"),
        ([{}, {}], None, "one set of attributes"),
        ("a=1 b", "'b'", "name=value expected"),
        ("a=1 a=1", "attribute 'a'", "named twice"),
        ("", "line 1, column 1", "not JSON"),
        ("<s><a>1</a>", "line 1, column 12", "not XML"),
        ("<s><a><b/></a></s>", "line 1, column 7", "do not nest"),
        ("<s>text<a/></s>", "line 1, column 8", "between the elements"),
        ("<s><a>1</a><a>2</a></s>", "line 1, column 16", "can match nothing"),
        ("<any></any>", None, "at least one alternative"),
        (b"\xff", "byte 0", "not UTF-8"),
        ("[" * 100 + "]" * 100, None, "nested more than"),
        ("{" + " " * 70_000 + "}", None, "characters are more than"),
        ({"a": "x" * 5000}, "attribute 'a'", "characters are more than"),
        ({str(i): 1 for i in range(600)}, None, "more than"),
        ('{"a": NaN}', None, "NaN"),
    ],
)
def test_what_does_not_parse_says_where_and_why(source, position, reason):
    with pytest.raises(LanguageError, match=reason) as caught:
        LANGUAGE.parse(source)
    assert caught.value.position == position


def test_entities_are_refused():
    bomb = '<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><s x="&b;"/>'
    with pytest.raises(LanguageError, match="declarations are not allowed"):
        LANGUAGE.parse(bomb)
    with pytest.raises(LanguageError, match="not XML"):
        LANGUAGE.parse("<s>&a;</s>")


def test_a_notification_has_no_wildcards():
    with pytest.raises(LanguageError, match="no wildcards"):
        LANGUAGE.parse_notification({"a": "*"})


def test_fields_grow_with_the_values():
    """More values than a field has room for: all topics get new numbers, and stay right."""
    topics = [frozenset({("a", str(i)), ("b", str(i % 5))}) for i in range(100)]
    topics += [frozenset({("a", str(i))}) for i in range(0, 100, 7)]
    preprocessor = laws.grown(LANGUAGE, topics)
    notes = [{"a": str(i), "b": str(j)} for i in range(0, 100, 9) for j in range(6)]
    laws.check_headers(preprocessor, topics, notes)
    assert preprocessor.index._bits >= 10


def test_full_fields_are_laid_out_anew_while_that_keeps_them_in_a_word():
    """Ten attributes of twenty values: ten wider fields more would be too many bits."""
    names = [f"a{i}" for i in range(10)]
    topics = [frozenset({(n, str(v)), (names[0], "0")}) for n in names[1:] for v in range(20)]
    preprocessor = laws.grown(LANGUAGE, topics)
    assert preprocessor.index._bits <= 63
    rng = random.Random(6)
    notes = [{n: str(rng.randrange(2)) for n in names if rng.random() < 0.8} for _ in range(60)]
    laws.check_headers(preprocessor, topics, notes)


def test_many_attributes_do_not_fit_into_a_machine_word():
    topics = [frozenset({(f"a{i}", "1"), (f"a{i + 1}", "1")}) for i in range(60)]
    preprocessor = laws.grown(LANGUAGE, topics)
    assert preprocessor.index._bits > 100
    notes = [{f"a{i}": "1" for i in range(j, j + 5)} for j in range(0, 60, 6)]
    laws.check_headers(preprocessor, topics, notes)


# -- batches -----------------------------------------------------------------------------------


def _random_note(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice("123") for name in "abcde" if rng.random() < 0.7}


@pytest.mark.parametrize("count", [0, 1, 5, 40, 400])
def test_a_batch_is_what_one_by_one_gives(count):
    """Also while topics come and go between batches."""
    rng = random.Random(count)
    preprocessor = laws.grown(LANGUAGE, [])
    several = 0
    for node in range(count):
        topic = LANGUAGE.parse({name: rng.choice("12*") for name in "abcde"})
        if topic not in preprocessor.nodes:
            preprocessor.load([(node, dict(topic))])
        elif rng.random() < 0.5:
            preprocessor._remove(preprocessor.nodes[topic])
        if node % 7 == 0:
            notes = [_random_note(rng) for _ in range(50)]
            batch, version = preprocessor.notifications(notes)
            assert version == preprocessor.version
            assert batch == [preprocessor.notification(note).nodes for note in notes]
            several += sum(len(nodes) > 1 for nodes in batch)
    assert several > 0 or count < 40


def test_a_batch_converts_and_refuses_as_one_by_one_does():
    preprocessor = laws.grown(LANGUAGE, [LANGUAGE.parse({"a": 5})])
    odd = [{"a": "5"}, {"a": 5}, {"a": 6}, {"b": "1"}, '{"a": 5}'] * 10
    assert preprocessor.notifications(odd)[0] == [(0,), (0,), (), (), (0,)] * 10
    plain = [{"a": "5"}, {"a": 5}] * 10
    assert preprocessor.notifications(plain)[0] == [(0,)] * 20
    with pytest.raises(LanguageError, match="no wildcards"):
        preprocessor.notifications([{"a": "5"}] * 20 + [{"a": "*"}])
    with pytest.raises(LanguageError, match="at attribute 'a'"):
        preprocessor.notifications([{"a": "5"}] * 20 + [{"a": [1]}])


@pytest.mark.parametrize("kind", [DenseTable, HashTable])
def test_a_table_of_keys_keeps_what_was_put(kind):
    rng = random.Random(4)
    bits = 12 if kind is DenseTable else 60
    entries = {rng.getrandbits(8): i for i in range(60)}
    table = DenseTable(entries, bits) if kind is DenseTable else HashTable(entries)
    for _ in range(300):
        key = rng.getrandbits(rng.choice((8, bits)))
        entries[key] = rng.randrange(100)
        table.put(key, entries[key])
    keys = np.array([*entries, *range(256)], np.int64)
    values = [entries.get(key, ABSENT) for key in keys.tolist()]
    assert table.get(keys).tolist() == values
    there, found = table.find(keys)
    assert dict(zip(there.tolist(), found.tolist(), strict=True)) == {
        i: value for i, value in enumerate(values) if value != ABSENT
    }


def test_a_table_is_dense_where_keys_are():
    assert isinstance(table_of({1: 1}, 10), DenseTable)
    assert isinstance(table_of({1: 1}, 20), HashTable)
    assert isinstance(table_of({i: i for i in range(40_000)}, 20), DenseTable)
