"""The `f3` command: progress on stderr, data on stdout, exit code 0 only for success."""

from __future__ import annotations

import typer

from f3.commands import bench, bench_preprocess, bench_store, topology

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="F3: a publish/subscribe network that routes by content.",
)
bench.app.command("preprocess")(bench_preprocess.preprocess)
bench.app.command("store")(bench_store.store)
app.add_typer(bench.app, name="bench")
app.add_typer(topology.app, name="topology")


@app.callback()
def _root() -> None:
    """F3: a publish/subscribe network that routes by content."""


def main() -> None:
    """Run the command line."""
    app()
