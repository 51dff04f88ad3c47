"""A real router under test, and the source above it.

The router is the RouterHost that clusters run, in a process of its own, on its ZeroMQ links. The
source takes the part of its upstream neighbour: it answers subscriptions with set-ups from a
table that holds the whole graph, and sends notifications with the headers that this table makes
of them. Its batches are prepared, so that sending costs little; their positions and numbers are
real and rise. The sinks are in `f3.bench.frame_sinks`.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import zmq

from actors.frames import messages_of
from actors.link import Kind, Link, LinkOptions
from actors.memory import keep_memory
from f3.bench.children import WAIT_SECONDS, BenchError, Child, Tally
from f3.bench.load import NEIGHBORS, Counts, Load
from f3.bench.scenarios import Scenario
from f3.bench.stamps import PLAIN, stamped
from f3.bench.system import Row, System
from routing import messages
from routing.batch import Batch
from routing.protocols.f3 import F3Router
from routing.table import Table

NAMESPACE = "source"
_ROUTER = "router"
#: Nodes set up in one message.
_BUNCH = 1000


class Source:
    """The upstream neighbour of a router: a session, answered; and notifications."""

    def __init__(self, scenario: Scenario, table: type[Table]) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.link = Link(_ROUTER, Kind.ROUTER, self._context, LinkOptions())
        self.greeted = False
        self.position = 0
        self._table = table()
        for setup in scenario.setups:
            self._table.insert(setup)
        self._session = (0, 0)
        self._sent = self._notified = 0

    # -- the session ---------------------------------------------------------------------

    def work(self) -> None:
        """Answer what has come in, and send what waits."""
        self.link.observe(time.time_ns())
        while (frame := self.link.receive()) is not None:
            for message in messages_of(frame):
                self._take(message)
        self.link.flush(time.monotonic())

    def _take(self, message: messages.Message) -> None:
        if getattr(message, "namespace", NAMESPACE) != NAMESPACE:
            return  # of another network, which had this port before and calls it still
        match message:
            case messages.Hello():
                self.greeted = True
            case messages.Resubscribe(listed=True):
                self._open(message)
            case messages.Resubscribe():
                self._acknowledge(opened=False)
            case messages.Subscribe():
                self._set_up(message.nodes)
            case _:
                raise BenchError(f"the source did not expect {message}")

    def _open(self, listing: messages.Resubscribe) -> None:
        """A new session; what the router has not heard of in the last one, it asks for again."""
        self._session, self._sent, self._notified = listing.session, 1, 0
        for node in self._table.subs(_ROUTER) - set(listing.nodes):
            self._table.detach(node, _ROUTER)
        self._acknowledge(opened=True)
        self._set_up(listing.requests)

    def _acknowledge(self, opened: bool) -> None:
        session, last = self._session, self.position
        self._send(
            messages.ResubscribeAck(
                NAMESPACE, session, self._sent, True, opened, self._notified, 0, last, last
            )
        )

    def _set_up(self, nodes: tuple[int, ...]) -> None:
        for first in range(0, len(nodes), _BUNCH):
            setups = []
            for node in nodes[first : first + _BUNCH]:
                setups += self._table.setups(node, _ROUTER)
                self._table.attach(node, _ROUTER)
            self._sent += 1
            answer = (self._session, self._sent, self.position, tuple(setups))
            self._send(messages.GraphSetup(NAMESPACE, *answer))

    def _send(self, message: messages.Message) -> None:
        self.link.send(message, time.time_ns())

    # -- notifications -------------------------------------------------------------------

    def batch(self, load: Load, first: int, count: int, body: bytes = PLAIN) -> Batch:
        """Some notifications, with the headers that the router is due."""
        headers = load.notifications[first : first + count]
        published = Batch.of((header, k, body) for k, header in enumerate(headers))
        return self._table.route_batch(published).batches[_ROUTER]

    def notify(self, batch: Batch) -> None:
        """Send a batch with the next positions."""
        first, self.position = self.position + 1, self.position + len(batch)
        positions = np.arange(first, self.position + 1, dtype=np.uint64).tobytes()
        number, self._notified = self._notified + 1, self._notified + len(batch)
        batch = replace(batch, positions=positions)
        self._send(messages.Notify(NAMESPACE, self._session, number, batch))
        self.link.flush(time.monotonic())

    def close(self) -> None:
        """Let the router go."""
        self.link.close()
        self._context.destroy(linger=0)


class RouterSystem(System):
    """One router process, ten neighbours."""

    name, encoding = "f3", "content graph"

    def __init__(self, load: Load) -> None:
        keep_memory()
        self.load = load
        self.tally = Tally(2 * NEIGHBORS + 1)
        self._positions = np.zeros(NEIGHBORS, dtype=np.uint64)
        self._batches: list[Batch] = []
        self._chunk = 0
        self.source = Source(load.scenario, F3Router.table)
        self.sinks = Child("f3.bench.frame_sinks", str(self.tally.fd), fds=[self.tally.fd])
        self._router = Child("f3.bench.router_process")
        self.usage = self._router.usage
        try:
            self._link_up()
        except BaseException:
            self.close()
            raise

    def _link_up(self) -> None:
        there = self._router.ask("attach", neighbor=NAMESPACE, endpoint=self.source.link.endpoint)
        self.source.link.connect(there["endpoint"], b"")
        endpoints = self.sinks.ask("listen")["endpoints"]
        here = [
            self._router.ask("attach", neighbor=f"sink-{k}", endpoint=endpoint)["endpoint"]
            for k, endpoint in enumerate(endpoints)
        ]
        self.sinks.ask("connect", endpoints=here)
        deadline = time.monotonic() + WAIT_SECONDS
        while not (self.source.greeted and self.source.link.up):
            if time.monotonic() > deadline:
                raise BenchError("the router did not link up with its source")
            self.source.work()
            time.sleep(0.001)

    # -- the contract --------------------------------------------------------------------

    @property
    def filters(self) -> int:
        return sum(map(len, self.load.held))

    def expected(self) -> Counts:
        return self.load.due

    def subscribe(self) -> None:
        self.sinks.tell("subscribe", held=self.load.held)
        while not self.sinks.heard():
            self.source.work()
            time.sleep(0.0005)
        self.sinks.hear()

    def prepare(self, chunk: int) -> None:
        self._chunk = chunk
        count = len(self.load.notifications) // chunk
        self._batches = [self.source.batch(self.load, k * chunk, chunk) for k in range(count)]

    def send(self, chunk: int) -> None:
        self._note(chunk * self._chunk, self._chunk)
        self.source.notify(self._batches[chunk])

    def send_stamped(self, notification: int) -> None:
        self._note(notification, 1)
        batch = self.source.batch(self.load, notification, 1)
        self.source.notify(replace(batch, payloads=stamped()))

    def _note(self, first: int, count: int) -> None:
        """Add up the positions that each sink is due."""
        due = self.load.due[:, first : first + count].astype(np.uint64)
        positions = np.arange(count, dtype=np.uint64) + np.uint64(self.source.position + 1)
        self._positions += due @ positions

    def look_after(self) -> None:
        self.source.work()

    def check(self) -> None:
        seen = np.array(self.tally.counts[NEIGHBORS + 1 :], dtype=np.uint64)
        if not np.array_equal(seen, self._positions):
            raise BenchError("the sinks were sent other notifications than they are due")

    def details(self) -> Row:
        status = self._router.ask("status")
        batch, hop = status["batch_size"], status["hop_us"]
        return {"table_bytes": status["state"]["bytes"], "batch_p50": batch["p50"], "hop_us": hop}

    def close(self) -> None:
        self._router.close()
        self.sinks.close()
        self.source.close()
        self.tally.close()
