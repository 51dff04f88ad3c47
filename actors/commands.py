"""Commands from other threads to a loop: a queue, and a socket that wakes the loop."""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from routing.errors import ProtocolError

Command = Callable[[], Any]


class Commands:
    """Run by the loop in order; results are handed out when the loop says so."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Command, Future[Any] | None]] = deque()
        self._finished: list[tuple[Future[Any], Any, Exception | None]] = []
        self._woken = False
        self._socket, self._waker = socket.socketpair()
        self._socket.setblocking(False)
        self._waker.setblocking(False)
        #: What a loop polls to be woken.
        self.wakeup = self._socket.fileno()

    def __len__(self) -> int:
        return len(self._waiting)

    # -- from any thread -----------------------------------------------------------------

    def submit(self, command: Command) -> Future[Any]:
        """Have a command run; the future is its result."""
        future: Future[Any] = Future()
        self._waiting.append((command, future))
        self.wake()
        return future

    def post(self, command: Command) -> None:
        """Have a command run that cannot fail, and of which nobody wants to hear."""
        self._waiting.append((command, None))
        self.wake()

    def wake(self) -> None:
        """Have the loop look at its commands; cheap when it is about to."""
        if not self._woken:
            self._woken = True
            with contextlib.suppress(OSError):  # full: it is awake; closed: it has ended
                self._waker.send(b"\0")

    # -- in the loop ---------------------------------------------------------------------

    def run(self, most: int, woken: bool) -> None:
        """Run what waits, up to so many; `woken` says that the wake-up socket has been rung."""
        if woken:
            with contextlib.suppress(BlockingIOError):
                self._socket.recv(4096)
            self._woken = False  # before looking: whoever adds something from now on rings again
        for _ in range(min(len(self._waiting), most)):
            command, future = self._waiting.popleft()
            if future is None:
                command()
            elif future.set_running_or_notify_cancel():
                self._run(command, future)

    def _run(self, command: Command, future: Future[Any]) -> None:
        try:
            self._finished.append((future, command(), None))
        except (ProtocolError, OSError) as error:
            self._finished.append((future, None, error))

    def finish(self) -> None:
        """Hand out the results so far."""
        if not self._finished:
            return
        finished, self._finished = self._finished, []
        for future, result, error in finished:
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def fail(self, error: Exception) -> None:
        """Nothing will be run any more."""
        self._finished = [(future, None, error) for future, _, _ in self._finished]
        self.finish()
        while self._waiting:
            _, future = self._waiting.popleft()
            if future is not None and future.set_running_or_notify_cancel():
                future.set_exception(error)

    def close(self) -> None:
        """Close the sockets."""
        self._socket.close()
        self._waker.close()
