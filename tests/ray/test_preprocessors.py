"""Three preprocessors on Ray: new subscriptions race, and no notification is mis-headed."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest
import ray
from ray_tools import DEADLINE, until

from actors.cluster import Cluster, Options
from actors.preprocessors import RemotePreprocessor, adopt, embedded, publish
from preprocess.attribute_value import AttributeValue
from preprocess.errors import LanguageError
from preprocess.preprocessor import Preprocessor
from preprocess.replica import DynamicPreprocessor
from routing.api import Config, ProtocolError

pytestmark = pytest.mark.ray

LANGUAGE = AttributeValue()
VALUES = {
    "team": ["boston", "new york"],
    "sport": ["baseball", "hockey"],
    "place": ["home", "away"],
}
EACH = 12


def wish(rng: random.Random) -> dict[str, str]:
    names = rng.sample(sorted(VALUES), rng.randint(0, 3))
    return {name: rng.choice(VALUES[name]) for name in names}


@pytest.fixture(scope="module")
def cluster(local_ray):
    options = Options(config=Config(period=0.5, lifetime=2.0, retry=0.5, window=256))
    with Cluster([("r0", "r1"), ("r0", "r2")], ["r0", "r1"], options=options) as made:
        yield made


def test_three_preprocessors_end_with_one_graph_and_every_header_was_right(cluster):
    """Each thread has its own preprocessor, subscribes to new topics and publishes all the while.

    What is due is decided by dictionaries alone: whoever had its subscription in force before a
    publication was sent must get it, once; nobody gets what does not match.
    """
    actors = [cluster.preprocessor("r0", LANGUAGE) for _ in range(2)]
    replicas: list[RemotePreprocessor | DynamicPreprocessor] = [
        *actors,
        embedded(LANGUAGE, cluster.authority("r0")),
    ]
    lock = threading.Lock()
    due: dict[bytes, set[str]] = {}
    contents: dict[bytes, dict[str, str]] = {}
    wishes: dict[str, dict[str, str]] = {}
    received: Counter[tuple[str, bytes]] = Counter()
    failures: list[BaseException] = []

    def take(name):
        def note(notification):
            with lock:
                received[name, notification.body] += 1

        return note

    def work(number, replica, edge):
        rng = random.Random(number)
        try:
            with cluster.client(edge) as client:
                publisher = client.publisher(f"p{number}")
                for step in range(EACH):
                    done.wait(DEADLINE)  # all at once, so that they do race
                    name = f"s{number}.{step}"
                    want = wish(rng)
                    subscriber = client.subscriber(name, take(name))
                    subscriber.subscribe("r0", replica.subscription(want), DEADLINE)
                    content = {key: rng.choice(values) for key, values in VALUES.items()}
                    body = f"{number}.{step}".encode()
                    with lock:
                        wishes[name] = want
                        due[body] = {n for n, w in wishes.items() if w.items() <= content.items()}
                        contents[body] = content
                    publish(publisher, replica, "r0", content, body, DEADLINE)
                done.wait(DEADLINE)
                until(lambda: all(received[n, b] for b, names in due.items() for n in names), "all")
                done.wait(DEADLINE)
        except BaseException as error:
            failures.append(error)
            done.abort()

    done = threading.Barrier(3)
    edges = ("r1", "r2", "r0")
    threads = [
        threading.Thread(target=work, args=(number, replica, edge))
        for number, (replica, edge) in enumerate(zip(replicas, edges, strict=True))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * DEADLINE)
    assert failures == []
    assert set(received.values()) == {1}
    unasked = [
        (name, body)
        for name, body in received
        if not wishes[name].items() <= contents[body].items()
    ]
    assert unasked == []
    check_graphs(cluster, actors)


def check_graphs(cluster, actors):
    """All replicas hold the same graph, and it is the order of the topics by brute force."""
    for actor in actors:
        actor.catch_up()
    one, other = ray.get([actor.actor.graph.remote() for actor in actors])
    assert one == other
    topics = {node: LANGUAGE.parse(text) for node, (text, _) in one.items()}
    assert len(set(topics.values())) == len(topics) > 10
    covers = LANGUAGE.covers
    for node, (_, parents) in one.items():
        above = {n for n in topics if n != node and covers(topics[n], topics[node])}
        lowest = {
            a for a in above if not any(a != b and covers(topics[a], topics[b]) for b in above)
        }
        assert set(parents) == lowest
    assert ray.get(cluster.authority("r0").conflicts.remote()) > 0, "nobody raced"


def test_a_finished_graph_is_adopted_and_goes_on_growing(cluster):
    """A static preprocessor's graph, then a new topic through an actor, then one less."""
    finished = Preprocessor(LANGUAGE)
    finished.load([(10, "anything"), (20, "team=boston"), (30, "team=boston day=monday")])
    adopt(cluster, "r1", finished)
    with pytest.raises(ProtocolError, match="node 10 is in the graph already"):
        adopt(cluster, "r1", finished)
    central = cluster.preprocessor("r1", LANGUAGE)
    assert central.subscription({"day": "monday", "team": "boston"}) == 30
    new = central.subscription("day=monday")
    notes = [{"team": "boston", "day": "monday"}, '{"day": "monday"}', {"team": "new york"}]
    assert new == 31
    assert central.notifications(notes) == ([(30,), (31,), (10,)], 4)
    with pytest.raises(LanguageError, match="a notification has no wildcards"):
        central.notification({"team": "*"})
    with cluster.client("r2") as client:
        subscriber = client.subscriber("s")
        subscriber.subscribe("r1", new, DEADLINE)
        publisher = client.publisher("p")
        ray.get(cluster.authority("r1").remove.remote(30))
        # The actor's copy still has the node that has left.
        publish(publisher, central, "r1", notes[0], b"monday", DEADLINE)
        assert subscriber.get(DEADLINE).body == b"monday"
    assert central.notification(notes[0]) == ((20, 31), 5)
