"""A picture of an overlay: its links, and its routers coloured by kind; one root's tree on top.

Where no router has a position, springs place them (networkx). Only commands import this module.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import networkx as nx  # type: ignore[import-untyped]
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from topology.overlay import Overlay, TopologyError
from topology.paths import Tree

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
#: Kinds that stand at the centre of their overlay are drawn larger.
_LARGE = frozenset({"transit", "core", "hub", "root"})
#: Of more routers than this, only the large ones are named.
_LABELS_MAX = 80
#: Its multiples never point in the same direction twice.
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))

Positions = dict[str, tuple[float, float]]


def draw(
    overlay: Overlay,
    path: Path,
    title: str,
    tree: Tree | None = None,
    *,
    crossed: Collection[tuple[str, str]] = (),
    reached: Collection[str] = (),
) -> None:
    """Write a picture of the overlay; the file's ending chooses the format.

    `crossed` are the links that a notification took, `reached` the routers with a subscriber
    to it.
    """
    figure = Figure(figsize=(11, 8), layout="constrained")
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise TopologyError(f"{path}: pictures end in one of .{', .'.join(sorted(formats))}")
    axes = figure.add_subplot()
    at = positions(overlay)
    _draw_links(axes, overlay, at, tree)
    _draw_routers(axes, overlay, at)
    _draw_way(axes, at, crossed, reached)
    for site in overlay.sites:
        if len(overlay.sites) <= _LABELS_MAX or site.kind in _LARGE:
            where = at[site.name]
            axes.annotate(site.name, where, xytext=(4, 4), textcoords="offset points", fontsize=6)
    if tree is not None:
        axes.plot(*at[tree.root], marker="*", markersize=16, color="black", zorder=4)
    axes.set_title(title)
    axes.axis("off")
    figure.legend(loc="outside lower center", ncols=8, frameon=False)
    figure.savefig(path, dpi=130)


def positions(overlay: Overlay) -> Positions:
    """Where each router is drawn: where its site says, beside its neighbours, or by springs."""
    known = {s.name: s.position for s in overlay.sites if s.position is not None}
    if known:
        return _beside_neighbors(overlay, known)
    graph = nx.Graph([link.ends for link in overlay.links])
    graph.add_nodes_from(overlay.routers)
    laid = nx.spring_layout(graph, seed=1, method="force")
    return {name: (float(x), float(y)) for name, (x, y) in laid.items()}


def _beside_neighbors(overlay: Overlay, known: Positions) -> Positions:
    """Place the rest near the neighbours that have a place, each in a direction of its own."""
    at = dict(known)
    step = 0.05 * max(max(axis) - min(axis) for axis in zip(*known.values(), strict=True)) or 1.0
    level = sorted(known)
    while level:
        level = sorted({o for name in level for o in overlay.neighbors[name] if o not in at})
        found: Positions = {}
        for i, name in enumerate(level):
            near = [at[other] for other in overlay.neighbors[name] if other in at]
            x, y = (sum(axis) / len(near) for axis in zip(*near, strict=True))
            angle = _GOLDEN_ANGLE * i
            found[name] = (x + step * math.cos(angle), y + step * math.sin(angle))
        at.update(found)
    return at


def _draw_links(axes: Axes, overlay: Overlay, at: Positions, tree: Tree | None) -> None:
    inside = set() if tree is None else {tuple(sorted(pair)) for pair in tree.parents.items()}
    rest = [link.ends for link in overlay.links if link.ends not in inside]
    for pairs, colour, width, label in (
        (rest, "#bbbbbb", 0.7, "link"),
        (sorted(inside), "#444444", 1.3, f"tree of {tree.root}" if tree else ""),
    ):
        if pairs:
            lines = [(at[a], at[b]) for a, b in pairs]
            axes.add_collection(
                LineCollection(lines, colors=colour, linewidths=width, zorder=1, label=label)
            )


def _draw_way(
    axes: Axes, at: Positions, crossed: Collection[tuple[str, str]], reached: Collection[str]
) -> None:
    if crossed:
        lines = [(at[a], at[b]) for a, b in crossed]
        label = f"crossed ({len(crossed)})"
        axes.add_collection(
            LineCollection(lines, colors="#d62728", linewidths=2.4, zorder=1.5, label=label)
        )
    if reached:
        places = [at[name] for name in sorted(set(reached))]
        axes.scatter(
            [x for x, _ in places],
            [y for _, y in places],
            s=90,
            facecolors="none",
            edgecolors="#d62728",
            linewidths=1.6,
            zorder=3.5,
            label=f"subscriber reached ({len(set(reached))})",
        )


def _draw_routers(axes: Axes, overlay: Overlay, at: Positions) -> None:
    kinds = sorted({site.kind for site in overlay.sites})
    for kind, colour in zip(kinds, _COLOURS * len(kinds), strict=False):
        names = overlay.of_kind(kind)
        axes.scatter(
            [at[name][0] for name in names],
            [at[name][1] for name in names],
            s=60 if kind in _LARGE else 16,
            color=colour,
            zorder=3 if kind in _LARGE else 2,
            label=f"{kind or 'router'} ({len(names)})",
        )
