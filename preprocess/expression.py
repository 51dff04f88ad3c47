"""The written form of typed predicates: comparisons, and, or, brackets.

    expression  = conjunction { "or" conjunction }
    conjunction = unit { "and" unit }
    unit        = "(" expression ")" | comparison
    comparison  = NAME ("=" | "!=" | "<" | "<=" | ">" | ">=") VALUE
                | NAME ("prefix" | "suffix" | "contains") VALUE
                | NAME "in" (VALUE ".." VALUE | VALUE | "(" VALUE { "," VALUE } ")")
                | NAME "exists"

A value is a word or stands in quotes, where a backslash keeps the character behind it. What comes
out is the disjunctive normal form, as lists of terms.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from preprocess.errors import LanguageError
from preprocess.forms import DEPTH_MAX, TERMS_MAX, Term

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign>\.\.|!=|<=|>=|==|[=<>(),])
      | (?P<word>(?:(?!\.\.)[^\s"'=<>!(),])+)
    )""",
    re.VERBOSE | re.DOTALL,
)

_SIGNS = frozenset(("=", "==", "!=", "<", "<=", ">", ">="))
_PARTS = frozenset(("prefix", "suffix", "contains"))

Alternatives = list[list[Term]]


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse_expression(text: str) -> Alternatives:
    """The alternatives of an expression; LanguageError says at which character it went wrong."""
    parser = _Parser(_tokens(text))
    found = parser.expression(0)
    rest = parser.peek()
    if rest.kind != "end":
        raise parser.error("'and', 'or' or the end expected")
    return found


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = len(text) - len(text[at:].lstrip())
            raise LanguageError(
                f"cannot read {text[start : start + 20]!r}", f"character {start + 1}"
            )
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "quoted":
            word = re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL)
        tokens.append(_Token(kind, word, match.start(kind) + 1))
        at = match.end()
    tokens.append(_Token("end", "", end + 1))
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def peek(self) -> _Token:
        return self._tokens[self._next]

    def take(self) -> _Token:
        token = self.peek()
        self._next += token.kind != "end"
        return token

    def error(self, reason: str) -> LanguageError:
        token = self.peek()
        found = "the end" if token.kind == "end" else repr(token.text[:20])
        return LanguageError(f"{reason}, not {found}", f"character {token.at}")

    def _accept(self, kind: str, text: str) -> bool:
        token = self.peek()
        found = token.kind == kind and token.text.lower() == text
        self._next += found
        return found

    def expression(self, depth: int) -> Alternatives:
        if depth > DEPTH_MAX:
            raise self.error(f"nested more than {DEPTH_MAX} deep")
        found = self.conjunction(depth)
        while self._accept("word", "or"):
            found = found + self.conjunction(depth)
        return self._bounded(found)

    def conjunction(self, depth: int) -> Alternatives:
        found = self.unit(depth)
        while self._accept("word", "and"):
            other = self.unit(depth)
            if len(found) * len(other) > TERMS_MAX:
                raise self.error(f"more than {TERMS_MAX} alternatives")
            found = self._bounded([one + two for one in found for two in other])
        return found

    def _bounded(self, found: Alternatives) -> Alternatives:
        if sum(map(len, found)) > TERMS_MAX:
            raise self.error(f"more than {TERMS_MAX} terms")
        return found

    def unit(self, depth: int) -> Alternatives:
        if not self._accept("sign", "("):
            return [[self.comparison()]]
        found = self.expression(depth + 1)
        if not self._accept("sign", ")"):
            raise self.error("')' expected")
        return found

    def comparison(self) -> Term:
        if self.peek().kind not in ("word", "quoted"):
            raise self.error("the name of an attribute expected")
        name = self.take()
        position = f"character {name.at}"
        operator = self.peek().text.lower()
        if self.peek().kind == "sign" and operator in _SIGNS:
            self.take()
            return Term(name.text, operator, self.value(), position)
        if self.peek().kind == "word" and operator in _PARTS:
            self.take()
            return Term(name.text, operator, self.value(), position)
        if self._accept("word", "exists"):
            return Term(name.text, "exists", True, position)
        if self._accept("word", "in"):
            return self._choice(name.text, position)
        raise self.error("an operator expected")

    def _choice(self, name: str, position: str) -> Term:
        if self._accept("sign", "("):
            values = [self.value()]
            while self._accept("sign", ","):
                values.append(self.value())
            if not self._accept("sign", ")"):
                raise self.error("',' or ')' expected")
            return Term(name, "in", values, position)
        first = self.value()
        if self._accept("sign", ".."):
            return Term(name, "range", [first, self.value()], position)
        return Term(name, "in", [first], position)

    def value(self) -> str:
        if self.peek().kind not in ("word", "quoted"):
            raise self.error("a value expected")
        return self.take().text
