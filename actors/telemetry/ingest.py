"""OTLP requests taken apart: protobuf or JSON to plain rows; ValueError for anything else."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

#: A request, before and after it is unpacked.
BODY_MAX = 16 << 20
_ERROR = 2

Row = dict[str, Any]


def spans_of(body: bytes, kind: str, encoding: str) -> list[Row]:
    """The spans of a request."""
    request = _parsed(ExportTraceServiceRequest(), body, kind, encoding)
    return list(_spans(request))


def metrics_of(body: bytes, kind: str, encoding: str) -> list[Row]:
    """The data points of a request; of a histogram, how many values it has and their sum."""
    request = _parsed(ExportMetricsServiceRequest(), body, kind, encoding)
    return list(_points(request))


def _parsed(request: Any, body: bytes, kind: str, encoding: str) -> Any:
    body = _unpacked(body, encoding)
    try:
        if kind == "application/x-protobuf":
            request.ParseFromString(body)
        elif kind == "application/json":
            json_format.ParseDict(_with_base64(json.loads(body)), request, True)
        else:
            raise ValueError(f"content type {kind!r} is neither protobuf nor JSON")
    except (DecodeError, json_format.ParseError, RecursionError) as error:
        raise ValueError(f"no OTLP request: {error}") from None
    return request


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise ValueError(f"content encoding {encoding!r} is not known")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        whole = unpacking.decompress(body, BODY_MAX)
    except zlib.error as error:
        raise ValueError(f"no gzip: {error}") from None
    if not unpacking.eof:
        raise ValueError(f"more than {BODY_MAX} bytes, or cut off")
    return whole


def _with_base64(value: Any) -> Any:
    """OTLP's JSON has identifiers in hexadecimal, where protobuf's has base64."""
    if isinstance(value, list):
        return [_with_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, each in value.items():
        if key in ("traceId", "spanId", "parentSpanId") and isinstance(each, str):
            found[key] = base64.b64encode(bytes.fromhex(each)).decode()
        else:
            found[key] = _with_base64(each)
    return found


def _spans(request: Any) -> Iterator[Row]:
    for resource in request.resource_spans:
        service = _attributes(resource.resource.attributes).get("service.name", "unknown")
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "service": str(service),
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "start_ns": span.start_time_unix_nano,
                    "end_ns": span.end_time_unix_nano,
                    "attributes": _attributes(span.attributes),
                    "error": (span.status.message or "error") if span.status.code == _ERROR else "",
                }


def _points(request: Any) -> Iterator[Row]:
    for resource in request.resource_metrics:
        service = str(_attributes(resource.resource.attributes).get("service.name", "unknown"))
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                if kind not in ("gauge", "sum", "histogram"):
                    continue
                for point in getattr(metric, kind).data_points:
                    about = _attributes(point.attributes)
                    for name, value in _values(metric.name, kind, point):
                        yield {
                            "service": service,
                            "name": name,
                            "value": value,
                            "attributes": about,
                        }


def _values(name: str, kind: str, point: Any) -> tuple[tuple[str, float], ...]:
    if kind == "histogram":
        return ((f"{name}.count", point.count), (f"{name}.sum", point.sum))
    return ((name, point.as_double or point.as_int),)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value", "bool_value"):
        return getattr(value, kind)
    return str(value).strip()
