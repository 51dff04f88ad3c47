"""Typed predicates: forms, types, canonical boxes, and the index against brute force."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.errors import LanguageError
from preprocess.predicates import Predicates
from tests.preprocess import laws

SCHEMA = {
    "symbol": "string",
    "price": "float",
    "volume": "int",
    "open": "bool",
    "day": "date",
    "source": "ip",
}
LANGUAGE = Predicates(SCHEMA)

TEXTS = st.text("abc", max_size=4) | st.sampled_from(
    ["abcabcab", "abcabcba", "cabcabcab", "\0", ""]
)
PRICES = st.sampled_from([-1.5, 0.0, 0.5, 1.0, 2.0, 1e300])
VOLUMES = st.integers(-3, 6) | st.sampled_from([2**60, 2**60 + 1, -(2**100)])
DAYS = st.dates(datetime.date(2004, 5, 23), datetime.date(2004, 5, 26))
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.1.0.0", "::1", "fe80::1"])
NETWORKS = st.sampled_from(["10.0.0.0/8", "10.0.0.0/30", "10.0.0.1", "::/64", "fe80::/10"])


def compared(values, extra=()):
    """Operators on one attribute, of which none excludes itself."""
    pair = st.lists(values, min_size=2, max_size=2).map(sorted)
    options = [
        st.tuples(st.sampled_from(["=", "!=", "<=", ">="]), values),
        st.tuples(st.just("in"), st.lists(values, min_size=1, max_size=3)),
        st.tuples(st.just("range"), pair),
        st.tuples(st.just("exists"), st.just(True)),
        *extra,
    ]
    return st.one_of(options).map(lambda pair: {pair[0]: pair[1]})


DEMANDS = {
    "symbol": compared(
        TEXTS,
        [
            st.tuples(st.sampled_from(["prefix", "suffix", "contains"]), TEXTS),
            st.tuples(st.sampled_from(["suffix", "contains"]), TEXTS),
        ],
    ),
    "price": compared(PRICES),
    "volume": compared(VOLUMES),
    "open": compared(st.booleans()),
    "day": compared(DAYS),
    "source": st.tuples(st.sampled_from(["=", "!="]), NETWORKS).map(lambda p: {p[0]: p[1]})
    | st.lists(NETWORKS, min_size=1, max_size=2).map(lambda nets: {"in": nets}),
}
VALUES = {
    "symbol": TEXTS,
    "price": PRICES,
    "volume": VOLUMES,
    "open": st.booleans(),
    "day": DAYS,
    "source": ADDRESSES,
}


def boxes(names):
    return st.fixed_dictionaries({}, optional={name: DEMANDS[name] for name in names})


def subscriptions(names):
    return boxes(names) | st.lists(boxes(names), min_size=1, max_size=3)


def notifications(names):
    return st.fixed_dictionaries({}, optional={name: VALUES[name] for name in names})


@st.composite
def worlds(draw):
    names = draw(st.lists(st.sampled_from(sorted(SCHEMA)), min_size=1, max_size=3, unique=True))
    return (
        draw(st.lists(subscriptions(names), max_size=8)),
        draw(st.lists(notifications(names), max_size=8)),
    )


@given(worlds(), st.integers(0, 2**32))
def test_agrees_with_brute_force(world, seed):
    laws.check_language(LANGUAGE, *world, seed)


def test_large_integers_are_not_rounded():
    """2**60 + 1 and 2**60 are one float."""
    topics = [LANGUAGE.parse(f"volume in 0..{2**60}"), LANGUAGE.parse(f"volume > {2**60}")]
    preprocessor = laws.grown(LANGUAGE, topics)
    assert preprocessor.notification({"volume": 2**60 + 1}).nodes == (1,)
    assert preprocessor.notification({"volume": 2**60}).nodes == (0,)
    assert preprocessor.notification({"volume": 2**53 + 1}).nodes == (0,)


# -- covering is exact but for suffixes and substrings -----------------------------------------

SMALL = Predicates({"n": "int", "b": "bool", "m": "int"})
NUMBERS = st.integers(0, 3)
SMALL_BOXES = st.fixed_dictionaries(
    {},
    optional={
        "n": st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), NUMBERS).map(
            lambda p: {p[0]: p[1]}
        ),
        "b": st.booleans(),
        "m": st.lists(NUMBERS, min_size=1).map(lambda ns: {"in": ns}),
    },
)
EVERYTHING = [
    {name: value for name, value in zip("nbm", values, strict=True) if value is not None}
    for values in itertools.product(
        [*range(-1, 5), None], [False, True, None], [*range(-1, 5), None]
    )
]


@given(st.lists(st.lists(SMALL_BOXES, min_size=1, max_size=4), min_size=2, max_size=4))
def test_covering_and_equality_are_exact(unions):
    """On all values that can differ: a covers b exactly if it holds all that b holds."""
    notes = [SMALL.parse_notification(values) for values in EVERYTHING]
    topics = [SMALL.parse(union) for union in unions]
    held = [{i for i, note in enumerate(notes) if SMALL.matches(t, note)} for t in topics]
    for (a, in_a), (b, in_b) in itertools.product(zip(topics, held, strict=True), repeat=2):
        assert SMALL.covers(a, b) == (in_a >= in_b)
        assert (a == b) == (in_a == in_b)


def test_unions_are_written_one_way():
    left = SMALL.parse("n < 2 and b = true or n < 2 and b = false or m = 1 and n >= 2")
    right = SMALL.parse("m in (1) and b exists or n <= 1 and b exists or n > 1 and m = 1")
    assert left != right
    assert SMALL.covers(SMALL.parse("n exists or m exists"), left)
    wide = "n in 0..5 or n in 3..9 or n = 10"
    assert SMALL.parse(wide) == SMALL.parse("n in 0..10") == SMALL.parse({"n": {"range": [0, 10]}})


# -- forms -------------------------------------------------------------------------------------


def test_equal_meaning_is_one_topic_in_every_form():
    forms = [
        "symbol = IBM and price < 10 and open = true and day = 2004-05-24 and source in 10.0.0.0/8",
        "source in 10.0.0.0..10.255.255.255 and (open != false and day in (2004-05-24)) and "
        'price < 10.0 and symbol = "IBM"',
        {
            "symbol": "IBM",
            "price": {"<": 10},
            "open": True,
            "day": datetime.date(2004, 5, 24),
            "source": ipaddress.ip_network("10.0.0.0/8"),
        },
        '{"symbol": {"in": ["IBM"]}, "price": {"<=": 9.999999999999998}, "open": "true", '
        '"day": {"range": ["2004-05-24", "2004-05-24"]}, "source": {"=": "10.0.0.0/8"}}',
        '<s symbol="IBM" open="true"><price op="lt">10</price><day>2004-05-24</day>'
        '<source op="in">10.0.0.0/9, 10.128.0.0/9</source></s>',
    ]
    assert len({LANGUAGE.parse(form) for form in forms}) == 1


def test_xml_alternatives():
    text = '<any><s><volume op="gt">5</volume></s><s><volume op="le">5</volume></s></any>'
    assert LANGUAGE.parse(text) == LANGUAGE.parse("volume exists")


def test_a_text_may_hold_anything_in_quotes():
    topic = LANGUAGE.parse(r"""symbol in ("a \"b\" \\", 'or', "and (")""")
    assert LANGUAGE.matches(topic, {"symbol": 'a "b" \\'})
    assert LANGUAGE.matches(topic, {"symbol": "and ("})
    assert not LANGUAGE.matches(topic, {"symbol": "and"})


def test_what_a_notification_may_be():
    forms = [{"price": 5, "more": [1]}, '{"price": 5.0, "x": 1}', "<n price='5'/>"]
    assert all(LANGUAGE.parse_notification(form) == {"price": 5.0} for form in forms)


@pytest.mark.parametrize(
    ("source", "position", "reason"),
    [
        ("", "character 1", "the name of an attribute expected, not the end"),
        ("price <", "character 8", "a value expected, not the end"),
        ("price < 5 6", "character 11", "'and', 'or' or the end expected, not '6'"),
        ("price 5", "character 7", "an operator expected, not '5'"),
        ("(price < 5", "character 11", "expected, not the end"),
        ('symbol = "abc', "character 10", "cannot read"),
        ("price ! 5", "character 7", "cannot read"),
        ("price in (1, 2", "character 15", "expected, not the end"),
        ("(" * 40 + "price < 5" + ")" * 40, "character 18", "nested more than"),
        (" and ".join(["(price = 1 or volume = 2)"] * 12), "character 207", "more than"),
        ("prize < 5", "character 1", "unknown attribute 'prize'; known are symbol, price"),
        ("price < abc", "character 1", "not a value of type float: 'abc'"),
        ("volume = 1.5", "character 1", "not a value of type int"),
        ("day = 2004-02-30", "character 1", "not a value of type date"),
        ("source in 10.0.0.0/40", "character 1", "not an address or network"),
        ("open = maybe", "character 1", "not a value of type bool"),
        ("volume prefix 1", "character 1", "prefix is for texts, not for type int"),
        ({"price": {"~": 1}}, "attribute 'price'", "unknown operator '~'"),
        ({"price": math.nan}, "attribute 'price'", "not finite"),
        ({"price": True}, "attribute 'price'", "a number expected"),
        ({"source": 5}, "attribute 'source'", "an address such as"),
        ({"volume": 2**200}, "attribute 'volume'", "too large"),
        ({"price": {"range": [1, 2, 3]}}, "attribute 'price'", "2 values expected, not 3"),
        ({"price": {"in": []}}, "attribute 'price'", "a list of values"),
        ({"price": {"exists": False}}, "attribute 'price'", "takes no other value"),
        ({"price": {"span": [1]}}, "attribute 'price'", "a list of pairs"),
        ({"price": {"span": [["a", None]]}}, "attribute 'price'", "not an end of a span"),
        ({"open": {"span": [[-5, None]]}}, "attribute 'open'", "out of range"),
        ([{"price": 1}, {"price": "x"}], "alternative 2, attribute 'price'", "not a value"),
        ({"symbol": "x" * 5000}, "attribute 'symbol'", "more than 4096 characters"),
        ("price > 5 and price < 5", None, "can match nothing"),
        ("price > 5 and price <= 5", None, "can match nothing"),
        ("volume > 5 and volume < 6", None, "can match nothing"),
        ("symbol suffix a and symbol suffix b", None, "can match nothing"),
        ("symbol in (ab, cd) and symbol contains x", None, "can match nothing"),
        ("open < false", "character 1", "can match nothing"),
        ("source in 10.0.0.0/8 and source in 11.0.0.0/8", None, "can match nothing"),
        ({"price": {"range": [3, 2]}}, "attribute 'price'", "can match nothing"),
    ],
)
def test_what_does_not_parse_says_where_and_why(source, position, reason):
    with pytest.raises(LanguageError, match=reason) as caught:
        LANGUAGE.parse(source)
    assert caught.value.position == position


def test_alternatives_that_match_nothing_are_left_out():
    assert LANGUAGE.parse("price < 1 and price > 2 or volume = 3") == LANGUAGE.parse("volume = 3")


def test_too_many_separate_boxes_are_refused():
    scattered = [{"price": i, "volume": i} for i in range(100)]
    with pytest.raises(LanguageError, match="separate boxes: split the subscription"):
        LANGUAGE.parse(scattered)


def test_a_schema_names_known_types():
    with pytest.raises(LanguageError, match="unknown type 'text'; known are int, float"):
        Predicates({"a": "text"})
    with pytest.raises(LanguageError, match="one attribute at least"):
        Predicates({})


# -- the index at a size where it has something to choose --------------------------------------


def random_filter(rng: random.Random) -> dict[str, object]:
    """Some demands of every kind that the index files differently."""
    options: dict[str, object] = {
        "symbol": rng.choice(
            (
                f"S{rng.randrange(20)}",
                {"prefix": rng.choice(("S1", "S", "long-prefix-1"))},
                {"suffix": str(rng.randrange(20))},
                {"contains": rng.choice(("1", "S2", "fix-1"))},
                {"in": [f"S{rng.randrange(20)}" for _ in range(rng.choice((2, 12)))]},
                {"!=": "S3"},
            )
        ),
        "price": rng.choice(
            ({"range": sorted((rng.uniform(0, 9), rng.uniform(0, 9)))}, {"<": rng.uniform(0, 9)})
        ),
        "volume": rng.choice(({">=": rng.randrange(9)}, rng.randrange(9))),
        "open": rng.random() < 0.5,
        "day": {"range": ["2004-05-01", f"2004-05-{rng.randrange(2, 29):02}"]},
        "source": {"in": [f"10.{rng.randrange(4)}.0.0/{rng.choice((15, 16))}"]}
        if rng.random() < 0.5
        else {"exists": True},
    }
    return {name: options[name] for name in rng.sample(sorted(options), rng.randint(0, 3))}


def random_note(rng: random.Random) -> dict[str, object]:
    values: dict[str, object] = {
        "symbol": rng.choice((f"S{rng.randrange(25)}", f"long-prefix-{rng.randrange(20)}")),
        "price": rng.uniform(0, 9),
        "volume": rng.randrange(12),
        "open": rng.random() < 0.5,
        "day": f"2004-05-{rng.randrange(1, 31):02}",
        "source": f"10.{rng.randrange(5)}.0.1",
    }
    return {name: values[name] for name in rng.sample(sorted(values), rng.randint(1, 6))}


def some_filter(rng: random.Random) -> dict[str, object]:
    """A filter whose network has no host bits set."""
    while True:
        found = random_filter(rng)
        try:
            LANGUAGE.parse(found)
        except LanguageError:
            continue
        return found


def test_a_thousand_filters_and_every_way_to_file_them():
    rng = random.Random(5)
    topics = list(dict.fromkeys(LANGUAGE.parse(some_filter(rng)) for _ in range(1000)))
    preprocessor = laws.grown(LANGUAGE, topics)
    index = preprocessor.index
    forms = {key[1] if len(key) > 1 else "all" for key in index._access._buckets}
    assert forms == {"is", "prefix", "suffix", "part", "all"}
    notes = [LANGUAGE.parse_notification(random_note(rng)) for _ in range(40)]
    laws.check_headers(preprocessor, topics, notes)
    covered = sum(len(preprocessor.graph.parents(node)) > 0 for node in preprocessor.graph)
    assert covered > 300
    for topic in topics[::50]:
        node = preprocessor.nodes[topic]
        above = {n for n, other in index.topics.items() if LANGUAGE.covers(other, topic)}
        below = {n for n, other in index.topics.items() if LANGUAGE.covers(topic, other)}
        assert preprocessor.graph.ancestors(node) == above - {node}
        assert preprocessor.graph.descendants(node) == below - {node}
