"""`f3 trace --dry-run`: what the tables foretell is what brute force expects, and is explained."""

from __future__ import annotations

import itertools

import pytest
from traced_world import CALM, DEADLINE, ITEMS, ROOT, TREE, TracedWorld

from actors.telemetry.explain import explain, way_down
from routing.errors import ProtocolError
from routing.registry import protocols


def asker(made, nodes):
    """Asks a router of a live network, in its own loop."""

    def ask(name, header):
        host = made.hosts[name]
        return host.submit(lambda: explain(host.router, ROOT, header, nodes)).result(DEADLINE)

    return ask


def links_due(world: TracedWorld, item: int) -> set[tuple[str, str]]:
    """The links that a notification of an item must cross, from the root down."""
    found = set()
    for name, wanted in world.wants.items():
        if item in wanted:
            way = [*world.way(world.edges[name])[::-1], name]
            found |= set(itertools.pairwise(way))
    return found


@pytest.mark.parametrize("protocol", sorted(protocols()))
def test_the_links_foretold_are_those_that_are_due_and_each_has_its_reason(network, protocol):
    reached = labels = 0
    for seed in range(3):
        made = network(TREE, [ROOT], protocol=protocol, config=CALM)
        world = TracedWorld(made, seed)
        for item in ITEMS:
            nodes = world._low(n for n, items in world.nodes.items() if item in items)
            steps = way_down(asker(made, nodes), ROOT, made.hosts)
            found = {(step["router"], far) for step in steps for far in step["links"]}
            assert found == links_due(world, item)
            reached += len(found)
            for step in steps:
                for due in step["links"].values():
                    named = {node for node, _ in due["labels"]}
                    assert named <= set(step["header"])
                    # A header is made of the labels of the nodes in the one before.
                    told = {each for _, label in due["labels"] for each in label}
                    assert set(due["header"]) <= told or not due["labels"]
                    labels += bool(due["labels"])
    assert reached > 30
    assert labels == (reached if protocol.startswith("f3") else 0)


def test_what_cannot_be_explained_says_why(network):
    made = network([("r0", "r1")], [ROOT], config=CALM)
    made.insert(ROOT, 1)
    with pytest.raises(ProtocolError, match="node 9 is not in the content graph"):
        asker(made, (9,))(ROOT, None)
    with pytest.raises(ProtocolError, match="'r1' is not the rendezvous point of 'r0'"):
        asker(made, (1,))("r1", None)
    (step,) = way_down(asker(made, (1,)), ROOT, made.hosts)
    assert step == {"router": ROOT, "header": step["header"], "links": {}}
