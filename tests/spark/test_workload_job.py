"""What the Spark job writes, read back and compared with the scenario's own arithmetic."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import SMALL, Make
from workloads import stages
from workloads.describe import as_text, description
from workloads.errors import ScenarioError, WorkloadError
from workloads.plot import draw
from workloads.population import EVENTS, Population
from workloads.reader import Workload, each_event, each_notification, each_subscription
from workloads.scenario import load_scenario, scenario_names, scenario_of
from workloads.stages import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def population_of(workload: Workload) -> Population:
    """The population that the manifest speaks of."""
    said = workload.manifest["scenario"]
    table = {key: value for key, value in said.items() if key != "name"}
    return Population(scenario_of(said["name"], table), workload.manifest["seed"])


@pytest.mark.parametrize("name", SMALL)
def test_files_hold_what_the_scenario_says(name: str, small: Make) -> None:
    workload = small(name)
    population = population_of(workload)
    everyone = np.arange(population.total)
    _, ever = population.subscriptions(everyone)
    topics = np.unique(ever)
    check_graph(workload, population, topics)
    check_subscriptions(workload, population, topics)
    check_notifications(workload, population, topics)
    check_churn(workload, population, topics)
    workload.verify()


def check_graph(workload: Workload, population: Population, topics: Any) -> None:
    graph = workload.graph
    assert graph.text.tolist() == population.kind.text(topics).to_pylist()
    child, parent = population.kind.order(topics).parents(0, len(topics))
    edges = set(zip(parent.tolist(), child.tolist(), strict=True))
    assert set(zip(graph.parent.tolist(), graph.child.tolist(), strict=True)) == edges
    assert len(graph.parent) == len(edges) == workload.counts["edges"]
    content_graph = graph.content_graph()
    content_graph.check()
    assert content_graph.edges() == len(edges)
    which, at_start = population.subscriptions(np.arange(population.initial))
    assert graph.subscribers.tolist() == [int((at_start == topic).sum()) for topic in topics]
    assert len(which) == workload.counts["subscriptions"]


def check_subscriptions(workload: Workload, population: Population, topics: Any) -> None:
    subscribers = np.arange(population.initial)
    which, wanted = population.subscriptions(subscribers)
    routers = population.router(subscribers)[which]
    nodes = np.searchsorted(topics, wanted)
    expected = list(zip(routers.tolist(), which.tolist(), nodes.tolist(), strict=True))
    found = [
        (s.router, s.subscriber, s.node)
        for s in each_subscription(workload.subscriptions(batch_rows=7))
    ]
    assert found == sorted(expected), "router by router, each by subscriber"
    assert max(len(batch.node) for batch in workload.subscriptions(batch_rows=7)) == 7
    one = list(each_subscription(workload.subscriptions(router=3)))
    assert [(s.router, s.subscriber, s.node) for s in one] == [
        row for row in sorted(expected) if row[0] == 3
    ]


def check_notifications(workload: Workload, population: Population, topics: Any) -> None:
    numbers = np.arange(1_000)
    notices = population.notices(numbers)
    rows, nodes = population.kind.order(topics).headers(notices)
    headers: list[set[int]] = [set() for _ in numbers]
    for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
        headers[row].add(node)
    found = list(each_notification(workload.notifications(batch_rows=64)))
    time, router = population.published(numbers)
    assert [n.notification for n in found] == numbers.tolist()
    assert [n.time_us for n in found] == time.tolist()
    assert [n.router for n in found] == router.tolist()
    assert [n.text for n in found] == population.kind.text(notices).to_pylist()
    assert [n.nodes for n in found] == [tuple(sorted(header)) for header in headers]


def check_churn(workload: Workload, population: Population, topics: Any) -> None:
    events = population.churn(np.arange(population.total))
    expected = []
    for row, subscriber in enumerate(events.subscriber.tolist()):
        _, wanted = population.subscriptions(np.array([subscriber]))
        for node in np.searchsorted(topics, wanted).tolist():
            expected.append(
                (
                    int(events.time_us[row]),
                    EVENTS[events.event[row]],
                    subscriber,
                    int(events.from_router[row]),
                    int(events.to_router[row]),
                    node,
                )
            )
    found = [tuple(event) for event in each_event(workload.churn(batch_rows=10))]
    assert found == sorted(expected, key=lambda event: (event[0], event[2], event[5]))
    assert found, "the scenario must have churn"


def test_partitions_do_not_change_the_data(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files, so that every table has several; and enough subscribers for all topics."""
    for name, rows in (("NODES", 200), ("CHILDREN", 100), ("NOTIFICATIONS", 300), ("CHURN", 900)):
        monkeypatch.setattr(stages, f"_{name}_PER_FILE", rows)
    size = {"subscribers.count": 30_000, "subscribers.routers": 10, "churn.moves": 0.2}
    one = make("baseball-30", "one", parameters=size, partitions=1)
    seven = make("baseball-30", "seven", parameters=size, partitions=7)
    assert contents(one.manifest) == contents(seven.manifest)
    assert one.counts == seven.counts
    other = make("baseball-30", "other", parameters=size, seed=2)
    assert contents(one.manifest).keys() == contents(other.manifest).keys()
    assert contents(one.manifest) != contents(other.manifest)
    for table in ("subscriptions", "nodes", "edges", "notifications", "churn"):
        assert sum(name.startswith(f"{table}/") for name in one.manifest["files"]) > 2
        assert sorted_rows(one.path / table) == sorted_rows(seven.path / table)
    check_complete_league(one)
    times = np.concatenate([batch.time_us for batch in one.churn()])
    assert (np.diff(times) >= 0).all()
    numbers = np.concatenate([batch.notification for batch in one.notifications()])
    assert numbers.tolist() == list(range(1_000))


def check_complete_league(workload: Workload) -> None:
    """Closed forms for 30 teams, and the shares of the three sorts of topic."""
    assert workload.counts["topics"] == 466
    assert workload.counts["edges"] == 30 + 2 * 435
    facts = description(workload)
    assert facts["graph"]["depth"] == 3
    assert facts["overlap"]["identifiers_per_header"] == {"mean": 1.0, "max": 1.0}
    assert facts["overlap"]["matching_topics"] == {"mean": 4.0, "max": 4.0}
    shares = np.add.reduceat(workload.graph.subscribers, [0, 1, 31]) / 30_000
    assert shares == pytest.approx([0.1, 0.4, 0.5], abs=0.012)


def contents(manifest: dict[str, Any]) -> dict[str, str]:
    return {name: facts["content_sha256"] for name, facts in manifest["files"].items()}


def sorted_rows(table: Path) -> list[str]:
    return sorted(json.dumps(row) for row in pq.read_table(table).to_pylist())


def test_the_manifest_tells_all(small: Make) -> None:
    manifest = small("traffic-zipf").manifest
    assert manifest["seed"] == 5
    assert manifest["scenario"]["content"]["exits"] == 60
    stages = {"topics", "graph", "subscriptions", "notifications", "churn", "finish"}
    assert manifest["seconds"].keys() == stages | {"total"}
    assert manifest["rows_per_s"].keys() == stages - {"finish"}
    assert manifest["counts"].keys() == {
        "subscribers",
        "arrivals",
        "subscriptions",
        "topics",
        "edges",
        "notifications",
        "churn",
    }
    assert manifest["peak_rss_bytes"] > 100 * 2**20
    assert manifest["versions"].keys() >= {"f3", "python", "numpy", "pyarrow", "pyspark", "java"}
    assert sum(facts["rows"] for facts in manifest["files"].values()) == sum(
        manifest["counts"][name]
        for name in ("subscriptions", "topics", "edges", "notifications", "churn")
    )


def test_nothing_to_notify_and_nobody_moves(make: Make) -> None:
    still = {"churn.moves": 0, "churn.arrivals": 0, "churn.departures": 0}
    rest = {"notifications.count": 0, "subscribers.routers": 1}
    workload = make("baseball", parameters=still | rest)
    assert list(workload.notifications()) == []
    assert list(workload.churn()) == []
    assert workload.counts["churn"] == workload.counts["notifications"] == 0
    assert "0 reach nobody" in as_text(description(workload))


def test_graphs_beyond_the_limits_are_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="more than 1,000 different topics"):
        make("attribute-value", limits=Limits(topics=1_000))
    with pytest.raises(ScenarioError, match="more than 50 edges"):
        make("attribute-value", limits=Limits(edges=50))
    assert list(tmp_path.iterdir()) == []


def test_describe_and_draw(small: Make, tmp_path: Path) -> None:
    workload = small("traffic-zipf")
    facts = description(workload)
    json.dumps(facts)
    assert facts["skew"]["topics"]["gini"] > 0.3
    assert facts["churn"] == {
        name: sum(event.event == name for event in each_event(workload.churn())) for name in EVENTS
    }
    assert sum(facts["graph"]["nodes_per_level"]) == workload.counts["topics"]
    text = as_text(facts)
    assert f"depth {facts['graph']['depth']}" in text
    draw(workload, facts, tmp_path / "plots" / "traffic.png")
    assert (tmp_path / "plots" / "traffic.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ScenarioError, match=r"must end in \.png"):
        draw(workload, facts, tmp_path / "traffic.doc")


def test_damage_is_noticed(small: Make, tmp_path: Path) -> None:
    workload = Workload(shutil.copytree(small("varying-degree").path, tmp_path / "copy"))
    file = workload.path / "edges" / "part-00000.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(WorkloadError, match=r"edges/part-00000.parquet is damaged: its checksum"):
        Workload(workload.path).verify()
    file.write_bytes(whole[:-1])
    with pytest.raises(WorkloadError, match=f"damaged: {len(whole)} bytes are expected"):
        Workload(workload.path)
    file.unlink()
    with pytest.raises(WorkloadError, match="is missing"):
        Workload(workload.path)
    with pytest.raises(WorkloadError, match="router 10 is not one of the workload's 10"):
        list(workload.subscriptions(router=10))
    (workload.path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(WorkloadError, match="not a manifest of format 1"):
        Workload(workload.path)
    (workload.path / "manifest.json").unlink()
    with pytest.raises(WorkloadError, match="is not a workload"):
        Workload(workload.path)


def test_an_outside_kind_is_one_module(
    make: Make, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scenario file beside a module with topics of another type: paths, as bytes."""
    package = tmp_path / "lib" / "outside_kinds"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(Path(__file__).with_name("outside_kind.py"), package / "paths.py")
    archive = shutil.make_archive(str(tmp_path / "lib"), "zip", tmp_path / "lib")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    spark.sparkContext.addPyFile(archive)
    mine = tmp_path / "paths.toml"
    mine.write_text('kind = "outside_kinds.paths"\n[content]\ndepth = 4\n')
    with pytest.raises(WorkloadError, match="the Spark job failed: ValueError: no such luck"):
        make(str(mine), parameters={"unlucky": True})
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".zip", ".toml"}
    assert not (tmp_path / "out").exists()
    graph = make(str(mine)).graph
    paths = graph.text.tolist()
    expected = set()
    for node, path in enumerate(paths):
        above = [other for other in paths if path.startswith(other + "/")]
        if above:
            expected.add((paths.index(max(above, key=len)), node))
    assert set(zip(graph.parent.tolist(), graph.child.tolist(), strict=True)) == expected
    assert len(paths) > 30


def test_every_content_kind_is_generated_here() -> None:
    kinds = {load_scenario(name).kind for name in scenario_names()}
    assert {load_scenario(name).kind for name in SMALL} == kinds
