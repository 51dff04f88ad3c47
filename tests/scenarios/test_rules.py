"""Where the thesis's pseudo-code (Kulik 2004, Figures 3-15 to 3-29) is not exact.

Each test is the smallest example that tells a literal reading from the exact rule; the numbers
are those of ARCHITECTURE.md. `0,1>2` means that both 0 and 1 cover 2.
"""

from __future__ import annotations

from routing.api import Subscribe, Unsubscribe
from routing.content_graph import ContentGraph
from routing.protocols.minimal_graph import MinimalTable
from tests.scenarios.chart import Chart, Sheet, parse_graph


def test_rule_1_a_label_that_names_something_else_is_no_reason_to_stop() -> None:
    sheet = Sheet("0,1>2", "A+0 B+2 A+1")
    assert str(sheet) == "0 -> A:0\n1 -> A:1\n2 -> A:0,1 B:2"


def test_rule_2_every_neighbour_with_a_label_is_due() -> None:
    sheet = Sheet("0>1", "A+0 B+1")
    assert sheet.table.route((1,)) == {"A": (0,), "B": (1,)}


def test_rule_3_a_node_that_enters_inherits_the_lowest_of_its_parents_labels() -> None:
    sheet = Sheet("0>1,2>3", "A+0 A+1 B+2 B+3")
    assert str(sheet) == "0 -> A:0\n1 -> A:1\n2 -> A:0 B:2\n3 -> A:1 B:3"


def test_rule_4_unsubscription_visits_parents_first() -> None:
    sheet = Sheet("0>1>2>4 0>3>4", "A+0 B+1 B+2 B+3 B+4 C+0 A-0")
    assert "A" not in str(sheet)


def test_rule_4_merging_takes_the_lowest() -> None:
    sheet = Sheet("0>1,2>3", "A+0 A+1 A+2 B+3 C+1 A-1")
    assert str(sheet).endswith("3 -> A:2 B:3 C:1")


def test_rule_5_a_header_of_several_nodes_is_reduced() -> None:
    sheet = Sheet("0>1>2 0>3", "A+0 A+1 B+2 B+3")
    assert sheet.table.route((2, 3)) == {"A": (1,), "B": (2, 3)}


def test_rule_6_minimal_graphs_are_walked_in_reverse_topological_order() -> None:
    sheet = Sheet("0>1>2 0>3", "A+0 A+1 B+2 B+3", MinimalTable())
    assert sheet.table.route((2, 3)) == {"A": (1,), "B": (2, 3)}


def test_rule_7_a_path_may_lead_through_nodes_that_are_not_held() -> None:
    graph = parse_graph("0>1>2")
    assert graph.position(2, {0}) == ({0}, set())
    assert graph.position(0, {2}) == (set(), {2})


def test_rule_7_the_first_held_node_on_a_path_need_not_be_the_lowest() -> None:
    graph = parse_graph("0>1,2>3")
    assert graph.position(3, {0, 1}) == ({1}, set())
    assert graph.position(0, {1, 3}) == (set(), {1})


def test_rule_8_a_setup_links_both_ways_and_replaces_the_short_cut() -> None:
    graph = ContentGraph()
    graph.insert(0, (), ())
    graph.insert(2, (0,), ())
    graph.insert(1, (0,), (2,))
    assert (graph.children(0), graph.parents(2)) == ({1}, {1})


def test_rule_9_a_removed_node_leaves_its_parents_above_its_children() -> None:
    sheet = Sheet("0>1>2", "A+0 A+1 A+2 A-1 B+0")
    assert str(sheet) == "0 -> A:0 B:0\n2 -> A:2 B:0"


def test_rule_10_the_first_subscription_to_a_node_asks_upstream_once() -> None:
    chart = Chart("A-B B-C C-F C-G", "0>1")
    chart.network.event("F", Subscribe("me", "A", 1))
    chart.network.event("G", Subscribe("me", "A", 1))
    chart.run()
    requests = [line for line in chart.sent("Subscribe", "Resubscribe") if line[:3] == "C>B"]
    assert requests == ["C>B Resubscribe has  wants 1"]
    assert chart.confirmed == {("F", 1), ("G", 1)}


def test_rule_11_the_setup_goes_before_the_first_notification_that_needs_it() -> None:
    chart = Chart("A-B B-F", "0>1")
    chart.network.event("F", Subscribe("me", "A", 0))
    for _ in range(12):
        chart.publish([1])
    lines = [line for line in chart.sent("GraphSetup", "Notify") if line.startswith("A>B")]
    assert lines[0].startswith("A>B GraphSetup")
    assert "B unknown-node" not in chart.reports


def test_rule_12_a_node_stays_until_no_header_can_name_it_any_more() -> None:
    """0>1, F wants 0, G gives 1 up while a notification for 1 is between A and B."""
    chart = Chart("A-B B-F B-G", "0>1").subscribe("F:0", "G:1")
    chart.network.event("G", Unsubscribe("me", "A", 1))
    chart.run(0.0015)  # B has heard of it and passed it on
    assert chart.labels("B") == "0 -> F:0\n1 -> F:0"
    chart.publish([1])
    assert chart.delivered() == {"F": ["news"]}
    assert chart.labels("B") == "0 -> F:0"
    assert chart.reports == []


def test_rule_13_a_node_that_was_given_up_is_asked_for_anew() -> None:
    chart = Chart("A-B B-F B-G", "0>1").subscribe("G:1")
    chart.sent()
    chart.network.event("G", Unsubscribe("me", "A", 1))
    chart.network.event("F", Subscribe("me", "A", 1))
    chart.run()
    lines = [line for line in chart.sent() if line[:3] in ("B>A", "A>B")]
    order = [line for line in lines if "equence" not in line]
    assert order == [
        "B>A Unsubscribe 1",
        "A>B UnsubscribeAck 1",
        "B>A Subscribe 1",
        "A>B GraphSetup >1>",
    ]
    chart.publish([1])
    assert chart.delivered() == {"F": ["news"]}


def test_rule_14_a_setup_may_name_a_node_that_is_being_given_up() -> None:
    """0>1>2: the set-up of 2 says that 1 is its parent, and 1 is just going."""
    chart = Chart("A-B B-F B-G", "0>1>2").subscribe("F:0", "G:1")
    chart.network.event("F", Subscribe("me", "A", 2))
    chart.run(0.0045)  # B's request for 2 is on its way to A
    chart.network.event("G", Unsubscribe("me", "A", 1))
    chart.run()
    assert "A>B GraphSetup 1>2>" in chart.sent("GraphSetup")
    assert chart.edges("B") == "0>2"
    chart.publish([2])
    assert chart.delivered() == {"F": ["news"]}


def test_rule_15_a_descendant_first_heard_of_later_starts_at_one() -> None:
    chart = Chart("A-B B-F", "0>1").subscribe("F:0")
    chart.publish([1]).publish([1])
    assert chart.delivered() == {"F": ["news", "news"]}
    assert chart.reports == []


def test_rule_16_traffic_is_ordered_by_containment_and_matched_by_overlap() -> None:
    """Exits 1-4 cover 1-2 and 3-4; an alert for 2-3 is in none of them and meets all three."""
    chart = Chart("A-B B-F B-G B-H", "14>12 14>34").subscribe("F:14", "G:12", "H:34")
    chart.sent()
    chart.publish([12, 34], "jam at exits 2 to 3")
    assert "A>B Notify 12,34" in chart.sent("Notify")
    assert chart.delivered() == {host: ["jam at exits 2 to 3"] for host in "FGH"}
