"""The compiled opponents against brute force (Carzaniga and Wolf 2003, sections 4.1 to 4.3)."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

opponents = pytest.importorskip(
    "experiments.opponents", reason="the compiled opponents were not built", exc_type=ImportError
)
Op = opponents.Op

WORDS = ["", "a", "ab", "abc", "abd", "b", "ba", "bab", "abab", "c", "cab", "ca", "é", "zz", "z"]
NAMES = 6

Constraint = tuple[int, int, int]
Attribute = tuple[int, bool, int]


def holds(constraint: Constraint, attribute: Attribute, reached: Counter[str]) -> bool:
    """One constraint on one attribute, by the operators' meaning."""
    name, op, value = constraint
    if name != attribute[0] or (op >= Op.EQUAL) != attribute[1]:
        return False
    if op < Op.EQUAL:
        x = attribute[2]
        met = {Op.INT_EQUAL: x == value, Op.INT_LESS: x < value, Op.INT_GREATER: x > value}
    else:
        x, k = WORDS[attribute[2]].encode(), WORDS[value].encode()
        met = {
            Op.EQUAL: x == k,
            Op.PREFIX: x.startswith(k),
            Op.SUFFIX: x.endswith(k),
            Op.SUBSTRING: k in x,
            Op.LESS: x < k,
            Op.GREATER: x > k,
        }
    reached[Op(op).name] += met[Op(op)]
    return met[Op(op)]


def random_filter(rng: random.Random) -> list[Constraint]:
    """Names differ within a filter: a constraint counts once for a message."""
    found = []
    for name in rng.sample(range(NAMES), rng.randint(1, 3)):
        op = rng.randrange(9)
        value = rng.randrange(-3, 4) if op < Op.EQUAL else rng.randrange(len(WORDS))
        found.append((name, op, value))
    return found


def random_message(rng: random.Random) -> list[Attribute]:
    found = []
    for name in rng.sample(range(NAMES), rng.randint(0, NAMES)):
        is_string = rng.random() < 0.5
        value = rng.randrange(len(WORDS)) if is_string else rng.randrange(-3, 4)
        found.append((name, is_string, value))
    return found


def as_filters(filters: list[tuple[int, list[Constraint]]]) -> opponents.Filters:
    flat = [constraint for _, filter_ in filters for constraint in filter_]
    return opponents.Filters(
        np.array([interface for interface, _ in filters], dtype=np.uint32),
        opponents.offsets_of(np.array([len(filter_) for _, filter_ in filters])),
        np.array([c[0] for c in flat], dtype=np.uint32),
        np.array([c[1] for c in flat], dtype=np.uint8),
        np.array([c[2] for c in flat], dtype=np.int32),
    )


def as_messages(messages: list[list[Attribute]]) -> opponents.Messages:
    flat = [attribute for message in messages for attribute in message]
    return opponents.Messages(
        opponents.offsets_of(np.array([len(message) for message in messages])),
        np.array([a[0] for a in flat], dtype=np.uint32),
        np.array([a[1] for a in flat], dtype=np.uint8),
        np.array([a[2] for a in flat], dtype=np.int32),
    )


@pytest.mark.parametrize("merge", [False, True])
def test_siena_matches_what_brute_force_matches(merge: bool) -> None:
    reached: Counter[str] = Counter()
    for seed in range(120):
        rng = random.Random(seed)
        interfaces = rng.randint(1, 6)
        pool = [random_filter(rng) for _ in range(rng.randint(1, 12))]
        filters = [(rng.randrange(interfaces), rng.choice(pool)) for _ in range(rng.randint(1, 25))]
        messages = [random_message(rng) for _ in range(20)]
        table = opponents.Siena(interfaces, NAMES, WORDS, merge)
        as_filters(filters).add_to(table)
        table.build()
        assert (table.filters() < len(filters)) <= merge
        reached["merged"] += table.filters() < len(filters)
        expected = [
            sorted(
                {
                    interface
                    for interface, filter_ in filters
                    if all(any(holds(c, a, reached) for a in message) for c in filter_)
                }
            )
            for message in messages
        ]
        reached["all interfaces"] += expected.count([*range(interfaces)])
        reached["no interface"] += expected.count([])
        columns = as_messages(messages).columns()
        for rounds in (0, 1, 10, 100):
            assert table.match(*columns, rounds) == expected
            assert table.count(*columns, rounds) == list(map(len, expected))
    wanted = [*(op.name for op in Op), "all interfaces", "no interface"]
    assert {what: reached[what] for what in wanted if reached[what] < 50} == {}
    assert (reached["merged"] > 50) == merge


def test_rounds_exclude_interfaces_whose_names_are_absent() -> None:
    """A name that every filter of an interface has decides about the interface."""
    table = opponents.Siena(2, NAMES, [], False)
    as_filters([(0, [(1, Op.INT_EQUAL, 1)]), (1, [(2, Op.INT_EQUAL, 1)])]).add_to(table)
    table.build()
    columns = as_messages([[(2, False, 1)], [(1, False, 1)], []]).columns()
    assert table.match(*columns, 2) == [[1], [0], []]


@pytest.mark.parametrize(
    ("interface", "constraint", "why"),
    [
        (5, (0, 0, 0), "unknown interface"),
        (0, (NAMES, 0, 0), "unknown name"),
        (0, (0, 9, 0), "unknown name, operator"),
        (0, (0, Op.EQUAL, len(WORDS)), "operator or word"),
    ],
)
def test_bad_filters_are_refused(interface: int, constraint: Constraint, why: str) -> None:
    table = opponents.Siena(2, NAMES, WORDS, False)
    with pytest.raises(ValueError, match=why):
        as_filters([(interface, [constraint])]).add_to(table)


def test_lists_route_to_whoever_wants_any_identifier() -> None:
    rng = random.Random(1)
    lists, wanted = opponents.Lists(), [set[int]() for _ in range(10)]
    for _ in range(300):
        ids, neighbor = rng.sample(range(200), rng.randint(1, 6)), rng.randrange(10)
        fresh = lists.subscribe(np.array(ids, dtype=np.uint32).tobytes(), neighbor)
        assert fresh == len(set(ids) - wanted[neighbor])
        wanted[neighbor].update(ids)
    headers = [rng.sample(range(400), rng.randint(0, 4)) for _ in range(500)]
    offsets = opponents.offsets_of(np.array([len(header) for header in headers]))
    nodes = np.array([node for header in headers for node in header], dtype=np.uint32)
    due = np.frombuffer(lists.route(offsets.tobytes(), nodes.tobytes()), dtype=np.uint64)
    expected = [
        sum(1 << i for i, held in enumerate(wanted) if held.intersection(header))
        for header in headers
    ]
    assert due.tolist() == expected
    assert len(set(expected)) > 50
    assert lists.size() == len(set().union(*wanted))


def test_gather_makes_the_batch_that_each_neighbour_is_due() -> None:
    from routing.batch import Batch

    rng = random.Random(2)
    rows = [
        (tuple(rng.sample(range(9), rng.randint(0, 3))), at + 1, bytes([at]) * rng.randint(0, 4))
        for at in range(30)
    ]
    batch = Batch.of(rows)
    due = [1 | rng.randrange(8) & 6 for _ in rows]
    made = opponents.gather(
        np.array(due, dtype=np.uint64).tobytes(),
        4,
        batch.header_offsets,
        batch.nodes,
        batch.payload_offsets,
        batch.payloads,
    )
    assert made[0][1] is batch.nodes, "whoever is due everything gets the same columns"
    for neighbor in (1, 2):
        expected = [row for row, bits in zip(rows, due, strict=True) if bits >> neighbor & 1]
        assert list(Batch(*made[neighbor]).rows()) == expected
    assert len(made) == 3
