"""RSS and Atom items by feed, category and words (Kulik 2004, section 3.5.4).

A subscription names any of them, and holds the items that have all it names:

    {"feed": "heise developer", "category": ["Java", "Open Source"], "words": "red hat"}

Case does not count. A word is a run of letters, digits and inner apostrophes in an item's title
or summary, markup left out; words are compared whole.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from preprocess.errors import LanguageError
from preprocess.forms import EQUAL, TERMS_MAX, VALUE_MAX, conjunction, named
from preprocess.language import Index, Language
from preprocess.subsets import SetIndex
from routing.content_graph import ContentGraph

#: Bytes in a feed.
FEED_MAX = 16 * 1024 * 1024

_WORD = re.compile(r"\w+(?:['’]\w+)*")

Atom = tuple[str, str]
"""("feed" | "category" | "word", folded text)."""
Atoms = frozenset[Atom]


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a feed."""

    feed: str
    title: str
    link: str = ""
    summary: str = ""
    categories: tuple[str, ...] = ()


class Feeds(Language[Atoms, Atoms]):
    """Conjunctions of a feed, categories and words."""

    name = "feeds"

    def parse(self, subscription: object) -> Atoms:
        found: set[Atom] = set()
        for name, operator, value, position in conjunction(subscription):
            if operator != EQUAL:
                raise LanguageError(f"only {EQUAL} is known, not {operator!r}", position)
            found.update(_atoms_of(name, value, position))
        feeds = sorted(text for kind, text in found if kind == "feed")
        if len(feeds) > 1:
            raise LanguageError(f"no item is of {feeds[0]!r} and {feeds[1]!r}: matches nothing")
        if len(found) > TERMS_MAX:
            raise LanguageError(f"{len(found)} terms are more than {TERMS_MAX}")
        return frozenset(found)

    def parse_notification(self, notification: object) -> Atoms:
        item = notification if isinstance(notification, Item) else item_of(notification)
        words = _words(f"{item.title} {plain(item.summary)}")
        atoms = {("word", word) for word in words}
        atoms.update(("category", fold(category)) for category in item.categories)
        atoms.add(("feed", fold(item.feed)))
        return frozenset(atoms)

    def covers(self, a: Atoms, b: Atoms) -> bool:
        return a <= b

    def matches(self, topic: Atoms, notification: Atoms) -> bool:
        return topic <= notification

    def text(self, topic: Atoms) -> str:
        keys = {"feed": "feed", "category": "category", "word": "words"}
        lists: dict[str, list[str]] = {}
        for kind, text in sorted(topic):
            lists.setdefault(keys[kind], []).append(text)
        return json.dumps(lists, ensure_ascii=False)

    def index(self, graph: ContentGraph) -> Index[Atoms, Atoms]:
        return SetIndex(self, graph)


def fold(text: str) -> str:
    """A text as it is compared: case and runs of space do not count."""
    return " ".join(text.casefold().split())


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _atoms_of(name: str, value: object, position: str) -> Iterator[Atom]:
    values = value if isinstance(value, list | tuple) else [value]
    for text in values:
        if not isinstance(text, str) or not text.strip() or len(text) > VALUE_MAX:
            raise LanguageError("a text, or a list of texts, expected", position)
        if name == "words":
            words = _words(text)
            if not words:
                raise LanguageError(f"there is no word in {text!r}", position)
            yield from (("word", word) for word in words)
        elif name in ("feed", "category"):
            yield (name, fold(text))
        else:
            raise LanguageError("only feed, category and words are known", position)


class _Plain(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def plain(markup: str) -> str:
    """The text of a piece of HTML; elements separate words."""
    parser = _Plain()
    parser.feed(markup)
    parser.close()
    return " ".join(parser.texts)


def item_of(source: object) -> Item:
    """An item from its fields: an object, JSON, or XML in which category may be repeated."""
    fields = named(source, "feed", "title", "link", "summary", "category", "categories")
    if fields is None:
        raise LanguageError(f"an Item or its fields expected, not {type(source).__name__}")
    categories = fields.pop("categories", []) + fields.pop("category", [])
    for name in ("feed", "title"):
        fields.setdefault(name, [])
    for name, values in [*fields.items(), *(("category", [value]) for value in categories)]:
        if len(values) != 1 or not isinstance(values[0], str):
            raise LanguageError(
                "one text expected" if values else "it is missing", f"field {name!r}"
            )
    return Item(**{name: text for name, (text,) in fields.items()}, categories=tuple(categories))


# -- reading feeds -----------------------------------------------------------------------------


def read_feed(data: bytes, name: str | None = None) -> list[Item]:
    """The items of an RSS or Atom document; LanguageError names the entry that is broken.

    Items belong to the feed of this name, or else to the feed's own title.
    """
    import feedparser  # type: ignore[import-untyped]

    if len(data) > FEED_MAX:
        raise LanguageError(f"{len(data)} bytes are more than {FEED_MAX}")
    # A stream, never a text: feedparser would fetch a text that looks like an address.
    parsed = feedparser.parse(io.BytesIO(data))
    problem = parsed.get("bozo_exception")
    if parsed.bozo and hasattr(problem, "getLineNumber"):
        raise _malformed(data, problem)
    if not parsed.get("version"):
        raise LanguageError("neither RSS nor Atom")
    title = name or parsed.feed.get("title", "")
    if not title:
        raise LanguageError("the feed has no title, and no other name was given", "the feed")
    return [_item(number, entry, title) for number, entry in enumerate(parsed.entries, 1)]


def _malformed(data: bytes, problem: Any) -> LanguageError:
    """Which entry the text stops being XML in: counted in the text up to there."""
    line, column = problem.getLineNumber(), problem.getColumnNumber()
    lines = data.splitlines()[:line]
    before = b"\n".join([*lines[: line - 1], *(text[:column] for text in lines[line - 1 :])])
    entries = len(re.findall(rb"<(?:\w+:)?(?:item|entry)[\s>]", before))
    where = f"entry {entries}" if entries else "the head of the feed"
    return LanguageError(
        f"not XML: {problem.getMessage()} (line {line}, column {column + 1})", where
    )


def _item(number: int, entry: Any, feed: str) -> Item:
    label = entry.get("id") or entry.get("link") or entry.get("title") or "without id"
    where = f"entry {number} ({label})"
    title, summary = entry.get("title", ""), entry.get("summary", "")
    if not title.strip() and not summary.strip():
        raise LanguageError("neither a title nor a summary", where)
    categories = tuple(_terms(entry.get("tags", ())))
    return Item(feed, title, entry.get("link", ""), summary, categories)


def _terms(tags: Iterable[Any]) -> Iterator[str]:
    for tag in tags:
        term = tag.get("label") or tag.get("term")
        if term and term.strip():
            yield term
