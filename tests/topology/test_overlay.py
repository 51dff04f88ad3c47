"""Overlays are values: sorted, checked when made, the same whatever order they are given in."""

from __future__ import annotations

import pickle

import pytest

from topology.overlay import CutOffError, Link, Overlay, Site, TopologyError, overlay


def test_order_and_direction_do_not_matter() -> None:
    one = overlay([("b", "a", 0.5), ("c", "b")])
    other = overlay([("b", "c"), ("a", "b", 0.5)])
    assert one == other
    assert hash(one) == hash(other)
    assert one.routers == ("a", "b", "c")
    assert one.neighbors == {"a": {"b": 0.5}, "b": {"a": 0.5, "c": 0.001}, "c": {"b": 0.001}}


def test_pickle_keeps_it() -> None:
    one = overlay([("a", "b")], [Site("a", "core", (1.0, 2.0))])
    assert pickle.loads(pickle.dumps(one)) == one
    error = CutOffError("a", ["c", "b"], "file: ")
    again = pickle.loads(pickle.dumps(error))
    assert (again.root, again.routers, str(again)) == ("a", ("b", "c"), str(error))


@pytest.mark.parametrize(
    ("sites", "links", "reason"),
    [
        ([Site("a"), Site("a")], [], "'a' appears twice"),
        ([Site("")], [], "not empty"),
        ([Site("a\nb")], [], "unprintable"),
        ([Site(" a")], [], "blanks"),
        ([Site("x" * 201)], [], "longer than 200"),
        ([Site("a", position=(float("nan"), 0.0))], [], "no finite position"),
        ([Site("a")], [Link("a", "b")], "no router 'b'"),
        ([Site("a")], [Link("a", "a")], "'a' has a link to itself"),
        ([Site("a"), Site("b")], [Link("a", "b"), Link("b", "a", 0.2)], "appears twice"),
        ([Site("a"), Site("b")], [Link("a", "b", 0.0)], "above 0 s"),
        ([Site("a"), Site("b")], [Link("a", "b", float("inf"))], "above 0 s"),
        ([Site("a"), Site("b")], [Link("a", "b", float("nan"))], "above 0 s"),
    ],
)
def test_what_cannot_be_is_refused(sites: list[Site], links: list[Link], reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        Overlay(tuple(sites), tuple(links))


def test_without_takes_routers_with_their_links() -> None:
    ring = overlay([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    left = ring.without(routers=["b"], links=[("d", "c")])
    assert left.routers == ("a", "c", "d")
    assert [link.ends for link in left.links] == [("a", "d")]
    with pytest.raises(TopologyError, match="no router 'x'"):
        ring.without(routers=["x"])
    with pytest.raises(TopologyError, match="no link"):
        ring.without(links=[("a", "c")])


def test_parts_are_named() -> None:
    two = overlay([("a", "b"), ("b", "c"), ("x", "y")])
    with pytest.raises(CutOffError, match="'x', 'y'") as caught:
        two.require_connected()
    assert caught.value.routers == ("x", "y")
    many = overlay([("a", "b")], [Site(f"lost{i:02}") for i in range(30)])
    with pytest.raises(CutOffError, match="and 20 more"):
        many.require_connected()
    with pytest.raises(TopologyError, match="one router at least"):
        Overlay((), ()).require_connected()
