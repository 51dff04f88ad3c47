"""Waiting for answers: futures that a host's loop resolves, and room for what is under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

from routing.messages import Refusal

T = TypeVar("T")


class RefusedError(RuntimeError):
    """The rendezvous point has refused a subscription or a publication; the text says why."""

    def __init__(self, reason: str, code: Refusal = Refusal.NONE) -> None:
        super().__init__(reason)
        #: The same for programs.
        self.code = code


def promise(_: type[T]) -> Future[T]:
    """A future that a coroutine's cancellation cannot cancel: its answer comes all the same."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    return future


def pass_on_failure(hope: Future[None], done: Future[object]) -> None:
    """Have a command's failure be that of what it was to bring about."""
    error = done.exception()
    if error is not None and not hope.done():
        hope.set_exception(error)


def wait(future: Future[T], timeout: float, why_late: Callable[[], str]) -> T:
    """The result; TimeoutError that says what may be the matter."""
    try:
        return future.result(timeout)
    except FutureTimeoutError:
        raise late(timeout, why_late) from None


async def wait_async(future: Future[T], timeout: float, why_late: Callable[[], str]) -> T:
    """`wait` for coroutines."""
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), timeout)
    except TimeoutError:
        raise late(timeout, why_late) from None


def late(timeout: float, why_late: Callable[[], str]) -> TimeoutError:
    """An error that says what may be the matter."""
    return TimeoutError(f"not done after {timeout} s: {why_late()}")


class Receipt(Generic[T]):
    """What becomes of something published: a future that costs a fraction of the library's.

    There may be a hundred thousand a second, so nothing is made for those who might wait: all
    receipts of a client host share what they wait for.
    """

    __slots__ = ("_answered", "_error", "_then", "_value")

    def __init__(
        self, answered: threading.Condition, then: Callable[[], None] | None = None
    ) -> None:
        self._answered, self._then = answered, then
        self._value: T | None = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether there is an answer."""
        return self._value is not None or self._error is not None

    def result(self, timeout: float | None = None) -> T:
        """The answer; RefusedError, ClosedError, or TimeoutError if there is none in time."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        assert self._value is not None
        return self._value

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Why there is no result, if so; TimeoutError is raised if there is no answer in time."""
        if not self.done():
            with self._answered:
                if not self._answered.wait_for(self.done, timeout):
                    raise TimeoutError(f"no answer within {timeout} s")
        return self._error

    def settle(self, value: T, error: Exception | None) -> None:
        """There is an answer, the first of which counts; whoever gives it tells those who wait."""
        if not self.done():
            self._error, self._value = error, value
            if self._then is not None:
                self._then()


class Room:
    """How much may be under way at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._left = size
        self._waiting = 0
        self._changed = threading.Condition()

    def take(self, count: int, timeout: float) -> bool:
        """Take some, waiting for it if need be; false if there was not enough in time."""
        with self._changed:
            if self._left < count:
                self._waiting += 1
                found = self._changed.wait_for(lambda: self._left >= count, timeout)
                self._waiting -= 1
                if not found:
                    return False
            self._left -= count
            return True

    def give(self, count: int) -> None:
        """Give some back."""
        with self._changed:
            self._left += count
            if self._waiting:
                self._changed.notify_all()
