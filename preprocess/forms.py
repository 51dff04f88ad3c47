"""The outer forms of subscriptions and notifications: Python objects, JSON text, XML pairs.

All of them become terms (attribute, operator, value), which the languages then give a meaning.
XML attribute-value pairs are those of Kulik 2004, section 3.5.3: the attributes of an element, or
its children. Document type declarations are refused, so there are no entities to expand and
nothing to fetch. Limits hold before anything is built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from preprocess.errors import LanguageError

#: Characters in a text, levels of nesting, terms in one subscription, characters in one value.
TEXT_MAX = 65_536
DEPTH_MAX = 16
TERMS_MAX = 512
VALUE_MAX = 4_096

EQUAL = "="

#: Numbers beyond this are refused, whole ones too.
_LARGEST = sys.float_info.max


class Term(NamedTuple):
    """One statement about an attribute; the position is where it stands in the input."""

    name: str
    operator: str
    value: Any
    position: str


def text_of(source: str | bytes) -> str:
    """The text, decoded and not too long."""
    if isinstance(source, bytes):
        try:
            source = source.decode()
        except UnicodeDecodeError as error:
            raise LanguageError("not UTF-8", f"byte {error.start}") from None
    if len(source) > TEXT_MAX:
        raise LanguageError(f"{len(source)} characters are more than {TEXT_MAX}")
    return source


def conjunction(source: object) -> list[Term]:
    """The terms of one subscription or notification, from any form."""
    parts = disjunction(source)
    if len(parts) != 1:
        raise LanguageError(f"one set of attributes expected, not {len(parts)}")
    return parts[0]


def named(source: object, *known: str) -> dict[str, list[Any]] | None:
    """The values under each name, from an object, JSON or XML; None for any other form.

    For languages with a form of their own: those texts begin with neither { nor <.
    """
    if isinstance(source, str | bytes):
        source = text_of(source).lstrip()
    pairs = source[:1] in ("{", "<") if isinstance(source, str) else isinstance(source, Mapping)
    if not pairs:
        return None
    found: dict[str, list[Any]] = {}
    for name, operator, value, position in conjunction(source):
        if operator != EQUAL:
            raise LanguageError(f"only {EQUAL} is known, not {operator!r}", position)
        if name not in known:
            raise LanguageError(f"only {', '.join(known)} can be named here", position)
        found.setdefault(name, []).extend(value if isinstance(value, list | tuple) else [value])
    return found


def disjunction(source: object) -> list[list[Term]]:
    """The terms of each alternative: a list in Python and JSON, an <any> element in XML."""
    if isinstance(source, str | bytes):
        text = text_of(source).lstrip()
        source = from_xml(text) if text.startswith("<") else from_json(text)
    if isinstance(source, Mapping):
        source = [source]
    if not isinstance(source, list | tuple):
        raise LanguageError(f"an object of attributes expected, not {shown(source)}")
    parts = [_terms(part, i if len(source) > 1 else None) for i, part in enumerate(source)]
    if sum(map(len, parts)) + len(parts) > TERMS_MAX:
        raise LanguageError(f"more than {TERMS_MAX} terms")
    return parts


def _terms(part: object, number: int | None) -> list[Term]:
    where = "" if number is None else f"alternative {number + 1}, "
    if isinstance(part, list) and all(isinstance(term, Term) for term in part):
        return part
    if not isinstance(part, Mapping):
        raise LanguageError(f"an object of attributes expected, not {shown(part)}", where or None)
    if len(part) > TERMS_MAX:
        raise LanguageError(f"{len(part)} attributes are more than {TERMS_MAX}")
    return [term for name, value in part.items() for term in _of_attribute(name, value, where)]


def _of_attribute(name: object, value: object, where: str) -> Iterator[Term]:
    if not isinstance(name, str) or not name:
        raise LanguageError(f"an attribute's name is a non-empty text, not {shown(name)}", where)
    position = f"{where}attribute {name!r}"
    if isinstance(value, Mapping):
        for operator, operand in value.items():
            if not isinstance(operator, str):
                raise LanguageError(f"an operator is a text, not {shown(operator)}", position)
            yield Term(name, operator, operand, position)
    else:
        yield Term(name, EQUAL, value, position)


def scalar_text(value: object, position: str) -> str:
    """A value as untyped languages see it: its text."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, int | float) and abs(value) <= _LARGEST:
        value = repr(value)
    if not isinstance(value, str):
        raise LanguageError(f"a text, number or truth value expected, not {shown(value)}", position)
    if len(value) > VALUE_MAX:
        raise LanguageError(f"{len(value)} characters are more than {VALUE_MAX}", position)
    return value


# -- JSON --------------------------------------------------------------------------------------


def from_json(source: str | bytes) -> Any:
    """What JSON text says; no repeated names, no NaN, not too deep."""
    text = text_of(source)
    if _depth(text) > DEPTH_MAX:
        raise LanguageError(f"nested more than {DEPTH_MAX} deep")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except LanguageError:
        raise
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise LanguageError(f"not JSON: {error.msg}", where) from None
    except ValueError:
        raise LanguageError("a number has more digits than can be read") from None


def _depth(text: str) -> int:
    """How deep brackets nest, those within strings left out."""
    depth = deepest = 0
    inside = escaped = False
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise LanguageError("named twice", f"attribute {twice!r}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise LanguageError(f"{name} is not a number that can be compared")


# -- XML ---------------------------------------------------------------------------------------


class _Reader:
    """Collects the pairs of one document; the root may be <any> around several."""

    def __init__(self) -> None:
        self.parts: list[list[Term]] = []
        self._path: list[str] = []
        self._several = False
        self._text: list[str] = []
        self._operator = EQUAL
        self._leaf = False
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text.append
        self.parser.StartDoctypeDeclHandler = self._refuse

    def where(self) -> str:
        parser = self.parser
        return f"line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber + 1}"

    def _refuse(self, *_: object) -> None:
        raise LanguageError("document type declarations are not allowed", self.where())

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        depth = len(self._path)
        self._path.append(name)
        if depth == 0 and name == "any":
            self._several = True
            return
        level = depth - self._several
        if level == 0:
            here = self.where()
            self.parts.append([Term(n, EQUAL, v, here) for n, v in attributes.items()])
        elif level == 1:
            self._open_leaf(attributes)
        else:
            raise LanguageError("attributes do not nest", self.where())

    def _open_leaf(self, attributes: dict[str, str]) -> None:
        unknown = attributes.keys() - {"op"}
        if unknown:
            raise LanguageError(f"only op= is known here, not {min(unknown)!r}", self.where())
        self._operator = attributes.get("op", EQUAL)
        self._leaf = True
        self._stray()

    def _end(self, name: str) -> None:
        self._path.pop()
        if self._leaf:
            value = "".join(self._text).strip()
            self.parts[-1].append(Term(name, self._operator, value, self.where()))
            self._leaf = False
            self._text.clear()
        else:
            self._stray()

    def _stray(self) -> None:
        """Text stands in elements of attributes, and nowhere else."""
        if "".join(self._text).strip():
            raise LanguageError("text between the elements", self.where())
        self._text.clear()


def from_xml(source: str | bytes) -> list[list[Term]]:
    """The pairs of an XML document: <s a="1" b="2"/>, <s><a op="&lt;">1</a></s>, <any> of those."""
    reader = _Reader()
    try:
        reader.parser.Parse(text_of(source), True)
    except expat.ExpatError as error:
        where = f"line {error.lineno}, column {error.offset + 1}"
        raise LanguageError(f"not XML: {expat.ErrorString(error.code)}", where) from None
    if not reader.parts:
        raise LanguageError("an <any> element needs at least one alternative")
    return reader.parts


def shown(value: object) -> str:
    """A value in an error, not too long."""
    try:
        text = repr(value)
    except ValueError:  # it has a number in it with more digits than Python will write
        return f"such a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
