"""Replaying a workload on a cluster: load its graph, subscribe everybody, publish, collect.

The workload comes from the files that the Spark job wrote (`workloads.reader`), a few thousand
rows at a time; one host of subscribers stands for each of the workload's routers. Not here: churn,
which `f3.rehearsal` plays in the simulator.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import ray

from workloads.reader import Subscriptions, Workload, each_notification, each_subscription

if TYPE_CHECKING:
    from actors.cluster import Cluster

Progress = Callable[[str], None]

_WAIT_SECONDS = 120.0
#: Rows that are on their way at once: to each host, and to the rendezvous point.
_AT_ONCE = 5000
#: Notifications come in at least this often, or the replay has got stuck.
_STUCK_SECONDS = 30.0


@dataclass(slots=True)
class Replayed:
    """What happened; positions are those of the rendezvous point's log."""

    #: Per notification, in their order, where it came to stand.
    positions: array[int]
    seconds_to_subscribe: float
    seconds_to_deliver: float
    _hosts: Sequence[Any]

    def received(self, router: int) -> dict[str, list[int]]:
        """Per subscriber of one of the workload's routers, the positions that it got, in order.

        Asks the host of subscribers, which must still be there.
        """
        found = ray.get(self._hosts[router].received.remote(), timeout=_WAIT_SECONDS)
        return {name: [position for _, position in notes] for name, notes in found.items()}


def replay(
    cluster: Cluster, root: str, workload: Workload, edges: Sequence[str], show: Progress
) -> Replayed:
    """Play a workload; `edges` are where its routers' subscribers are attached."""
    show(f"loading a content graph of {len(workload.graph)} topics")
    cluster.load_graph(root, _parents_first(workload))
    hosts = [cluster.subscriber_host(edge, record=True) for edge in edges]
    show(f"subscribing {workload.counts['subscriptions']:,} subscribers")
    began = time.monotonic()
    _subscribe(hosts, root, workload)
    subscribed = time.monotonic()
    show(f"publishing {workload.counts['notifications']:,} notifications")
    positions = _publish(cluster, root, workload, edges[-1])
    _await(hosts, _deliveries(workload), show)
    delivered = time.monotonic()
    return Replayed(positions, subscribed - began, delivered - subscribed, hosts)


def client_name(subscriber: int) -> str:
    """What a workload's subscriber is called on the cluster."""
    return f"s{subscriber}"


def _parents_first(workload: Workload) -> list[tuple[int, list[int]]]:
    graph = workload.graph
    order = graph.level.argsort(kind="stable").tolist()
    return [(node, graph.parents.of_one(node).tolist()) for node in order]


def _subscribe(hosts: Sequence[Any], root: str, workload: Workload) -> None:
    """A batch at each host at a time, while the next ones are read."""
    streams = [workload.subscriptions(router, _AT_ONCE) for router in range(len(hosts))]
    asked: list[Any] = []
    for batches in zip_longest(*streams):
        refs = [
            host.subscribe.remote(_wanted(batch, root), _WAIT_SECONDS)
            for host, batch in zip(hosts, batches, strict=True)
            if batch is not None
        ]
        _must_be_in_force(asked)
        asked = refs
    _must_be_in_force(asked)


def _wanted(batch: Subscriptions, root: str) -> list[tuple[str, str, int]]:
    return [(client_name(one.subscriber), root, one.node) for one in each_subscription([batch])]


def _must_be_in_force(asked: Sequence[Any]) -> None:
    refused = [refusal for part in ray.get(asked, timeout=_WAIT_SECONDS) for refusal in part]
    if refused:
        raise RuntimeError(f"{len(refused)} subscriptions were refused, such as {refused[0]}")


def _publish(cluster: Cluster, root: str, workload: Workload, edge: str) -> array[int]:
    positions = array("Q")
    with cluster.client(edge) as client:
        publisher = client.publisher("replay")
        for batch in workload.notifications(_AT_ONCE):
            rows = [(one.nodes, one.text.encode()) for one in each_notification([batch])]
            positions.extend(
                publisher.send_many(root, rows, timeout=_WAIT_SECONDS).result(_WAIT_SECONDS)
            )
    return positions


def _deliveries(workload: Workload) -> int:
    """How many deliveries the graph promises: when to stop waiting, not what is right."""
    graph = workload.graph
    return sum(
        int(graph.subscribers[graph.covering(batch.nodes[begin:end])].sum())
        for batch in workload.notifications()
        for begin, end in zip(batch.offsets, batch.offsets[1:], strict=False)
    )


def _await(hosts: Sequence[Any], deliveries: int, show: Progress) -> None:
    so_far, since = -1, time.monotonic()
    while so_far < deliveries:
        found = sum(ray.get([host.deliveries.remote() for host in hosts], timeout=_WAIT_SECONDS))
        if found > so_far:
            so_far, since = found, time.monotonic()
            show(f"delivered: {so_far:,} of {deliveries:,}")
        elif time.monotonic() > since + _STUCK_SECONDS:
            return
        time.sleep(0.05)
