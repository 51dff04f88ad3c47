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
from routing.publications import bundle
from routing.registry import protocol, protocols, register
from routing.rendezvous import RendezvousPoint, sign
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


def publication(number: int, nodes: tuple[int, ...] = (1,), **fields: object) -> messages.Publish:
    values = {"publisher": "p", "host": "h", "incarnation": 1, "version": -1, "tag": b""} | fields
    return messages.Publish(namespace="n", path=(), number=number, nodes=nodes, body=b"b", **values)  # type: ignore[arg-type]


def point(**options: object) -> RendezvousPoint:
    store = Store(**options)  # type: ignore[arg-type]
    store.insert_node(1, (), ())
    store.insert_node(2, (1,), ())
    return RendezvousPoint(store, 2)


def test_a_publication_is_taken_once_however_often_it_comes() -> None:
    rendezvous = point()
    first, entry = rendezvous.publish(publication(1))
    again, nothing = rendezvous.publish(publication(1))
    assert entry is not None
    assert nothing is None
    assert (first.position, again.position) == (1, 1)
    assert rendezvous.publish(publication(2))[0].position == 2
    assert rendezvous.publish(publication(1, incarnation=2))[0].position == 3
    assert rendezvous.publish(publication(9))[1] is None, "an earlier life is over"


def test_a_number_far_behind_was_settled_long_ago() -> None:
    rendezvous = point(window=4)
    for number in range(1, 20):
        assert rendezvous.publish(publication(number))[1] is not None
    assert rendezvous.publish(publication(3))[1] is None
    assert rendezvous.store.last == 19


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
    ack, entry = rendezvous.publish(message)
    assert entry is None
    assert ack.code == code
    assert reason in ack.refusal
    assert rendezvous.store.last == 0


def test_publishers_must_be_on_the_access_list() -> None:
    """Kulik 2004, section 6.1: an access list, and sources that prove who they are."""
    rendezvous = point(access={"p": b"secret"})
    for message in (
        publication(1),
        publication(1, tag=sign(b"guessed", publication(1))),
        publication(2, tag=sign(b"secret", publication(1))),
        publication(1, publisher="q", tag=sign(b"secret", publication(1, publisher="q"))),
    ):
        ack, _ = rendezvous.publish(message)
        assert ack.code == Refusal.NO_ACCESS
        assert "is not on the access list" in ack.refusal
    signed = publication(1, tag=sign(b"secret", publication(1)))
    assert rendezvous.publish(signed)[1] is not None


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
    several = [publication(1), publication(2, nodes=(7,)), publication(3, nodes=(2,))]
    answers, entries = rendezvous.publish_all(bundle(several))
    assert [entry.nodes for entry in entries] == [(1,), (2,)]
    refusal, placed = answers
    assert isinstance(refusal, messages.PublishAck)
    assert (refusal.number, refusal.refusal) == (2, "node 7 is not in the content graph")
    assert isinstance(placed, messages.PublishAcks)
    assert placed.placed == ((1, 1), (3, 2))


def test_a_malformed_publication_spoils_its_whole_message_and_changes_nothing() -> None:
    rendezvous = point()
    good = bundle([publication(1), publication(2)])
    rows = [(nodes, number, b"" if number == 2 else p) for nodes, number, p in good.batch.rows()]
    bad = replace(good, batch=Batch.of(rows))
    with pytest.raises(ProtocolError, match="publication 2 of 'p' is cut off"):
        rendezvous.publish_all(bad)
    assert rendezvous.store.last == 0
