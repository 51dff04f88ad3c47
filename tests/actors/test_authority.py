"""The authority's file: a change is written before it is made, and agrees with the graph again."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from local_network import DEADLINE

from actors.answers import RefusedError
from actors.preprocessors import ChangeFile, DurableAuthority, publish
from preprocess.attribute_value import AttributeValue
from preprocess.preprocessor import Change, Inserted, Preprocessor, Removed
from preprocess.replica import Authority, DynamicPreprocessor, Fetch, Proposal, insertions
from routing.api import InsertNode, Refusal, RemoveNode
from routing.errors import ProtocolError


def changes_in(path: Path) -> list[Change]:
    file = ChangeFile(path)
    file.close()
    return file.changes


class Graph:
    """A rendezvous point as far as an authority sees it; may die before or after a change."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.dies = ""

    def perform(self, event: InsertNode | RemoveNode) -> None:
        if self.dies == "before":
            raise ConnectionError("killed")
        if isinstance(event, RemoveNode):
            if event.node not in self.nodes:
                raise ProtocolError(f"node {event.node} is not there")
            self.nodes.remove(event.node)
            return
        if event.version != len(self.nodes):
            raise ProtocolError(f"the graph is at {len(self.nodes)}")
        self.nodes.append(event.node)
        if self.dies == "after":
            raise ConnectionError("killed")


def test_changes_come_back(tmp_path: Path) -> None:
    changes = [Inserted(1, 5, '{"a": 1}', (), ()), Inserted(2, 6, "b", (5,), (7, 8)), Removed(3, 5)]
    file = ChangeFile(tmp_path / "x.changes")
    for change in changes:
        file.append(change)
    file.append(Inserted(4, 9, "refused", (), ()))
    file.take_back()
    file.close()
    assert changes_in(tmp_path / "x.changes") == changes


def test_a_torn_line_is_forgotten_and_a_wrong_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.changes"
    file = ChangeFile(path)
    file.append(Removed(1, 5))
    file.close()
    path.write_bytes(path.read_bytes() + b'{"change": "inser')
    file = ChangeFile(path)
    assert file.changes == [Removed(1, 5)]
    file.append(Removed(2, 6))
    file.close()
    assert changes_in(path) == [Removed(1, 5), Removed(2, 6)]
    path.write_bytes(b"nonsense\n")
    with pytest.raises(ProtocolError, match=r"x\.changes is no file of changes"):
        ChangeFile(path)


@pytest.mark.parametrize("when", ["before", "after"])
def test_file_and_graph_agree_after_a_kill_in_between(tmp_path: Path, when: str) -> None:
    graph = Graph()
    authority = DurableAuthority(tmp_path / "x.changes", graph.perform)
    authority.propose(Proposal(0, "first", (), ()))
    graph.dies = when
    with pytest.raises(ConnectionError):
        authority.propose(Proposal(1, "second", (), ()))
    graph.dies = ""
    authority.close()
    again = DurableAuthority(tmp_path / "x.changes", graph.perform)
    changes = again.propose(Proposal(2, "third", (), ()))
    assert [change.version for change in changes] == [3]
    assert graph.nodes == [change.node for change in again.fetch(Fetch(0))] == [1, 2, 3]
    again.close()


def test_what_the_graph_refuses_is_not_in_the_file(tmp_path: Path) -> None:
    graph = Graph()
    authority = DurableAuthority(tmp_path / "x.changes", graph.perform)
    graph.nodes.append(77)  # somebody else has changed the graph
    with pytest.raises(ProtocolError, match="the graph is at 1"):
        authority.propose(Proposal(0, "first", (), ()))
    authority.close()
    assert changes_in(tmp_path / "x.changes") == []


def test_a_removal_survives_and_one_that_is_refused_does_not(tmp_path: Path) -> None:
    graph = Graph()
    authority = DurableAuthority(tmp_path / "x.changes", graph.perform)
    authority.propose(Proposal(0, "first", (), ()))
    authority.remove(1)
    with pytest.raises(ProtocolError, match="node 1 is not there"):
        authority.remove(1)
    authority.close()
    assert [type(change) for change in changes_in(tmp_path / "x.changes")] == [Inserted, Removed]
    again = DurableAuthority(tmp_path / "x.changes", graph.perform)
    assert [change.version for change in again.fetch(Fetch(0))] == [1, 2]
    assert graph.nodes == []
    again.close()


def test_an_adopted_graph_survives_and_grows(tmp_path: Path) -> None:
    """The rendezvous point has its nodes already: none is inserted again but the last, in vain."""
    finished = Preprocessor(AttributeValue())
    finished.load([(7, "anything"), (5, "a=1"), (9, "a=1 b=2")])
    graph = Graph()
    graph.nodes = [7, 5, 9]
    authority = DurableAuthority(tmp_path / "x.changes", graph.perform)
    authority.adopt(insertions(finished))
    with pytest.raises(ProtocolError, match="there were 3 changes already"):
        authority.adopt(insertions(finished))
    authority.close()
    again = DurableAuthority(tmp_path / "x.changes", graph.perform)
    one = DynamicPreprocessor(AttributeValue(), again.propose, again.fetch)
    assert one.subscription("b=2 a=1") == 9
    assert one.subscription("b=2") == 10
    assert one.graph.children(10) == {9}
    assert graph.nodes == [7, 5, 9, 10]
    again.close()


# -- publishing what a preprocessor has headed ---------------------------------------------------


@pytest.fixture
def chain(network):
    return network([("r0", "r1")], ["r0"])


def test_a_header_from_an_older_graph_is_made_anew(chain):
    """The graph grows, or loses the very node, after the publisher's copy of it was taken."""
    authority = Authority(lambda event: chain.hosts["r0"].event(event).result(DEADLINE))
    reader, writer = (
        DynamicPreprocessor(AttributeValue(), authority.propose, authority.fetch) for _ in range(2)
    )
    client = chain.client("r1")
    wide, narrow = client.subscriber("wide"), client.subscriber("narrow")
    publisher = client.publisher("p")
    wide.subscribe("r0", reader.subscription({"team": "boston"}))
    content = {"team": "boston", "day": "monday"}
    writer.catch_up()
    special = reader.subscription(content)
    narrow.subscribe("r0", special)
    assert writer.version == 1, "it has not heard of the new topic"
    assert publish(publisher, writer, "r0", content, b"grown", DEADLINE) == 1
    assert [each.get(DEADLINE).body for each in (wide, narrow)] == [b"grown", b"grown"]
    authority.remove(special)
    assert writer.notification(content).nodes == (special,)
    assert publish(publisher, writer, "r0", content, b"shrunk", DEADLINE) == 2
    assert wide.get(DEADLINE).body == b"shrunk"


def test_a_refusal_that_no_newer_graph_cures_is_passed_on(chain):
    """An access list without the publisher: one refusal, no second try."""
    chain.stores["r0"].set_access({})
    authority = Authority(lambda event: chain.hosts["r0"].event(event).result(DEADLINE))
    reader = DynamicPreprocessor(AttributeValue(), authority.propose, authority.fetch)
    publisher = chain.client("r1").publisher("p")
    with pytest.raises(RefusedError, match="not on the access list") as caught:
        publish(publisher, reader, "r0", {}, b"", DEADLINE)
    assert caught.value.code == Refusal.NO_ACCESS
    assert pickle.loads(pickle.dumps(caught.value)).code == Refusal.NO_ACCESS
