"""`f3 bench preprocess`: from messages to node IDs, language by language and size by size."""

from __future__ import annotations

import json
import random
from typing import Annotated, Any

import typer

_COLUMNS = (
    ("language", "language"),
    ("subscriptions", "topics"),
    ("method", "method"),
    ("us_per_notification", "us/notification"),
    ("us_per_notification_batched", "batched"),
    ("us_per_subscription", "us/new topic"),
    ("lowest_nodes", "lowest"),
)


def preprocess(
    language: Annotated[
        list[str] | None, typer.Option(help="one or more of them; all if none is named")
    ] = None,
    size: Annotated[list[str] | None, typer.Option(help="1k, 46k, 1M, or a number")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="CPU time for each figure")] = 1.0,
    search_seconds: Annotated[
        float, typer.Option(min=0.01, help="the same for breadth-first search")
    ] = 2.0,
    seed: Annotated[int, typer.Option(help="of topics and notifications")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="a row a line, for machines")] = False,
) -> None:
    """Measure headers and places of new topics, with breadth-first search as the comparison."""
    from preprocess.scenes import SCENES

    names = language or list(SCENES)
    for name in names:
        if name not in SCENES:
            _usage(f"unknown language {name!r}; known are {', '.join(SCENES)}")
    rows: list[dict[str, Any]] = []
    for number in [_number(text) for text in size or ["1k", "46k", "1M"]]:
        for name in names:
            found = _measured(name, number, seconds, search_seconds, seed)
            for row in found:
                if as_json:
                    typer.echo(json.dumps(row))
            rows.extend(found)
    if not as_json:
        _show(rows)


def _usage(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)


def _number(text: str) -> int:
    from preprocess.scenes import SIZES

    if text not in SIZES and not text.isdecimal():
        _usage(f"a size is one of {', '.join(SIZES)} or a number, not {text!r}")
    return SIZES[text] if text in SIZES else int(text)


def _measured(
    name: str, number: int, seconds: float, search_seconds: float, seed: int
) -> list[dict[str, Any]]:
    from preprocess.measure import build, measure
    from preprocess.scenes import SCENES

    scene, loaded = build(lambda: SCENES[name](number, random.Random(seed)))
    size = len(scene.preprocessor.graph)
    typer.echo(f"{name}: {size:,} topics in {loaded:.1f} s, measuring …", err=True)
    rows = measure(scene, seconds, search_seconds, seed)
    for row in rows:
        row["seconds_to_load"] = round(loaded, 1)
    return rows


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for _, title in _COLUMNS:
        table.add_column(title, justify="left" if title in ("language", "method") else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(key)) for key, _ in _COLUMNS))
    Console().print(table)


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:,}"
    return "" if value is None else str(value)
