"""What a preprocessor says of input that it cannot use."""

from __future__ import annotations


class LanguageError(ValueError):
    """A subscription or notification that does not parse, or can match nothing.

    `position` says where: an offset, a line and column, the name of an attribute or of an entry.
    """

    def __init__(self, reason: str, position: str | int | None = None) -> None:
        self.reason = reason
        self.position = position
        super().__init__(reason if position is None else f"at {position}: {reason}")


class UnknownTopicError(LookupError):
    """A static preprocessor was asked for a topic that is not in its content graph."""
