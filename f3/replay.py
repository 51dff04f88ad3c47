"""Replaying a workload on a cluster: load its graph, subscribe everybody, publish, collect.

The workload comes from the files that the Spark job wrote (`workloads.reader`); one host of
subscribers stands for each of the workload's routers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray

from workloads.reader import Workload, each_notification, each_subscription

if TYPE_CHECKING:
    from actors.cluster import Cluster

Progress = Callable[[str], None]

_WAIT_SECONDS = 120.0
_SUBSCRIBE_AT_ONCE = 5000
#: Notifications come in at least this often, or the replay has got stuck.
_STUCK_SECONDS = 30.0


@dataclass(slots=True)
class Replayed:
    """What happened; positions are those of the rendezvous point's log."""

    #: Per subscriber, the node it asked for.
    wants: dict[str, int]
    #: Per position, what was published there.
    published: dict[int, str]
    #: Per subscriber, the positions that it received, in order.
    received: dict[str, list[int]]
    seconds_to_subscribe: float
    seconds_to_deliver: float


def replay(
    cluster: Cluster, root: str, workload: Workload, edges: Sequence[str], show: Progress
) -> Replayed:
    """Play a workload; `edges` are where its routers' subscribers are attached."""
    show(f"loading a content graph of {len(workload.graph)} topics")
    cluster.load_graph(root, _parents_first(workload))
    hosts = [cluster.subscriber_host(edge, record=True) for edge in edges]
    show(f"subscribing {workload.counts['subscriptions']:,} subscribers")
    began = time.monotonic()
    wants = _subscribe(hosts, root, workload)
    subscribed = time.monotonic()
    show(f"publishing {workload.counts['notifications']:,} notifications")
    published = _publish(cluster, root, workload, edges[-1])
    expected = _deliveries(workload)
    _await(hosts, expected, show)
    delivered = time.monotonic()
    show("collecting what everybody received")
    received = _received(hosts)
    return Replayed(wants, published, received, subscribed - began, delivered - subscribed)


def _parents_first(workload: Workload) -> list[tuple[int, list[int]]]:
    graph = workload.graph
    order = graph.level.argsort(kind="stable").tolist()
    return [(node, graph.parents.of_one(node).tolist()) for node in order]


def _subscribe(hosts: Sequence[Any], root: str, workload: Workload) -> dict[str, int]:
    wants: dict[str, int] = {}
    refs = []
    for router, host in enumerate(hosts):
        wanted = []
        for one in each_subscription(workload.subscriptions(router)):
            wants[f"s{one.subscriber}"] = one.node
            wanted.append((f"s{one.subscriber}", root, one.node))
        for start in range(0, len(wanted), _SUBSCRIBE_AT_ONCE):
            some = wanted[start : start + _SUBSCRIBE_AT_ONCE]
            refs.append(host.subscribe.remote(some, _WAIT_SECONDS))
    refused = [refusal for part in ray.get(refs, timeout=_WAIT_SECONDS) for refusal in part]
    if refused:
        raise RuntimeError(f"{len(refused)} subscriptions were refused, such as {refused[0]}")
    return wants


def _publish(cluster: Cluster, root: str, workload: Workload, edge: str) -> dict[int, str]:
    notifications = list(each_notification(workload.notifications()))
    with cluster.client(edge) as client:
        publisher = client.publisher("replay")
        sent = [publisher.send(root, one.nodes, one.text.encode()) for one in notifications]
        positions = [future.result(_WAIT_SECONDS) for future in sent]
    return {position: one.text for position, one in zip(positions, notifications, strict=True)}


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


def _received(hosts: Sequence[Any]) -> dict[str, list[int]]:
    received: dict[str, list[int]] = {}
    for host in hosts:
        for name, notes in ray.get(host.received.remote(), timeout=_WAIT_SECONDS).items():
            received[name] = [position for _, position in notes]
    return received
