"""Graphs to measure preprocessing on, one for each language and size.

    attribute-value         every topic over six attributes (Kulik 2004, Study 2): nine values and
                            the wildcard make 10^6, five make 46,656, and three attributes 1000
    attribute-value-sparse  so many of the 10^8 topics over eight attributes, wildcards at 0.3
    ranges                  every stretch of a highway (Study 1)
    predicates              boxes over three of five typed attributes, none within another
    ontology, types         complete trees
    feeds                   a feed, a category and some words, drawn with preferences
    active                  predicates that test one number

Each notification names an attribute with probability 0.7, as in the thesis.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from preprocess.active import Active
from preprocess.attribute_value import AttributeValue
from preprocess.feeds import Feeds, Item
from preprocess.language import Language
from preprocess.measure import Scene
from preprocess.ontology import Ontology
from preprocess.predicates import Predicates
from preprocess.preprocessor import Inserted, Preprocessor
from preprocess.ranges import Ranges
from preprocess.type_hierarchy import TypeHierarchy

#: Subscriptions, roughly: what fits the language's structure is taken.
SIZES = {"1k": 1_000, "46k": 46_656, "1M": 1_000_000}

_APPEARS = 0.7
_WILDCARD = 0.3

Rng = random.Random
Row = tuple[int, Any, list[int]]
"""Node, subscription and parents."""
Build = Callable[[int, Rng], Scene]


def _scene(
    name: str,
    language: Language[Any, Any],
    rows: Iterable[Row],
    notification: Callable[[Rng], Any],
    newcomer: Callable[[Rng], Any],
) -> Scene:
    preprocessor = Preprocessor(language)
    preprocessor.adopt(rows)
    return Scene(name, preprocessor, notification, newcomer)


# -- attribute-value ---------------------------------------------------------------------------


def attribute_value(size: int, rng: Rng) -> Scene:
    """A complete cube; newcomers bring a new attribute."""
    attributes, values = {1_000: (3, 9), 46_656: (6, 5), 1_000_000: (6, 9)}.get(size, (3, 4))

    def note(rng: Rng) -> dict[str, str]:
        return _pairs(rng, attributes, values, _APPEARS)

    def newcomer(rng: Rng) -> dict[str, str]:
        return {**note(rng), "z": str(rng.randrange(100))}

    rows = _cube(attributes, values)
    return _scene("attribute-value", AttributeValue(), rows, note, newcomer)


def _cube(attributes: int, values: int) -> Iterator[Row]:
    """Topics as numbers in base values + 1; the parents lack one digit."""
    base = values + 1
    weights = [base**i for i in range(attributes)]
    digits = sorted(
        itertools.product(range(base), repeat=attributes), key=lambda d: sum(map(bool, d))
    )
    for topic in digits:
        node = sum(digit * weight for digit, weight in zip(topic, weights, strict=True))
        used = [(i, digit) for i, digit in enumerate(topic) if digit]
        parents = [node - digit * weights[i] for i, digit in used]
        yield node, {f"a{i}": f"v{digit}" for i, digit in used}, parents


def _pairs(rng: Rng, attributes: int, values: int, share: float) -> dict[str, str]:
    return {
        f"a{i}": f"v{rng.randrange(values) + 1}" for i in range(attributes) if rng.random() < share
    }


def attribute_value_sparse(size: int, rng: Rng) -> Scene:
    """Random topics over eight attributes of nine values."""

    def draw(share: float) -> Callable[[Rng], dict[str, str]]:
        return lambda rng: _pairs(rng, 8, 9, share)

    language = AttributeValue()
    drawn = draw(1 - _WILDCARD)
    scene = Scene("attribute-value-sparse", Preprocessor(language), draw(_APPEARS), drawn)
    _grow(scene.preprocessor, _distinct(language, drawn, size, rng), dict)
    return scene


def _distinct(
    language: Language[Any, Any], draw: Callable[[Rng], Any], size: int, rng: Rng
) -> list[Any]:
    """So many different topics, those with fewer atoms first: nothing is covered by a later one."""
    found: dict[Any, None] = {}
    while len(found) < size:
        found[language.parse(draw(rng))] = None
    return sorted(found, key=len)


def _grow(
    preprocessor: Preprocessor[Any, Any], topics: list[Any], as_notification: Callable[[Any], Any]
) -> None:
    """Insert topics that come after what covers them: only the parents are to be found.

    They are the lowest nodes that match a notification with the topic's atoms and no others.
    """
    lowest, insert = preprocessor.index.lowest, preprocessor.insert
    for node, topic in enumerate(topics):
        insert(topic, Inserted(node + 1, node, "", tuple(lowest(as_notification(topic))), ()))


# -- the others --------------------------------------------------------------------------------


def ranges(size: int, rng: Rng) -> Scene:
    """All stretches between exits; newcomers begin or end half-way."""
    exits = int((2 * size) ** 0.5)

    def rows() -> Iterator[Row]:
        for length in range(exits - 1, -1, -1):
            for first in range(exits - length):
                last = first + length
                above = [(first - 1, last), (first, last + 1)]
                parents = [a * exits + b for a, b in above if a >= 0 and b < exits]
                yield first * exits + last, (first, last), parents

    def note(rng: Rng) -> tuple[int, int]:
        one, other = rng.randrange(exits), rng.randrange(exits)
        return (min(one, other), max(one, other))

    def newcomer(rng: Rng) -> tuple[float, float]:
        first, last = note(rng)
        return (first - rng.random() / 2, last + rng.random() / 2)

    return _scene("ranges", Ranges(), rows(), note, newcomer)


_SCHEMA = {
    "symbol": "string",
    "exchange": "string",
    "price": "float",
    "volume": "int",
    "day": "date",
}


def predicates(size: int, rng: Rng) -> Scene:
    """Three of five attributes, equal widths: no box lies within another, the graph is flat."""
    names = sorted(_SCHEMA)

    def box(rng: Rng) -> dict[str, Any]:
        price, volume, day = rng.uniform(0, 800), rng.randrange(80_000), rng.randrange(290)
        demands = {
            "symbol": f"S{rng.randrange(100)}",
            "exchange": f"X{rng.randrange(10)}",
            "price": {"range": [price, price + 200]},
            "volume": {"range": [volume, volume + 20_000]},
            "day": {"range": [_day(day), _day(day + 73)]},
        }
        return {name: demands[name] for name in rng.sample(names, 3)}

    def note(rng: Rng) -> dict[str, Any]:
        return {
            "symbol": f"S{rng.randrange(100)}",
            "exchange": f"X{rng.randrange(10)}",
            "price": rng.uniform(0, 1000),
            "volume": rng.randrange(100_000),
            "day": _day(rng.randrange(365)),
        }

    language = Predicates(_SCHEMA)
    found: dict[Any, Any] = {}
    while len(found) < size:
        demands = box(rng)
        found.setdefault(language.parse(demands), demands)
    rows: list[Row] = [(node, demands, []) for node, demands in enumerate(found.values())]
    return _scene("predicates", language, rows, note, box)


def _day(number: int) -> str:
    return (datetime.date(2004, 1, 1) + datetime.timedelta(number)).isoformat()


def ontology(size: int, rng: Rng) -> Scene:
    """A complete tree of keywords; newcomers are choices of two."""
    language = Ontology()
    rows = []
    for node, parent in _tree(size):
        above = [] if parent is None else [parent]
        language.add(f"k{node}", [f"k{p}" for p in above])
        rows.append((node, f"k{node}", above))
    count = len(rows)

    def note(rng: Rng) -> str:
        return f"k{rng.randrange(count)}"

    def newcomer(rng: Rng) -> list[str]:
        return [note(rng), note(rng)]

    return _scene("ontology", language, rows, note, newcomer)


def _tree(size: int) -> Iterator[tuple[int, int | None]]:
    """Nodes and parents of a tree in which every node has ten children, level by level."""
    for node in range(size):
        yield node, (node - 1) // 10 if node else None


def types(size: int, rng: Rng) -> Scene:
    """A tree of classes; newcomers are unions of two."""
    classes: list[type] = []
    rows = []
    for node, parent in _tree(size):
        bases = (classes[parent],) if parent is not None else ()
        classes.append(type(f"C{node}", bases, {}))
        rows.append((node, classes[-1], [] if parent is None else [parent]))

    def note(rng: Rng) -> object:
        return rng.choice(classes)()

    def newcomer(rng: Rng) -> list[type]:
        return rng.sample(classes, 2)

    return _scene("types", TypeHierarchy(classes), rows, note, newcomer)


def feeds(size: int, rng: Rng) -> Scene:
    """Popular words are asked for and written more often than others."""

    def some(rng: Rng, prefix: str, count: int) -> str:
        return f"{prefix}{int(count * rng.random() ** 3)}"

    def subscription(rng: Rng) -> dict[str, Any]:
        terms: dict[str, Any] = {}
        if rng.random() < 0.5:
            terms["feed"] = some(rng, "feed", 100)
        if rng.random() < 0.5:
            terms["category"] = some(rng, "category", 500)
        words = [some(rng, "w", 20_000) for _ in range(rng.randrange(4))]
        return {**terms, "words": words} if words else terms

    def item(rng: Rng) -> Item:
        return Item(
            some(rng, "feed", 100),
            " ".join(some(rng, "w", 20_000) for _ in range(8)),
            summary=" ".join(some(rng, "w", 20_000) for _ in range(40)),
            categories=tuple(some(rng, "category", 500) for _ in range(3)),
        )

    language = Feeds()
    scene = Scene("feeds", Preprocessor(language), item, subscription)
    _grow(scene.preprocessor, _distinct(language, subscription, size, rng), frozenset)
    return scene


def active(size: int, rng: Rng) -> Scene:
    """Predicates that hold for one number in a thousand; newcomers are known by name already."""
    language = Active()
    for i in range(size + 2000):
        language.add(f"p{i}", partial(_has_rest, i % 1000))
    rows: Iterator[Row] = ((i, f"p{i}", []) for i in range(size))

    def newcomer(rng: Rng) -> str:
        return f"p{size + rng.randrange(2000)}"

    return _scene("active", language, rows, lambda rng: rng.randrange(10**9), newcomer)


def _has_rest(rest: int, number: Any) -> bool:
    return bool(number % 1000 == rest)


SCENES: dict[str, Build] = {
    "attribute-value": attribute_value,
    "attribute-value-sparse": attribute_value_sparse,
    "ranges": ranges,
    "predicates": predicates,
    "ontology": ontology,
    "types": types,
    "feeds": feeds,
    "active": active,
}
