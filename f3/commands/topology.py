"""`f3 topology …`: look at an overlay before running anything on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from topology.overlay import Overlay

app = typer.Typer(no_args_is_help=True, help="Show and write overlays: the papers', and your own.")

_Name = Annotated[str, typer.Argument(metavar="NAME|FILE", help="see `f3 topology list`")]
_Seed = Annotated[int, typer.Option(help="for random networks")]


@app.callback()
def _group() -> None:
    """Overlays: the papers', simple shapes, and your own files."""


@app.command("list")
def list_names() -> None:
    """List the topologies that have a name."""
    from topology.catalogue import NAMES

    for name in (*NAMES, "FILE.graphml", "FILE.json", "FILE.toml"):
        typer.echo(name)


@app.command()
def show(
    name: _Name,
    root: Annotated[str, typer.Option(help="rendezvous point [default: the centre]")] = "",
    by: Annotated[str, typer.Option(help="shortest by latency or hops")] = "latency",
    seed: _Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="write a picture, .png .svg or .pdf")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Count routers, links and hops, and measure the tree of one rendezvous point."""
    from topology.paths import centre, tree

    with _Failing():
        overlay = _load(name, seed)
        chosen = tree(overlay, root or centre(overlay), by)  # type: ignore[arg-type]
        facts = _facts(name, overlay)
        facts["tree"] = {"root": chosen.root, "by": by, "depth": chosen.depth}
        if plot is not None:
            from topology.plot import draw

            draw(overlay, plot, f"{Path(name).name}: {len(overlay.routers)} routers", chosen)
            typer.echo(f"wrote {plot}", err=True)
    typer.echo(json.dumps(facts) if as_json else _text(facts))


@app.command()
def export(name: _Name, seed: _Seed = 0) -> None:
    """Print a topology as JSON, to edit and to load again."""
    from topology.files import to_document

    with _Failing():
        overlay = _load(name, seed)
    typer.echo(json.dumps(to_document(overlay), indent=1, ensure_ascii=False))


class _Failing:
    """Turns a topology that cannot be used, or a picture that cannot be written, into exit 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from topology.overlay import TopologyError

        if isinstance(error, TopologyError | OSError):
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from error


def _load(name: str, seed: int) -> Overlay:
    from topology.catalogue import load

    return load(name, seed)


def _facts(name: str, overlay: Overlay) -> dict[str, Any]:
    """What there is to know of an overlay in numbers."""
    from topology.paths import diameter

    degrees = sorted(len(beside) for beside in overlay.neighbors.values())
    kinds = sorted({site.kind for site in overlay.sites if site.kind})
    latencies = [link.latency * 1000 for link in overlay.links] or [0.0]
    return {
        "topology": name,
        "routers": len(overlay.routers),
        "kinds": {kind: len(overlay.of_kind(kind)) for kind in kinds},
        "links": len(overlay.links),
        "degree": {
            "min": degrees[0],
            "mean": round(sum(degrees) / len(degrees), 3),
            "max": degrees[-1],
        },
        "latency_ms": {"min": round(min(latencies), 6), "max": round(max(latencies), 6)},
        "diameter": diameter(overlay),
    }


def _text(facts: dict[str, Any]) -> str:
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = "  ".join(f"{key} {one}" for key, one in value.items())
        lines.append(f"{name:<10} {value}")
    return "\n".join(line for line in lines if line.split()[1:])
