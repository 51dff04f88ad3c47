"""Publishers and subscribers on real links (tests without Ray)."""

from __future__ import annotations

import asyncio
import threading

import pytest
from local_network import DEADLINE, until

from actors.answers import RefusedError
from actors.client import Client
from actors.crowd import Crowd
from actors.inbox import ClosedError
from actors.link import Kind
from routing.errors import ProtocolError

CHAIN = [("r0", "r1"), ("r1", "r2")]


@pytest.fixture
def chain(network):
    made = network(CHAIN, ["r0"])
    for node, parents in ((1, ()), (2, (1,)), (3, (1,))):
        made.insert("r0", node, parents)
    return made


def test_a_notification_reaches_whoever_asked_for_it_and_nobody_else(chain):
    client = chain.client("r2")
    wide, narrow = client.subscriber("wide"), client.subscriber("narrow")
    wide.subscribe("r0", 1)
    narrow.subscribe("r0", 2)
    publisher = chain.client("r1").publisher("p")
    assert publisher.publish("r0", (3,), b"three") == 1
    assert publisher.publish("r0", (2,), b"two") == 2
    assert [wide.get(DEADLINE).body for _ in range(2)] == [b"three", b"two"]
    assert narrow.get(DEADLINE).body == b"two"
    assert len(wide.inbox) == len(narrow.inbox) == 0


def test_an_unknown_node_is_refused_with_the_reason(chain):
    subscriber = chain.client("r2").subscriber("s")
    with pytest.raises(RefusedError, match="node 99 is not in the content graph"):
        subscriber.subscribe("r0", 99)
    with pytest.raises(ProtocolError, match="unknown namespace 'nowhere'"):
        subscriber.subscribe("nowhere", 1)


def test_a_refused_publication_raises_and_an_oversized_one_is_not_sent(chain):
    publisher = chain.client("r2").publisher("p")
    with pytest.raises(RefusedError, match="node 99"):
        publisher.publish("r0", (99,), b"")
    with pytest.raises(ValueError, match="2000000 bytes is longer than 1048576"):
        publisher.publish("r0", (1,), b"x" * 2_000_000)


def test_many_publications_at_once_have_their_positions_in_order(chain):
    client = chain.client("r2")
    subscriber, publisher = client.subscriber("s"), client.publisher("p")
    subscriber.subscribe("r0", 1)
    items = [((2 + n % 2,), b"%d" % n) for n in range(1000)]
    assert publisher.send_many("r0", items).result(DEADLINE) == list(range(1, 1001))
    assert [subscriber.get(DEADLINE).body for _ in items] == [body for _, body in items]
    assert publisher.send_many("r0", []).result(0) == []
    with pytest.raises(RefusedError, match="node 99"):
        publisher.send_many("r0", [((2,), b"good"), ((99,), b"bad")]).result(DEADLINE)
    assert subscriber.get(DEADLINE).body == b"good"


def test_threads_that_publish_at_once_each_get_their_own_answers(chain):
    client = chain.client("r1")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 1)
    found: dict[int, list[int]] = {}

    def publish(n: int) -> None:
        publisher = client.publisher(f"p{n}")
        found[n] = [publisher.publish("r0", (2,), b"%d %d" % (n, i)) for i in range(50)]

    threads = [threading.Thread(target=publish, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    notes = [subscriber.get(DEADLINE) for _ in range(200)]
    expected = {p: b"%d %d" % (n, i) for n in found for i, p in enumerate(found[n])}
    assert {note.position: note.body for note in notes} == expected


def test_coroutines_subscribe_publish_and_iterate(chain):
    client = chain.client("r2")
    subscriber, publisher = client.subscriber("s"), client.publisher("p")

    async def scenario() -> list[bytes]:
        await subscriber.subscribe_async("r0", 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(subscriber.get_async(), 0.01)
        for body in (b"a", b"b", b"c"):
            await publisher.publish_async("r0", (2,), body)
        received: list[bytes] = []
        async for notification in subscriber:
            received.append(notification.body)
            if len(received) == 3:
                return received
        raise AssertionError("iteration ended")

    assert asyncio.run(scenario()) == [b"a", b"b", b"c"]


def test_a_callback_that_raises_is_counted_and_stops_nobody(chain, caplog):
    client = chain.client("r1")
    seen: list[bytes] = []
    broken = client.subscriber("broken", on_notification=lambda _: 1 / 0)
    whole = client.subscriber("whole", on_notification=lambda n: seen.append(n.body))
    broken.subscribe("r0", 1)
    whole.subscribe("r0", 1)
    client.publisher("p").publish("r0", (1,), b"x")
    until(lambda: seen and broken.failed)
    assert "'broken' has failed" in caplog.text


def test_unsubscribing_ends_delivery_and_removal_is_told(chain):
    client = chain.client("r2")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 2)
    subscriber.subscribe("r0", 3)
    subscriber.unsubscribe("r0", 2)
    publisher = client.publisher("p")
    publisher.publish("r0", (2,), b"not wanted")
    publisher.publish("r0", (3,), b"wanted")
    assert subscriber.get(DEADLINE).body == b"wanted"
    with pytest.raises(ProtocolError, match="no subscription to node 2"):
        subscriber.unsubscribe("r0", 2)


def test_a_full_queue_holds_back_its_client_and_loses_nothing(chain):
    client = chain.client("r2")
    slow = client.subscriber("slow", capacity=10)
    slow.subscribe("r0", 1)
    publisher = chain.client("r1").publisher("p")
    for n in range(200):
        publisher.publish("r0", (1,), b"%d" % n)
    until(lambda: client.host.paused)
    with pytest.raises(TimeoutError, match="the queue of slow is full: read from it"):
        client.subscriber("late").subscribe("r0", 2, timeout=0.05)
    assert [slow.get(DEADLINE).body for _ in range(200)] == [b"%d" % n for n in range(200)]


def test_a_full_queue_may_drop_its_oldest_and_counts_them(chain):
    client = chain.client("r2")
    picky = client.subscriber("picky", capacity=10, overflow="drop")
    whole = client.subscriber("whole")
    for subscriber in (picky, whole):
        subscriber.subscribe("r0", 1)
    publisher = client.publisher("p")
    for n in range(50):
        publisher.publish("r0", (1,), b"%d" % n)
    assert [whole.get(DEADLINE).body for _ in range(50)] == [b"%d" % n for n in range(50)]
    assert picky.dropped == 40
    assert picky.get(DEADLINE).body == b"40"


def test_closing_a_client_ends_iteration_and_fails_what_waits(chain):
    client = chain.client("r2")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 1)
    client.publisher("p").publish("r0", (1,), b"last")
    until(lambda: len(subscriber.inbox) == 1)
    chain.kill("r0")
    unanswered = client.publisher("p").send("r0", (1,), b"never")
    client.close()
    assert [n.body for n in subscriber] == [b"last"]
    with pytest.raises(ClosedError):
        unanswered.result(0)
    with pytest.raises(ClosedError):
        client.publisher("p").publish("r0", (1,), b"too late")


def test_an_edge_router_that_nobody_knows_is_a_clear_error(network):
    made = network([("a", "b")], ["a"])
    client = Client(made.plan("lost", {"a": "c"}), "c", made.ask("c", Kind.HOST), 1)
    with pytest.raises(TimeoutError, match=r"'lost' is not linked after 0.2 s .c: c is down"):
        client.start(0.2)


def test_a_crowd_hears_what_it_asked_for_and_which_of_it_was_refused(chain):
    plan = chain.plan("crowd", {"r0": "r2"})
    crowd = Crowd(plan, "r2", chain.ask("r2", Kind.HOST), 1, record=True).start(DEADLINE)
    wanted = [(f"s{n}", "r0", 1 + n % 3) for n in range(2500)]
    bad = {
        ("x", "r0", 99): "node 99 is not in the content graph",
        ("x", "r9", 1): "unknown namespace 'r9' (known here: r0)",
    }
    assert crowd.subscribe([*wanted, *bad], DEADLINE) == bad
    publisher = chain.client("r1").publisher("p")
    positions = [publisher.publish("r0", (node,), b"") for node in (2, 3)]
    due = {1: positions, 2: positions[:1], 3: positions[1:]}
    until(lambda: crowd.deliveries == sum(len(due[node]) for *_, node in wanted))
    received = crowd.received()
    assert all(received[s] == [("r0", p) for p in due[node]] for s, _, node in wanted)
    left = [each for each in wanted if each[2] != 3]
    never = ("x", "r0", 1)
    why = {never: "'x' has no subscription to node 1 of 'r0'"}
    assert crowd.unsubscribe([*left, never], DEADLINE) == why
    before = crowd.deliveries
    publisher.publish("r0", (2,), b"nobody")
    publisher.publish("r0", (3,), b"some")
    until(lambda: crowd.deliveries == before + len(wanted) - len(left))
    assert crowd.unsubscribe(left[:1], DEADLINE).keys() == set(left[:1])
    crowd.close()
