"""Receipts: what becomes of a publication, for whoever waits and for whoever does not."""

from __future__ import annotations

import threading

import pytest

from actors.answers import Receipt


def receipt(**options) -> Receipt[int]:
    return Receipt(threading.Condition(), **options)


def test_the_first_answer_counts():
    one = receipt()
    assert not one.done()
    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        one.result(0)
    one.settle(7, None)
    one.settle(8, ValueError("too late"))
    assert one.done()
    assert one.result(0) == 7
    assert one.exception(0) is None


def test_a_failure_is_raised_for_each_who_asks():
    one = receipt()
    one.settle(0, ValueError("no"))
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            one.result(0)
    assert isinstance(one.exception(0), ValueError)


def test_whoever_waits_is_told():
    answered = threading.Condition()
    mine, other = Receipt[int](answered), Receipt[int](answered)
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(mine.result(30.0)))
    waiting.start()
    for each, value in ((other, 1), (mine, 2)):
        each.settle(value, None)
        with answered:
            answered.notify_all()
    waiting.join(30.0)
    assert found == [2]


def test_then_is_called_once():
    calls: list[int] = []
    one = receipt(then=lambda: calls.append(1))
    one.settle(1, None)
    one.settle(2, None)
    assert calls == [1]
