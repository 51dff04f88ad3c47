"""`f3 up`, `status`, `insert`, `publish`, `subscribe` and `down`: a cluster on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

from f3.commands import running
from f3.commands.tracing import Sample, Ui, UiPort, tracing

if TYPE_CHECKING:
    from actors.client import Client
    from actors.cluster import Cluster
    from actors.telemetry.options import Tracing


def fail(message: object, code: int = 1) -> NoReturn:
    """Say what is wrong, and end."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)


def _checked_name(name: str) -> str:
    try:
        running.state_file(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        fail(f"{error}: set F3_RUN_DIR to a folder of your own")
    return name


Name = Annotated[str, typer.Option("--name", help="of the cluster", callback=_checked_name)]
At = Annotated[str | None, typer.Option("--at", help="the edge router; else the first one")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", help="the rendezvous point, where there are several")
]
Json = Annotated[bool, typer.Option("--json", help="for machines")]
Links = Annotated[bool, typer.Option("--links", help="a line for each link")]
Seconds = Annotated[float, typer.Option("--timeout", min=0.1, help="seconds to wait")]

_DETACH_SECONDS = 180.0


def progress() -> Callable[[str], None]:
    """Progress on stderr: one line that changes on a terminal, else a line for each change."""
    last = ""

    def show(text: str) -> None:
        nonlocal last
        if text != last:
            end = "\n" if not sys.stderr.isatty() else ""
            start = "\r\x1b[K" if sys.stderr.isatty() else ""
            typer.echo(f"{start}{text}{end}", err=True, nl=False)
            last = text

    return show


@contextmanager
def quiet_stdout() -> Iterator[TextIO]:
    """Keep stdout for data: Ray prints its remarks there, and they go to stderr instead."""
    real = sys.stdout
    with redirect_stdout(sys.stderr):
        yield real


# -- up and down ---------------------------------------------------------------------------------


def up(
    topology: Annotated[
        str, typer.Option(help="a name or a file; `f3 topology list` shows them")
    ] = "chain:4",
    rendezvous: Annotated[
        list[str] | None, typer.Option(help="a rendezvous point; repeat for several")
    ] = None,
    protocol: Annotated[str, typer.Option(help="how routers forward")] = "f3",
    graph: Annotated[
        Path | None, typer.Option(help='content graph: lines of {"node": 2, "parents": [1]}')
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="where logs and graphs stay; else they go at the end")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="of a running Ray; else one is started")
    ] = None,
    seed: Annotated[int, typer.Option(help="for random topologies")] = 0,
    name: Name = "f3",
    detach: Annotated[bool, typer.Option("--detach", help="return once it is up")] = False,
    ui: Ui = False,
    ui_port: UiPort = 0,
    sample: Sample = 0.0,
) -> None:
    """Start a cluster and keep it up until Ctrl-C or `f3 down`."""
    if detach:
        _detach(name)
        return
    from routing.errors import ProtocolError

    nodes = [] if graph is None else list(_read_graph(graph))
    with _terminating(), tracing(ui, ui_port, sample) as (traced, page):
        made = _build(topology, rendezvous, protocol, data, ray_address, seed, name, traced)
        try:
            _serve(made, nodes, name, page)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
        except (RuntimeError, OSError, ValueError, ProtocolError) as error:
            fail(error)


def _build(
    topology: str,
    rendezvous: list[str] | None,
    protocol: str,
    data: Path | None,
    ray_address: str | None,
    seed: int,
    name: str,
    traced: Tracing,
) -> Cluster:
    from actors.cluster import Cluster, Options
    from actors.host import HostOptions
    from routing.errors import ProtocolError
    from topology.catalogue import load
    from topology.overlay import TopologyError
    from topology.paths import centre

    try:
        overlay = load(topology, seed)
        return Cluster(
            overlay,
            rendezvous or [centre(overlay)],
            name=f"f3-{name}",
            ray_address=ray_address,
            options=Options(
                protocol=protocol,
                data=None if data is None else str(data),
                host=HostOptions(tracing=traced),
            ),
            progress=progress(),
        )
    except (TopologyError, ProtocolError, OSError) as error:
        fail(error, 2)


def _serve(cluster: Cluster, nodes: list[tuple[int, list[int]]], name: str, collector: str) -> None:
    import ray

    state: dict[str, Any] = {"cluster": cluster.name, "routers": list(cluster.overlay.routers)}
    state["rendezvous"] = list(cluster.rendezvous)
    if collector:
        state["collector"] = collector
    if running.is_running(name):
        raise RuntimeError(f"a cluster {name!r} runs already: `f3 down --name {name}` ends it")
    with quiet_stdout() as stdout, cluster:
        if nodes:
            cluster.load_graph(cluster.rendezvous[0], nodes)
        joining = {
            "ray_address": ray.get_runtime_context().gcs_address,
            # Where Ray has started itself it wants to see its token from whoever joins.
            "ray_environment": {k: os.environ[k] for k in ("RAY_AUTH_MODE",) if k in os.environ},
        }
        with running.announced(name, {**state, **joining}):
            typer.echo(f"\ncluster {name!r} is up; Ctrl-C or `f3 down` ends it", err=True)
            typer.echo(json.dumps({"name": name, **state}), file=stdout)
            stdout.flush()
            signal.pause()


@contextmanager
def _terminating() -> Iterator[None]:
    """SIGTERM ends like Ctrl-C: in good order."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _read_graph(path: Path) -> Iterator[tuple[int, list[int]]]:
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        fail(error, 2)
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            yield int(row["node"]), [int(parent) for parent in row.get("parents", ())]
        except (ValueError, TypeError, KeyError) as error:
            fail(f"{path}, line {number}: {error!r} in {line[:60]!r}", 2)


def _detach(name: str) -> None:
    """Start the same command in the background; wait until it is up or has failed."""
    if running.is_running(name):
        fail(f"a cluster {name!r} runs already: `f3 down --name {name}` ends it")
    log = running.run_directory() / f"{name}.log"
    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    command = [sys.executable, "-c", "from f3.cli import main; main()", *arguments]
    with open(log, "w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)  # noqa: S603
    deadline = time.monotonic() + _DETACH_SECONDS
    while not running.is_running(name):
        if child.poll() is not None:
            fail(f"it did not start:\n{log.read_text().strip()[-2000:]}", child.returncode or 1)
        if time.monotonic() > deadline:
            child.terminate()
            fail(f"not up after {_DETACH_SECONDS:.0f} s; see {log}")
        time.sleep(0.1)
    typer.echo(f"cluster {name!r} is up; `f3 down` ends it", err=True)


def down(name: Name = "f3", timeout: Seconds = 60.0) -> None:
    """End a cluster."""
    try:
        pid = running.find(name)["pid"]
    except running.NotRunningError as error:
        fail(error)
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while _is_alive(pid):
        if time.monotonic() > deadline:
            fail(f"process {pid} is still there after {timeout} s: `kill -9 {pid}` ends it")
        time.sleep(0.05)
    typer.echo(f"cluster {name!r} is down", err=True)


def _is_alive(pid: int) -> bool:
    """Whether a process does anything; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -- using it --------------------------------------------------------------------------------------


@contextmanager
def joined(name: str) -> Iterator[dict[str, Any]]:
    """Join the Ray of a running cluster; its state."""
    import logging

    try:
        state = running.find(name)
    except running.NotRunningError as error:
        fail(error)
    # Ray reads its environment when it is imported: nothing that needs it may come before this.
    os.environ.update(state["ray_environment"])
    import ray

    from actors.connect import must_answer

    try:
        must_answer(state["ray_address"])
        ray.init(address=state["ray_address"], log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError) as error:
        fail(f"cluster {name!r} cannot be joined: {error}")
    try:
        yield state
    finally:
        ray.shutdown()


@contextmanager
def client(name: str, at: str | None) -> Iterator[tuple[Client, dict[str, Any]]]:
    """A client of a running cluster."""
    with joined(name) as state:
        from actors.connect import UnknownRouterError, connect

        try:
            made = connect(state["cluster"], at or state["routers"][0])
        except (UnknownRouterError, TimeoutError, ConnectionError) as error:
            fail(error, 2 if isinstance(error, UnknownRouterError) else 1)
        with made:
            yield made, state


def pick_namespace(state: dict[str, Any], namespace: str | None) -> str:
    """The namespace meant; the only one where none was named."""
    known: list[str] = state["rendezvous"]
    if namespace is None and len(known) == 1:
        return known[0]
    if namespace not in known:
        fail(f"--namespace must be one of {', '.join(known)}, not {namespace!r}", 2)
    return namespace


def numbers(text: str) -> list[int]:
    """Node identifiers from a list with commas."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        fail(f"nodes are whole numbers with commas between them, not {text!r}", 2)


def insert(
    node: Annotated[int, typer.Argument(help="its identifier")],
    parents: Annotated[str, typer.Option(help="nodes that cover it, with commas")] = "",
    children: Annotated[str, typer.Option(help="nodes that it covers, with commas")] = "",
    namespace: Namespace = None,
    name: Name = "f3",
) -> None:
    """Add a node to a content graph."""
    from routing.api import InsertNode
    from routing.errors import ProtocolError

    event = InsertNode(node, tuple(numbers(parents)), tuple(numbers(children)))
    with joined(name) as state:
        from actors.connect import administer

        try:
            administer(state["cluster"], pick_namespace(state, namespace), [event])
        except (ProtocolError, ConnectionError) as error:
            fail(error)


def publish(
    nodes: Annotated[str, typer.Argument(help="the lowest nodes that match, with commas")],
    body: Annotated[str, typer.Argument(help="the text; - for one from each line of stdin")],
    publisher: Annotated[str, typer.Option(help="who publishes")] = "cli",
    key: Annotated[str, typer.Option(envvar="F3_KEY", help="its secret, if it needs one")] = "",
    namespace: Namespace = None,
    at: At = None,
    name: Name = "f3",
    timeout: Seconds = 10.0,
    as_json: Json = False,
) -> None:
    """Publish, and print the position in the log once it is there."""
    from actors.answers import RefusedError

    header = numbers(nodes)
    bodies: Iterable[str] = (line.rstrip("\n") for line in sys.stdin) if body == "-" else [body]
    with client(name, at) as (member, state):
        source = member.publisher(publisher, key.encode())
        space = pick_namespace(state, namespace)
        try:
            sent = [source.send(space, header, text.encode(), timeout=timeout) for text in bodies]
            for future in sent:
                position = future.result(timeout)
                row = {"namespace": space, "position": position}
                typer.echo(json.dumps(row) if as_json else position)
        except (RefusedError, TimeoutError, ValueError) as error:
            fail(str(error) or f"no answer within {timeout} s: {member.why_late()}")


def subscribe(
    nodes: Annotated[str, typer.Argument(help="nodes to subscribe to, with commas")],
    count: Annotated[int, typer.Option(min=0, help="end after so many; 0 for never")] = 0,
    namespace: Namespace = None,
    at: At = None,
    name: Name = "f3",
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="seconds without any, after which it fails")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the body of every notification for some nodes, a line each."""
    from actors.answers import RefusedError

    wanted = numbers(nodes)
    with client(name, at) as (member, state):
        space = pick_namespace(state, namespace)
        receiver = member.subscriber("cli")
        try:
            for node in wanted:
                receiver.subscribe(space, node)
            typer.echo("subscribed", err=True)
            seen = 0
            while not count or seen < count:
                note = receiver.get(timeout)
                seen += 1
                text = note.body.decode(errors="replace")
                row = {"namespace": space, "position": note.position, "body": text}
                typer.echo(json.dumps(row) if as_json else text)
                sys.stdout.flush()
        except (RefusedError, TimeoutError) as error:
            fail(error)
        except KeyboardInterrupt:
            typer.echo(f"{seen} notifications", err=True)


def status(
    name: Name = "f3", timeout: Seconds = 5.0, links: Links = False, as_json: Json = False
) -> None:
    """Show routers, links, queues and tables."""
    from f3.commands.tables import links_table, remarks, routers_tables, show

    with joined(name) as state:
        from actors.connect import statuses

        found = statuses(state["cluster"], timeout)
    if as_json:
        typer.echo(json.dumps({"name": name, "routers": found}))
    else:
        roots = state["rendezvous"]
        show([links_table(found)] if links else routers_tables(found, roots), remarks(found))
    if not all(found.values()):
        fail("no answer from " + ", ".join(sorted(name for name in found if not found[name])))


def register(app: typer.Typer) -> None:
    """Put the commands on the command line."""
    for command in (up, down, status, insert, publish, subscribe):
        app.command()(command)
