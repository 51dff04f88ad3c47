"""Processes that a benchmark starts: ours, which take commands, and servers of others."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import psutil

WAIT_SECONDS = 120.0
_STOP_SECONDS = 5.0

Answer = dict[str, Any]


class BenchError(RuntimeError):
    """A measurement cannot be had: why."""


class Usage:
    """Processor time and memory of a process."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def cpu_s(self) -> float:
        """Seconds so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def rss_bytes(self) -> int:
        """Memory now."""
        return int(self._process.memory_info().rss)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that we started, by force if it does not go."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Child:
    """A module of ours in a process of its own, asked in JSON over a socket pair.

    It ends when this process does, and not by an interrupt from the keyboard.
    """

    def __init__(self, module: str, *arguments: str, fds: Sequence[int] = ()) -> None:
        here, there = socket.socketpair()
        command = [sys.executable, "-m", module, str(there.fileno()), *arguments]
        self._name = module.rpartition(".")[2]
        self._process = subprocess.Popen(  # noqa: S603
            command, pass_fds=(there.fileno(), *fds), start_new_session=True
        )
        there.close()
        self._connection = Connection(here.detach())
        self.usage = Usage(self._process.pid)

    def tell(self, do: str, **arguments: Any) -> None:
        """Give a command; `hear` has its answer."""
        self._connection.send_bytes(json.dumps([do, arguments]).encode())

    def hear(self, timeout: float = WAIT_SECONDS) -> Answer:
        """The answer to the last command."""
        try:
            if self._connection.poll(timeout):
                answer: Answer = json.loads(self._connection.recv_bytes())
                return answer
        except (EOFError, ConnectionError):
            raise BenchError(f"the process {self._name!r} has ended unexpectedly") from None
        raise BenchError(f"the process {self._name!r} did not answer within {timeout:.0f} s")

    def heard(self) -> bool:
        """Whether the answer is there."""
        return self._connection.poll(0)

    def ask(self, do: str, **arguments: Any) -> Answer:
        """Give a command and wait for its answer."""
        self.tell(do, **arguments)
        return self.hear()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        stop(self._process)


class Master:
    """The child's side: commands come in, `serve` runs the method of that name."""

    def __init__(self, fd: int) -> None:
        self._connection = Connection(fd)
        self.fd = fd

    def serve(self, served: object) -> bool:
        """Run one command; false if the benchmark has gone away."""
        try:
            do, arguments = json.loads(self._connection.recv_bytes())
        except (EOFError, ConnectionError):
            return False
        method: Callable[..., Answer | None] = getattr(served, do)
        self._connection.send_bytes(json.dumps(method(**arguments) or {}).encode())
        return True


class Tally:
    """Counters that two processes share: one writes, the other reads."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.fd = _shared_file(8 * size) if fd is None else fd
        self._map = mmap.mmap(self.fd, 8 * size)
        self.counts = memoryview(self._map).cast("Q")

    def close(self) -> None:
        """Let the memory go."""
        self.counts.release()
        self._map.close()
        os.close(self.fd)


def _shared_file(size: int) -> int:
    """A file without a name, by its descriptor."""
    fd, name = tempfile.mkstemp()
    os.unlink(name)
    os.truncate(fd, size)
    return fd


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
