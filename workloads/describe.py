"""What a workload is like: counts, depth, degree, overlap and skew.

Depth counts the nodes on the longest path, as Tables 4.1 and 4.3 of Kulik 2004 do for baseball
(3) and traffic (60). Overlap is how many topics match a notification at once, and which share of
the subscriptions they hold; it is worked out for the first notifications only.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from workloads.graph import Graph
from workloads.randomness import Floats, Ints
from workloads.reader import Workload, each_notification

#: Notifications whose overlap is worked out.
_LOOKED_AT = 1_000


def description(workload: Workload) -> dict[str, Any]:
    """All facts, as plain values."""
    manifest, graph = workload.manifest, workload.graph
    return {
        "path": str(workload.path),
        "scenario": manifest["scenario"],
        "seed": manifest["seed"],
        "counts": workload.counts,
        "seconds": manifest["seconds"],
        "peak_rss_bytes": manifest["peak_rss_bytes"],
        "graph": graph_facts(graph),
        "overlap": overlap_facts(workload),
        "skew": {
            "topics": skew_facts(graph.subscribers),
            "routers": skew_facts(per_router(workload)),
        },
        "churn": churn_counts(workload),
    }


def graph_facts(graph: Graph) -> dict[str, Any]:
    """Depth, degree, and how many nodes stand on each level."""
    parents, children = graph.parents.degree, graph.children.degree
    levels = np.bincount(graph.level)
    return {
        "depth": len(levels),
        "roots": int((parents == 0).sum()),
        "leaves": int((children == 0).sum()),
        "parents": _mean_max(parents),
        "children": _mean_max(children),
        "nodes_per_level": levels.tolist(),
    }


def overlap_facts(workload: Workload) -> dict[str, Any]:
    """Header sizes, matching topics and reached subscriptions of the first notifications."""
    graph = workload.graph
    everyone = max(int(graph.subscribers.sum()), 1)
    sizes: list[int] = []
    topics: list[int] = []
    shares: list[float] = []
    for notification in each_notification(workload.notifications(_LOOKED_AT)):
        if len(sizes) == _LOOKED_AT:
            break
        matching = graph.covering(np.array(notification.nodes, dtype=np.int64))
        sizes.append(len(notification.nodes))
        topics.append(len(matching))
        shares.append(float(graph.subscribers[matching].sum()) / everyone)
    return {
        "notifications": len(sizes),
        "identifiers_per_header": _mean_max(np.array(sizes)),
        "matching_topics": _mean_max(np.array(topics)),
        "share_of_subscriptions_reached": _mean_max(np.array(shares)),
        "reach_nobody": sum(share == 0 for share in shares),
    }


def skew_facts(counts: Ints) -> dict[str, Any]:
    """How evenly subscriptions are spread: largest share, share of the top hundredth, Gini."""
    total = max(int(counts.sum()), 1)
    ranked = np.sort(counts)[::-1]
    top = max(1, len(ranked) // 100)
    place = np.arange(1, len(ranked) + 1)
    gini = 1 + 1 / len(ranked) - 2 * float((ranked * place).sum()) / (len(ranked) * total)
    return {
        "fewest": int(ranked[-1]),
        "most": int(ranked[0]),
        "share_of_most": _short(ranked[0] / total),
        "share_of_top_1_percent": _short(ranked[:top].sum() / total),
        "gini": _short(gini),
    }


def per_router(workload: Workload) -> Ints:
    """Subscriptions at each router at the start, from the manifest alone."""
    counts = np.zeros(workload.routers, dtype=np.int64)
    for name, facts in workload.manifest["files"].items():
        if name.startswith("subscriptions/router="):
            counts[int(name.split("=")[1].split("/")[0])] += facts["rows"]
    return counts


def churn_counts(workload: Workload) -> dict[str, int]:
    """How often subscribers arrive, depart and move (a row for each of their topics)."""
    counts: Counter[str] = Counter()
    for batch in workload.churn():
        names, times = np.unique(batch.event.astype(str), return_counts=True)
        counts.update(dict(zip(names.tolist(), times.tolist(), strict=True)))
    return {name: counts[name] for name in ("arrive", "depart", "move")}


def as_text(facts: dict[str, Any]) -> str:
    """The facts as a short page."""
    graph, overlap, skew = facts["graph"], facts["overlap"], facts["skew"]
    counts, scenario = facts["counts"], facts["scenario"]
    lines = [
        f"{facts['path']}: {scenario['name']}, seed {facts['seed']}",
        f"  {scenario['about']}",
        "counts   " + ", ".join(f"{value:,} {name}" for name, value in counts.items()),
        f"graph    depth {graph['depth']}, {graph['roots']:,} roots, {graph['leaves']:,} leaves; "
        f"parents {_said(graph['parents'])}, children {_said(graph['children'])}",
        f"overlap  of {overlap['notifications']:,} notifications: identifiers "
        f"{_said(overlap['identifiers_per_header'])}, matching topics "
        f"{_said(overlap['matching_topics'])},",
        f"         subscriptions reached {_said(overlap['share_of_subscriptions_reached'])} "
        f"of all; {overlap['reach_nobody']:,} reach nobody",
        f"skew     topics {_skew_said(skew['topics'])}",
        f"         routers {_skew_said(skew['routers'])}",
        "churn    " + ", ".join(f"{value:,} {name}" for name, value in facts["churn"].items()),
        f"made in  {facts['seconds']['total']:.1f} s, "
        f"{facts['peak_rss_bytes'] / 2**20:,.0f} MiB at most",
    ]
    return "\n".join(lines)


def _skew_said(skew: dict[str, Any]) -> str:
    return (
        f"have {skew['fewest']:,} to {skew['most']:,} subscriptions; the top 1 % hold "
        f"{skew['share_of_top_1_percent']:.1%}, Gini {skew['gini']:.2f}"
    )


def _said(numbers: dict[str, float]) -> str:
    mean, most = (f"{x:,.0f}" if x >= 100 else f"{x:.3g}" for x in numbers.values())
    return f"{mean} (at most {most})"


def _mean_max(numbers: Ints | Floats) -> dict[str, float]:
    if not len(numbers):
        return {"mean": 0.0, "max": 0.0}
    return {"mean": _short(numbers.mean()), "max": _short(numbers.max())}


def _short(number: float) -> float:
    return float(f"{float(number):.6g}")
