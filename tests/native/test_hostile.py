"""What comes from outside is refused, with the words of the reference, and changes nothing."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import fields, replace

import pytest

from routing.batch import Batch, join_offsets, pack_u32
from routing.errors import ProtocolError
from routing.messages import Setup
from tests.native.histories import History

native = pytest.importorskip("routing.native", reason="the compiled table was not built")
COLUMNS = [field.name for field in fields(Batch)]


def refusal(call: object, *arguments: object) -> str:
    """The words of a ProtocolError; empty if there was none."""
    try:
        call(*arguments)  # type: ignore[operator]
    except ProtocolError as error:
        return str(error)
    return ""


def kind(words: str) -> str:
    """A refusal without the numbers in it."""
    return re.sub(r"\d+", "", words)


def damaged(batch: Batch, rng: random.Random) -> Batch:
    """A batch with one column cut, grown or overwritten."""
    name = rng.choice(COLUMNS)
    column = bytearray(getattr(batch, name))
    kind = rng.randrange(3)
    if kind == 0 and column:
        del column[rng.randrange(len(column)) :]
    elif kind == 1:
        column += rng.randbytes(rng.choice((1, 4, 8)))
    elif column:
        at = rng.randrange(len(column))
        column[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", rng.randbytes(4)))
    return replace(batch, **{name: bytes(column)})


def test_damaged_batches() -> None:
    """Checked as the reference checks them, and never read beyond their columns."""
    history = History(1, native.NativeTable, nodes=40, neighbors=5)
    history.run(300, check_every=300)
    table, rng = history.table, history.rng
    refused: Counter[str] = Counter()
    for _ in range(9000):
        batch = damaged(history._batch(), rng)
        expected = refusal(batch.check_columns)
        assert refusal(batch.validate) == expected
        refused[kind(expected)] += 1
        routing = refusal(table.route_batch, batch)
        assert routing == expected or (expected.startswith("the positions") and not routing)
    # Seven rules, two of them for two columns; and damage that leaves a batch valid.
    assert len(refused) == 9
    assert min(refused.values()) > 20


def test_columns_must_be_bytes() -> None:
    batch = Batch.of([((1,), 1, b"x")])
    table = native.NativeTable()
    for name in COLUMNS:
        with pytest.raises(TypeError):
            table.route_batch(replace(batch, **{name: bytearray(getattr(batch, name))}))
        with pytest.raises(TypeError):
            replace(batch, **{name: "text"}).validate()


def test_bad_setups() -> None:
    """Every refusal of the reference, word for word, and no change."""
    refused: Counter[str] = Counter()
    for seed in range(30):
        history = History(seed, native.NativeTable, nodes=20, neighbors=3)
        for _ in range(16):
            history.insert()
            history.attach()
        table, reference, rng = history.table, history.reference, history.rng
        for _ in range(100):
            parents = rng.choices(history.all, k=rng.randrange(4))
            children = rng.choices(history.all, k=rng.randrange(4))
            setup = Setup(rng.choice(history.all), tuple(parents), tuple(children))
            words = refusal(reference.insert, setup)
            if not words:
                history.reference.remove(setup.node)
                continue
            assert refusal(table.insert, setup) == words
            refused[kind(words)[:30]] += 1
        history.compare()
        table.check()
    assert len(refused) == 4
    assert min(refused.values()) > 20


@pytest.mark.parametrize("node", [-1, 2**32, 2**63, -(2**63) - 1, 10**40])
def test_numbers_that_are_no_identifiers(node: int) -> None:
    table = native.NativeTable()
    table.insert(Setup(1, (), ()))
    words = f"{node} is no node identifier: they go from 0 to 4294967295"
    for setup in (Setup(node, (), ()), Setup(2, (node,), ()), Setup(2, (), (node,))):
        assert refusal(table.insert, setup) == words
    assert refusal(table.remove, node).startswith(f"node {node} is not in the graph")
    assert table.route((node,)) == {}
    assert table.unknown((1, node)) == [node]
    assert table.covering((node, 1)) == {1}
    assert table.subscribers(node) == set()
    assert table.setups(node, "a") == [Setup(node, (), ())]


def test_mistakes_of_the_caller() -> None:
    table = native.NativeTable()
    table.insert(Setup(1, (), ()))
    with pytest.raises(KeyError):
        table.attach(2, "a")
    with pytest.raises(KeyError):
        table.detach(1, "a")
    table.attach(1, "a")
    with pytest.raises(KeyError):
        table.detach(1, "b")
    with pytest.raises(RuntimeError, match="node 1 still has subscribers"):
        table.remove(1)
    with pytest.raises(TypeError):
        table.route(("1",))
    with pytest.raises(TypeError):
        table.attach(1, 2)
    assert table.neighbors() == {"a"}
    table.detach(1, "a")
    table.remove(1)
    assert table.size() == dict.fromkeys(("nodes", "edges", "subscriptions", "labels"), 0)
    table.check()


def test_empty_batch() -> None:
    table = native.NativeTable()
    assert table.route_batch(Batch.of(())) == native.Routed({}, 0)


def test_unchanged_headers_are_passed_on_as_they_are() -> None:
    """What a neighbour is due whole and unchanged is the same batch, not a copy."""
    table = native.NativeTable()
    table.insert(Setup(1, (), ()))
    table.insert(Setup(2, (1,), ()))
    for node, neighbor in ((1, "high"), (2, "low")):
        table.attach(node, neighbor)
    batch = Batch.of([((2,), 1, b"x"), ((2,), 2, b"y")])
    routed = table.route_batch(batch).batches
    assert routed["low"] is batch
    assert routed["high"].nodes == pack_u32((1, 1))
    assert routed["high"].header_offsets is batch.header_offsets
    assert routed["high"].payloads is batch.payloads


def test_offsets_are_joined_as_the_reference_joins_them() -> None:
    from routing._native import join_offsets as compiled

    rng = random.Random(7)
    for _ in range(300):
        columns = [
            pack_u32((0, *sorted(rng.choices(range(1 << 20), k=rng.randrange(20)))))
            for _ in range(rng.randrange(6))
        ]
        assert compiled(columns) == join_offsets(columns)
    for bad in ([b""], [b"123"], [pack_u32((0, 1)), b"12345"], [pack_u32((0, 1 << 31))] * 2):
        with pytest.raises(ValueError, match="offsets"):
            compiled(bad)
    with pytest.raises(TypeError):
        compiled(["text"])
