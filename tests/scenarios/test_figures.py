"""The worked examples of the thesis's chapter 3 (Kulik 2004), figure by figure.

The baseball graph of Figure 3-3 as far as the examples use it: 1 is all of baseball, 4 and 10
are two teams, 31 is the games between them, and 7 is another team. The pictures' numbers that
the text does not give are ours.
"""

from __future__ import annotations

from tests.scenarios.chart import Chart, Sheet

BASEBALL = "1>4>31 1>10>31 1>7"


def test_figure_3_9_content_lists() -> None:
    """The header lists all nodes that match; the router looks each of them up."""
    chart = Chart("A-F A-G", BASEBALL, "content-list")
    chart.subscribe("F:31", "G:4")
    chart.sent()
    chart.publish([31], "Boston beats New York")
    assert chart.sent("Notify") == ["A>F Notify 1,4,10,31", "A>G Notify 1,4,10,31"]
    assert chart.delivered() == {"F": ["Boston beats New York"], "G": ["Boston beats New York"]}
    chart.publish([7], "another game")
    assert chart.delivered() == {}


def test_figure_3_10_content_lists_over_several_routers() -> None:
    """A subscription travels up once; a notification is copied only where ways part."""
    chart = Chart("A-B B-C C-F C-G B-D D-H", BASEBALL, "content-list")
    chart.subscribe("F:31")
    chart.sent()
    chart.subscribe("G:31")
    assert chart.sent("Subscribe", "Resubscribe") == ["G>C Resubscribe has  wants 31"]
    chart.subscribe("H:10")
    chart.sent()
    chart.publish([31])
    assert chart.sent("Notify") == [
        "A>B Notify 1,4,10,31",
        "B>C Notify 1,4,10,31",
        "B>D Notify 1,4,10,31",
        "C>F Notify 1,4,10,31",
        "C>G Notify 1,4,10,31",
        "D>H Notify 1,4,10,31",
    ]


def test_figure_3_13_routers_that_store_graphs() -> None:
    """The header names the lowest node; the router walks its whole graph upward."""
    chart = Chart("A-F A-G", BASEBALL, "stored-graph")
    chart.subscribe("F:31", "G:4")
    assert chart.edges("A") == "1>4 1>7 1>10 4>31 10>31"
    chart.sent()
    chart.publish([31])
    assert chart.sent("Notify") == ["A>F Notify 31", "A>G Notify 31"]
    assert set(chart.delivered()) == {"F", "G"}


def test_figure_3_16_minimal_graphs() -> None:
    """Only nodes subscribed to are stored, and G's header is changed to its own 4."""
    chart = Chart("A-F A-G", BASEBALL, "minimal-graph")
    chart.subscribe("F:31")
    assert chart.edges("A") == ""
    chart.subscribe("G:4")
    assert chart.edges("A") == "4>31"
    chart.sent()
    chart.publish([31])
    assert chart.sent("Notify") == ["A>F Notify 31", "A>G Notify 4"]


def test_figure_3_19_labels_as_subscriptions_are_added() -> None:
    sheet = Sheet(BASEBALL, "G+31")
    assert str(sheet) == "31 -> G:31"
    sheet.do("F+4")
    assert str(sheet) == "4 -> F:4\n31 -> F:4 G:31"
    sheet.do("F+1")
    assert str(sheet) == "1 -> F:1\n4 -> F:4\n31 -> F:4 G:31"
    sheet.do("H+10")
    assert str(sheet) == "1 -> F:1\n4 -> F:4\n10 -> F:1 H:10\n31 -> F:4 G:31 H:10"
    sheet.do("H+4")
    assert str(sheet) == "1 -> F:1\n4 -> F:4 H:4\n10 -> F:1 H:10\n31 -> F:4 G:31 H:4,10"
    assert sheet.table.route((31,)) == {"F": (4,), "G": (31,), "H": (4, 10)}


def test_figure_3_20_f3_forwarding() -> None:
    """The label says who is due a notification for 31, and with which header."""
    chart = Chart("A-F A-G", BASEBALL)
    chart.subscribe("F:31")
    assert chart.labels("A") == "31 -> F:31"
    chart.subscribe("G:4")
    assert chart.labels("A") == "4 -> G:4\n31 -> F:31 G:4"
    chart.sent()
    chart.publish([31])
    assert chart.sent("Notify") == ["A>F Notify 31", "A>G Notify 4"]
    assert set(chart.delivered()) == {"F", "G"}


def test_figure_3_21_f3_over_several_routers() -> None:
    """Each router knows only what was asked of it, and headers change on the way."""
    chart = Chart("A-B B-C C-F C-G B-D D-H", BASEBALL)
    chart.subscribe("F:31", "G:4", "H:10")
    assert chart.labels("B") == "4 -> C:4\n10 -> D:10\n31 -> C:31 D:10"
    assert chart.labels("C") == "4 -> G:4\n31 -> F:31 G:4"
    assert chart.labels("D") == "10 -> H:10"
    chart.sent()
    chart.publish([31])
    assert chart.sent("Notify") == [
        "A>B Notify 31",
        "B>C Notify 31",
        "B>D Notify 10",
        "C>F Notify 31",
        "C>G Notify 4",
        "D>H Notify 10",
    ]
    assert set(chart.delivered()) == {"F", "G", "H"}


def test_figure_3_25_graph_setup() -> None:
    """A request for a new node climbs to the rendezvous point; set-ups come back down."""
    chart = Chart("A-B B-C C-F C-G", BASEBALL)
    chart.subscribe("F:31")
    chart.sent()
    chart.subscribe("G:4")
    assert chart.sent("Subscribe", "Resubscribe", "GraphSetup") == [
        "G>C Resubscribe has  wants 4",
        "C>B Subscribe 4",
        "B>A Subscribe 4",
        "A>B GraphSetup >4>31",
        "B>C GraphSetup >4>31",
        "C>G GraphSetup >4>",
    ]
    assert chart.edges("C") == "4>31"
    assert chart.labels("C") == "4 -> G:4\n31 -> F:31 G:4"
    assert ("G", 4) in chart.confirmed


def test_figure_3_27_resubscription() -> None:
    """Every period a router refreshes its subscriptions and is acknowledged (by digest)."""
    chart = Chart("A-B B-C C-F C-G", BASEBALL)
    chart.subscribe("F:31", "G:4")
    chart.sent()
    chart.run(3.0)
    sent = chart.sent()
    assert {line for line in sent if "Resubscribe " in line} == {
        "B>A Resubscribe digest",
        "C>B Resubscribe digest",
        "F>C Resubscribe digest",
        "G>C Resubscribe digest",
    }
    assert {line.split()[0] for line in sent if line.endswith("ResubscribeAck")} == {
        "A>B",
        "B>C",
        "C>F",
        "C>G",
    }


def test_figure_3_28_silence_interrupts_and_then_ends_a_subscription() -> None:
    chart = Chart("A-B B-F", BASEBALL)
    chart.subscribe("F:31")
    chart.network.crash("F", noticed=False)
    chart.run(5.0)
    assert "B interrupted" in chart.reports
    assert chart.labels("B") == "31 -> F:31"
    chart.run(5.0)
    assert "B expired" in chart.reports
    assert chart.labels("B") == chart.labels("A") == ""


def test_figure_3_30_unsubscription() -> None:
    """G leaves: its labels go, and so does the node, router by router up the tree."""
    chart = Chart("A-B B-C C-F C-G", BASEBALL)
    chart.subscribe("F:31", "G:4")
    chart.sent()
    chart.unsubscribe("G:4")
    assert chart.sent("Unsubscribe", "UnsubscribeAck") == [
        "G>C Unsubscribe 4",
        "C>B Unsubscribe 4",
        "C>G UnsubscribeAck 4",
        "B>A Unsubscribe 4",
        "B>C UnsubscribeAck 4",
        "A>B UnsubscribeAck 4",
    ]
    for router in "ABC":
        assert chart.labels(router) in ("31 -> B:31", "31 -> C:31", "31 -> F:31")
    chart.publish([31])
    assert chart.delivered() == {"F": ["news"]}


def test_figure_3_31_sequence_numbers() -> None:
    """Before it subscribes, G learns the numbers of 4 and of its descendant 31."""
    chart = Chart("A-B B-G", BASEBALL)
    chart.publish([31]).publish([31]).publish([4])
    chart.sent()
    chart.subscribe("G:4")
    sent = chart.sent("SequenceRequest", "SequenceReply")
    assert sent[-1] == "B>G SequenceReply 4=1 31=2"


def test_figure_3_32_loss_detection() -> None:
    """A gap in the numbers of a node shows that a notification is missing; the log has it."""
    chart = Chart("A-B B-G", BASEBALL)
    chart.subscribe("G:4")
    chart.publish([31], "first")
    chart.network.cut("A", "B", noticed=False)
    chart.publish([31], "second")
    chart.network.heal("A", "B", noticed=False)
    assert chart.delivered() == {"G": ["first"]}
    chart.sent()
    chart.publish([31], "third")
    assert chart.delivered() == {"G": ["third", "second"]}
    assert "G recover" in chart.reports
    assert "G>B RecoverRequest" in chart.sent()


def test_section_3_4_9_the_loss_of_the_last_notification_is_noticed_too() -> None:
    """No later number shows it: the acknowledgements of resubscription do."""
    chart = Chart("A-B B-G", BASEBALL)
    chart.subscribe("G:4")
    chart.network.cut("A", "B", noticed=False)
    chart.publish([31], "last")
    chart.network.heal("A", "B", noticed=False)
    assert chart.delivered() == {}
    chart.run(6.0)
    assert chart.delivered() == {"G": ["last"]}


def test_section_6_1_bogus_identifiers_leave_nothing_behind() -> None:
    chart = Chart("A-B B-C C-F", BASEBALL)
    chart.subscribe("F:999")
    assert chart.refused == {"F": "node 999 is not in the content graph"}
    for router in "ABCF":
        assert chart.space(router).nodes.states == {}
        assert chart.edges(router) == ""


def test_section_6_1_publishers_that_are_not_on_the_access_list() -> None:
    chart = Chart("A-B B-F", BASEBALL, access={"somebody else": b"key"})
    chart.subscribe("F:31")
    chart.publish([31])
    assert chart.refused == {"A": "publisher 'source' is not on the access list"}
    assert chart.delivered() == {}
