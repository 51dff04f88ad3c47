"""`f3 workload …`: list scenarios, generate workloads with Spark, describe what was generated."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Subscribers, topics and notifications, from Spark.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


@app.command("list")
def list_scenarios(as_json: AsJson = False) -> None:
    """The scenarios that come with F3, and their parameters."""
    from workloads.scenario import load_scenario, scenario_names

    with _told_plainly():
        scenarios = [load_scenario(name).as_dict() for name in scenario_names()]
    if as_json:
        typer.echo(json.dumps(scenarios, indent=2))
        return
    width = max(len(scenario["name"]) for scenario in scenarios)
    for scenario in scenarios:
        typer.echo(f"{scenario['name']:<{width}}  {scenario['about']}")
        values = " ".join(f"{key}={value}" for key, value in scenario["content"].items())
        typer.echo(f"{'':<{width}}  {values}")


@app.command()
def generate(
    name: Annotated[str, typer.Argument(help="A scenario's name, or the path of a .toml file.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    subscribers: Annotated[
        int | None, typer.Option(help="How many there are at the start.  [default: the scenario's]")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data.")] = 1,
    param: Annotated[
        list[str] | None,
        typer.Option(help="key=value or section.key=value, such as teams=30 or churn.moves=0."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a workload that is there.")] = False,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Cuts the work, not the data.  [default: by size]")
    ] = None,
    driver_memory: Annotated[str, typer.Option(help="Memory of Spark's driver.")] = "2g",
    max_topics: Annotated[int, typer.Option(min=1, help="Refuse larger graphs.")] = 5_000_000,
    max_edges: Annotated[int, typer.Option(min=1, help="Refuse larger graphs.")] = 100_000_000,
    as_json: AsJson = False,
) -> None:
    """Make a workload: subscriptions, content graph, notifications and churn, as Parquet files."""
    from workloads.meter import Meter

    meter = Meter()
    # What fails reaches us as an exception; Spark's client would also log it, stack and all.
    logging.getLogger().addHandler(logging.NullHandler())
    with _told_plainly():
        from workloads.job import Job
        from workloads.job import generate as run
        from workloads.scenario import load_scenario, parse_parameters
        from workloads.session import SparkOptions
        from workloads.stages import Limits

        parameters = parse_parameters(param or ())
        if subscribers is not None:
            parameters["subscribers.count"] = subscribers
        job = Job(
            scenario=load_scenario(name, parameters),
            out=out,
            seed=seed,
            overwrite=overwrite,
            partitions=partitions,
            options=SparkOptions(master, driver_memory),
            limits=Limits(max_topics, max_edges),
        )
        manifest = run(job, meter)
    typer.echo(json.dumps(manifest, indent=2) if as_json else _summary(manifest, out))


@app.command()
def describe(
    path: Annotated[Path, typer.Argument(help="The folder of a workload.")],
    plot: Annotated[Path | None, typer.Option(help="Draw it into this .png, .svg or .pdf.")] = None,
    verify: Annotated[bool, typer.Option(help="Compare all files with their checksums.")] = False,
    as_json: AsJson = False,
) -> None:
    """Counts, depth, degree, overlap and skew of a workload, and a plot of them."""
    with _told_plainly():
        from workloads.describe import as_text, description
        from workloads.reader import Workload

        workload = Workload(path)
        if verify:
            workload.verify()
        facts = description(workload)
        if plot is not None:
            from workloads.plot import draw

            draw(workload, facts, plot)
            typer.echo(f"drawn: {plot}", err=True)
    typer.echo(json.dumps(facts, indent=2) if as_json else as_text(facts))


@app.command()
def replay(
    path: Annotated[Path, typer.Argument(help="The folder of a workload.")],
    topology: Annotated[str, typer.Option(help="see `f3 topology list`")] = "transit-stub-100",
    protocol: Annotated[str, typer.Option(help="f3, content-list, …")] = "f3",
    root: Annotated[str, typer.Option(help="rendezvous point [default: the centre]")] = "",
    seed: Annotated[int, typer.Option(help="of the topology")] = 0,
    as_json: AsJson = False,
) -> None:
    """Play a workload in the simulator, churn included, and check every delivery."""
    with _told_plainly():
        from f3.rehearsal import Rehearsal, rehearse
        from routing.errors import ProtocolError
        from routing.registry import protocol as find
        from sim.oracle import ViolationError
        from topology.catalogue import load
        from topology.overlay import TopologyError
        from topology.paths import centre
        from workloads.errors import ScenarioError, WorkloadError
        from workloads.reader import Workload

        workload = Workload(path)
        try:
            overlay = load(topology, seed)
            rehearsal = Rehearsal(workload, overlay, root or centre(overlay), find(protocol))
        except (TopologyError, ProtocolError) as error:
            raise ScenarioError(str(error)) from error
        try:
            facts = rehearse(rehearsal, lambda line: typer.echo(line, err=True))
        except ViolationError as error:
            raise WorkloadError(f"the network broke its promise: {error}") from error
    facts = {"workload": str(path), "topology": topology, "protocol": protocol, **facts}
    typer.echo(json.dumps(facts) if as_json else _played(facts))


def _played(facts: dict[str, Any]) -> str:
    return (
        f"{facts['notifications']:,} notifications, {facts['deliveries']:,} deliveries: each "
        f"exactly once to exactly those who asked, with {facts['subscriptions']:,} subscriptions, "
        f"{facts['arrive']:,} arrivals, {facts['depart']:,} departures and {facts['move']:,} moves "
        f"at {facts['routers']} routers.\n"
        f"{sum(facts['messages'].values()):,} messages, at most {facts['ids_per_table']['max']:,} "
        f"identifiers in a table; {sum(facts['cpu_seconds'].values()):.1f} s of CPU time."
    )


def _summary(manifest: dict[str, Any], out: Path) -> str:
    counts, seconds = manifest["counts"], manifest["seconds"]
    return (
        f"{out}: {counts['subscriptions']:,} subscriptions to {counts['topics']:,} topics with "
        f"{counts['edges']:,} edges, {counts['notifications']:,} notifications, "
        f"{counts['churn']:,} churn events in {seconds['total']:.1f} s, "
        f"{manifest['peak_rss_bytes'] / 2**20:,.0f} MiB at most"
    )


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Errors as a sentence on stderr: exit code 2 for what makes no sense, 1 for what failed."""
    from workloads.errors import ScenarioError, WorkloadError

    try:
        yield
    except ScenarioError as error:
        typer.echo(f"f3 workload: {error}", err=True)
        sys.exit(2)
    except (WorkloadError, OSError) as error:
        typer.echo(f"f3 workload: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("f3 workload: interrupted; nothing was left behind", err=True)
        sys.exit(130)
