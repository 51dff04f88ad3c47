"""Small parts of the runtime on their own: supervision, queues, room, durations."""

from __future__ import annotations

import asyncio
import threading

import pytest

from actors.answers import Room
from actors.edge import choose
from actors.inbox import ClosedError, Inbox
from actors.measure import Durations
from actors.supervisor import Losses, Supervisor, tables
from actors.wiring import Pulse
from topology.overlay import overlay
from topology.paths import next_hops

RING = overlay([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])


def pulses(down: set[str] = frozenset(), cut: set[frozenset] = frozenset(), hops=None):
    hops = hops or next_hops(RING, ["a"])
    found = {}
    for name, beside in RING.neighbors.items():
        up = {n: n not in down and frozenset((name, n)) not in cut for n in beside}
        found[name] = None if name in down else Pulse(up, hops[name], {})
    return found


def test_only_what_stays_away_is_lost_and_whoever_comes_back_is_not():
    losses = Losses(RING, patience=10.0)
    losses.see(pulses(down={"b"}), 0.0)
    assert losses.lost(9.9) == (frozenset(), frozenset())
    assert losses.lost(10.0) == (frozenset({"b"}), frozenset())
    losses.see(pulses(), 11.0)
    assert losses.lost(100.0) == (frozenset(), frozenset())
    losses.see(pulses(cut={frozenset("cd")}), 20.0)
    losses.see(pulses(cut={frozenset("cd")}), 29.0)
    assert losses.lost(30.0) == (frozenset(), frozenset({("c", "d")}))


def test_a_link_of_a_router_that_is_down_does_not_count_by_itself():
    losses = Losses(RING, patience=1.0)
    losses.see(pulses(down={"b"}), 0.0)
    assert losses.lost(5.0) == (frozenset({"b"}), frozenset())


def test_tables_lead_around_what_is_lost_and_leave_out_who_is_cut_off():
    assert next_hops(RING, ["a"])["c"] == {"a": "b"}
    assert tables(RING, ["a"], ["b"], [])["c"] == {"a": "d"}
    assert tables(RING, ["a"], [], [("b", "c")])["c"] == {"a": "d"}
    assert tables(RING, ["a"], ["b", "d"], [("a", "b")]) == {"a": {}, "c": {}}
    assert tables(RING, ["a"], ["a"], []) == {"b": {}, "c": {}, "d": {}}


def test_another_edge_router_is_beside_the_lost_one_and_reaches_the_root():
    clients = [f"client-{n}" for n in range(50)]
    assert {choose(pulses(down={"b"}), "b", ["a"], name) for name in clients} == {"a"}
    # c's own way still leads over b; once its table is new it may be chosen as well.
    around = {**next_hops(RING, ["a"]), "c": {"a": "d"}}
    found = {choose(pulses(down={"b"}, hops=around), "b", ["a"], name) for name in clients}
    assert found == {"a", "c"}
    assert choose(pulses(down={"a"}), "a", ["a"], "x") is None
    assert choose(pulses(down={"a", "b", "c", "d"}), "b", ["a"], "x") is None
    # Of two rendezvous points one can be reached: better than none.
    hops = next_hops(RING, ["a", "c"])
    assert choose(pulses(down={"b", "c"}, hops=hops), "b", ["a", "c"], "x") == "a"
    circle = {"a": {}, "b": {}, "c": {"a": "d"}, "d": {"a": "c"}}
    assert choose(pulses(down={"b"}, hops=circle), "b", ["a"], "x") == "a"


def test_the_supervisor_tells_just_those_whose_table_differs():
    told: dict[str, dict[str, str]] = {}
    supervisor = Supervisor(RING, ["a"], dict, lambda n, t: told.update({n: dict(t)}), patience=5.0)
    supervisor._check(pulses(), 0.0)
    supervisor._check(pulses(down={"b"}), 1.0)
    assert told == {}
    supervisor._check(pulses(down={"b"}), 6.0)
    assert told == {"c": {"a": "d"}}
    assert supervisor.lost_routers == {"b"}
    told.clear()
    around = {**next_hops(RING, ["a"]), "c": {"a": "d"}}
    supervisor._check(pulses(hops=around), 7.0)
    assert told == {"c": {"a": "b"}}, "whoever comes back is taken in again"
    assert supervisor.reroutes == 2


def test_an_inbox_hands_over_in_order_and_cancelling_loses_nothing():
    inbox: Inbox[int] = Inbox()
    with pytest.raises(TimeoutError, match="nothing came within"):
        inbox.get(0.001)
    inbox.put(1)

    async def scenario() -> list[int]:
        waiting = asyncio.ensure_future(inbox.get_async())
        first = await waiting
        second = asyncio.ensure_future(inbox.get_async())
        await asyncio.sleep(0)
        inbox.put(2)  # handed over, and not seen by the coroutine yet
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        inbox.put(3)
        return [first, await inbox.get_async(), await inbox.get_async()]

    assert asyncio.run(scenario()) == [1, 2, 3]
    waiter: list[BaseException] = []

    def wait() -> None:
        try:
            inbox.get(30)
        except ClosedError as error:
            waiter.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    inbox.close()
    thread.join(30)
    assert len(waiter) == 1


def test_room_is_taken_given_back_and_waited_for():
    room = Room(10)
    assert room.take(8, 0)
    assert not room.take(3, 0.001)
    taken: list[bool] = []
    thread = threading.Thread(target=lambda: taken.append(room.take(3, 30)))
    thread.start()
    room.give(1)
    thread.join(30)
    assert taken == [True]


def test_percentiles_are_right_to_a_tenth():
    durations = Durations()
    assert durations.percentile(50) == 0.0
    for microseconds in range(1, 1001):
        durations.add(microseconds)
    durations.add(-5.0)
    assert durations.percentile(50) == pytest.approx(500, rel=0.1)
    assert durations.percentile(99) == pytest.approx(990, rel=0.1)


def test_memory_for_frames_can_be_kept_more_than_once() -> None:
    import platform

    from actors.memory import keep_memory

    expected = platform.libc_ver()[0] == "glibc"
    assert keep_memory() == expected
    assert keep_memory() == expected
