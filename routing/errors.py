"""The one error of the protocol: an illegal request, raised before anything has changed."""

from __future__ import annotations


class ProtocolError(Exception):
    """A request or a message that the protocol does not allow; nothing was changed by it."""
