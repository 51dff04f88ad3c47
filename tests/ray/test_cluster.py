"""Routers as Ray actors: started, used, killed, re-routed and ended."""

from __future__ import annotations

import socket
from collections import Counter

import pytest
from ray_tools import DEADLINE, recovered, sigkill, until

from actors.cluster import Cluster, ClusterError, Options
from actors.connect import UnknownRouterError, routers
from actors.host import HostOptions
from actors.link import LinkOptions
from routing.api import Config
from routing.errors import ProtocolError
from topology.overlay import TopologyError

pytestmark = pytest.mark.ray

RING = [("r0", "r1"), ("r1", "r2"), ("r2", "r3"), ("r0", "r3")]
QUICK = Options(config=Config(period=0.5, lifetime=2.0, retry=0.5, window=256), patience=3.0)


def test_a_cluster_in_use(local_ray):
    """One cluster for everything that a healthy one, and one that is hurt, must do."""
    with Cluster(RING, ["r0"], options=QUICK) as cluster:
        cluster.load_graph("r0", [(1, ()), (2, (1,)), (3, (1,))])
        serves_a_crowd(cluster)
        answers_bad_requests(cluster)
        for victim in ("r1", "r0"):
            survives_a_kill(cluster, victim)
        goes_around_what_is_lost_for_good(cluster)


def serves_a_crowd(cluster):
    import ray

    host = cluster.subscriber_host("r2", record=True)
    wanted = [(f"s{n}", "r0", 1 + n % 3) for n in range(3000)]
    refused = ray.get(host.subscribe.remote([*wanted, ("x", "r0", 99)], DEADLINE))
    assert refused == {("x", "r0", 99): "node 99 is not in the content graph"}
    with cluster.client("r1") as client:
        positions = [client.publisher("p").publish("r0", (node,), b"") for node in (2, 3, 1)]
    until(lambda: ray.get(host.deliveries.remote()) >= 5000, "deliveries")
    received = ray.get(host.received.remote())
    due = {1: positions, 2: positions[:1], 3: positions[1:2]}
    for name, root, node in wanted:
        assert received[name] == [(root, position) for position in due[node]]


def answers_bad_requests(cluster):
    with pytest.raises(UnknownRouterError, match=r"no router 'nowhere' .routers: r0, r1, r2, r3"):
        cluster.client("nowhere")
    with pytest.raises(ClusterError, match="no router 'nowhere'"):
        cluster.subscriber_host("nowhere")
    with pytest.raises(ProtocolError, match="'r1' is no rendezvous point"):
        cluster.insert_node("r1", 5)
    with pytest.raises(ProtocolError, match="node 2 is in the graph already"):
        cluster.insert_node("r0", 2)


def survives_a_kill(cluster, victim):
    """A killed router is restarted, and nothing that was acknowledged is lost or doubled."""
    with cluster.client("r2") as far, cluster.client("r0") as near:
        subscriber, publisher = far.subscriber("s"), near.publisher("p")
        subscriber.subscribe("r0", 1, DEADLINE)
        bodies = [b"%d" % n for n in range(300)]
        sent = [publisher.send("r0", (2,), body) for body in bodies[:100]]
        incarnation = sigkill(cluster, victim)
        sent += [publisher.send("r0", (2,), body, timeout=DEADLINE) for body in bodies[100:]]
        until(lambda: recovered(cluster, victim, incarnation), "recovery")
        assert all(future.result(DEADLINE) for future in sent)
        got = Counter(subscriber.get(DEADLINE).body for _ in bodies)
        assert got == Counter(bodies)
        assert not len(subscriber.inbox)


def goes_around_what_is_lost_for_good(cluster):
    import ray

    hop = lambda: cluster.status()["routers"]["r2"]["next_hop"]["r0"]  # noqa: E731
    first = hop()
    other = {"r1": "r3", "r3": "r1"}[first]
    at = cluster.client
    with at("r2") as far, at("r0") as near, at(first) as stranded:
        subscribers = [far.subscriber("s"), stranded.subscriber("s")]
        publisher = near.publisher("p")
        for subscriber in subscribers:
            subscriber.subscribe("r0", 1, DEADLINE)
        publisher.publish("r0", (1,), b"before", timeout=DEADLINE)
        ray.kill(ray.get_actor(first, namespace=cluster.name), no_restart=True)
        publisher.publish("r0", (1,), b"meanwhile", timeout=DEADLINE)
        until(lambda: hop() == other, "another way")
        publisher.publish("r0", (1,), b"after", timeout=DEADLINE)
        for subscriber in subscribers:
            got = sorted(subscriber.get(DEADLINE).body for _ in range(3))
            assert got == [b"after", b"before", b"meanwhile"]
            assert not len(subscriber.inbox)
        assert stranded.edge in ("r0", "r2")
        # A router that was slow to answer counts as lost until it does.
        until(lambda: cluster.status()["lost_routers"] == [first], "one lost router")


def test_a_start_that_fails_says_why_and_leaves_nothing(local_ray, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = HostOptions(link=LinkOptions(ports=range(port, port + 1)))
        cluster = Cluster([("a", "b")], ["a"], options=Options(host=ports))
        with pytest.raises(
            ClusterError, match=rf"'[ab]' did not start: .*port from {port}.* in use"
        ):
            cluster.start()
    assert routers(cluster.name) == []
    (tmp_path / "a.db").write_bytes(b"this is no database, whatever its name may say" * 100)
    cluster = Cluster([("a", "b")], ["a"], options=Options(data=str(tmp_path)))
    with pytest.raises(ClusterError, match=r"router 'a' did not start: .*a\.db"):
        cluster.start()
    assert routers(cluster.name) == []


def test_more_routers_than_memory_are_refused_before_any_starts(local_ray, monkeypatch):
    monkeypatch.setattr("actors.cluster._memory", lambda: 1e8)
    cluster = Cluster([("a", "b")], ["a"])
    with pytest.raises(ClusterError, match=r"2 routers need about 0\.1 GB .*`f3 simulate`"):
        cluster.start()
    assert routers(cluster.name) == []


@pytest.mark.parametrize(
    ("topology", "root", "why"),
    [
        ([("a", "a")], "a", "a link to itself"),
        ([("a", "b"), ("c", "d")], "a", "no path leads"),
        ([("a", "b")], "z", "'z' is no router"),
        ([("a", "")], "a", "name must be text and not empty"),
    ],
)
def test_a_malformed_topology_is_refused_before_anything_starts(topology, root, why):
    with pytest.raises(TopologyError, match=why):
        Cluster(topology, [root])


def test_an_unknown_protocol_is_refused_before_anything_starts():
    with pytest.raises(ProtocolError, match="unknown protocol 'f4'"):
        Cluster(RING, ["r0"], options=Options(protocol="f4"))
