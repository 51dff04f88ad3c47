"""What a preprocessor says of input that it cannot use."""

from __future__ import annotations

#: Characters of a reason or a position: what is wrong may be of any length.
_TEXT_MAX = 200


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


class LanguageError(ValueError):
    """A subscription or notification that does not parse, or can match nothing.

    `position` says where: an offset, a line and column, the name of an attribute or of an entry.
    """

    def __init__(self, reason: str, position: str | int | None = None) -> None:
        self.reason = _cut(reason)
        self.position = _cut(position) if isinstance(position, str) else position
        super().__init__(self.reason if position is None else f"at {self.position}: {self.reason}")


class UnknownTopicError(LookupError):
    """A static preprocessor was asked for a topic that is not in its content graph."""
