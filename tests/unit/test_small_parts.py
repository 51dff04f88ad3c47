"""Digests, payloads, the registry and the store's rules."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing import messages
from routing.batch import EMPTY, Batch
from routing.digest import NodeSet
from routing.errors import ProtocolError
from routing.messages import Refusal
from routing.payload import pack, unpack
from routing.publications import pack as pack_publication
from routing.publications import sign
from routing.registry import protocol, protocols, register
from routing.rendezvous import RendezvousPoint
from routing.store import Store


@given(st.lists(st.integers(0, 2**32 - 1)), st.randoms(use_true_random=False))
def test_a_digest_depends_on_the_set_alone(nodes: list[int], rng: random.Random) -> None:
    one, other = NodeSet(nodes), NodeSet()
    for node in rng.sample(nodes, len(nodes)):
        other.add(node)
        other.add(node + 1)
        if node + 1 not in nodes:
            other.discard(node + 1)
    assert one.digest() == NodeSet(one.nodes).digest()
    assert (one.digest() == other.digest()) is (one.nodes == other.nodes)


def test_digests_do_not_change_between_versions() -> None:
    first = 0xE220A8397B1DCDAF  # what splitmix64 gives first for the seed 0, everywhere
    assert NodeSet((0,)).digest() == (1, first)


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))), st.binary())
def test_payloads_there_and_back(numbers: list[tuple[int, int]], body: bytes) -> None:
    assert unpack(pack(numbers, body)) == (numbers, body)


@pytest.mark.parametrize("payload", [b"", b"\1", b"\1\0" + b"x" * 11])
def test_payloads_that_are_cut_off(payload: bytes) -> None:
    with pytest.raises(ProtocolError, match="payload"):
        unpack(payload)


def test_the_four_forwarding_algorithms_of_the_thesis_are_registered() -> None:
    assert {"content-list", "stored-graph", "minimal-graph", "f3", "unicast"} <= set(protocols())


def test_unknown_and_doubled_protocols() -> None:
    with pytest.raises(ProtocolError, match=r"unknown protocol 'ftp' \(known: content-list, "):
        protocol("ftp")
    with pytest.raises(ValueError, match="two protocols are called 'f3'"):
        register("f3", protocol("f3"))


def test_an_empty_batch() -> None:
    EMPTY.validate()
    assert len(EMPTY) == 0
    assert list(EMPTY.rows()) == []


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=6), st.data())
def test_selecting_rows(payloads: list[bytes], data: st.DataObject) -> None:
    batch = Batch.of(((i,), 2 * i + 1, p) for i, p in enumerate(payloads))
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(payloads))))))
    selected = batch.select(chosen, [b"\7\0\0\0"] * len(chosen))
    selected.validate()
    assert list(selected.rows()) == [((7,), 2 * i + 1, payloads[i]) for i in chosen]


# -- the store and the rendezvous point ----------------------------------------------------------


def publications(
    *some: tuple[int, tuple[int, ...]], key: bytes = b"", **fields: object
) -> messages.Publish:
    """A message of (number, nodes) each, with the same body."""
    values = {"publisher": "p", "host": "h", "incarnation": 1, "version": -1} | fields
    message = messages.Publish(namespace="n", path=(), batch=EMPTY, **values)  # type: ignore[arg-type]
    tags = [sign(key, message, number, nodes, b"b") for number, nodes in some]
    rows = [(n, at, pack_publication(t, b"b")) for (at, n), t in zip(some, tags, strict=True)]
    return replace(message, batch=Batch.of(rows))


def publication(number: int, nodes: tuple[int, ...] = (1,), **fields: object) -> messages.Publish:
    return publications((number, nodes), **fields)  # type: ignore[arg-type]


def position(rendezvous: RendezvousPoint, message: messages.Publish) -> int:
    """Where the one publication of a message is in the log."""
    (answer,), _ = rendezvous.publish(message)
    assert isinstance(answer, messages.PublishAck)
    return answer.placed[0].position


def point(**options: object) -> RendezvousPoint:
    store = Store(**options)  # type: ignore[arg-type]
    store.insert_node(1, (), ())
    store.insert_node(2, (1,), ())
    return RendezvousPoint(store, 2)


def test_a_publication_is_taken_once_however_often_it_comes() -> None:
    rendezvous = point()
    assert len(rendezvous.publish(publication(1))[1]) == 1
    assert not rendezvous.publish(publication(1))[1]
    assert position(rendezvous, publication(1)) == 1
    assert position(rendezvous, publication(2)) == 2
    assert position(rendezvous, publication(1, incarnation=2)) == 3
    assert not rendezvous.publish(publication(9))[1], "an earlier life is over"


def test_a_number_far_behind_was_settled_long_ago() -> None:
    rendezvous = point(window=4)
    for number in range(1, 20):
        assert rendezvous.publish(publication(number))[1]
    assert not rendezvous.publish(publication(3))[1]
    assert rendezvous.store.last == 19


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 12))
def test_positions_of_a_source_in_any_order_of_its_numbers(numbers: list[int], window: int) -> None:
    store = Store(window=window)
    store.insert_node(1, (), ())
    positions: dict[int, int] = {}
    for number in numbers:
        newest = max(positions, default=0)
        expected = 0 if number <= newest - window else positions.get(number)
        assert store.settled(("p", "h"), 1, number) == expected
        if expected is None:
            positions[number] = store.append(("p", "h"), 1, number, (1,), b"").position
            # Somebody else publishes in between, now and then.
            if number % 3 == 0:
                store.append(("q", "h"), 1, store.last + 1, (1,), b"")
    runs = store._settled[("p", "h")].runs if numbers else []
    assert len(runs) <= window + 1


def test_sources_that_were_silent_for_longest_are_forgotten(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("routing.store.SOURCES_MAX", 3)
    rendezvous = point()
    for host in ("a", "b", "c", "a", "d"):
        assert rendezvous.publish(publication(rendezvous.store.last + 1, host=host))[1]
    assert set(rendezvous.store._settled) == {("p", "a"), ("p", "c"), ("p", "d")}
    assert not rendezvous.publish(publication(1, host="a"))[1], "still known"


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        (publication(1, (7,)), Refusal.UNKNOWN_NODE, "node 7 is not in the content graph"),
        (publication(1, version=1), Refusal.OLD_VERSION, "graph version 1, older than 2"),
        (publication(1, (1,) * 65_536), Refusal.TOO_MANY_NODES, "more than a header can hold"),
    ],
)
def test_refusals(message: messages.Publish, code: Refusal, reason: str) -> None:
    rendezvous = point()
    (answer,), entries = rendezvous.publish(message)
    assert not entries
    assert isinstance(answer, messages.PublishRefusal)
    assert answer.code == code
    assert reason in answer.reason
    assert rendezvous.store.last == 0


def test_publishers_must_be_on_the_access_list() -> None:
    """Kulik 2004, section 6.1: an access list, and sources that prove who they are."""
    rendezvous = point(access={"p": b"secret"})
    good = publication(1, key=b"secret")
    for message in (
        publication(1),
        publication(1, key=b"guessed"),
        replace(good, batch=replace(good.batch, positions=(2).to_bytes(8, "little"))),
        replace(good, batch=replace(good.batch, nodes=(2).to_bytes(4, "little"))),
        replace(good, version=5),
        publication(1, publisher="q", key=b"secret"),
    ):
        (answer,), _ = rendezvous.publish(message)
        assert isinstance(answer, messages.PublishRefusal)
        assert answer.code == Refusal.NO_ACCESS
        assert "is not on the access list" in answer.reason
    assert rendezvous.publish(good)[1]


def test_headers_are_looked_at_again_when_the_graph_has_changed() -> None:
    rendezvous = point()
    assert rendezvous.publish(publication(1, (1, 2)))[1][0].nodes == (2,)
    rendezvous.store.remove_node(2)
    assert not rendezvous.publish(publication(2, (1, 2)))[1]
    assert rendezvous.publish(publication(3, (1,)))[1][0].nodes == (1,)


def test_sequence_numbers_of_a_node_and_its_descendants() -> None:
    """Rule 15: descendants, as Figure 3-31 has it, and not ancestors."""
    rendezvous = point()
    for number, nodes in enumerate([(1,), (2,), (2,)], start=1):
        rendezvous.publish(publication(number, nodes))
    ask = messages.SequenceRequest("n", (), 1, 1)
    assert rendezvous.sequence(ask).numbers == ((1, 1), (2, 2))
    assert rendezvous.sequence(messages.SequenceRequest("n", (), 1, 2)).numbers == ((2, 2),)
    assert rendezvous.sequence(messages.SequenceRequest("n", (), 1, 8)).numbers == ()


def test_recovery_says_what_the_log_no_longer_has() -> None:
    rendezvous = point(capacity=3)
    for number, nodes in enumerate([(1,), (2,), (1,), (2,), (2,)], start=1):
        rendezvous.publish(publication(number, nodes))
    reply = rendezvous.recover(messages.RecoverRequest("n", (), 1, (2,), 0, 5))
    assert (reply.first, reply.through) == (3, 5)
    assert [(h, p) for h, p, _ in reply.batch.rows()] == [((1, 2), 4), ((1, 2), 5)]


def test_recovery_comes_in_pieces() -> None:
    rendezvous = point()
    for number in range(1, 6):
        rendezvous.publish(publication(number))
    reply = rendezvous.recover(messages.RecoverRequest("n", (), 1, (1,), 1, 5))
    assert (reply.through, len(reply.batch)) == (3, 2)


def test_a_removed_node_still_covers_what_the_log_has_of_it() -> None:
    store = point().store
    store.append(("p", "h"), 1, 1, (2,), b"")
    store.remove_node(2)
    assert store.covering((2,)) == {1}
    with pytest.raises(ProtocolError, match="identifiers are not used twice"):
        store.insert_node(2, (), ())


@pytest.mark.parametrize("node", [-1, 1 << 32])
def test_identifiers_have_32_bits(node: int) -> None:
    with pytest.raises(ProtocolError, match=f"{node} is no node identifier"):
        Store().insert_node(node, (), ())


def test_a_log_needs_room() -> None:
    with pytest.raises(ValueError, match="not 0"):
        Store(capacity=0)


def test_publications_in_one_message_are_taken_one_by_one() -> None:
    rendezvous = point()
    several = publications((1, (1,)), (2, (7,)), (3, (2,)), (4, (1,)))
    answers, entries = rendezvous.publish(several)
    assert [entry.nodes for entry in entries] == [(1,), (2,), (1,)]
    refusal, ack = answers
    assert isinstance(refusal, messages.PublishRefusal)
    assert (refusal.number, refusal.reason) == (2, "node 7 is not in the content graph")
    assert isinstance(ack, messages.PublishAck)
    assert ack.placed == ((1, 1, 1), (3, 2, 2))


@pytest.mark.parametrize("payload", [b"", b"\x05abc"])
def test_a_malformed_publication_spoils_its_whole_message_and_changes_nothing(
    payload: bytes,
) -> None:
    rendezvous = point()
    good = publications((1, (1,)), (2, (1,)))
    rows = [(nodes, at, payload if at == 2 else p) for nodes, at, p in good.batch.rows()]
    with pytest.raises(ProtocolError, match="publication 2 of 'p' is cut off"):
        rendezvous.publish(replace(good, batch=Batch.of(rows)))
    assert rendezvous.store.last == 0
