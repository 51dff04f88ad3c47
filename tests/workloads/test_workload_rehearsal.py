"""The judge of a replay: what it must object to, and what it must let pass."""

from __future__ import annotations

import pytest

from f3.rehearsal import PATIENCE, Judge, attach
from sim.oracle import ViolationError
from topology.catalogue import load
from topology.overlay import TopologyError

HEADER = frozenset({1, 2})


@pytest.fixture
def judge() -> Judge:
    """One client asked for node 1, which publication b"a", at time 10, is for."""
    judge = Judge()
    judge.subscribes("ann", 1)
    judge.confirmed("ann", 1, 5.0)
    judge.published(b"a", HEADER, 10.0)
    return judge


def test_what_arrives_once_is_right(judge: Judge) -> None:
    judge.delivered("ann", b"a")
    judge.check(20.0)
    assert (judge.deliveries, judge.unconfirmed) == (1, 0)


def test_what_does_not_arrive_is_missed(judge: Judge) -> None:
    judge.check(9.0)
    with pytest.raises(ViolationError, match="b'a' has not reached 1: \\['ann'\\]"):
        judge.check(10.0)
    with pytest.raises(ViolationError, match="has not reached"):
        judge.published(b"b", HEADER, 10.0 + PATIENCE)


def test_nothing_comes_twice(judge: Judge) -> None:
    judge.delivered("ann", b"a")
    judge.withdraws("ann", 1)
    judge.subscribes("ann", 1)
    with pytest.raises(ViolationError, match="ann received b'a' twice"):
        judge.delivered("ann", b"a")


def test_nothing_comes_unasked_or_unpublished(judge: Judge) -> None:
    judge.subscribes("bob", 3)
    for client in ("bob", "eve"):
        with pytest.raises(ViolationError, match=f"{client} received b'a' without asking"):
            judge.delivered(client, b"a")
    with pytest.raises(ViolationError, match="unpublished"):
        judge.delivered("ann", b"z")


def test_nothing_comes_after_a_withdrawal(judge: Judge) -> None:
    judge.withdraws("ann", 1)
    judge.check(20.0)
    judge.published(b"b", HEADER, 30.0)
    with pytest.raises(ViolationError, match="without asking"):
        judge.delivered("ann", b"b")
    judge.check(40.0)


def test_who_is_not_in_force_yet_may_receive_and_need_not(judge: Judge) -> None:
    judge.delivered("ann", b"a")
    judge.subscribes("bob", 2)
    judge.published(b"b", HEADER, 11.0)
    judge.delivered("ann", b"b")
    judge.confirmed("bob", 2, 11.5)
    judge.published(b"c", HEADER, 12.0)
    judge.delivered("ann", b"c")
    judge.delivered("bob", b"c")
    judge.delivered("bob", b"a")
    judge.check(20.0)
    assert judge.deliveries == 5


@pytest.mark.parametrize(("since", "is_due"), [(9.0, True), (11.0, False)])
def test_another_subscription_keeps_it_due_if_it_is_old_enough(since: float, is_due: bool) -> None:
    judge = Judge()
    for node, when in ((1, 5.0), (2, since)):
        if when > 10.0:
            judge.published(b"a", HEADER, 10.0)
        judge.subscribes("ann", node)
        judge.confirmed("ann", node, when)
    if since < 10.0:
        judge.published(b"a", HEADER, 10.0)
    judge.withdraws("ann", 1)
    if is_due:
        with pytest.raises(ViolationError, match="has not reached"):
            judge.check(20.0)
    else:
        judge.check(20.0)


def test_a_withdrawal_before_the_confirmation_is_the_end_of_it() -> None:
    judge = Judge()
    judge.subscribes("ann", 1)
    judge.withdraws("ann", 1)
    judge.confirmed("ann", 1, 5.0)
    assert judge.unconfirmed == 0
    judge.published(b"a", HEADER, 10.0)
    judge.check(20.0)


def test_routers_are_spread_over_the_stubs() -> None:
    overlay = load("transit-stub-64")
    edges = attach(overlay, 10)
    assert len(set(edges)) == 10
    assert set(edges) <= set(overlay.of_kind("stub"))
    assert attach(load("chain:4"), 4) == list(load("chain:4").routers)
    with pytest.raises(TopologyError, match="subscribers at 5 routers and the topology has 4"):
        attach(load("chain:4"), 5)
