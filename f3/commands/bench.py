"""`f3 bench …`: what the hot paths cost, as tables, plots or JSON rows."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="Measure the hot paths; --json for machines.")


@app.callback()
def _group() -> None:
    """Measure the hot paths; --json for machines."""
