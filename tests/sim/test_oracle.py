"""The oracle notices what it is for: each promise, broken by hand."""

from __future__ import annotations

import pytest

from sim.oracle import Oracle, ViolationError

MEANINGS = {("n", 1): frozenset({"a", "b"}), ("n", 2): frozenset({"b"})}


@pytest.fixture
def oracle() -> Oracle:
    oracle = Oracle(MEANINGS)
    oracle.subscribes("me", "n", 2)
    oracle.confirmed("me", "n", 2, 1.0)
    oracle.published(b"x", "n", "b", 2.0)
    oracle.accepted(b"x")
    return oracle


def test_delivered_once_is_right(oracle: Oracle) -> None:
    assert oracle.missing() == [("me", b"x")]
    oracle.delivered("me", "n", b"x")
    assert oracle.missing() == []


def test_twice(oracle: Oracle) -> None:
    oracle.delivered("me", "n", b"x")
    with pytest.raises(ViolationError, match="twice"):
        oracle.delivered("me", "n", b"x")


@pytest.mark.parametrize("client", ["somebody", "me"])
def test_unasked(oracle: Oracle, client: str) -> None:
    oracle.published(b"y", "n", "a", 2.0)
    with pytest.raises(ViolationError, match="without asking for it"):
        oracle.delivered(client, "n", b"y")


@pytest.mark.parametrize(("namespace", "body"), [("m", b"x"), ("n", b"z")])
def test_never_published(oracle: Oracle, namespace: str, body: bytes) -> None:
    with pytest.raises(ViolationError, match="which nobody published"):
        oracle.delivered("me", namespace, body)


def test_after_unsubscribing(oracle: Oracle) -> None:
    oracle.withdrawn("me", "n", 2)
    assert oracle.missing() == []
    with pytest.raises(ViolationError, match="without asking"):
        oracle.delivered("me", "n", b"x")


def test_only_what_was_published_after_the_confirmation_is_due() -> None:
    oracle = Oracle(MEANINGS)
    oracle.subscribes("me", "n", 2)
    oracle.published(b"early", "n", "b", 0.5)
    oracle.accepted(b"early")
    oracle.confirmed("me", "n", 2, 1.0)
    assert oracle.missing() == []
    oracle.delivered("me", "n", b"early")  # it may come all the same


def test_publications_of_which_nobody_was_told(oracle: Oracle) -> None:
    oracle.published(b"y", "n", "a", 3.0)
    assert oracle.unsettled() == [b"y"]
    oracle.abandoned(b"y")
    assert oracle.unsettled() == []


def test_confirmations_of_nothing(oracle: Oracle) -> None:
    with pytest.raises(ViolationError, match="holds no subscription to 1"):
        oracle.confirmed("me", "n", 1, 2.0)
