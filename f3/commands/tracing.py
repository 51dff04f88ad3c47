"""What commands that start a network share about tracing: options, and the built-in collector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from actors.telemetry.options import Tracing

Ui = Annotated[bool, typer.Option("--ui", help="collect traces here and show them on a page")]
UiPort = Annotated[int, typer.Option("--ui-port", min=0, max=65535, help="0 for any free one")]
Sample = Annotated[
    float, typer.Option("--sample", min=0.0, max=1.0, help="share of messages to trace")
]


@contextmanager
def tracing(ui: bool, port: int, ratio: float) -> Iterator[tuple[Tracing, str]]:
    """How a network is to be traced, and the address of the page if one is served here.

    Traces go to OTEL_EXPORTER_OTLP_ENDPOINT; where that is not set, to a collector of our own.
    """
    from actors.telemetry.options import Tracing, endpoint_from_environment

    endpoint = endpoint_from_environment()
    if endpoint or not ui:
        if endpoint:
            page = "; --ui has no page then" if ui else ""
            typer.echo(f"traces go to {endpoint} (OTEL_EXPORTER_OTLP_ENDPOINT){page}", err=True)
        yield Tracing(endpoint, ratio), ""
        return
    from actors.telemetry.server import CollectorServer
    from f3.commands.cluster import fail

    try:
        server = CollectorServer(port)
    except OSError as error:
        fail(f"cannot listen on port {port}: {error}; --ui-port chooses another", 2)
    with server:
        typer.echo(f"traces are shown at {server.url}", err=True)
        yield Tracing(server.url, ratio), server.url
