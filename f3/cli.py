"""The `f3` command: progress on stderr, data on stdout, exit code 0 only for success."""

from __future__ import annotations

import typer

from f3.commands import bench, bench_cluster, bench_store, cluster, demo, topology
from f3.commands.simulate import simulate

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="F3: a publish/subscribe network that routes by content.",
)
bench.app.command("store")(bench_store.store)
bench.app.command("chain")(bench_cluster.chain)
bench.app.command("fanout")(bench_cluster.fanout)
cluster.register(app)
app.command()(demo.demo)
app.add_typer(bench.app, name="bench")
app.add_typer(topology.app, name="topology")
app.command()(simulate)


@app.callback()
def _root() -> None:
    """F3: a publish/subscribe network that routes by content."""


def main() -> None:
    """Run the command line."""
    app()
