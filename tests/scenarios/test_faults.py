"""What goes wrong, one thing at a time; most of these were found by random schedules first."""

from __future__ import annotations

import pytest

from routing import messages
from routing.api import (
    InsertNode,
    ProtocolError,
    Publication,
    Publish,
    RemoveNode,
    Subscribe,
    Unsubscribe,
)
from sim.network import Network
from tests.scenarios.chart import Chart

GRAPH = "0>1>2 0>3"


def lose_next(network: Network, src: str, dst: str, kind: type) -> None:
    """The network loses the next message of a kind on a link."""
    transmit = network._transmit

    def lossy(a: str, b: str, message: messages.Message) -> None:
        if (a, b) == (src, dst) and isinstance(message, kind):
            network._transmit = transmit  # type: ignore[method-assign]
            return
        transmit(a, b, message)

    network._transmit = lossy  # type: ignore[method-assign]


def test_lost_setups_are_told_again_from_scratch() -> None:
    """Upstream holds all three nodes already when they are asked for a second time."""
    chart = Chart("A-B B-F", GRAPH)
    lose_next(chart.network, "A", "B", messages.GraphSetup)
    for node in (1, 0, 2):
        chart.network.event("F", Subscribe("me", "A", node))
    chart.run(10.0)
    assert chart.confirmed == {("F", 0), ("F", 1), ("F", 2)}
    assert chart.edges("B") == "0>1 1>2"
    chart.publish([2])
    assert chart.delivered() == {"F": ["news"]}


def test_a_long_listing_is_answered_in_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A router that has lost everything asks for all of it at once; no frame could hold more."""
    chart = Chart("A-B B-F", "0>1 0>2 0>3 0>4>5")
    monkeypatch.setattr("routing.downstream._SETUP_WORDS", 8)
    chart.subscribe(*(f"F:{node}" for node in range(6)))
    chart.sent("GraphSetup")
    chart.network.crash("B")
    chart.run(1.0)
    chart.network.restart("B")
    chart.run(10.0)
    told = [line for line in chart.sent("GraphSetup") if line.startswith("A>B")]
    assert told == [
        "A>B GraphSetup >0> 0>1>",
        "A>B GraphSetup 0>2> 0>3>",
        "A>B GraphSetup 0>4> 4>5>",
    ]
    assert chart.edges("B") == "0>1 0>2 0>3 0>4 4>5"
    chart.publish([5])
    assert chart.delivered() == {"F": ["news"]}


@pytest.mark.parametrize(
    "kind", [messages.Subscribe, messages.Resubscribe, messages.SequenceRequest]
)
def test_lost_requests_are_repeated(kind: type) -> None:
    chart = Chart("A-B B-F", GRAPH).subscribe("F:1")
    lose_next(chart.network, "B", "A", kind)
    chart.subscribe("F:2")
    chart.run(10.0)
    assert ("F", 2) in chart.confirmed


@pytest.mark.parametrize("kind", [messages.Unsubscribe, messages.UnsubscribeAck])
def test_lost_unsubscriptions_leave_nothing_behind(kind: type) -> None:
    chart = Chart("A-B B-F", GRAPH).subscribe("F:1", "F:2")
    way = ("B", "A") if kind is messages.Unsubscribe else ("A", "B")
    lose_next(chart.network, *way, kind)
    chart.unsubscribe("F:2")
    chart.run(10.0)
    assert chart.labels("A") == "1 -> B:1"
    assert chart.labels("B") == "1 -> F:1"


@pytest.mark.parametrize("kind", [messages.Publish, messages.PublishAck])
def test_lost_publications_are_repeated_and_published_once(kind: type) -> None:
    chart = Chart("A-B B-F", GRAPH).subscribe("F:1")
    way = ("B", "A") if kind is messages.Publish else ("A", "B")
    lose_next(chart.network, *way, kind)
    chart.network.event("F", Publish("me", "A", (Publication((1,), b"once"),), 1))
    chart.run(10.0)
    assert chart.delivered() == {"F": ["once"]}
    assert chart.store.last == 1


def test_a_reply_that_takes_longer_than_the_retry_still_counts() -> None:
    chart = Chart("A-B B-F", GRAPH)
    links = chart.network._links
    for pair in links:
        links[pair] = type(links[pair])(latency=1.5)  # six seconds there and back; retry: two
    chart.network.event("F", Subscribe("me", "A", 1))
    chart.run(60.0)
    assert ("F", 1) in chart.confirmed


def test_a_restarted_router_asks_its_neighbours_at_once() -> None:
    chart = Chart("A-B B-C C-F", GRAPH).subscribe("F:1")
    chart.network.crash("B")
    chart.publish([2], "while B is down")
    chart.network.restart("B")
    chart.run(0.1)  # far less than a period
    assert chart.labels("B") == "1 -> C:1"
    chart.publish([2], "after")
    delivered = chart.delivered()
    assert sorted(delivered["F"]) == ["after", "while B is down"]


def test_a_restarted_rendezvous_point_knows_its_graph_log_and_numbers() -> None:
    chart = Chart("A-B B-F", GRAPH).subscribe("F:1")
    chart.publish([2], "before")
    chart.network.crash("A")
    chart.network.restart("A")
    chart.run(0.1)
    chart.publish([2], "after")
    assert chart.delivered() == {"F": ["before", "after"]}
    assert chart.store.numbers == {2: 2}


def test_what_the_log_has_dropped_is_reported_as_lost() -> None:
    chart = Chart("A-B B-F", GRAPH, capacity=2).subscribe("F:0")
    chart.network.cut("A", "B", noticed=False)
    for body in ("one", "two", "three", "four"):
        chart.publish([2], body)
    chart.network.heal("A", "B", noticed=False)
    chart.run(10.0)
    assert chart.delivered() == {"F": ["three", "four"]}
    assert "F lost" in chart.reports


def test_a_removed_node_takes_its_subscriptions_with_it() -> None:
    chart = Chart("A-B B-F", GRAPH).subscribe("F:1", "F:0")
    chart.network.event("A", RemoveNode(1))
    chart.run()
    assert chart.refused == {"F": "node 1 was removed from the content graph"}
    assert chart.labels("B") == "0 -> F:0"
    chart.publish([2])
    assert chart.delivered() == {"F": ["news"]}


def test_a_node_inserted_later_is_found_in_its_place() -> None:
    chart = Chart("A-B B-F B-G", GRAPH).subscribe("F:0", "F:2")
    chart.network.event("A", InsertNode(7, (1,), (2,)))
    chart.subscribe("G:7")
    assert chart.edges("B") == "0>7 7>2"
    chart.publish([7])
    assert chart.delivered() == {"F": ["news"], "G": ["news"]}


def test_whole_graphs_learn_of_nodes_inserted_above_known_ones_while_away() -> None:
    chart = Chart("A-B B-F", "0>2", "stored-graph").subscribe("F:2")
    chart.network.cut("A", "B")
    chart.network.event("A", InsertNode(1, (0,), (2,)))
    chart.network.heal("A", "B")
    chart.run(3.0)
    chart.subscribe("F:1").unsubscribe("F:2")
    assert chart.edges("F") == "0>1 1>2"
    chart.publish([2])
    assert chart.delivered() == {"F": ["news"]}


def test_a_placement_found_in_an_older_graph_is_refused() -> None:
    chart = Chart("A-B", GRAPH)
    version = chart.store.version
    chart.network.event("A", InsertNode(8, (0,), (), version))
    with pytest.raises(ProtocolError, match=f"graph version {version}; the graph is at"):
        chart.network.event("A", InsertNode(9, (0,), (), version))
    assert 9 not in chart.store.graph


def test_subscriptions_follow_when_the_tree_changes() -> None:
    """A-B-D breaks between A and B; D goes by C from now on, and nothing is lost."""
    chart = Chart("A-B B-D A-C C-D D-F", GRAPH).subscribe("F:1")
    network = chart.network
    assert chart.labels("B") == "1 -> D:1"
    network.cut("A", "B")
    chart.publish([2], "lost on the way")
    for router, hop in (("D", "C"), ("B", "D"), ("F", "D"), ("C", "A")):
        network.reroute(router, {"A": hop})
    chart.run(3.0)
    chart.publish([2], "by the new way")
    assert sorted(chart.delivered()["F"]) == ["by the new way", "lost on the way"]
    assert chart.labels("B") == ""
    assert chart.labels("C") == "1 -> D:1"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Subscribe("me", "nowhere", 1), "unknown namespace 'nowhere' (known here: A)"),
        (
            Publish("me", "nowhere", (Publication((1,), b""),)),
            "unknown namespace 'nowhere' (known here: A)",
        ),
        (Unsubscribe("me", "A", 3), "'me' has no subscription to node 3 of 'A'"),
        (Subscribe("me", "A", -1), "-1 is no node identifier"),
        (InsertNode(8, (), ()), "'F' is no rendezvous point and has no graph"),
    ],
)
def test_illegal_requests_raise_and_change_nothing(event: object, reason: str) -> None:
    chart = Chart("A-B B-F", GRAPH).subscribe("F:1")
    chart.sent()
    with pytest.raises(ProtocolError) as caught:
        chart.network.event("F", event)  # type: ignore[arg-type]
    assert reason in str(caught.value)
    chart.run()
    assert chart.sent() == []
    chart.publish([2])
    assert chart.delivered() == {"F": ["news"]}
