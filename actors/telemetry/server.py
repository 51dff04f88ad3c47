"""The collector behind HTTP: a few threads of the standard library's server, on loopback."""

from __future__ import annotations

import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from actors.telemetry.collector import Collector
from actors.telemetry.ingest import BODY_MAX, metrics_of, spans_of

_PAGE = Path(__file__).with_name("page.html")
#: Seconds without a byte after which a connection is given up.
_SILENCE = 10.0
_LIMIT_MAX = 1000


class CollectorServer:
    """A collector that listens; a context manager."""

    def __init__(
        self, port: int = 0, host: str = "127.0.0.1", collector: Collector | None = None
    ) -> None:
        self.collector = collector or Collector()
        handler = type("Handler", (_Handler,), {"collector": self.collector})
        self._server = ThreadingHTTPServer((host, port), handler)
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="f3 collector", daemon=True
        )

    def start(self) -> CollectorServer:
        """Begin; returns at once."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)

    def __enter__(self) -> CollectorServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Handler(BaseHTTPRequestHandler):
    collector: ClassVar[Collector]
    # HTTP/1.0, a connection for each request: a collector that was stopped serves nobody.
    timeout = _SILENCE

    def do_POST(self) -> None:
        """Take in what hosts export."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_MAX:
            self.close_connection = True
            self._answer(413, {"error": f"a body of up to {BODY_MAX} bytes, with its length"})
            return
        body = self.rfile.read(int(length))
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        encoding = self.headers.get("Content-Encoding", "")
        try:
            if self.path == "/v1/traces":
                self.collector.add_spans(spans_of(body, kind, encoding))
            elif self.path == "/v1/metrics":
                self.collector.add_metrics(metrics_of(body, kind, encoding))
            else:
                self._answer(404, {"error": f"nothing is taken in at {self.path[:100]}"})
                return
        except ValueError as error:
            self.collector.refused += 1
            self._answer(400, {"error": str(error)[:200]})
            return
        self._send(200, kind, b"{}" if kind == "application/json" else b"")

    def do_GET(self) -> None:
        """Answer questions."""
        url = urlsplit(self.path)
        if url.path == "/":
            self._send(200, "text/html; charset=utf-8", _PAGE.read_bytes())
            return
        try:
            found = self._find(url.path, {k: v[0] for k, v in parse_qs(url.query).items()})
        except ValueError as error:
            self._answer(400, {"error": str(error)})
            return
        if found is None:
            self._answer(404, {"error": f"there is nothing at {url.path[:100]}"})
        else:
            self._answer(200, found)

    def _find(self, path: str, asked: dict[str, str]) -> Any:
        collector = self.collector
        if path == "/api/traces":
            limit = min(int(_number(asked, "limit", 100)), _LIMIT_MAX)
            min_us = _number(asked, "min_us", 0)
            service, operation = asked.get("service", ""), asked.get("operation", "")
            return collector.search(service, operation, min_us, limit)
        if path.startswith("/api/traces/"):
            return collector.trace(path.rpartition("/")[2]) or None
        plain = {
            "/api/services": collector.services,
            "/api/metrics": collector.metrics,
            "/api/status": collector.status,
        }
        return plain[path]() if path in plain else None

    def _answer(self, code: int, found: Any) -> None:
        self._send(code, "application/json", json.dumps(found).encode())

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Progress is the business of whoever runs the collector."""


def _number(asked: dict[str, str], key: str, default: float) -> float:
    try:
        found = float(asked.get(key, default))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{key} must be a number, not {asked[key][:50]!r}")
    return found
