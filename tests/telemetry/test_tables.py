"""What `f3 status` and `f3 top` show, from the statuses of live hosts, and their metrics."""

from __future__ import annotations

from rich.console import Console
from traced_world import CALM, DEADLINE, ROOT, TREE, until

from actors.measure import Spared
from actors.telemetry.metrics import metrics_of
from f3.commands.tables import links_table, remarks, routers_tables


def cells(table) -> list[list[str]]:
    """The rows of a table as text, its headings first."""
    rows = [[str(column.header) for column in table.columns]]
    rows += map(list, zip(*(column.cells for column in table.columns), strict=True))
    return rows


def statuses(made) -> dict:
    return {name: host.status() for name, host in sorted(made.hosts.items())}


def traffic(made, count: int) -> None:
    client = made.clients[0] if made.clients else made.client("r3", "h")
    for future in [client.publisher("p").send(ROOT, (1,), b"") for _ in range(count)]:
        future.result(DEADLINE)


def shown(tables) -> dict[str, dict[str, str]]:
    """Per router, everything that the tables say of it, by heading."""
    found: dict[str, dict[str, str]] = {}
    for heading, *rows in map(cells, tables):
        for row in rows:
            found.setdefault(row[0], {}).update(zip(heading, row, strict=True))
    return found


def test_every_figure_of_the_tables_is_that_of_the_statuses(network):
    made = network(TREE, [ROOT], config=CALM)
    made.insert(ROOT, 1)
    made.client("r3", "h").subscriber("s").subscribe(ROOT, 1, DEADLINE)
    traffic(made, 50)
    before = statuses(made)
    found = shown(routers_tables(before, [ROOT]))
    assert list(found) == ["r0 *", "r1", "r2", "r3", "r4", "r5"]
    of_r1, state = found["r1"], before["r1"]["state"]
    assert (of_r1["links"], of_r1["of"]) == ("3/3", "60000")
    assert (of_r1["nodes"], of_r1["edges"], of_r1["labels"]) == ("1", "0", "1")
    assert of_r1["table B"] == str(state["bytes"])
    assert state["bytes"] > 0
    assert min(int(of_r1[key]) for key in ("sent", "received", "refresh B", "batch")) > 0
    assert float(of_r1["hop p50"]) >= float(of_r1["wait p50"]) > 0
    traffic(made, 50)
    later = {**statuses(made), "r5": None}
    tables = routers_tables(later, [ROOT], {**before, "r4": None}, 0.5)
    links = [s["r1"]["links"].values() for s in (before, later)]
    sent = [sum(link["messages_sent"] for link in each) for each in links]
    found = shown(tables)
    assert found["r1"]["sent"] == f"{2 * (sent[1] - sent[0]):,}"
    assert found["r4"]["sent"] == ""
    assert found["r5"]["links"] == "no answer"
    assert max(Console(width=200).measure(table).maximum for table in tables) <= 90


def test_links_are_listed_with_their_queues_and_drops_have_reasons(network):
    made = network([("r0", "r1")], [ROOT], config=CALM)
    made.insert(ROOT, 1)
    found = statuses(made)
    found["r1"]["links"]["r0"] |= {"queued_messages": 7, "frames_bad": 2, "messages_cleared": 1}
    heading, *rows = cells(links_table(found))
    assert [row[:3] for row in rows] == [["r1", "r0", "router"], ["r0", "r1", "router"]]
    assert rows[0][heading.index("queued")] == "7"
    assert rows[0][heading.index("of")] == "20000"
    assert rows[0][-1] == "messages_cleared 1, frames_bad 2"
    assert rows[1][-1] == "0"
    found["r0"]["telemetry"] |= {"dropped": 3, "trouble": "no export", "endpoint": "x"}
    for name in ("r2", "r3", "r4"):
        found[name] = found["r0"]
    found["r1"]["telemetry"] |= {"trouble": "no export", "metrics": False, "endpoint": "x"}
    summary, *rest = remarks(found)
    told = "5 of 5 routers answer; 5 of 5 ends of links are up; 7 messages queued, 3 dropped; "
    assert summary.startswith(told)
    assert rest == [
        "r0, r2, r3, r4: 3 spans were dropped",
        "r0, r1, r2, r3 and 1 more: no export",
        "r1: dropped messages_cleared 1, frames_bad 2",
        "r1: x takes no metrics, so none are sent",
    ]


def test_a_status_has_every_metric_that_the_documentation_names(network):
    made = network([("r0", "r1")], [ROOT], config=CALM)
    made.insert(ROOT, 1)
    client = made.client("r1", "h")
    client.subscriber("s").subscribe(ROOT, 1, DEADLINE)
    traffic(made, 20)
    r1 = made.hosts["r1"]
    until(lambda: r1.status()["batch_size"]["count"], "a batch")
    found = {metric.name: metric for metric in metrics_of(r1.status())}
    per_link = [name for name in found if name.startswith(("messaging.f3.queue", "messaging.f3.l"))]
    for name in set(per_link) - {"messaging.f3.queue.wait"}:
        links = {point.attributes["link"] for point in found[name].data.data_points}
        assert links == {"r0", "h"}, name
    kinds = {p.attributes["kind"]: p.value for p in points(found, "table.size")}
    assert {"nodes", "edges", "labels", "subscriptions"} <= set(kinds)
    assert kinds["nodes"] == 1
    assert points(found, "table.bytes")[0].value == r1.status()["state"]["bytes"] > 0
    assert points(found, "queue.capacity")[0].value == 20_000
    reasons = {point.attributes["reason"] for point in points(found, "link.dropped")}
    assert {"notifications_dropped", "messages_cleared", "frames_bad"} <= reasons
    for name in ("hop.duration", "queue.wait", "batch.size"):
        (histogram,) = points(found, name)
        assert histogram.count == sum(histogram.bucket_counts) > 0
        assert histogram.sum > 0
    for name in ("restarts", "spans.dropped", "reports", "unroutable", "process.memory"):
        assert f"messaging.f3.{name}" in found


def points(found: dict, name: str) -> list:
    return list(found[f"messaging.f3.{name}"].data.data_points)


def test_a_dear_answer_is_kept_for_a_while_and_a_cheap_one_is_not(monkeypatch):
    clock, asked = [0.0], []
    monkeypatch.setattr("actors.measure.time.perf_counter", lambda: clock[0])

    def ask(cost):
        clock[0] += cost
        asked.append(clock[0])
        return len(asked)

    cheap, dear = Spared(lambda: ask(0.0001)), Spared(lambda: ask(0.01))
    assert [cheap.get(), cheap.get()] == [1, 2]
    assert [dear.get(), dear.get()] == [3, 3]
    clock[0] += 0.49
    assert dear.get() == 3
    clock[0] += 0.02
    assert dear.get() == 4
