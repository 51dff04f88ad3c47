"""Our spans and metrics as OpenTelemetry's objects, and its exporters for them.

The exporters read the standard variables (headers, certificates, compression); only the endpoint
and the time-out are ours. Imported by export threads alone: it brings requests and protobuf.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from actors.telemetry.metrics import metrics_of
from actors.telemetry.spans import Span, standard_attributes

_SCOPE = InstrumentationScope("f3")
_KINDS = {"publish": SpanKind.PRODUCER, "subscribe": SpanKind.CLIENT}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Otlp:
    """One host's exporters."""

    def __init__(self, service: str, endpoint: str, timeout: float) -> None:
        # A collector that is away is reported once, by us.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._endpoint, self._timeout = endpoint, timeout
        self._resource = Resource({"service.name": f"f3-{service}", "service.namespace": "f3"})
        self._spans = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=timeout)
        self._metrics = OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics", timeout=timeout)

    def spans(self, spans: Sequence[Span]) -> bool:
        """Send spans; false if they were not taken."""
        made = [self._readable(span) for span in spans]
        return self._spans.export(made) is SpanExportResult.SUCCESS

    def metrics(self, status: dict[str, Any]) -> bool:
        """Send a host's status as metrics; false if it was not taken."""
        scope = ScopeMetrics(_SCOPE, metrics_of(status), "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        return self._metrics.export(data) is MetricExportResult.SUCCESS

    def takes_metrics(self) -> bool:
        """False where the collector answers that it has no place for metrics; else true."""
        url, kind = f"{self._endpoint}/v1/metrics", {"Content-Type": "application/x-protobuf"}
        try:
            with urlopen(Request(url, b"", kind), timeout=self._timeout):  # noqa: S310
                return True
        except HTTPError as error:
            with error:
                return error.code not in (404, 405)
        except OSError:
            return True

    def shutdown(self) -> None:
        """Give up whatever is under way."""
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._metrics.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        status = Status(StatusCode.ERROR, span.error) if span.error else Status()
        kind = SpanKind.CONSUMER if span.parent else SpanKind.INTERNAL
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace, span.span),
            parent=_context(span.trace, span.parent) if span.parent else None,
            resource=self._resource,
            attributes=standard_attributes(span),
            kind=kind if span.parent else _KINDS.get(span.operation, kind),
            status=status,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=_SCOPE,
        )


def _context(trace: bytes, span: bytes) -> SpanContext:
    ids = int.from_bytes(trace, "big"), int.from_bytes(span, "big")
    return SpanContext(*ids, is_remote=False, trace_flags=_SAMPLED)
