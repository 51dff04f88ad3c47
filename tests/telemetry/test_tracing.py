"""Spans per hop, on live links: those that brute force expects, and no others."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from threading import Event

import pytest
from traced_world import CALM, DEADLINE, ROOT, TREE, TracedWorld, rows_of, until

from actors.answers import RefusedError
from actors.host import HostOptions
from actors.preprocessors import publish
from actors.telemetry.options import Tracing
from actors.telemetry.spans import hop_of, new_child, new_trace
from actors.telemetry.tracer import Tracer
from preprocess.attribute_value import AttributeValue
from preprocess.replica import Authority, DynamicPreprocessor
from routing.api import Config
from routing.batch import Batch
from routing.errors import ProtocolError
from routing.registry import protocols
from routing.trace import check_traces, pack_traces, unpack_traces


@pytest.mark.parametrize("protocol", sorted(protocols()))
def test_every_publication_leaves_exactly_its_tree_of_spans(network, protocol):
    reached: Counter[str] = Counter()
    for seed in range(3):
        made = network(TREE, [ROOT], protocol=protocol, config=CALM)
        world = TracedWorld(made, seed)
        world.publish(60)
        until(lambda w=world, m=made: len(rows_of(m)) >= w.spans_due(), "all spans")
        rows = rows_of(made)
        world.check(rows)
        counts = [row.attributes.get("messaging.batch.message_count", 1) for row in rows]
        world.reached["batches"] += sum(count > 1 for count in counts)
        reached += world.reached
        made.close()
    wanted = ("several lowest nodes", "nobody", "one", "several", "batches")
    assert all(reached[what] >= 5 for what in wanted), reached


def test_queue_wait_and_header_are_told_apart_from_the_work(network):
    made = network(TREE, [ROOT], config=CALM)
    world = TracedWorld(made, 1)
    world.publish(20)
    until(lambda: len(rows_of(made)) >= world.spans_due(), "all spans")
    hops = [row for row in rows_of(made) if row.operation in ("submit", "forward")]
    for row in hops:
        assert row.attributes["messaging.f3.queue_wait_us"] >= 0
        assert row.attributes["messaging.f3.queue_size"] >= 0
        assert row.attributes["messaging.f3.header_size"] >= 0
        assert row.attributes["messaging.f3.from"] != row.service
    assert any(row.attributes["messaging.f3.queue_wait_us"] > 0 for row in hops)


def edges_of(rows):
    """(parent, child) each as (service, operation), sorted; all must be of one trace."""
    assert len({row.trace for row in rows}) == 1
    by_span = {row.span: (row.service, row.operation) for row in rows}
    return sorted((by_span[row.parent], by_span[row.span]) for row in rows if row.parent)


def test_a_repeated_publication_shows_every_attempt(network):
    made = network([("r0", "r1")], [ROOT], config=Config(period=0.2, lifetime=60.0, retry=0.1))
    made.insert(ROOT, 1)
    client = made.client("r1", "h")
    client.subscriber("s").subscribe(ROOT, 1, DEADLINE)
    entered, leave = Event(), Event()
    made.hosts[ROOT].submit(lambda: (entered.set(), leave.wait(DEADLINE)))  # it stands still
    assert entered.wait(DEADLINE)
    future = client.publisher("p").send(ROOT, (1,), b"", sample=True)
    sent = lambda: [s.operation for s in list(client.host.tracer.recent)].count("repeat")  # noqa: E731
    until(lambda: sent() >= 2, "two repetitions")
    leave.set()
    future.result(DEADLINE)
    repeats = sent()
    chain = lambda first: [  # noqa: E731
        (("h", first), ("r1", "submit")),
        (("r1", "submit"), ("r0", "submit")),
    ]
    once = [(("r0", "submit"), ("r1", "forward")), (("r1", "forward"), ("h", "forward"))]
    wanted = chain("publish") + once + [(("h", "forward"), ("h", "deliver"))]
    wanted += repeats * [(("h", "publish"), ("h", "repeat")), *chain("repeat")]
    until(lambda: len(rows_of(made)) > len(wanted), "all spans")
    assert sent() == repeats  # an acknowledged publication is not repeated
    assert edges_of(rows_of(made)) == sorted(wanted)


def test_what_is_sampled_is_decided_at_publish(network):
    ratios = {ROOT: 0.5, "r5": 0.0}
    options = HostOptions(tracing=Tracing(ratio=1.0, ratios=ratios))
    made = network(TREE, [ROOT, "r5"], options=options)
    for root in (ROOT, "r5"):
        made.insert(root, 1)
    client = made.client("r3")
    publisher = client.publisher("p")
    for future in [publisher.send(r, (1,), b"") for r in (ROOT, "r5") for _ in range(200)]:
        future.result(DEADLINE)
    roots = Counter(span.namespace for span in client.host.tracer.recent)
    assert 60 < roots[ROOT] < 140
    assert roots["r5"] == 0
    publisher.publish("r5", (1,), b"", sample=True)
    assert [s.namespace for s in client.host.tracer.recent].count("r5") == 1
    before = client.host.tracer.made
    for _ in range(50):
        publisher.publish(ROOT, (1,), b"", sample=False)
    assert client.host.tracer.made == before
    with pytest.raises(ValueError, match="ratio of every namespace is 2"):
        Tracing(ratio=2)


@pytest.mark.parametrize("ratio", [0.001, 0.1, 0.5, 1.0])
def test_publications_are_sampled_at_their_ratio_however_they_come(ratio):
    """Alone or together: the same share, and gaps that are as long as chance makes them."""
    tracer = Tracer("t", Tracing(ratio=ratio, ratios={"never": 0.0}))
    tracer._random.seed(4)
    rng, chosen, count = random.Random(5), [], 0
    while count < 200_000:
        some = rng.choice((1, 1, 1, 7, 256))
        chosen += [count + index for index in tracer.roots("n", some, None)]
        assert not tracer.roots("never", some, None)
        count += some
    expected = ratio * count
    assert abs(len(chosen) - expected) <= 4 * math.sqrt(expected * (1 - ratio)) + 1
    next_to = sum(after == before + 1 for before, after in pairwise(chosen))
    expected = ratio * len(chosen)
    assert abs(next_to - expected) <= 4 * math.sqrt(expected) + 1


def test_a_refused_publication_says_so_in_its_span(network):
    made = network([("r0", "r1")], [ROOT])
    client = made.client("r1")
    future = client.publisher("p").send(ROOT, (7,), b"", sample=True)
    assert future.exception(DEADLINE) is not None
    until(lambda: client.host.tracer.recent, "the root span")
    (span,) = client.host.tracer.recent
    assert span.error == "node 7 is not in the content graph"


def test_preprocessing_has_a_span_of_its_own(network):
    """Also that of a header found in too old a graph, which is refused and found again."""
    made = network([("r0", "r1")], [ROOT], config=CALM)
    language = AttributeValue()
    perform = lambda event: made.hosts[ROOT].event(event).result(DEADLINE)  # noqa: E731
    authority = Authority(perform)
    mine, other = (
        DynamicPreprocessor(language, authority.propose, authority.fetch) for _ in range(2)
    )
    mine.subscription({"a": "1"})
    client = made.client("r1")
    content = {"a": "1", "b": "2"}
    publish(client.publisher("p"), mine, ROOT, content, b"", DEADLINE, sample=True)
    other.subscription({"a": "1", "b": "2"})
    publish(client.publisher("p"), mine, ROOT, content, b"", DEADLINE, sample=True)
    publish(client.publisher("p"), mine, ROOT, content, b"", DEADLINE)  # and this one is not
    until(lambda: len(client.host.tracer.recent) == 6, "three attempts")
    spans = list(client.host.tracer.recent)
    for before, root in zip(spans[::2], spans[1::2], strict=True):
        assert (before.operation, root.operation) == ("preprocess", "publish")
        assert (before.trace, before.parent) == (root.trace, root.span)
        assert root.start_ns == before.start_ns < before.end_ns < root.end_ns
    assert ["graph version" in span.error for span in spans[1::2]] == [False, True, False]


def test_a_subscription_and_its_graph_setup_are_one_trace(network):
    made = network(TREE, [ROOT])
    made.insert(ROOT, 1)
    made.client("r3", "h").subscriber("s").subscribe(ROOT, 1, DEADLINE, sample=True)
    wanted = {
        (("h", "subscribe"), ("r3", "ask numbers")),
        (("r3", "ask numbers"), ("r1", "ask numbers")),
        (("r1", "ask numbers"), ("r0", "ask numbers")),
        (("r0", "ask numbers"), ("r1", "tell numbers")),
        (("r1", "tell numbers"), ("r3", "tell numbers")),
        (("r3", "tell numbers"), ("h", "tell numbers")),
        (("h", "tell numbers"), ("r3", "subscribe")),
        (("r3", "subscribe"), ("r1", "subscribe")),
        (("r1", "subscribe"), ("r0", "subscribe")),
        (("r0", "subscribe"), ("r1", "set up")),
        (("r1", "set up"), ("r3", "set up")),
        (("r3", "set up"), ("h", "set up")),
    }
    until(lambda: len(rows_of(made)) > len(wanted), "all spans")
    assert edges_of(rows_of(made)) == sorted(wanted)


def test_an_unsubscription_is_a_trace_up_to_where_the_node_is_still_wanted(network):
    made = network(TREE, [ROOT], config=CALM)
    made.insert(ROOT, 1)
    near = made.client("r4", "near").subscriber("s")
    far = made.client("r3", "far").subscriber("s")
    for subscriber in (near, far):
        subscriber.subscribe(ROOT, 1, DEADLINE)
    far.unsubscribe(ROOT, 1, DEADLINE, sample=True)
    wanted = [
        (("far", "unsubscribe"), ("r3", "unsubscribe")),
        (("r3", "unsubscribe"), ("far", "release")),
        (("r3", "unsubscribe"), ("r1", "unsubscribe")),
        (("r1", "unsubscribe"), ("r3", "release")),
    ]
    until(lambda: len(rows_of(made)) > len(wanted), "all spans")
    assert edges_of(rows_of(made)) == sorted(wanted)
    before = len(rows_of(made))
    near.unsubscribe(ROOT, 1, DEADLINE, sample=True)
    until(lambda: len(rows_of(made)) >= before + 7, "the spans up to the root")
    last = [row for row in rows_of(made) if row.operation == "release" and row.service == "r1"]
    assert len(last) == 1


def test_a_rejected_subscription_is_traced_to_its_end(network):
    made = network([("r0", "r1")], [ROOT], config=CALM)
    client = made.client("r1", "h")
    with pytest.raises(RefusedError):
        client.subscriber("s").subscribe(ROOT, 7, DEADLINE, sample=True)
    wanted = pairwise(
        [
            *(("h", "subscribe"), ("r1", "ask numbers"), ("r0", "ask numbers")),
            *(("r1", "tell numbers"), ("h", "tell numbers"), ("r1", "subscribe")),
            *(("r0", "subscribe"), ("r1", "reject"), ("h", "reject")),
        ]
    )
    until(lambda: len(rows_of(made)) >= 9, "all spans")
    assert edges_of(rows_of(made)) == sorted(wanted)
    (root,) = (span for span in client.host.tracer.recent if not span.parent)
    assert root.error == "node 7 is not in the content graph"


def way_of(made):
    """From the delivery up to the root; empty while a span of it has not come in yet."""
    rows = {row.span: row for row in rows_of(made)}
    way = [row for row in rows.values() if row.operation == "deliver"]
    while way and way[-1].parent:
        if way[-1].parent not in rows:
            return []
        way.append(rows[way[-1].parent])
    return way


@pytest.mark.parametrize("restarted", [("r1",), ("r1", ROOT)], ids=["router", "rendezvous too"])
def test_a_trace_survives_the_restart_of_routers_on_its_way(network, restarted):
    made = network(TREE, [ROOT])
    made.insert(ROOT, 1)
    subscriber = made.client("r3", "far").subscriber("s")
    subscriber.subscribe(ROOT, 1, DEADLINE)
    publisher = made.client("r5", "near").publisher("p")
    made.kill("r1")
    future = publisher.send(ROOT, (1,), b"x", sample=True)
    assert future.result(DEADLINE) == 1  # it is in the log, and lost on its way down
    for name in restarted[1:]:
        made.kill(name)
    for name in restarted:
        made.boot(name)
    assert subscriber.get(DEADLINE).body == b"x"
    until(lambda: way_of(made), "the spans of the whole way")
    way = way_of(made)
    assert {row.trace for row in way} == {way[0].trace}
    assert (way[-1].service, way[-1].operation) == ("near", "publish")
    assert ("r1", "recover") in {(row.service, row.operation) for row in way}
    assert [row.start_ns for row in way] == sorted((r.start_ns for r in way), reverse=True)


def test_contexts_follow_their_notifications_through_a_batch():
    rng = random.Random(3)
    parts, cut = 0, 0
    for _ in range(300):
        batches, position = [], 0
        for _ in range(rng.randint(1, 4)):
            count = rng.randint(0, 6)
            rows = [((1,), position + n, b"%d" % (position + n)) for n in range(count)]
            position += count
            traced = [(n, rng.randbytes(25)) for n in range(count) if rng.random() < 0.4]
            batches.append(Batch.of(rows, pack_traces(traced)))
        whole = Batch.join(batches)
        whole.check_columns()
        of = {b.payload(row): c for b in batches for row, c in b.contexts().items()}
        chosen = sorted(rng.sample(range(len(whole)), rng.randint(0, len(whole))))
        headers = list(whole.headers())
        part = whole.select(chosen, [headers[row] for row in chosen])
        part.validate()
        for batch in (whole, part):
            found = {batch.payload(row): c for row, c in batch.contexts().items()}
            kept = {batch.payload(row) for row in range(len(batch))}
            assert found == {body: c for body, c in of.items() if body in kept}
        parts += len(batches) > 1 and bool(whole.traces)
        cut += 0 < len(part.traces) < len(whole.traces)
    assert parts > 50
    assert cut > 50


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (b"x" * 28, "28 bytes hold no whole number"),
        (pack_traces([(2, bytes(25))]), "a batch of 2: row 2 is out of place"),
        (pack_traces([(1, bytes(25)), (1, bytes(25))]), "row 1 is out of place"),
        (pack_traces([(1, bytes(25)), (0, bytes(25))]), "row 0 is out of place"),
    ],
)
def test_hostile_columns(column, reason):
    with pytest.raises(ProtocolError, match=reason):
        check_traces(column, 2)
    with pytest.raises(ProtocolError, match=reason):
        Batch.of([((1,), 1, b""), ((1,), 2, b"")], column).validate()


def test_contexts_count_hops_and_keep_their_trace():
    context = root = new_trace()
    for hop in range(1, 70):
        context = new_child(context)
        assert hop_of(context) == min(hop, 63)
    assert context[:16] == root[:16]
    assert context[24] & 1
    assert list(unpack_traces(pack_traces([(5, context)]))) == [(5, context)]
