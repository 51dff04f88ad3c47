"""A bounded queue between a host's loop and a subscriber's threads or coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

T = TypeVar("T")


class ClosedError(RuntimeError):
    """Nothing more will come."""


class Inbox(Generic[T]):
    """First in, first out; whoever waits is handed the next item directly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: deque[T] = deque()
        self._waiters: deque[Future[T]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item, or hand it over."""
        with self._lock:
            while self._waiters:
                waiter = self._waiters.popleft()
                if waiter.set_running_or_notify_cancel():
                    waiter.set_result(item)
                    return
            self._items.append(item)

    def drop_oldest(self) -> None:
        """Make room."""
        with self._lock:
            if self._items:
                self._items.popleft()

    def get(self, timeout: float | None = None) -> T:
        """The next item; TimeoutError if none comes in time, ClosedError if none ever will."""
        waiter = self._take()
        try:
            return waiter.result(timeout)
        except FutureTimeoutError:
            if waiter.cancel():
                raise TimeoutError(f"nothing came within {timeout} s") from None
            return waiter.result()

    async def get_async(self) -> T:
        """The next item, for coroutines; cancelling loses none."""
        waiter = self._take()
        try:
            return await asyncio.wrap_future(waiter)
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                with self._lock:
                    self._items.appendleft(waiter.result())
            raise

    def close(self) -> None:
        """What is there can still be got; after that, ClosedError."""
        with self._lock:
            self._closed = True
            while self._waiters:
                waiter = self._waiters.popleft()
                if waiter.set_running_or_notify_cancel():
                    waiter.set_exception(ClosedError("the subscriber is closed"))

    def _take(self) -> Future[T]:
        waiter: Future[T] = Future()
        with self._lock:
            if self._items:
                waiter.set_result(self._items.popleft())
            elif self._closed:
                waiter.set_exception(ClosedError("the subscriber is closed"))
            else:
                self._waiters.append(waiter)
        return waiter
