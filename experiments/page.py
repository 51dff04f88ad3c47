"""Markdown pages: tables with the printed number, ours and the ratio side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def number(value: float | int | str | None) -> str:
    """A number as people write it; an empty cell for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def ratio(ours: float | None, printed: float | None) -> str:
    """Ours as a multiple of the printed number."""
    if not printed or ours is None:
        return ""
    times = ours / printed
    return f"{times:.2f}" if times >= 0.1 else f"{times:.1g}"


def table(titles: Sequence[str], rows: Iterable[Sequence[float | int | str | None]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(titles) + " |", "|---" + "|---:" * (len(titles) - 1) + "|"]
    lines += ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
