"""The built-in collector: fed by live hosts over HTTP, asked over HTTP, killed, and misused."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import statistics
import time
from contextlib import contextmanager, nullcontext
from itertools import product
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from traced_world import CALM, DEADLINE, ROOT, TREE, Row, TracedWorld, until

from actors.host import HostOptions
from actors.telemetry.collector import Collector
from actors.telemetry.export import QUEUE_MAX, Exporter
from actors.telemetry.options import Tracing
from actors.telemetry.server import CollectorServer, _Handler
from actors.telemetry.spans import Span


@pytest.fixture
def server():
    with CollectorServer() as made:
        yield made


def get(server: CollectorServer, path: str):
    with urlopen(f"{server.url}{path}", timeout=5) as reply:
        return json.load(reply)


def post(server: CollectorServer, path: str, body: bytes, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(f"{server.url}{path}", body, named), timeout=5) as reply:
            return reply.status
    except HTTPError as error:
        with error:
            return error.code if json.load(error)["error"] else 0


def collected(server: CollectorServer) -> list[Row]:
    """Every span, by way of the query interface."""
    rows = []
    for summary in get(server, "/api/traces?limit=1000"):
        for row in get(server, f"/api/traces/{summary['trace']}"):
            service = row["service"].removeprefix("f3-")
            named = {**row, "service": service, "operation": row["name"].partition(" ")[0]}
            rows.append(Row(*(named[name] for name in Row._fields)))
    return rows


def test_the_collector_has_the_spans_that_brute_force_expects(server, network):
    options = HostOptions(tracing=Tracing(server.url, metrics_period=0.2))
    made = network(TREE, [ROOT], config=CALM, options=options)
    world = TracedWorld(made, 5)
    world.publish(40)
    due = world.spans_due()
    until(lambda: server.collector.spans >= due, "all spans in the collector")
    rows = collected(server)
    assert len(rows) == due
    world.check(rows)
    assert set(get(server, "/api/services")) <= {f"f3-{n}" for n in [*made.hosts, *world.clients]}
    of_r0 = get(server, "/api/traces?service=f3-r0&operation=submit&limit=1000")
    assert len(of_r0) == 40
    assert get(server, "/api/traces?operation=nothing") == []
    assert len(get(server, "/api/traces?limit=3")) == 3
    host = made.hosts[ROOT]
    until(lambda: host.tracer.status()["exported"] > 0, "the host's own count")
    assert host.tracer.status()["dropped"] == 0
    queues = lambda: {  # noqa: E731
        (row["service"], row["attributes"].get("link"))
        for row in get(server, "/api/metrics")
        if row["name"] == "messaging.f3.queue.capacity" and row["value"] == 20_000
    }
    until(lambda: {("f3-r0", "r1"), ("f3-r1", "r0")} <= queues(), "metrics of both ends of a link")


def test_a_collector_that_is_away_slows_nothing_and_is_reported_once(network, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there once this block ends
    endpoint = f"http://127.0.0.1:{port}"
    made = network([("r0", "r1")], [ROOT], options=HostOptions(tracing=Tracing(endpoint, 1.0)))
    made.insert(ROOT, 1)
    client = made.client("r1")
    subscriber = client.subscriber("s")
    subscriber.subscribe(ROOT, 1, DEADLINE)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            began = time.monotonic()
            for future in [client.publisher("p").send(ROOT, (1,), b"") for _ in range(50)]:
                future.result(DEADLINE)
            for _ in range(50):
                subscriber.get(DEADLINE)
            # One attempt to export may take two seconds: nobody here waits for any.
            assert time.monotonic() - began < 2.0
        exporter = client.host.tracer.exporter
        until(lambda: exporter.trouble and exporter.dropped, "the report")
    reports = [r.getMessage() for r in caplog.records if client.host.address in r.getMessage()]
    assert len([text for text in reports if "no export" in text]) == 1
    status = client.host.status()["telemetry"]
    assert status["trouble"].startswith(f"no export of spans to {endpoint}")
    assert status["exported"] == 0


def test_a_killed_collector_costs_spans_that_are_counted_and_comes_back(network):
    server = CollectorServer().start()
    port = int(server.url.rpartition(":")[2])
    options = HostOptions(tracing=Tracing(server.url, 1.0, metrics_period=60.0))
    made = network([("r0", "r1")], [ROOT], options=options)
    made.insert(ROOT, 1)
    client = made.client("r1")
    publish = lambda: client.publisher("p").publish(ROOT, (1,), b"", timeout=DEADLINE)  # noqa: E731
    publish()
    exporter = client.host.tracer.exporter
    until(lambda: exporter.exported, "the first export")
    server.stop()
    publish()
    until(lambda: exporter.dropped, "a drop")
    with CollectorServer(port):
        publish()
        until(lambda: not exporter.trouble, "the collector's return")
    assert exporter.exported + exporter.dropped + len(exporter._queue) == client.host.tracer.made


@contextmanager
def hanging(port: int):
    """Somebody who takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", port)):
        yield


def test_a_collector_that_is_killed_or_hangs_slows_nothing_and_each_outage_is_reported_once(
    network, caplog
):
    """The same network and the same traffic, all of it sampled, while its collector comes and goes.

    With a collector that works, hosts do more than with one that does not: so if nobody waits for
    it, throughput is no lower without. Half is far below what noise does to a median of three.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    tracing = Tracing(f"http://127.0.0.1:{port}", 1.0, metrics_period=0.2)
    made = network([("r0", "r1")], [ROOT], config=CALM, options=HostOptions(tracing=tracing))
    made.insert(ROOT, 1)
    client = made.client("r1")
    subscriber = client.subscriber("s")
    subscriber.subscribe(ROOT, 1, DEADLINE)
    publisher, exporter = client.publisher("p"), client.host.tracer.exporter
    phases = {"works": lambda: CollectorServer(port), "killed": nullcontext}
    phases["hangs"] = lambda: hanging(port)
    rates = {name: [] for name in phases}
    for _, (name, phase) in product(range(3), phases.items()):
        with phase(), caplog.at_level(logging.WARNING):
            publisher.publish(ROOT, (1,), b"")
            subscriber.get(DEADLINE)
            works = name == "works"
            until(lambda w=works: bool(exporter.trouble) != w, f"trouble where it {name}")
            began = time.perf_counter()
            for _ in range(300):
                publisher.send(ROOT, (1,), b"")
            for _ in range(300):
                subscriber.get(DEADLINE)
            rates[name].append(300 / (time.perf_counter() - began))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    assert medians["killed"] > 0.5 * medians["works"], rates
    assert medians["hangs"] > 0.5 * medians["works"], rates
    told = [r for r in caplog.records if r.getMessage().startswith(client.host.address)]
    assert len(told) == 3, [r.getMessage() for r in told]
    status = exporter.status()
    assert status["exported"] > 0
    assert status["dropped"] > 0


def test_a_collector_without_a_place_for_metrics_gets_spans_and_no_complaint(
    network, caplog, monkeypatch
):
    """Jaeger is one: it answers 404."""
    take = _Handler.do_POST

    def take_traces(handler):
        if handler.path == "/v1/metrics":
            handler.path = "/nowhere"
        take(handler)

    monkeypatch.setattr(_Handler, "do_POST", take_traces)
    with CollectorServer() as server, caplog.at_level(logging.WARNING):
        options = HostOptions(tracing=Tracing(server.url, 1.0, metrics_period=0.05))
        made = network([("r0", "r1")], [ROOT], options=options)
        made.insert(ROOT, 1)
        client = made.client("r1")
        hosts = [*made.hosts.values(), client.host]
        told = lambda: [host.tracer.status() for host in hosts]  # noqa: E731
        until(lambda: not any(each["metrics"] for each in told()), "nobody sends metrics")
        client.publisher("p").publish(ROOT, (1,), b"", timeout=DEADLINE)
        until(lambda: all(each["exported"] for each in told()), "everybody's spans")
        assert [each["trouble"] for each in told()] == ["", "", ""]
        assert [each["dropped"] for each in told()] == [0, 0, 0]
    assert "no export" not in caplog.text


def test_a_full_queue_drops_and_counts():
    exporter = Exporter("x", "http://127.0.0.1:9")
    exporter._stopping = True  # its thread never starts
    span = Span(b"t" * 16, b"s" * 8, b"", "publish", "n", 1, 2, {})
    for _ in range(QUEUE_MAX + 7):
        exporter.offer(span)
    assert exporter.status() == {
        "exported": 0,
        "dropped": 7,
        "waiting": QUEUE_MAX,
        "trouble": "",
        "metrics": True,
    }


def test_the_collector_is_bounded_and_tells_what_went():
    collector = Collector(spans_max=10)
    for n in range(8):
        row = {"service": "s", "name": "n", "parent": "", "start_ns": n, "end_ns": n, "error": ""}
        collector.add_spans([{**row, "trace": f"{n}", "span": f"{n}{k}"} for k in range(3)])
    assert collector.status()["spans"] <= 10
    assert collector.status()["evicted"] == 24 - collector.spans
    assert [hit["trace"] for hit in collector.search()] == ["7", "6", "5"]


SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "name": "publish x",
    "startTimeUnixNano": "1000",
    "endTimeUnixNano": "2000",
    "attributes": [{"key": "k", "value": {"intValue": "7"}}],
    "status": {"code": 2, "message": "why"},
}
RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "other"}}]}
REQUEST = {"resourceSpans": [{"resource": RESOURCE, "scopeSpans": [{"spans": [SPAN]}]}]}


def test_json_and_gzip_are_taken_in_as_the_standard_says(server):
    body = json.dumps(REQUEST).encode()
    assert post(server, "/v1/traces", body, Content_Type="application/json") == 200
    packed = {"Content_Type": "application/json; charset=utf-8", "Content_Encoding": "gzip"}
    assert post(server, "/v1/traces", gzip.compress(body), **packed) == 200
    rows = get(server, f"/api/traces/{SPAN['traceId']}")
    assert len(rows) == 2
    assert rows[0] == {
        "service": "other",
        "name": "publish x",
        "trace": SPAN["traceId"],
        "span": SPAN["spanId"],
        "parent": "",
        "start_ns": 1000,
        "end_ns": 2000,
        "attributes": {"k": 7},
        "error": "why",
    }


@pytest.mark.parametrize(
    ("path", "body", "headers", "code"),
    [
        ("/v1/traces", b"\xff\xff\xff", {"Content_Type": "application/x-protobuf"}, 400),
        ("/v1/traces", b"{", {"Content_Type": "application/json"}, 400),
        ("/v1/traces", b'{"resourceSpans": 3}', {"Content_Type": "application/json"}, 400),
        ("/v1/traces", b"[" * 100_000, {"Content_Type": "application/json"}, 400),
        ("/v1/traces", b"", {"Content_Type": "text/plain"}, 400),
        (
            "/v1/metrics",
            b"x",
            {"Content_Type": "application/json", "Content_Encoding": "gzip"},
            400,
        ),
        ("/v1/logs", b"", {"Content_Type": "application/json"}, 404),
    ],
)
def test_bad_requests_are_refused_with_a_reason(server, path, body, headers, code):
    assert post(server, path, body, **headers) == code
    assert get(server, "/api/status")["refused"] == (code == 400)


@pytest.mark.parametrize(
    "path", ["/api/traces?limit=x", "/api/traces?min_us=nan", "/api/traces/00", "/nowhere"]
)
def test_bad_questions_are_refused(server, path):
    with pytest.raises(HTTPError) as caught:
        get(server, path)
    with caught.value as error:
        assert error.code in (400, 404)
