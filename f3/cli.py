"""The `f3` command: progress on stderr, data on stdout, exit code 0 only for success."""

from __future__ import annotations

import typer

from f3.commands import (
    bench,
    bench_cluster,
    bench_peers,
    bench_preprocess,
    bench_router,
    bench_start,
    bench_store,
    bench_table,
    bench_trace,
    cluster,
    demo,
    plot,
    topology,
    workload,
)
from f3.commands.simulate import simulate
from f3.commands.study import study
from f3.commands.top import top
from f3.commands.trace import trace

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="F3: a publish/subscribe network that routes by content.",
)
bench.app.command("table")(bench_table.table)
bench.app.command("router")(bench_router.router)
bench.app.command("peers")(bench_peers.peers)
bench.app.command("store")(bench_store.store)
bench.app.command("preprocess")(bench_preprocess.preprocess)
bench.app.command("chain")(bench_cluster.chain)
bench.app.command("fanout")(bench_cluster.fanout)
bench.app.command("start")(bench_start.start)
bench.app.command("trace")(bench_trace.trace)
app.command()(demo.demo)
app.command()(simulate)
app.command()(study)
cluster.register(app)
app.command()(trace)
app.command()(top)
app.add_typer(plot.app, name="plot")
app.add_typer(topology.app, name="topology")
app.add_typer(workload.app, name="workload")
app.add_typer(bench.app, name="bench")


@app.callback()
def _root() -> None:
    """F3: a publish/subscribe network that routes by content."""


def main() -> None:
    """Run the command line."""
    app()
