"""Links under stress and attack: strangers, garbage, full queues, dead peers (without Ray)."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import zmq
from local_network import DEADLINE, until

from actors.frames import FRAME_BYTES_MAX, pack_frame
from actors.host import HostOptions, HostStoppedError
from actors.link import Kind, Link, LinkError, LinkOptions
from actors.security import make_keys
from routing import wire
from routing.errors import ProtocolError
from routing.messages import Hello

CHAIN = [("r0", "r1"), ("r1", "r2")]


@pytest.fixture
def outside():
    """Sockets of somebody who is no member."""
    context = zmq.Context()

    made: list[zmq.Socket] = []

    def make(kind: int) -> zmq.Socket:
        made.append(context.socket(kind))
        return made[-1]

    yield make
    for each in made:
        each.close(0)
    context.term()


def works(network, note: bytes = b"still alive") -> None:
    """A fresh subscriber at one end hears a publication from the other."""
    client = network.client("r2", f"check-{len(network.clients)}")
    subscriber = client.subscriber("s")
    subscriber.subscribe("r0", 1)
    client.publisher("p").publish("r0", (1,), note)
    assert subscriber.get(DEADLINE).body == note


def endpoint_of(network, router: str, neighbor: str) -> str:
    return network.hosts[router].listen(neighbor, Kind.ROUTER).endpoint


@pytest.mark.parametrize("secure", [False, True], ids=["loopback", "keys"])
def test_garbage_on_a_port_is_counted_and_hurts_nobody(network, outside, secure):
    made = network(CHAIN, ["r0"], secure=secure)
    made.insert("r0", 1)
    endpoint = endpoint_of(made, "r1", "r0")
    address = endpoint.removeprefix("tcp://").rsplit(":", 1)
    with socket.create_connection((address[0], int(address[1])), timeout=DEADLINE) as raw:
        raw.sendall(b"\xff" + os.urandom(4096))
    host = made.hosts["r1"]
    until(lambda: host.status()["links"]["r0"]["callers"] == 2, "a second caller")
    works(made)
    link = host.status()["links"]["r0"]
    assert (link["callers"], link["callers_admitted"], link["connections"]) == (2, 1, 1)


def test_frames_of_nonsense_are_counted_and_dropped(network, outside):
    made = network(CHAIN, ["r0"])
    made.insert("r0", 1)
    push = outside(zmq.PUSH)
    push.connect(endpoint_of(made, "r1", "r0"))
    for frame in (b"", os.urandom(1000), pack_frame(1, [b"\x93\x01"]), pack_frame(1, [])):
        push.send(frame)
    until(lambda: made.hosts["r1"].status()["counts"].get("frames_bad", 0) == 3, "three bad frames")
    works(made)


#: A greeting of ZMTP 3 without keys, and how a PUSH socket introduces itself (RFC 23).
GREETING = bytes.fromhex("ff00000000000000017f0300") + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"


def nonsense(rng: random.Random) -> bytes:
    """What a stranger may send: noise, half a greeting, bad frames, a length beyond all bounds."""
    match rng.randrange(4):
        case 0:
            return rng.randbytes(rng.randint(1, 5000))
        case 1:
            return GREETING[: rng.randint(1, 63)]
        case 2:
            return GREETING + READY + b"\x02" + rng.randbytes(8) + rng.randbytes(1000)
        case _:
            frame = bytearray(pack_frame(1, list(wire.encode(Hello(7)))))
            frame[rng.randrange(len(frame))] = rng.randrange(256)
            frames = (rng.randbytes(rng.randint(0, 250)), bytes(frame))
            return GREETING + READY + b"".join(b"\0%c" % len(f) + f for f in frames)


@pytest.mark.parametrize("secure", [False, True], ids=["loopback", "keys"])
def test_random_nonsense_on_every_port_leaves_every_router_alive(network, secure):
    made = network(CHAIN, ["r0"], secure=secure)
    made.insert("r0", 1)
    pairs = [(a, b) for one, other in CHAIN for a, b in ((one, other), (other, one))]
    rng = random.Random(3)
    for n in range(400):
        host, _, port = endpoint_of(made, *pairs[n % 4]).removeprefix("tcp://").partition(":")
        with socket.create_connection((host, int(port)), DEADLINE) as raw:
            raw.sendall(nonsense(rng))
    statuses = lambda: [host.status() for host in made.hosts.values()]  # noqa: E731
    links = lambda: [link for one in statuses() for link in one["links"].values()]  # noqa: E731
    until(lambda: sum(link["callers"] for link in links()) >= 404, "every caller")
    works(made)
    bad = sum(one["counts"].get("frames_bad", 0) for one in statuses())
    assert bad == 0 if secure else bad > 50
    assert all(len(one["reports"]) <= 101 for one in statuses())
    # Nobody was disturbed: each router's link is still on its first connection.
    assert all(link["connections"] == 1 for link in links())


def test_a_frame_beyond_the_bound_ends_its_connection_and_nothing_else(network, outside):
    made = network(CHAIN, ["r0"])
    made.insert("r0", 1)
    push = outside(zmq.PUSH)
    push.connect(endpoint_of(made, "r1", "r0"))
    push.send(bytes(2 * FRAME_BYTES_MAX))
    host = made.hosts["r1"]
    # It calls again each time it is cut off, and tries in vain to send the rest.
    until(lambda: host.status()["links"]["r0"]["callers"] >= 3, "being cut off")
    works(made)
    assert host.status()["links"]["r0"]["connections"] == 1


def test_a_hung_process_is_found_by_heartbeats_and_taken_back_when_it_goes_on(network):
    link = LinkOptions(heartbeat=0.1, timeout=0.4)
    made = network([("r0", "r1")], ["r0"], options=HostOptions(link=link))
    host = made.hosts["r1"]
    mine = host.listen("child", Kind.ROUTER)
    command = [sys.executable, str(Path(__file__).with_name("hung_child.py")), mine.endpoint]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        try:
            host.attach("child", child.stdout.readline().strip(), b"", Kind.ROUTER)
            until(lambda: host.links_up()["child"], "link up")
            child.send_signal(signal.SIGSTOP)
            until(lambda: not host.links_up()["child"], "the silence being noticed")
            child.send_signal(signal.SIGCONT)
            until(lambda: host.links_up()["child"], "link up again")
        finally:
            child.send_signal(signal.SIGCONT)
            child.stdin.close()
            assert child.wait(DEADLINE) == 0


def test_with_keys_a_stranger_gets_nothing_in_and_nothing_out(network, outside):
    made = network(CHAIN, ["r0"], secure=True)
    made.insert("r0", 1)
    host = made.hosts["r1"]
    before = host.status()["links"]["r0"]["messages_received"]
    endpoint = endpoint_of(made, "r1", "r0")
    frame = pack_frame(1, list(wire.encode(Hello(1 << 62))))
    plain, impostor = outside(zmq.PUSH), outside(zmq.PUSH)
    keys = make_keys()
    impostor.curve_publickey, impostor.curve_secretkey = keys.public, keys.secret
    impostor.curve_serverkey = host.keys.public
    nosy = outside(zmq.PULL)
    nosy.curve_publickey, nosy.curve_secretkey = keys.public, keys.secret
    nosy.curve_serverkey = host.keys.public
    for stranger in (plain, impostor, nosy):
        stranger.connect(endpoint)
    plain.send(frame)
    impostor.send(frame)
    until(lambda: host.status()["counts"].get("strangers", 0), "strangers turned away")
    until(lambda: host.status()["links"]["r0"]["callers"] >= 4, "all strangers have called")
    works(made)
    assert not nosy.poll(0)
    link = host.status()["links"]["r0"]
    assert host.router._lives["r0"] < 1 << 62, "the stranger's hello was believed"
    assert link["messages_received"] > before
    assert link["callers_admitted"] == link["connections"] == 1


def test_a_member_cannot_speak_for_another(network, outside):
    made = network(CHAIN, ["r0"], secure=True)
    host, member = made.hosts["r1"], made.hosts["r2"].keys
    impostor = outside(zmq.PUSH)
    impostor.curve_publickey, impostor.curve_secretkey = member.public, member.secret
    impostor.curve_serverkey = host.keys.public
    impostor.connect(endpoint_of(made, "r1", "r0"))
    impostor.send(pack_frame(1, list(wire.encode(Hello(1 << 62)))))
    until(lambda: host.status()["counts"].get("strangers", 0), "impostor turned away")
    assert host.router._lives["r0"] < 1 << 62


def test_without_keys_a_listener_gets_nothing_out(network, outside):
    made = network(CHAIN, ["r0"])
    made.insert("r0", 1)
    listeners = [outside(kind) for kind in (zmq.PULL, zmq.DEALER, zmq.SUB)]
    listeners[2].subscribe(b"")
    for listener in listeners:
        listener.connect(endpoint_of(made, "r0", "r1"))
    works(made)
    assert not any(listener.poll(0) for listener in listeners)


def test_a_range_of_ports_is_kept_to_and_its_end_is_a_clear_error(network):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = HostOptions(link=LinkOptions(ports=range(port, port + 1)))
        made = network([("a", "b")], ["a"])
        host = replace(made.plans["a"], address="c", options=options).host(1).start()
        with pytest.raises(LinkError, match=f"every port from {port} to {port} .* is in use"):
            host.listen("a", Kind.ROUTER)
        assert host.running
        host.stop()


def test_an_address_that_is_none_is_a_clear_error_and_the_host_lives(network):
    made = network([("a", "b")], ["a"])
    host = made.hosts["a"]
    with pytest.raises(LinkError, match=r"cannot connect to 'nonsense' .c.: "):
        host.attach("c", "nonsense", b"", Kind.ROUTER)
    with pytest.raises(ProtocolError, match="'a' cannot be its own neighbour"):
        host.listen("a", Kind.ROUTER)
    made.insert("a", 1)
    host.stop()
    with pytest.raises(HostStoppedError, match="'a' has stopped"):
        host.status()


def test_an_address_where_nobody_listens_leaves_the_link_down_and_the_rest_working(network):
    made = network(CHAIN, ["r0"])
    made.insert("r0", 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    made.hosts["r1"].attach("ghost", nobody, b"", Kind.ROUTER)
    works(made)
    assert made.hosts["r1"].links_up() == {"r0": True, "r2": True, "ghost": False, **_clients(made)}


def _clients(made) -> dict[str, bool]:
    return {name: up for name, up in made.hosts["r1"].links_up().items() if "check" in name}


@pytest.mark.parametrize("victim", ["r0", "r1", "r2"])
def test_a_restarted_router_is_linked_and_resynchronised(network, victim):
    made = network(CHAIN, ["r0"])
    made.insert("r0", 1)
    client = made.client("r2")
    subscriber, publisher = client.subscriber("s"), client.publisher("p")
    subscriber.subscribe("r0", 1)
    publisher.publish("r0", (1,), b"before")
    made.kill(victim)
    waiting = publisher.send("r0", (1,), b"meanwhile")
    made.boot(victim)
    made.wait()
    waiting.result(DEADLINE)
    publisher.publish("r0", (1,), b"after", timeout=DEADLINE)
    got = [subscriber.get(DEADLINE).body for _ in range(3)]
    assert sorted(got) == [b"after", b"before", b"meanwhile"]
    assert len(subscriber.inbox) == 0
    assert not client.lost


def test_a_slow_host_loses_frames_not_others_time_and_recovers_from_the_log(network):
    options = HostOptions(link=LinkOptions(bytes_max=20_000, messages_max=1000))
    made = network(CHAIN, ["r0"], options=options)
    made.insert("r0", 1)
    slow, quick = made.client("r2", "slow"), made.client("r2", "quick")
    late, prompt = slow.subscriber("late", capacity=5), quick.subscriber("prompt")
    for subscriber in (late, prompt):
        subscriber.subscribe("r0", 1)
    publisher = made.client("r0", "source").publisher("p")
    bodies = [b"%d" % n + bytes(40_000) for n in range(300)]
    sent = [publisher.send("r0", (1,), body) for body in bodies]
    assert {prompt.get(DEADLINE).body for _ in bodies} == set(bodies)
    assert all(future.result(DEADLINE) for future in sent)
    dropped = made.hosts["r2"].status()["links"]["slow"]["notifications_dropped"]
    assert dropped > 10, "the slow host was never too slow"
    got = {late.get(DEADLINE).body for _ in bodies}
    assert got == set(bodies)
    assert len(late.inbox) == 0
    assert slow.host.reports["recovered"] >= dropped


def test_a_full_link_holds_back_the_publisher_and_loses_nothing(network):
    options = HostOptions(link=LinkOptions(bytes_max=50_000, messages_max=1000), stall=60.0)
    made = network(CHAIN, ["r0"], options=options, slow_hosts=Kind.ROUTER)
    made.insert("r0", 1)
    slow = made.client("r2", "slow")
    late = slow.subscriber("late", capacity=5)
    late.subscribe("r0", 1)
    publisher = made.client("r0", "source").publisher("p")
    bodies = [b"%d" % n + bytes(100_000) for n in range(400)]
    sent = [publisher.send("r0", (1,), body) for body in bodies]
    held = lambda: made.hosts["r0"].status()["counts"].get("turns_held_back", 0)  # noqa: E731
    until(held, "back pressure at the rendezvous point")
    assert not sent[-1].done()
    assert [late.get(DEADLINE).body for _ in bodies] == bodies
    assert all(future.result(DEADLINE) for future in sent)
    reports = sum((host.reports for host in made.hosts.values()), slow.host.reports)
    assert not reports["recovered"]


def test_a_link_that_stands_still_is_emptied_and_starts_over(network):
    options = HostOptions(link=LinkOptions(bytes_max=50_000, messages_max=1000), stall=0.3)
    made = network(CHAIN, ["r0"], options=options, slow_hosts=Kind.ROUTER)
    made.insert("r0", 1)
    stuck, well = made.client("r2", "stuck"), made.client("r2", "well")
    late, prompt = stuck.subscriber("late", capacity=5), well.subscriber("prompt")
    for subscriber in (late, prompt):
        subscriber.subscribe("r0", 1)
    publisher = made.client("r0", "source").publisher("p")
    bodies = [b"%d" % n + bytes(100_000) for n in range(200)]
    for body in bodies:
        publisher.send("r0", (1,), body)
    assert {prompt.get(DEADLINE).body for _ in bodies} == set(bodies)
    assert made.hosts["r2"].status()["counts"]["stalls"]
    assert {late.get(DEADLINE).body for _ in bodies} == set(bodies)


def test_a_client_that_has_gone_is_forgotten(network):
    made = network([("a", "b")], ["a"], options=HostOptions(forget=0.2))
    made.client("b", "guest").close()
    until(lambda: "guest" not in made.hosts["b"].links_up(), "link forgotten")


def test_a_host_that_fails_says_so_and_ends(network):
    made = network([("a", "b")], ["a"])
    host = made.plans["a"].host(1)

    def broken():
        raise AssertionError("a broken invariant")

    host._make_router = broken
    host.start()
    host.join()
    with pytest.raises(HostStoppedError, match="'a' has failed: AssertionError"):
        host.status()


class _Hasty:
    """A socket that has just lost its connection, and had room when it was last asked."""

    def __init__(self, socket: zmq.Socket) -> None:
        self.send = socket.send

    def get(self, option: int) -> int:
        assert option == zmq.EVENTS
        return zmq.POLLOUT


def test_a_connection_that_ends_between_look_and_send_costs_its_frame_and_nothing_else(outside):
    link = Link("x", Kind.ROUTER, zmq.Context.instance(), LinkOptions())
    alone = outside(zmq.PUSH)
    alone.immediate = True
    alone.connect("tcp://127.0.0.1:9")  # nobody is there: it takes nothing
    link.push, link.up = _Hasty(alone), True
    link.send(Hello(1), 1)
    link.flush(1.0)
    assert link.blocked
    assert link.counts["messages_cleared"] == 1
    assert link.counts["messages_sent"] == 0
    link.push = None
    link.close()
