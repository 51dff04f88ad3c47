"""Spans as a host notes them: small tuples, turned into OpenTelemetry's objects only for export.

Names and attributes follow OpenTelemetry's messaging conventions; what is ours sits under
`messaging.f3`. A publication is the root, each hop a child of the hop before, delivery the leaf.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

SYSTEM = "f3"
_SAMPLED = 1
#: Between our own hosts the flags also count hops: six bits above the two that are spoken for.
_HOP = 2
_HOPS_MAX = 63


class Span(NamedTuple):
    """One finished piece of work of one host; times in ns since 1970."""

    trace: bytes
    span: bytes
    #: The span that caused it; empty for a root.
    parent: bytes
    #: publish, submit, forward, recover, deliver, subscribe, …
    operation: str
    namespace: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    error: str = ""

    @property
    def name(self) -> str:
        """As the messaging conventions want it: what is done, and where."""
        return f"{self.operation} {self.namespace}"

    def as_row(self, service: str) -> dict[str, Any]:
        """For JSON."""
        return {
            "service": service,
            "name": self.name,
            "operation": self.operation,
            "trace": self.trace.hex(),
            "span": self.span.hex(),
            "parent": self.parent.hex(),
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "attributes": dict(self.attributes),
            "error": self.error,
        }


def new_trace() -> bytes:
    """The context of a new root."""
    return os.urandom(24) + bytes((_SAMPLED,))


def new_child(context: bytes) -> bytes:
    """A context below another: same trace, a span of its own, one hop on."""
    hop = min(hop_of(context) + 1, _HOPS_MAX)
    return context[:16] + os.urandom(8) + bytes((hop << _HOP | _SAMPLED,))


def hop_of(context: bytes) -> int:
    """How many spans are above this one."""
    return context[24] >> _HOP


#: The convention's type of each operation; the rest are the host's own work.
_TYPES = {"publish": "send", "submit": "process", "forward": "process", "recover": "process"}


def standard_attributes(span: Span) -> dict[str, Any]:
    """The attributes of a span by OpenTelemetry's messaging conventions, and ours."""
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.name": span.operation,
        "messaging.operation.type": _TYPES.get(span.operation, "process"),
        "messaging.destination.name": span.namespace,
        **span.attributes,
    }
