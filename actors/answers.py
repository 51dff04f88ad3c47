"""Waiting for answers: futures that a host's loop resolves, and room for what is under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

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
        raise TimeoutError(f"not done after {timeout} s: {why_late()}") from None


async def wait_async(future: Future[T], timeout: float, why_late: Callable[[], str]) -> T:
    """`wait` for coroutines."""
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), timeout)
    except TimeoutError:
        raise TimeoutError(f"not done after {timeout} s: {why_late()}") from None


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
