"""What a subscription may demand of one attribute: a set of values.

Comparisons, ranges, lists and prefixes are spans and are decided exactly. Suffixes and substrings
of texts are not: they are kept beside the spans and compared as texts, so that a demand which
holds only for reasons of length or overlap (every text between "ab" and "abc" with suffix "bz")
is not recognised as covered. Where covering is claimed it holds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from preprocess.errors import LanguageError
from preprocess.forms import TERMS_MAX, Term
from preprocess.forms import shown as shown_value
from preprocess.kinds import Kind, String
from preprocess.spans import TOP, Spans, contains, intersection, normal, union, within

#: Other spellings, for XML and for those who prefer words.
SYNONYMS = {
    "==": "=",
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "substring": "contains",
}


class Constraint(NamedTuple):
    """The values in the spans; of those texts, the ones with the suffix and all the parts."""

    spans: Spans
    suffix: str = ""
    parts: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the spans say it all."""
        return not self.suffix and not self.parts

    def holds(self, value: Any) -> bool:
        """Whether the value is in the set."""
        if not contains(self.spans, value):
            return False
        return self.plain or self._fits(value)

    def _fits(self, text: str) -> bool:
        return text.endswith(self.suffix) and all(part in text for part in self.parts)

    def covers(self, other: Constraint) -> bool:
        """Whether the other set is within this one; complete where both are plain."""
        if self.plain:
            return within(other.spans, self.spans)
        points = listed(other.spans)
        if points is not None:
            return all(self.holds(point) for point in points)
        pieces = (*other.parts, other.suffix, common_prefix(other.spans))
        return (
            within(other.spans, self.spans)
            and other.suffix.endswith(self.suffix)
            and all(any(part in piece for piece in pieces) for part in self.parts)
        )

    def either(self, other: Constraint) -> Constraint | None:
        """The union, where it is such a set again."""
        if self.plain and other.plain:
            return Constraint(union(self.spans, other.spans))
        if self.covers(other):
            return self
        return other if other.covers(self) else None

    def both(self, other: Constraint) -> Constraint | None:
        """The intersection; None where it is empty."""
        suffix, shorter = self.suffix, other.suffix
        if len(suffix) < len(shorter):
            suffix, shorter = shorter, suffix
        if not suffix.endswith(shorter):
            return None
        spans = intersection(self.spans, other.spans)
        return settled(spans, suffix, self.parts + other.parts)


def settled(spans: Spans, suffix: str = "", parts: tuple[str, ...] = ()) -> Constraint | None:
    """The canonical form: no demand that another one implies; None for an empty set."""
    if suffix or parts:
        points = listed(spans)
        if points is not None:
            loose = Constraint(spans, suffix, parts)
            spans = tuple((p, end) for p, end in spans if loose.holds(p))
            suffix, parts = "", ()
    if not spans:
        return None
    if not parts:
        return Constraint(spans, suffix)
    prefix = common_prefix(spans)
    parts = tuple(sorted({part for part in parts if part not in suffix and part not in prefix}))
    lowest = tuple(p for p in parts if not any(p != other and p in other for other in parts))
    return Constraint(spans, suffix, lowest)


def listed(spans: Spans) -> list[str] | None:
    """The texts in the spans, if each span holds one."""
    if all(end is not TOP and end == first + "\0" for first, end in spans):
        return [first for first, _ in spans]
    return None


@lru_cache(maxsize=4096)
def common_prefix(spans: Spans) -> str:
    """The longest text that begins all texts in the spans."""
    first, end = spans[0][0], spans[-1][1]
    for length in range(len(first), 0, -1):
        behind = past_prefix(first[:length])
        if end <= behind:
            return str(first[:length])
    return ""


def past_prefix(prefix: str) -> Any:
    """The first text behind all that begin so."""
    for i in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[i]) + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000  # surrogates are no characters
        if code <= 0x10FFFF:
            return prefix[:i] + chr(code)
    return TOP


# -- from terms --------------------------------------------------------------------------------


def constraint(kind: Kind, term: Term) -> Constraint:
    """The set that one operator and its operand describe; LanguageError if it is empty."""
    operator = SYNONYMS.get(term.operator, term.operator)
    found = _constraint(kind, operator, term.value, term.position)
    if found is None:
        raise LanguageError(
            f"{operator} {shown_value(term.value)} can match nothing", term.position
        )
    return found


def _constraint(kind: Kind, operator: str, operand: Any, position: str) -> Constraint | None:
    if operator in ("suffix", "contains"):
        return _text_part(kind, operator, operand, position)
    return settled(_spans(kind, operator, operand, position))


def _text_part(kind: Kind, operator: str, operand: Any, position: str) -> Constraint | None:
    if not isinstance(kind, String):
        raise LanguageError(f"{operator} is for texts, not for type {kind.name}", position)
    if operator == "suffix":
        return settled(kind.whole, kind.value(operand, position))
    texts = operand if isinstance(operand, list | tuple) else [operand]
    return settled(kind.whole, "", tuple(kind.value(text, position) for text in texts))


def _spans(kind: Kind, operator: str, operand: Any, position: str) -> Spans:
    match operator:
        case "=":
            return (kind.span(operand, position),)
        case "!=":
            first, end = kind.span(operand, position)
            return normal(((kind.bottom, first), (end, kind.top)))
        case "<":
            return normal(((kind.bottom, kind.span(operand, position)[0]),))
        case "<=":
            return ((kind.bottom, kind.span(operand, position)[1]),)
        case ">":
            return normal(((kind.span(operand, position)[1], kind.top),))
        case ">=":
            return ((kind.span(operand, position)[0], kind.top),)
        case "range":
            first, last = _several(operand, position, 2)
            return normal(((kind.span(first, position)[0], kind.span(last, position)[1]),))
        case "in":
            return normal(kind.span(choice, position) for choice in _several(operand, position))
        case "exists":
            return _exists(kind, operand, position)
        case "prefix":
            return _prefix(kind, operand, position)
        case "span":
            return _raw(kind, operand, position)
    known = "=, !=, <, <=, >, >=, in, range, prefix, suffix, contains, exists"
    raise LanguageError(f"unknown operator {operator!r}; known are {known}", position)


def _several(operand: Any, position: str, count: int | None = None) -> list[Any]:
    """A list, or the text of one with commas."""
    values = operand.split(",") if isinstance(operand, str) else operand
    if not isinstance(values, list | tuple | set | frozenset) or not values:
        raise LanguageError(f"a list of values expected, not {shown_value(operand)}", position)
    if len(values) > TERMS_MAX:
        raise LanguageError(f"{len(values)} values are more than {TERMS_MAX}", position)
    if count is not None and len(values) != count:
        raise LanguageError(f"{count} values expected, not {len(values)}", position)
    return [value.strip() if isinstance(operand, str) else value for value in values]


def _exists(kind: Kind, operand: Any, position: str) -> Spans:
    if operand not in (True, None, "", "true"):
        raise LanguageError(
            f"exists takes no other value than true, not {shown_value(operand)}", position
        )
    return kind.whole


def _prefix(kind: Kind, operand: Any, position: str) -> Spans:
    if not isinstance(kind, String):
        raise LanguageError(f"prefix is for texts, not for type {kind.name}", position)
    prefix = kind.value(operand, position)
    return ((prefix, past_prefix(prefix)),)


def _raw(kind: Kind, operand: Any, position: str) -> Spans:
    """Half-open spans as texts of topics have them, null for no end."""
    spans = []
    for pair in operand if isinstance(operand, list) else [operand]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise LanguageError(f"a list of pairs expected, not {shown_value(operand)}", position)
        first = kind.raw(pair[0], position, kind.bottom)
        spans.append((first, kind.raw(pair[1], position, kind.top)))
    return normal(spans)


def shown(kind: Kind, found: Constraint) -> dict[str, Any]:
    """The operators that `constraint` makes the same set of."""
    result: dict[str, Any] = {
        "span": [[kind.shown(first), kind.shown(end)] for first, end in found.spans]
    }
    if found.suffix:
        result["suffix"] = found.suffix
    if found.parts:
        result["contains"] = list(found.parts)
    return result
