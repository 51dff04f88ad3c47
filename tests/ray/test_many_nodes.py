"""Three Ray nodes on one machine, links with keys, and one node killed."""

from __future__ import annotations

from collections import Counter

import pytest
from ray_tools import DEADLINE, until

from actors.cluster import Cluster, Options
from routing.api import Config

pytestmark = pytest.mark.ray

CHAIN = [("r0", "r1"), ("r1", "r2")]
OPTIONS = Options(config=Config(period=0.5, lifetime=2.0, retry=0.5, window=256), patience=60.0)


@pytest.fixture
def nodes():
    """Three nodes, quick to notice that one of them has died."""
    import ray
    from ray.cluster_utils import Cluster as RayCluster

    assert not ray.is_initialized(), "run in a process of its own"
    checks = {
        "health_check_initial_delay_ms": 500,
        "health_check_period_ms": 300,
        "health_check_failure_threshold": 3,
        "health_check_timeout_ms": 500,
    }
    made = RayCluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": checks},
    )
    for _ in range(2):
        made.add_node(num_cpus=1)
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def places(cluster: Cluster) -> dict[str, str | None]:
    """Per router, the Ray node it is on; None while it does not answer."""
    status = cluster.status(timeout=2.0)["routers"]
    return {name: None if one is None else one["node"] for name, one in status.items()}


def test_actors_spread_and_survive_the_loss_of_a_node(nodes):
    import ray

    with Cluster(CHAIN, ["r0"], options=OPTIONS) as cluster:
        before = places(cluster)
        assert len(set(before.values())) == 3, "routers were not spread over the nodes"
        assert all(one["secure"] for one in cluster.status()["routers"].values())
        cluster.insert_node("r0", 1)
        head = ray.get_runtime_context().get_node_id()
        victim = next(name for name, node in before.items() if node != head)
        with cluster.client("r2") as far, cluster.client("r0") as near:
            subscriber, publisher = far.subscriber("s"), near.publisher("p")
            subscriber.subscribe("r0", 1)
            assert publisher.publish("r0", (1,), b"before") == 1
            lost = next(n for n in nodes.list_all_nodes() if n.node_id == before[victim])
            nodes.remove_node(lost, allow_graceful=False)
            moved = lambda: places(cluster)[victim] not in (None, before[victim])  # noqa: E731
            until(moved, f"{victim} on another node")
            publisher.publish("r0", (1,), b"after", timeout=DEADLINE)
            got = Counter(subscriber.get(DEADLINE).body for _ in range(2))
            assert got == Counter([b"before", b"after"])
