"""`f3 study`: the papers' tables and figures, measured here, printed numbers beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def study(
    names: Annotated[list[str], typer.Argument(help="1, 2, 3, 4, siena, growth; or all")],
    quick: Annotated[bool, typer.Option(help="small sizes: minutes instead of hours")] = False,
    out: Annotated[Path, typer.Option(help="raw results, pages and plots go here")] = Path(
        "results"
    ),
    force: Annotated[bool, typer.Option(help="measure anew what was measured")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the rows, for machines")] = False,
) -> None:
    """Run studies; each writes a page, a plot, its rows, and its raw results point by point."""
    from experiments.studies import STUDIES
    from experiments.studies import study as run

    wanted = list(STUDIES) if names == ["all"] else names
    unknown = [name for name in wanted if name not in STUDIES]
    if unknown:
        known = ", ".join(STUDIES)
        typer.echo(f"error: there is no study {unknown[0]!r}; there are {known}, and all", err=True)
        raise typer.Exit(2)
    folder = out / "quick" if quick else out
    found = {}
    for name in wanted:
        typer.echo(f"study {name} …", err=True)
        found[name] = run(name, folder, quick, force)
        typer.echo(f"wrote {folder / f'study{name}.md'}", err=True)
    if as_json:
        typer.echo(json.dumps(found))
