"""The roots of traces, in the client hosts where they begin: one span from request to answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

from actors.telemetry.spans import Span, new_child
from actors.telemetry.tracer import Tracer

Note = Callable[[BaseException | None], None]
"""Ends a root span: with nothing, or with what went wrong."""


End = Callable[[Future[Any]], None]
"""Ends a root span with what a request has come to."""


def root_request(
    tracer: Tracer, operation: str, namespace: str, sample: bool | None
) -> tuple[bytes, End]:
    """The context of a request that begins now (empty if it is not sampled), and its end."""
    trace = tracer.root(namespace, sample)
    note = root_span(tracer, operation, namespace, trace) if trace else None

    def end(done: Future[Any]) -> None:
        if note is not None:
            note(CancelledError() if done.cancelled() else done.exception())

    return trace, end


def root_span(
    tracer: Tracer, operation: str, namespace: str, trace: bytes, since_ns: int | None = None
) -> Note:
    """A root that begins now, or with the preprocessing before it, which gets its own span."""
    began_ns = time.time_ns()
    start_ns = began_ns if since_ns is None else since_ns
    if since_ns is not None:
        child = new_child(trace)
        ids = (child[:16], child[16:24], trace[16:24])
        tracer.note(Span(*ids, "preprocess", namespace, since_ns, began_ns, {}))

    def note(error: BaseException | None) -> None:
        why = "" if error is None else str(error) or type(error).__name__
        ids, about = (trace[:16], trace[16:24], b""), {"messaging.f3.hop": 0}
        tracer.note(Span(*ids, operation, namespace, start_ns, time.time_ns(), about, why))

    return note
