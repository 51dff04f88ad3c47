"""The systems that F3 was compared with, by their definitions (Kulik 2004, section 4.1.1)."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from routing.api import Config, InsertNode, Send, Subscribe, View
from routing.batch import Batch
from routing.content_graph import ContentGraph
from routing.errors import ProtocolError
from routing.messages import Notify, Setup
from routing.registry import protocol
from routing.router import TreeRouter
from routing.store import Store
from routing.table import Table

#: Games 3 and 4 of team 1, games 4 and 5 of team 2, and 0 for all of them.
GRAPH = ContentGraph.of_parents({0: (), 1: (0,), 2: (0,), 3: (1,), 4: (1, 2), 5: (2,)})


def table(name: str, subscriptions: dict[str, tuple[int, ...]]) -> Table:
    cls = protocol(name)
    assert issubclass(cls, TreeRouter)
    made = cls.table()
    for node in sorted(set(chain(*subscriptions.values()))):
        for setup in made.root_setups(GRAPH, made.topic(node)):
            made.insert(Setup(node, setup.parents, setup.children))
    for neighbor, nodes in subscriptions.items():
        for node in nodes:
            made.attach(node, neighbor)
    return made


def copies(made: Table, lowest: tuple[int, ...]) -> dict[str, int]:
    """How many copies each neighbour receives of one notification."""
    headers = made.root_headers(GRAPH, lowest)
    routed = made.route_batch(Batch.of([(header, 1, b"") for header in headers]))
    return {neighbor: len(batch) for neighbor, batch in routed.batches.items()}


def test_overlapping_copies_once_per_relevant_topic_that_is_wanted() -> None:
    made = table("overlapping-id", {"a": (0, 1, 4), "b": (2, 3), "c": (5,)})
    assert copies(made, (4,)) == {"a": 3, "b": 1}
    assert copies(made, (5,)) == {"a": 1, "b": 1, "c": 1}
    assert all(len(header) == 1 for header in made.root_headers(GRAPH, (4,)))


def test_unicast_copies_once_per_host() -> None:
    made = protocol("unicast")
    assert issubclass(made, TreeRouter)
    name = made.table().identifier
    wishes = {
        "a": (name(0, "h1"), name(4, "h1"), name(1, "h2")),
        "b": (name(2, "h3"), name(3, "h3"), name(3, "h4")),
    }
    unicast = table("unicast", wishes)
    assert copies(unicast, (4,)) == {"a": 2, "b": 1}
    assert copies(unicast, (3,)) == {"a": 2, "b": 2}
    assert unicast.covering((name(0, "h1"), name(4, "h1"))) == {0, 4}


def test_disjunctive_lists_the_categories_of_a_subscription() -> None:
    made = table("disjunctive-id", {"a": (0,), "b": (2, 4)})
    assert made.setups(2, "c") == [Setup(2, (), (4, 5))]
    assert copies(made, (4,)) == {"a": 1, "b": 1}
    assert copies(made, (3,)) == {"a": 1}
    made.detach(2, "b")
    assert copies(made, (4,)) == {"a": 1, "b": 1}
    assert copies(made, (5,)) == {"a": 1}
    assert made.size()["categories"] == 6


def test_disjunctive_refuses_a_node_that_comes_too_late() -> None:
    view = View((), {}, random.Random(0), config=Config(), store=Store())
    root = protocol("disjunctive-id")("r", view)
    root.handle(InsertNode(1, (), ()), 0.0)
    root.handle(Subscribe("client", "r", 1), 0.0)
    with pytest.raises(ProtocolError, match="node 2 comes too late"):
        root.handle(InsertNode(2, (1,), ()), 0.0)


def test_unicast_refuses_a_topic_that_it_cannot_number() -> None:
    view = View(("up",), {"r": "up"}, random.Random(0))
    host = protocol("unicast")("h", view)
    with pytest.raises(ProtocolError, match="65536 is too large"):
        host.handle(Subscribe("client", "r", 65536), 0.0)


def test_copies_of_one_notification_share_a_position() -> None:
    batch = Batch.of([((1,), 7, b"x"), ((2,), 7, b"x"), ((1,), 8, b"y")])
    batch.validate()
    with pytest.raises(ProtocolError, match="fall"):
        Batch.of([((1,), 8, b"x"), ((2,), 7, b"x")]).validate()


def test_copies_leave_the_rendezvous_point_in_one_message() -> None:
    """A position that is split over two messages would look stale to the second one's receiver."""
    from sim.network import Link, Network
    from sim.world import World

    meanings = {("r", node): frozenset([0, node]) for node in range(1, 4)}
    network = Network(
        protocol("overlapping-id"),
        {("r", "h"): Link()},
        {"r": {}, "h": {"r": "r"}},
        {"r": Store()},
    )
    world = World(network, meanings)
    sent: list[Notify] = []
    network.observers.append(
        lambda _, effect, now: (
            sent.append(effect.message)
            if isinstance(effect, Send) and isinstance(effect.message, Notify)
            else None
        )
    )
    world.client("c", "h")
    for node in range(1, 4):
        world.insert("r", node)
        world.subscribe("c", "r", node)
    network.settle()
    world.publish("c", "r", 0)
    network.settle()
    world.check_at_rest()
    assert [len(message.batch) for message in sent] == [3]
    assert world.oracle.deliveries == 1
