"""The authority's file: a change is written before it is made, and agrees with the graph again."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.preprocessors import ChangeFile, DurableAuthority
from preprocess.preprocessor import Change, Inserted, Removed
from preprocess.replica import Fetch, Proposal
from routing.api import InsertNode, RemoveNode
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
