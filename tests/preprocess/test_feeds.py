"""RSS and Atom: subscriptions to items, the index, and feeds whole and broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.errors import LanguageError
from preprocess.feeds import Feeds, Item, read_feed
from preprocess.preprocessor import Preprocessor
from preprocess.subsets import SetIndex
from routing import api
from routing.content_graph import ContentGraph
from routing.protocols.f3 import F3Router
from routing.store import Store
from sim.network import Link, Network
from tests.preprocess import laws
from topology.overlay import overlay
from topology.paths import next_hops

LANGUAGE = Feeds()
ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("F3_DATA", ROOT.parent / "shared" / "data")) / "feeds"

WORDS = st.sampled_from(["ant", "bee", "cow", "dog"])
SUBSCRIPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "feed": st.sampled_from(["One", "Two"]),
        "category": st.lists(st.sampled_from(["x", "y"]), min_size=1),
        "words": st.lists(WORDS, min_size=1, max_size=3),
    },
)
ITEMS = st.builds(
    Item,
    st.sampled_from(["One", "Two"]),
    st.lists(WORDS, min_size=1).map(" ".join),
    summary=st.lists(WORDS).map(" ".join),
    categories=st.lists(st.sampled_from(["x", "Y"])).map(tuple),
)


@given(st.lists(SUBSCRIPTIONS, max_size=12), st.lists(ITEMS, max_size=8), st.integers(0, 2**32))
def test_agrees_with_brute_force(subscriptions, items, seed):
    laws.check_language(LANGUAGE, subscriptions, items, seed)


def test_equal_meaning_is_one_topic_in_every_form():
    forms = [
        {"category": "Open  Source", "words": "Red Hat"},
        {"words": ["hat", "RED"], "category": ["open source"]},
        '{"category": "OPEN SOURCE", "words": ["red", "hat", "red"]}',
        "<item><category>open source</category><words>red</words><words>hat</words></item>",
    ]
    assert len({LANGUAGE.parse(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"feed": ["a", "b"]}, "matches nothing"),
        ({"words": "..."}, "no word in"),
        ({"word": "a"}, "only feed, category and words"),
        ({"words": 7}, "at attribute 'words': a text, or a list"),
        ({"words": {"<": "a"}}, "only = is known"),
    ],
)
def test_what_does_not_parse_says_why(source, message):
    with pytest.raises(LanguageError, match=message):
        LANGUAGE.parse(source)


def test_an_item_may_come_as_its_fields():
    item = Item("f", "A title", categories=("x",))
    forms = [
        {"feed": "f", "title": "A title", "categories": ["x"]},
        '{"feed": "f", "title": "A title", "categories": "x"}',
        '{"feed": "f", "title": "A title", "category": ["x"]}',
        '<item feed="f"><title>A title</title><category>x</category></item>',
    ]
    parsed = LANGUAGE.parse_notification(item)
    assert all(LANGUAGE.parse_notification(form) == parsed for form in forms)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"feed": "f"}, "at field 'title': it is missing"),
        ({"feed": 7, "title": "t"}, "at field 'feed': one text expected"),
        ({"feed": "f", "title": ["t", "u"]}, "at field 'title': one text expected"),
        ({"feed": "f", "title": "t", "categories": [7]}, "at field 'category': one text expected"),
        ({"feed": "f", "title": "t", "body": "b"}, "at attribute 'body': only feed, title"),
        ("<item feed='f'><title>t</title><body/></item>", "line 1, column 39: only feed, title"),
        ("<item feed='f'", "not XML"),
        ('{"feed": "f"', "not JSON"),
        ("[1]", "an Item or its fields expected, not str"),
        (7, "an Item or its fields expected, not int"),
    ],
)
def test_an_item_that_does_not_parse_says_why(source, message):
    with pytest.raises(LanguageError, match=message):
        LANGUAGE.parse_notification(source)


def test_markup_is_no_word():
    item = Item("f", "A title", summary='<p class="b">It&#8217;s <em>one</em>two &amp; three</p>')
    words = {text for kind, text in LANGUAGE.parse_notification(item) if kind == "word"}
    assert words == {"a", "title", "it’s", "one", "two", "three"}


# -- the index of sets -------------------------------------------------------------------------


def test_colliding_weights_are_drawn_anew():
    """With 3-bit weights sums collide at once; the answers stay exact."""
    topics = [LANGUAGE.parse({"words": [f"a{i}", f"b{j}"]}) for i in range(5) for j in range(5)]
    preprocessor = Preprocessor(LANGUAGE)
    index = SetIndex(LANGUAGE, preprocessor.graph, weight_bits=3)
    preprocessor.index = index
    preprocessor.load((node, LANGUAGE.text(topic)) for node, topic in enumerate(topics))
    assert index._bits > 3
    laws.check_headers(preprocessor, topics, topics)


def test_sums_of_other_sets_are_not_mistaken_for_topics():
    """With 2-bit weights a sum says little; 200 draws bring about every mistake."""
    a, b, c = (("word", text) for text in "abc")
    index = SetIndex(LANGUAGE, ContentGraph(), weight_bits=2)
    mistaken = 0
    index.graph.insert(0, (), ())
    index.graph.insert(1, (), ())
    index.insert(frozenset({a, b}), 0)
    index.insert(frozenset({c}), 1)
    for _ in range(200):
        index._bits = 2
        index._rebuild()
        mistaken += index._found(frozenset({a, c})) != {1}
        assert index.lowest(frozenset({a, c})) == [1]
        assert index.matching(frozenset({a})) == set()
        assert index.below(frozenset({b})) == {0}
    assert mistaken > 0


# -- documents ---------------------------------------------------------------------------------

RSS = """<?xml version="1.0"?>
<rss version="2.0"><channel><title>Field Notes</title>
<item><title>First frost</title><category>Weather</category><link>https://x.test/1</link></item>
<item><title>Owls return</title><category>Birds</category><guid>two</guid></item>
%s
</channel></rss>"""


def test_an_rss_document_becomes_items():
    first, second = read_feed((RSS % "").encode())
    assert first == Item("Field Notes", "First frost", "https://x.test/1", "", ("Weather",))
    assert second.categories == ("Birds",)
    assert read_feed((RSS % "").encode(), "notes")[0].feed == "notes"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        (RSS % "<item><guid>three</guid></item>", "entry 3 (three)", "neither a title"),
        (RSS % "<item><title>Broken", "entry 3", "not XML"),
        (RSS % "<item><title>a < b</title></item>", "entry 3", "not XML"),
        ("<rss version='2.0'><channel><title>x", "the head of the feed", "not XML"),
        ("<html><body>no feed</body></html>", None, "neither RSS nor Atom"),
        ("", None, "neither RSS nor Atom"),
        ("<rss version='2.0'><channel/></rss>", "the feed", "no title"),
    ],
)
def test_a_broken_feed_gives_an_error_that_names_the_entry(text, position, message):
    with pytest.raises(LanguageError, match=message) as caught:
        read_feed(text.encode())
    assert caught.value.position == position


def _real(name: str) -> bytes:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not there; set F3_DATA to a folder that has feeds/{name}")
    return path.read_bytes()


def test_a_real_broken_feed_names_its_entry():
    with pytest.raises(
        LanguageError, match=r"at entry 1 .*v3\.9\.0.: neither a title nor a summary"
    ):
        read_feed(_real("missing-fields.atom"), "releases")


def test_a_truncated_real_feed_names_the_entry_it_breaks_off_in():
    data = _real("guardian.rss")
    whole = len(read_feed(data))
    cut = data[: data.rindex(b"<description>") + 40]
    with pytest.raises(LanguageError, match=f"at entry {whole}: not XML"):
        read_feed(cut)


SUBSCRIBERS = {
    "everything": {},
    "guardian": {"feed": "The Guardian"},
    "politics": {"category": "US politics"},
    "trump politics": {"category": "us politics", "words": "trump"},
    "java": {"words": "java"},
    "heise java": {"feed": "heise developer neueste Meldungen", "words": "Java"},
    "nothing": {"words": "xyzzy plugh"},
}


@pytest.mark.sim
def test_real_feeds_reach_the_right_subscribers():
    """Items of two real feeds go through a network of F3 routers; brute force says to whom."""
    items = read_feed(_real("guardian.rss")) + read_feed(_real("heise.atom"))
    preprocessor = Preprocessor(LANGUAGE)
    preprocessor.load(enumerate(SUBSCRIBERS.values()))
    links = [("rp", "a"), ("rp", "b"), ("a", "h1"), ("b", "h2"), ("rp", "h3")]
    network = Network(
        F3Router, dict.fromkeys(links, Link()), next_hops(overlay(links), ["rp"]), {"rp": Store()}
    )
    received: dict[str, set[int]] = {name: set() for name in SUBSCRIBERS}

    def observe(_: str, effect: api.Effect, now: float) -> None:
        if isinstance(effect, api.Deliver):
            received[effect.client].add(int(effect.notification.body))
        assert not isinstance(effect, api.Refused)

    network.observers.append(observe)
    graph = preprocessor.graph
    for node in graph.topological():
        network.event("rp", api.InsertNode(node, tuple(graph.parents(node)), ()))
    for node, name in enumerate(SUBSCRIBERS):
        network.event(f"h{1 + node % 2}", api.Subscribe(name, "rp", node))
    network.settle()
    for number, item in enumerate(items):
        nodes, version = preprocessor.notification(item)
        event = api.Publish(
            "reader", "rp", (api.Publication(nodes, b"%d" % number),), number, b"", version
        )
        network.event("h3", event)
        network.run(network.now + 0.01)
    network.settle()
    for name, subscription in SUBSCRIBERS.items():
        topic = LANGUAGE.parse(subscription)
        notes = [LANGUAGE.parse_notification(item) for item in items]
        assert received[name] == {i for i, n in enumerate(notes) if LANGUAGE.matches(topic, n)}
    assert len(received["everything"]) == len(items) > 20
    sizes = [len(received[n]) for n in ("guardian", "politics", "trump politics", "heise java")]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] > 0
    assert not received["nothing"]
