"""Many publications as one message: how they are put together, and taken apart again.

A link that has several publications of one publisher waiting sends them as columns; whatever is
on the way touches them once. The rendezvous point takes them one by one, as if they had come so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routing.batch import Batch
from routing.errors import ProtocolError
from routing.messages import Publications, Publish
from routing.trace import pack_traces


def follows(last: Publish, message: Publish) -> bool:
    """Whether two publications can travel in one message."""
    return (
        message.number > last.number
        and message.publisher == last.publisher
        and message.namespace == last.namespace
        and message.host == last.host
        and message.incarnation == last.incarnation
        and message.version == last.version
        and message.path == last.path
    )


def bundle(messages: Sequence[Publish]) -> Publications:
    """One message of publications of which each follows the one before."""
    first = messages[0]
    rows = ((m.nodes, m.number, bytes((len(m.tag),)) + m.tag + m.body) for m in messages)
    traces = pack_traces((row, m.trace) for row, m in enumerate(messages) if m.trace)
    return Publications(
        first.namespace,
        first.path,
        first.publisher,
        first.host,
        first.incarnation,
        first.version,
        Batch.of(rows, traces),
    )


def unbundle(message: Publications) -> Iterator[Publish]:
    """The publications one by one; ProtocolError where a payload is none."""
    contexts = message.batch.contexts()
    for row, (nodes, number, payload) in enumerate(message.batch.rows()):
        end = 1 + payload[0] if payload else 0
        if not 0 < end <= len(payload):
            raise ProtocolError(f"publication {number} of {message.publisher!r} is cut off")
        yield Publish(
            message.namespace,
            message.path,
            message.publisher,
            message.host,
            message.incarnation,
            number,
            message.version,
            nodes,
            payload[end:],
            payload[1:end],
            contexts.get(row, b""),
        )
