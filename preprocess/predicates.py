"""Conjunctions of typed predicates, and disjunctions of those.

The content-based interface of Kulik 2004, section 3.3, with the operators of the content-based
systems (Carzaniga and Wolf 2003): a schema gives attributes their types, a subscription demands
something of some of them.

    Predicates({"symbol": "string", "price": "float"})

    symbol = IBM and (price < 10 or price in 90..100)         an expression
    [{"symbol": "IBM", "price": {"<": 10}}, …]                JSON or Python: alternatives
    <s><symbol>IBM</symbol><price op="lt">10</price></s>      XML

A conjunction is a box: per attribute, a set of values. A disjunction is kept as all the largest
boxes within it (its prime implicants, by iterated consensus), a form that does not depend on how
it was written; one disjunction covers another if each box of the other is within one of its own.
Both are exact for everything but suffixes and substrings (see `constraints`).

Attributes that the schema does not name are errors in subscriptions and are ignored in
notifications. Negation of a whole expression is absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from preprocess.constraints import Constraint, constraint, shown
from preprocess.errors import LanguageError
from preprocess.expression import parse_expression
from preprocess.forms import EQUAL, Term, disjunction, text_of
from preprocess.kinds import KINDS, Kind
from preprocess.language import Index, Language
from routing.content_graph import ContentGraph

#: Boxes in one topic, and boxes looked at on the way to it.
BOXES_MAX = 64
_STEPS_MAX = 20_000

Box = tuple[tuple[str, Constraint], ...]
"""Demands by attribute, sorted."""
Boxes = frozenset[Box]
Values = dict[str, Any]


class Predicates(Language[Boxes, Values]):
    """Boxes of typed attributes, alone and united."""

    name = "predicates"

    def __init__(self, schema: Mapping[str, str]) -> None:
        if not schema:
            raise LanguageError("a schema needs one attribute at least")
        for attribute, kind in schema.items():
            if kind not in KINDS:
                known = ", ".join(KINDS)
                raise LanguageError(
                    f"unknown type {kind!r}; known are {known}", f"attribute {attribute!r}"
                )
        self.kinds: dict[str, Kind] = {name: KINDS[kind] for name, kind in schema.items()}

    # -- reading -------------------------------------------------------------------------

    def parse(self, subscription: object) -> Boxes:
        parts = [self._box(terms) for terms in self._alternatives(subscription)]
        boxes = [box for box in parts if box is not None]
        if not boxes:
            raise LanguageError("the predicates exclude one another: this can match nothing")
        return primes(boxes)

    def _alternatives(self, source: object) -> list[list[Term]]:
        if isinstance(source, str | bytes):
            text = text_of(source).strip()
            if text[:1] not in ("{", "[", "<"):
                return parse_expression(text)
        return disjunction(source)

    def _box(self, terms: Iterable[Term]) -> Box | None:
        """The box of a conjunction; None if its demands exclude one another."""
        demands: dict[str, Constraint] = {}
        empty = False
        for term in terms:
            found = constraint(self._kind(term), term)
            both = demands[term.name].both(found) if term.name in demands else found
            empty = empty or both is None
            demands[term.name] = found if both is None else both
        return None if empty else tuple(sorted(demands.items(), key=lambda item: item[0]))

    def _kind(self, term: Term) -> Kind:
        kind = self.kinds.get(term.name)
        if kind is None:
            known = ", ".join(self.kinds)
            raise LanguageError(
                f"unknown attribute {term.name!r}; known are {known}", term.position
            )
        return kind

    def parse_notification(self, notification: object) -> Values:
        if type(notification) is dict:
            return self._values(notification)
        parts = disjunction(notification)
        if len(parts) != 1:
            raise LanguageError(f"one set of attributes expected, not {len(parts)}")
        for term in parts[0]:
            if term.operator != EQUAL:
                raise LanguageError("a notification has values, not operators", term.position)
        return self._values({term.name: term.value for term in parts[0]})

    def _values(self, found: Mapping[Any, Any]) -> Values:
        kinds, values = self.kinds, {}
        for name, value in found.items():
            kind = kinds.get(name)
            if kind is not None:
                values[name] = kind.value(value, f"attribute {name!r}")
        return values

    def text(self, topic: Boxes) -> str:
        boxes = [{name: shown(self.kinds[name], demand) for name, demand in box} for box in topic]
        texts = sorted(json.dumps(box, ensure_ascii=False) for box in boxes)
        return f"[{', '.join(texts)}]"

    # -- deciding ------------------------------------------------------------------------

    def covers(self, a: Boxes, b: Boxes) -> bool:
        return all(any(box_covers(one, other) for one in a) for other in b)

    def matches(self, topic: Boxes, notification: Values) -> bool:
        return any(box_holds(box, notification) for box in topic)

    def index(self, graph: ContentGraph) -> Index[Boxes, Values]:
        from preprocess.predicate_index import PredicateIndex

        return PredicateIndex(self, graph)


def box_holds(box: Box, values: Values) -> bool:
    """Whether all that the box demands is there."""
    return all(name in values and demand.holds(values[name]) for name, demand in box)


def box_covers(a: Box, b: Box) -> bool:
    """Whether b is within a: it demands all that a does, and no less."""
    if len(a) > len(b):
        return False
    demands = dict(b)
    return all(name in demands and demand.covers(demands[name]) for name, demand in a)


# -- disjunctions ------------------------------------------------------------------------------


def primes(boxes: Iterable[Box]) -> Boxes:
    """The largest boxes within a union of boxes; LanguageError if there are too many."""
    different = set(boxes)
    if len(different) == 1:
        return frozenset(different)
    found: list[Box] = []
    waiting = sorted(different, key=repr, reverse=True)
    steps = 0
    while waiting:
        box = waiting.pop()
        steps += 1
        if any(box_covers(other, box) for other in found):
            continue
        found = [other for other in found if not box_covers(box, other)]
        for other in found:
            waiting.extend(consensus(box, other))
        found.append(box)
        if len(found) > BOXES_MAX or steps > _STEPS_MAX:
            raise LanguageError(f"more than {BOXES_MAX} separate boxes: split the subscription")
    return frozenset(found)


def consensus(a: Box, b: Box) -> list[Box]:
    """Boxes within the union of two, each wider than both in one attribute."""
    left, right = dict(a), dict(b)
    meet: dict[str, Constraint | None] = {}
    for name in left.keys() | right.keys():
        meet[name] = _both(left.get(name), right.get(name))
    apart = [name for name, demand in meet.items() if demand is None]
    if len(apart) > 1:
        return []
    results = []
    # Where one attribute keeps the boxes apart, only that one can be widened.
    for name in apart or sorted(left.keys() & right.keys()):
        widened = left[name].either(right[name])
        if widened is not None:
            rest = {**meet, name: widened}
            results.append(_sorted_box(rest))
    return results


def _sorted_box(demands: Mapping[str, Constraint | None]) -> Box:
    pairs = [(name, demand) for name, demand in demands.items() if demand is not None]
    return tuple(sorted(pairs, key=lambda item: item[0]))


def _both(a: Constraint | None, b: Constraint | None) -> Constraint | None:
    if a is None or b is None:
        return a or b
    return a.both(b)
