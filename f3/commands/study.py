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
    workloads: Annotated[
        Path | None, typer.Option(help="read Study 2's scenarios from this folder's workloads")
    ] = None,
    draw: Annotated[bool, typer.Option(help="measure nothing: pages of what was measured")] = False,
    force: Annotated[bool, typer.Option(help="measure anew what was measured")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the rows, for machines")] = False,
) -> None:
    """Run studies; each writes a page, a plot, its rows, and its raw results point by point."""
    from experiments.studies import STUDIES, NothingMeasuredError
    from experiments.studies import study as run
    from workloads.errors import WorkloadError

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
        try:
            found[name] = run(name, folder, quick, force, draw, workloads)
        except (NothingMeasuredError, WorkloadError, ImportError) as error:
            typer.echo(f"error: {_why(error)}", err=True)
            raise typer.Exit(1) from error
        typer.echo(f"wrote {folder / f'study{name}.md'}", err=True)
    if as_json:
        typer.echo(json.dumps(found))


def _why(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"{error}; the compiled tables were not built: install again with a C++ compiler"
    return str(error)
