"""Who may speak on a link: CURVE keys, and the ZAP handler that knows them.

Across machines every member of a cluster has a key pair. A router's socket for one neighbour
accepts that neighbour's key and no other: the socket's ZAP domain is the neighbour's name. Public
keys reach the other end with a management call, never over a link. Without keys (one machine,
loopback) there is no handler and nothing is encrypted.
"""

from __future__ import annotations

import hmac
from collections import Counter
from dataclasses import dataclass

import zmq
from zmq.utils import z85

_ENDPOINT = "inproc://zeromq.zap.01"
_PARTS = 7


@dataclass(frozen=True, slots=True)
class Keys:
    """A member's CURVE key pair, Z85-encoded."""

    public: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"Keys({self.public!r}, secret not shown)"


def make_keys() -> Keys:
    """A new key pair."""
    return Keys(*zmq.curve_keypair())


class Gatekeeper:
    """Answers ZeroMQ's question whether a key may connect (RFC 27); part of the host's loop."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], counts: Counter[str]) -> None:
        self._counts = counts
        self._allowed: dict[str, bytes] = {}
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(_ENDPOINT)

    def allow(self, neighbor: str, public: bytes) -> None:
        """From now on, this neighbour has this key."""
        self._allowed[neighbor] = z85.decode(public)

    def forget(self, neighbor: str) -> None:
        """This neighbour may no longer connect."""
        self._allowed.pop(neighbor, None)

    def answer(self) -> None:
        """Answer every question that waits."""
        while self.socket.poll(0):
            parts = self.socket.recv_multipart()
            self.socket.send_multipart(self._reply(parts))

    def _reply(self, parts: list[bytes]) -> list[bytes]:
        version, request = parts[0], parts[1] if len(parts) > 1 else b""
        known = len(parts) == _PARTS and parts[5] == b"CURVE" and self._is_allowed(parts)
        if not known:
            self._counts["strangers"] += 1
        # After 400 a socket never calls again; a member whose key was announced late must.
        status = (b"200", b"OK") if known else (b"300", b"not a member")
        return [version, request, *status, b"", b""]

    def _is_allowed(self, parts: list[bytes]) -> bool:
        key = self._allowed.get(parts[2].decode(errors="replace"))
        return key is not None and hmac.compare_digest(key, parts[6])

    def close(self) -> None:
        """Let nobody in any more."""
        self.socket.close()
