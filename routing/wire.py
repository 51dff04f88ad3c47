"""Messages as bytes: MessagePack for the fields, packed columns for lists of numbers.

A message is one part, or two if it carries notifications: the payloads of a batch are a part of
their own, so that a router sends the very bytes on that it received, to many neighbours, without
a copy. The first part is an array: the message's code, then its fields in order. Lists of
numbers are binary columns, so that arrays stay short and a hostile length buys no memory.

What `decode` returns is a well-formed message; anything else raises ProtocolError.
"""

from __future__ import annotations

import dataclasses
import struct
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, get_args

import msgpack  # type: ignore[import-untyped]

from routing import messages
from routing.batch import Batch, pack_u32, unpack_u32
from routing.errors import ProtocolError
from routing.messages import PATH_MAX, Message, Placed, Refusal, Setup
from routing.trace import TRACE_BYTES

Parts = tuple[bytes, ...]

#: Bytes of a name and of a reason.
TEXT_MAX = 1024
#: The first part of a message, in bytes.
HEAD_MAX = 64 << 20

_INT_MIN, _INT_MAX = -1, (1 << 63) - 1
_REFUSALS = {int(code): code for code in Refusal}
_NUMBER = struct.Struct("<IQ")
_ARRAY_MAX = max(PATH_MAX, 16)


class _Kind(NamedTuple):
    """How fields of one type go onto the wire, and how they are checked when they come off."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


# -- single values -------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > TEXT_MAX:
        raise ProtocolError(f"expected a text of up to {TEXT_MAX} characters")
    return value


def _int(value: Any) -> int:
    if type(value) is not int or not _INT_MIN <= value <= _INT_MAX:
        raise ProtocolError("expected a whole number")
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ProtocolError("expected true or false")
    return value


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise ProtocolError("expected bytes")
    return value


def _trace(value: Any) -> bytes:
    context = _bytes(value)
    if len(context) not in (0, TRACE_BYTES):
        raise ProtocolError(f"{len(context)} bytes are no trace context")
    return context


def _refusal(value: Any) -> Refusal:
    if type(value) is not int or value not in _REFUSALS:
        raise ProtocolError("expected the code of a refusal")
    return _REFUSALS[value]


def _u64(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ProtocolError("expected a 64-bit number")
    return value


# -- small arrays --------------------------------------------------------------------------------


def _pair(value: Any) -> tuple[int, int]:
    if type(value) is not list or len(value) != 2:
        raise ProtocolError("expected a pair of numbers")
    return _u64(value[0]), _u64(value[1])


def _path(value: Any) -> tuple[str, ...]:
    if type(value) is not list or len(value) > PATH_MAX:
        raise ProtocolError(f"expected a path of up to {PATH_MAX} names")
    return tuple(map(_text, value))


# -- columns -------------------------------------------------------------------------------------


def _words(value: Any) -> list[int]:
    column = _bytes(value)
    if len(column) % 4:
        raise ProtocolError(f"a column of {len(column)} bytes holds no whole number of nodes")
    return unpack_u32(column).tolist()


def _nodes(value: Any) -> tuple[int, ...]:
    return tuple(_words(value))


def _pack_setups(setups: Sequence[Setup]) -> bytes:
    """Each set-up as its node, how many parents and children, then both."""
    words = array("I")
    for node, parents, children in setups:
        words.extend((node, len(parents), len(children), *parents, *children))
    return words.tobytes()


def _setups(value: Any) -> tuple[Setup, ...]:
    words = _words(value)
    setups: list[Setup] = []
    at = 0
    while at < len(words):
        if len(words) - at < 3 or len(words) - at - 3 < words[at + 1] + words[at + 2]:
            raise ProtocolError("a graph set-up is cut off")
        middle = at + 3 + words[at + 1]
        end = middle + words[at + 2]
        setups.append(Setup(words[at], tuple(words[at + 3 : middle]), tuple(words[middle:end])))
        at = end
    return tuple(setups)


def _pack_numbers(numbers: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(_NUMBER.pack(*number) for number in numbers)


def _numbers(value: Any) -> tuple[tuple[int, int], ...]:
    column = _bytes(value)
    if len(column) % _NUMBER.size:
        raise ProtocolError(f"{len(column)} bytes hold no whole number of sequence numbers")
    return tuple(_NUMBER.iter_unpack(column))


def _pack_placed(placed: Sequence[Placed]) -> bytes:
    return array("Q", chain.from_iterable(placed)).tobytes()


def _placed(value: Any) -> tuple[Placed, ...]:
    column = _bytes(value)
    if len(column) % 24:
        raise ProtocolError(f"{len(column)} bytes hold no whole number of placed publications")
    words = memoryview(column).cast("Q").tolist()
    return tuple(map(Placed, words[::3], words[1::3], words[2::3]))


def _pack_batch(batch: Batch) -> tuple[bytes, ...]:
    """The columns but the payloads; trace contexts only where there are any."""
    columns = (batch.header_offsets, batch.nodes, batch.positions, batch.payload_offsets)
    return (*columns, batch.traces) if batch.traces else columns


def _batch(columns: Any, payloads: bytes) -> Batch:
    if type(columns) is not list or len(columns) not in (4, 5):
        raise ProtocolError("expected the columns of a batch")
    header_offsets, nodes, positions, payload_offsets, *traces = map(_bytes, columns)
    batch = Batch(header_offsets, nodes, positions, payload_offsets, payloads, *traces)
    batch.validate()
    return batch


#: By annotation; a batch is treated apart, since it has a second part.
_KINDS = {
    "str": _Kind(_same, _text),
    "int": _Kind(_same, _int),
    "bool": _Kind(_same, _bool),
    "bytes": _Kind(_same, _bytes),
    "Trace": _Kind(_same, _trace),
    "Refusal": _Kind(int, _refusal),
    "Session": _Kind(_same, _pair),
    "Digest": _Kind(_same, _pair),
    "tuple[str, ...]": _Kind(_same, _path),
    "tuple[int, ...]": _Kind(pack_u32, _nodes),
    "tuple[Setup, ...]": _Kind(_pack_setups, _setups),
    "tuple[tuple[int, int], ...]": _Kind(_pack_numbers, _numbers),
    "tuple[Placed, ...]": _Kind(_pack_placed, _placed),
    "Batch": _Kind(_pack_batch, _same),
}


# -- messages ------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """A message type on the wire."""

    code: int
    cls: type[Message]
    names: tuple[str, ...]
    kinds: tuple[_Kind, ...]
    #: Whether the last field is a batch; or a trace context, which is left out where there is none.
    batched: bool
    traced: bool


def _form(code: int, cls: Any) -> _Form:
    fields = dataclasses.fields(cls)
    types = [str(field.type) for field in fields]
    names = tuple(field.name for field in fields)
    kinds = tuple(_KINDS[t] for t in types)
    return _Form(code, cls, names, kinds, types[-1] == "Batch", types[-1] == "Trace")


#: Codes never change: routers of different versions talk to each other.
_CODES: dict[int, type[Message]] = {
    1: messages.Hello,
    2: messages.Subscribe,
    3: messages.Unsubscribe,
    4: messages.Resubscribe,
    5: messages.GraphSetup,
    6: messages.UnsubscribeAck,
    7: messages.Reject,
    8: messages.ResubscribeAck,
    9: messages.Notify,
    10: messages.SequenceRequest,
    11: messages.SequenceReply,
    12: messages.RecoverRequest,
    13: messages.RecoverReply,
    14: messages.Publish,
    15: messages.PublishAck,
    16: messages.PublishRefusal,
}
_NOTIFY = 9
assert _CODES[_NOTIFY] is messages.Notify
_BY_CODE = {code: _form(code, cls) for code, cls in _CODES.items()}
_BY_TYPE = {form.cls: form for form in _BY_CODE.values()}
assert set(_BY_TYPE) == set(get_args(Message))


def encode(message: Message) -> Parts:
    """The parts of a message."""
    if type(message) is messages.Notify:
        return _encode_notify(message)
    form = _BY_TYPE[type(message)]
    values = [getattr(message, name) for name in form.names]
    fields = [kind.pack(value) for kind, value in zip(form.kinds, values, strict=True)]
    if form.traced and not fields[-1]:
        fields.pop()
    head: bytes = msgpack.packb((form.code, *fields))
    return (head, values[-1].payloads) if form.batched else (head,)


def _encode_notify(message: messages.Notify) -> Parts:
    """What `encode` does for any message, for those of which a router sends most."""
    batch = message.batch
    fields = (message.namespace, message.session, message.number, _pack_batch(batch))
    return msgpack.packb((_NOTIFY, *fields)), batch.payloads


def decode(parts: Sequence[bytes]) -> Message:
    """The message that these parts are; ProtocolError if they are none."""
    if not parts or len(parts[0]) > HEAD_MAX:
        raise ProtocolError(f"a message of {len(parts)} parts is empty or too long")
    fields = _unpack(parts[0])
    form = _BY_CODE.get(fields[0]) if type(fields[0]) is int else None
    if form is None:
        raise ProtocolError(f"unknown message code {fields[0]!r:.40}")
    missing = 1 + len(form.names) - len(fields)
    if not 0 <= missing <= form.traced or len(parts) != 1 + form.batched:
        raise ProtocolError(f"a {form.cls.__name__} with fields or parts missing, or too many")
    try:
        values = [kind.unpack(v) for kind, v in zip(form.kinds, fields[1:], strict=not missing)]
        if form.batched:
            values[-1] = _batch(values[-1], parts[1])
    except ProtocolError as error:
        raise ProtocolError(f"{form.cls.__name__}: {error}") from None
    return form.cls(*values)


def part_count(head: bytes) -> int:
    """How many parts the message has that begins with this one."""
    # A small array, then a code below 128: two bytes tell, without taking the rest apart.
    batched = len(head) > 1 and 0x90 <= head[0] <= 0x9F and head[1] in _BATCHED
    return 2 if batched else 1


_BATCHED = frozenset(form.code for form in _BY_CODE.values() if form.batched)


def _unpack(head: bytes) -> list[Any]:
    try:
        fields = msgpack.unpackb(
            head,
            raw=False,
            strict_map_key=True,
            max_array_len=_ARRAY_MAX,
            max_map_len=0,
            max_ext_len=0,
        )
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ProtocolError(f"no MessagePack: {error}") from None
    if type(fields) is not list or not fields:
        raise ProtocolError("a message is an array that begins with its code")
    return fields
