"""Keyword ontologies: topics are the labels of a hierarchy (Kulik 2004, section 3.3, Figure 3-3).

The hierarchy comes from a file, one keyword a line, indented under the one that covers it. A
keyword may stand in several places and is then below several others. Blank lines and lines that
begin with # do not count. Keywords can be added while running; what is above an old one never
changes, so topics keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from preprocess.errors import LanguageError
from preprocess.hierarchy import Hierarchy, Keywords, names


class Ontology(Hierarchy):
    """Keywords, each with all that are above it."""

    name = "ontology"

    def __init__(self) -> None:
        self._up: dict[str, Keywords] = {}

    @classmethod
    def from_file(cls, path: str | Path) -> Ontology:
        """The hierarchy in a file; LanguageError names the line that is wrong."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise LanguageError("not UTF-8", f"byte {error.start} of {path}") from None
        return cls.from_text(text)

    @classmethod
    def from_text(cls, text: str) -> Ontology:
        """The hierarchy in a text of indented lines."""
        parents = _parents(text)
        ontology = cls()
        for keyword in _parents_first(parents):
            ontology.add(keyword, parents[keyword])
        return ontology

    def add(self, keyword: str, parents: Iterable[str] = ()) -> None:
        """Add a keyword below others that are there already."""
        if keyword in self._up:
            raise LanguageError("the keyword is there already", repr(keyword))
        above = {keyword}.union(*map(self.up, parents))
        self._up[keyword] = frozenset(above)

    def up(self, keyword: str) -> Keywords:
        above = self._up.get(keyword)
        if above is None:
            raise LanguageError("not a keyword of this ontology", repr(keyword))
        return above

    def parse(self, subscription: object) -> Keywords:
        return self.topic(names(subscription, "keyword"))

    def parse_notification(self, notification: object) -> Keywords:
        labels = names(notification, "keyword")
        if len(labels) == 1:
            return self.up(labels[0])
        return frozenset().union(*map(self.up, labels))


def _parents(text: str) -> dict[str, dict[str, None]]:
    """Per keyword, what it is indented under, in the order of the file."""
    parents: dict[str, dict[str, None]] = {}
    open_lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        keyword = line.strip()
        if not keyword or keyword.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        if "\t" in line[:indent]:
            raise LanguageError("indent with spaces, not with tabs", f"line {number}")
        while open_lines and open_lines[-1][0] >= indent:
            open_lines.pop()
        if indent and not open_lines:
            raise LanguageError(f"{keyword!r} is indented under nothing", f"line {number}")
        above = parents.setdefault(keyword, {})
        if open_lines:
            above[open_lines[-1][1]] = None
        open_lines.append((indent, keyword))
    return parents


def _parents_first(parents: dict[str, dict[str, None]]) -> list[str]:
    """The keywords, each after those above it; LanguageError for one that is above itself."""
    order: dict[str, None] = {}
    for start in parents:
        path: dict[str, None] = {}
        stack = [start]
        while stack:
            keyword = stack[-1]
            waiting = [above for above in parents[keyword] if above not in order]
            path[keyword] = None
            loop = [above for above in waiting if above in path]
            if loop:
                raise LanguageError(f"{loop[0]!r} is above and below {keyword!r}", repr(keyword))
            if waiting:
                stack.append(waiting[0])
            else:
                order[keyword] = None
                del path[stack.pop()]
    return list(order)
