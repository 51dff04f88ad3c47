"""Subscribers: named receivers of notifications, by callback or by iteration."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Literal

from actors.answers import wait, wait_async
from actors.inbox import ClosedError, Inbox
from routing.api import NodeId, Notification

if TYPE_CHECKING:
    from actors.client import Client

Overflow = Literal["wait", "drop"]
"""A subscriber's queue is full: read no more until it is not, or drop its oldest and count it."""

_log = logging.getLogger("f3")


class Subscriber:
    """A named receiver of notifications: iterate over it, or give it a callback."""

    def __init__(
        self,
        client: Client,
        name: str,
        on_notification: Callable[[Notification], None] | None,
        capacity: int,
        overflow: Overflow,
    ) -> None:
        self._client = client
        self.name = name
        self.inbox: Inbox[Notification] = Inbox()
        #: Notifications dropped because the queue was full; callbacks that raised.
        self.dropped = 0
        self.failed = 0
        #: Subscriptions that ended because their node was removed: the reason for each.
        self.withdrawn: dict[tuple[str, NodeId], str] = {}
        self._callback = on_notification
        self._capacity = capacity
        self._overflow = overflow
        self._full = False

    # -- subscriptions -------------------------------------------------------------------

    def subscribe(
        self, namespace: str, node: NodeId, timeout: float = 10.0, sample: bool | None = None
    ) -> None:
        """Returns once whatever is published from now on will come; RefusedError, TimeoutError.

        `sample` forces or forbids a trace of it.
        """
        hope = self._client.subscribe(self.name, namespace, node, sample)
        wait(hope, timeout, self._client.why_late)

    async def subscribe_async(self, namespace: str, node: NodeId, timeout: float = 10.0) -> None:
        """`subscribe` for coroutines."""
        future = self._client.subscribe(self.name, namespace, node)
        await wait_async(future, timeout, self._client.why_late)

    def unsubscribe(
        self, namespace: str, node: NodeId, timeout: float = 10.0, sample: bool | None = None
    ) -> None:
        """Nothing more comes for the node; `sample` forces or forbids a trace of its way up."""
        future = self._client.unsubscribe(self.name, namespace, node, sample)
        wait(future, timeout, self._client.why_late)

    async def unsubscribe_async(self, namespace: str, node: NodeId, timeout: float = 10.0) -> None:
        """`unsubscribe` for coroutines."""
        future = self._client.unsubscribe(self.name, namespace, node)
        await wait_async(future, timeout, self._client.why_late)

    # -- notifications -------------------------------------------------------------------

    def get(self, timeout: float | None = None) -> Notification:
        """The next notification; TimeoutError if none comes in time."""
        notification = self.inbox.get(timeout)
        self._got()
        return notification

    async def get_async(self) -> Notification:
        """`get` for coroutines."""
        notification = await self.inbox.get_async()
        self._got()
        return notification

    def __iter__(self) -> Iterator[Notification]:
        """Every notification, until the subscriber or its client is closed."""
        while True:
            try:
                yield self.get()
            except ClosedError:
                return

    async def __aiter__(self) -> AsyncIterator[Notification]:
        while True:
            try:
                yield await self.get_async()
            except ClosedError:
                return

    def close(self) -> None:
        """End iteration. Subscriptions stay until they are withdrawn or the client is closed."""
        self.inbox.close()
        self._client.forget(self.name)

    def offer(self, notification: Notification) -> None:
        """In the host's thread: pass a notification to whoever waits for it."""
        if self._callback is not None:
            self._call(notification)
            return
        self.inbox.put(notification)
        if len(self.inbox) <= self._capacity:
            return
        if self._overflow == "drop":
            self.inbox.drop_oldest()
            self.dropped += 1
        elif not self._full:
            self._full = True
            self._client.crowded(self.name, True)

    def _call(self, notification: Notification) -> None:
        assert self._callback is not None
        try:
            self._callback(notification)
        except Exception:
            self.failed += 1
            _log.exception("the callback of subscriber %r has failed", self.name)

    def _got(self) -> None:
        if self._full and len(self.inbox) <= self._capacity // 2:
            self._full = False
            self._client.crowded(self.name, False)
