"""A picture of a workload: the shape of its graph, its skew, its overlap and its churn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workloads.describe import per_router
from workloads.errors import ScenarioError
from workloads.reader import Workload

_BINS = 60
_SUFFIXES = (".png", ".svg", ".pdf")


def draw(workload: Workload, facts: dict[str, Any], path: Path) -> None:
    """Draw the facts of a workload into a file."""
    if path.suffix not in _SUFFIXES:
        raise ScenarioError(f"cannot draw into {path}: the name must end in {', '.join(_SUFFIXES)}")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    scenario = facts["scenario"]
    figure.suptitle(f"{scenario['name']}, seed {facts['seed']}: {scenario['about']}", wrap=True)
    levels, popularity, header, churn = figure.subplots(2, 2).ravel()
    _levels(levels, facts)
    _popularity(popularity, workload)
    _headers(header, workload)
    _churn(churn, workload)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _levels(axes: Any, facts: dict[str, Any]) -> None:
    levels = facts["graph"]["nodes_per_level"]
    axes.bar(np.arange(1, len(levels) + 1), levels, color="tab:blue")
    _whole_numbers(axes)
    axes.set(
        yscale="log",
        ylim=(0.5, None),
        title=f"Content graph: {facts['counts']['topics']:,} nodes, "
        f"{facts['counts']['edges']:,} edges",
        xlabel="depth of the node (1: a root)",
        ylabel="nodes",
    )


def _popularity(axes: Any, workload: Workload) -> None:
    for name, counts in (
        ("topics", workload.graph.subscribers),
        ("routers", per_router(workload)),
    ):
        ranked = np.sort(counts)[::-1]
        axes.loglog(np.arange(1, len(ranked) + 1), np.maximum(ranked, 0.5), ".-", label=name)
    axes.set(title="Skew", xlabel="rank", ylabel="subscriptions")
    axes.legend()


def _headers(axes: Any, workload: Workload) -> None:
    sizes = np.zeros(1, dtype=np.int64)
    for batch in workload.notifications():
        counted = np.bincount(np.diff(batch.offsets))
        total = np.zeros(max(len(sizes), len(counted)), dtype=np.int64)
        total[: len(sizes)] += sizes
        total[: len(counted)] += counted
        sizes = total
    axes.bar(np.arange(len(sizes)), sizes, color="tab:orange")
    _whole_numbers(axes)
    axes.set(
        title=f"Headers of {sizes.sum():,} notifications",
        xlabel="identifiers (lowest matching nodes)",
        ylabel="notifications",
    )


def _churn(axes: Any, workload: Workload) -> None:
    seconds = workload.manifest["scenario"]["seconds"]
    edges = np.linspace(0, seconds * 1e6, _BINS + 1)
    counts = {name: np.zeros(_BINS) for name in ("arrive", "depart", "move")}
    for batch in workload.churn():
        for name, count in counts.items():
            count += np.histogram(batch.time_us[batch.event == name], edges)[0]
    for name, count in counts.items():
        axes.stairs(count / (seconds / _BINS), edges / 1e6, label=name, baseline=None)
    axes.set(title="Churn", xlabel="seconds", ylabel="events/s", ylim=(0, None))
    axes.legend(loc="lower right")


def _whole_numbers(axes: Any) -> None:
    """Ticks at whole numbers only."""
    axes.xaxis.get_major_locator().set_params(integer=True)
