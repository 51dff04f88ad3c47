"""The wire form: every message there and back, and nothing but ProtocolError for the rest."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, get_args

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing import messages
from routing.batch import Batch
from routing.errors import ProtocolError
from routing.messages import Message, Placed, Setup
from routing.trace import TRACE_BYTES, pack_traces
from routing.wire import TEXT_MAX, decode, encode, part_count

u32 = st.integers(0, 2**32 - 1)
nodes = st.lists(u32, max_size=5).map(tuple)
pair = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
rows = st.lists(st.tuples(nodes, st.binary(max_size=20)), max_size=5)
context = st.binary(min_size=TRACE_BYTES, max_size=TRACE_BYTES)
batch = st.builds(
    lambda rs, contexts: Batch.of(
        ((h, 3 * i + 1, p) for i, (h, p) in enumerate(rs)),
        pack_traces((row, c) for row, c in sorted(contexts.items()) if row < len(rs)),
    ),
    rows,
    st.dictionaries(st.integers(0, 4), context, max_size=3),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(max_size=20),
    "int": st.integers(-1, 2**63 - 1),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=20),
    "Trace": context | st.just(b""),
    "Refusal": st.sampled_from(messages.Refusal),
    "Session": pair,
    "Digest": pair,
    "tuple[str, ...]": st.lists(st.text(max_size=8), max_size=4).map(tuple),
    "tuple[int, ...]": nodes,
    "tuple[Setup, ...]": st.lists(st.builds(Setup, u32, nodes, nodes), max_size=3).map(tuple),
    "tuple[tuple[int, int], ...]": st.lists(
        st.tuples(u32, st.integers(0, 2**64 - 1)), max_size=3
    ).map(tuple),
    "tuple[Placed, ...]": st.lists(pair.map(lambda p: Placed(*p, p[0])), max_size=3).map(tuple),
    "Batch": batch,
}


def any_of(cls: type[Message]) -> st.SearchStrategy[Message]:
    return st.builds(cls, *(FIELDS[str(field.type)] for field in dataclasses.fields(cls)))


every_message = st.one_of(*map(any_of, get_args(Message)))


@given(every_message)
def test_there_and_back(message: Message) -> None:
    parts = encode(message)
    assert decode(parts) == message
    assert part_count(parts[0]) == len(parts)


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_arbitrary_bytes_are_refused_or_well_formed(parts: list[bytes]) -> None:
    try:
        message = decode(parts)
    except ProtocolError:
        return
    assert decode(encode(message)) == message


@settings(max_examples=400)
@given(every_message, st.randoms(use_true_random=False))
def test_damaged_messages_are_refused_or_well_formed(message: Message, rng: random.Random) -> None:
    """Flipped, cut and lengthened bytes: what a broken or hostile neighbour sends."""
    parts = [bytearray(part) for part in encode(message)]
    for _ in range(rng.randint(1, 4)):
        part = rng.choice(parts)
        kind = rng.randrange(3)
        if kind == 0 and part:
            part[rng.randrange(len(part))] = rng.randrange(256)
        elif kind == 1:
            del part[rng.randint(0, len(part)) :]
        else:
            part.insert(rng.randint(0, len(part)), rng.randrange(256))
    try:
        again = decode([bytes(part) for part in parts])
    except ProtocolError:
        return
    assert decode(encode(again)) == again


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "0 parts"),
        ([b""], "no MessagePack"),
        ([msgpack.packb({})], "an array that begins with its code"),
        ([msgpack.packb([])], "an array that begins with its code"),
        ([msgpack.packb([99])], "unknown message code 99"),
        ([msgpack.packb([True, 1])], "unknown message code True"),
        ([msgpack.packb([1])], "a Hello with fields or parts missing"),
        ([msgpack.packb([1, 5]), b"more"], "a Hello with fields or parts missing"),
        ([msgpack.packb([1, "5"])], "Hello: expected a whole number"),
        ([msgpack.packb([1, 1 << 63])], "Hello: expected a whole number"),
        ([msgpack.packb([2, "n", [1, 2], 3, b"123"])], "Subscribe: a column of 3 bytes"),
        ([msgpack.packb([2, "n" * (TEXT_MAX + 1), [1, 2], 3, b""])], "expected a text of up to"),
        ([msgpack.packb([2, "n", [1], 3, b""])], "expected a pair"),
        ([msgpack.packb([10, "n", ["x"] * 65, 1, 2])], "no MessagePack"),
        ([msgpack.packb([16, "n", [], "p", 1, 2, "no", 5])], "expected the code of a refusal"),
        ([msgpack.packb([16, "n", [], "p", 1, 2, "no", True])], "expected the code of a"),
        ([msgpack.packb([10, "n", ["x"] * 64, 1, [[1]]])], "expected a whole number"),
        ([b"\xdd\xff\xff\xff\xff" * 12], "no MessagePack"),
        ([b"\x91" * 5000], "no MessagePack"),
        ([msgpack.packb([9, "n", [1, 2], 3, [b"", b"", b"", b""]]), b""], "header offsets"),
    ],
)
def test_hostile_bytes(parts: list[bytes], reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(parts)


def test_a_cut_off_graph_setup_is_refused() -> None:
    whole = messages.GraphSetup("n", (1, 1), 1, 0, (Setup(1, (2,), (3, 4)),))
    fields = msgpack.unpackb(encode(whole)[0])
    fields[5] = fields[5][:-4]
    with pytest.raises(ProtocolError, match="GraphSetup: a graph set-up is cut off"):
        decode([msgpack.packb(fields)])


@pytest.mark.parametrize(
    ("columns", "payloads", "reason"),
    [
        ((b"\0" * 8, b"", b"\0" * 7, b"\0" * 8), b"", "no whole number of entries"),
        ((b"\0" * 8, b"", b"\1" + b"\0" * 7, b"\0" * 4), b"", "payload offsets"),
        ((b"\0" * 8, b"", b"\1" + b"\0" * 7, b"\0" * 8), b"x", "payload offsets"),
        ((b"\1" + b"\0" * 7, b"", b"\1" + b"\0" * 7, b"\0" * 8), b"", "header offsets"),
        ((b"\0" * 12, b"", b"\1" + b"\0" * 15, b"\0" * 12), b"", "of a batch fall"),
    ],
)
def test_columns_that_do_not_fit_together(
    columns: tuple[bytes, ...], payloads: bytes, reason: str
) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode([msgpack.packb([9, "n", [1, 2], 3, columns]), payloads])
