"""Topics as SIENA's predicates, and notices as its messages (Kulik 2004, Table 4.3).

Attributes are those that the table counts. Baseball has one per team, and one that is in every
message and is the constraint of whoever wants all games (a = 101); a road has one per exit
(a = 60); attribute-value has its own. A stretch of road is wanted if any of its exits is in the
message, so it is a disjunction of filters of one constraint each; every other topic is one filter.
"""

from __future__ import annotations

import numpy as np

from experiments.opponents import Filters, Messages, Op, offsets_of
from experiments.work import Ints, Work

Constraint = tuple[int, int]
"""A name, and the value that it must have."""


def filters_of(work: Work, interfaces: Ints) -> Filters:
    """All subscriptions' filters, those of subscription k on interfaces[k]."""
    topics = [_predicate(work, code) for code in work.topics.tolist()]
    sizes = np.array([len(filters) for filters in topics])
    of_topic = offsets_of(sizes).astype(np.int64)
    lengths = np.array([len(each) for filters in topics for each in filters])
    of_filter = offsets_of(lengths).astype(np.int64)
    flat = [constraint for filters in topics for each in filters for constraint in each]
    constraints = np.array(flat, dtype=np.int32).reshape(-1, 2)
    chosen = _items(of_topic, work.nodes)
    places = _items(of_filter, chosen)
    return Filters(
        np.repeat(interfaces, sizes[work.nodes]).astype(np.uint32),
        offsets_of(lengths[chosen]),
        constraints[places, 0].astype(np.uint32),
        np.full(len(places), int(Op.INT_EQUAL), dtype=np.uint8),
        constraints[places, 1],
    )


def messages_of(work: Work) -> Messages:
    """All notices as messages."""
    told = [[(0, 1), *_attributes(work, code)] for code in work.notices.tolist()]
    pairs = np.array([a for each in told for a in each], dtype=np.int64).reshape(-1, 2)
    return Messages(
        offsets_of(np.array([len(each) for each in told])),
        pairs[:, 0].astype(np.uint32),
        np.zeros(len(pairs), dtype=np.uint8),
        pairs[:, 1].astype(np.int32),
    )


def names_of(work: Work) -> int:
    """How many names there are, the one of every message included."""
    content = work.scenario.content
    sizes = {"ranges": "exits", "baseball": "teams", "attribute-value": "attributes"}
    return 1 + int(getattr(content, sizes[work.scenario.kind]))


def _items(offsets: Ints, rows: Ints) -> Ints:
    """Where the items of some rows are, one row after the other."""
    sizes = np.diff(offsets)[rows]
    ends = np.cumsum(sizes)
    places: Ints = np.repeat(offsets[:-1][rows] - (ends - sizes), sizes) + np.arange(ends[-1])
    return places


def _predicate(work: Work, code: int) -> list[list[Constraint]]:
    """A topic's filters."""
    if work.scenario.kind == "ranges":
        low, high = divmod(code, work.scenario.content.exits)
        return [[(1 + at, 1)] for at in range(low, high + 1)]
    if work.scenario.kind == "baseball":
        return [[(1 + team, 1) for team in _teams(work, code)] or [(0, 1)]]
    found = [(1 + at, value) for at, value in enumerate(_digits(work, code)) if value]
    return [found or [(0, 1)]]


def _attributes(work: Work, code: int) -> list[Constraint]:
    """A notice's attributes."""
    if work.scenario.kind == "ranges":
        low, high = divmod(code, work.scenario.content.exits)
        return [(1 + at, 1) for at in range(low, high + 1)]
    if work.scenario.kind == "baseball":
        return [(1 + team, 1) for team in _teams(work, code)]
    return [(1 + at, value) for at, value in enumerate(_digits(work, code)) if value]


def _teams(work: Work, code: int) -> tuple[int, ...]:
    """None for all games, one, or two."""
    teams = work.scenario.content.teams
    if code > teams:
        low, high = divmod(code - 1 - teams, teams)
        return low, high
    return (code - 1,) if code else ()


def _digits(work: Work, code: int) -> list[int]:
    base = work.scenario.content.values + 1
    return [code // base**place % base for place in range(work.scenario.content.attributes)]
