"""A network of routers in virtual time: FIFO links, queues, faults, everything from one seed.

The routers are those that the actors run. A message takes its link's latency, may be lost or
doubled, waits in a bounded queue while its receiver is busy, and then has its effects. Two runs
with the same seed are the same run, under any PYTHONHASHSEED.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from routing import messages
from routing.api import (
    Address,
    Config,
    Deliver,
    Effect,
    Event,
    LinkDown,
    LinkUp,
    Received,
    Reroute,
    Router,
    Send,
    Start,
    Tick,
    View,
)
from routing.batch import Batch
from routing.messages import Message, Notify
from routing.store import Store

#: Ticks at one instant after which a router is said to spin.
_SPIN_MAX = 1000


class NotAtRestError(AssertionError):
    """The network was still busy when its time was up."""


@dataclass(frozen=True, slots=True)
class Link:
    """How a link treats messages; both directions alike."""

    latency: float = 0.001
    #: Up to so much is added to the latency; the order stays.
    jitter: float = 0.0
    loss: float = 0.0
    #: A doubled message's second copy may overtake nothing and be overtaken by anything.
    duplicate: float = 0.0


@dataclass(slots=True)
class Queue:
    """A router's input: how many messages wait, and how long they did."""

    waiting: deque[tuple[Address, Message]] = field(default_factory=deque)
    by_link: Counter[Address] = field(default_factory=Counter)
    longest: int = 0
    dropped: int = 0
    #: (time, length) at every change, if asked for.
    series: list[tuple[float, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    """Notifications of one session that a link was handed at one instant."""

    time: float
    parts: list[Notify]

    def takes(self, message: Message, now: float) -> bool:
        """Join a notification that follows the last one, if it is one."""
        last = self.parts[-1]
        if (
            now != self.time
            or not isinstance(message, Notify)
            or (message.namespace, message.session) != (last.namespace, last.session)
            or message.number != last.number + len(last.batch)
            or message.batch.first() <= last.batch.last()
        ):
            return False
        self.parts.append(message)
        return True

    def message(self) -> Notify:
        """All of them as one."""
        if len(self.parts) == 1:
            return self.parts[0]
        return replace(self.parts[0], batch=Batch.join([part.batch for part in self.parts]))


class Network:
    """Routers on links, and the clock they share.

    With `joining`, notifications that one link is handed at one instant travel as one message,
    as they do between actors.
    """

    def __init__(
        self,
        protocol: type[Router],
        links: Mapping[tuple[Address, Address], Link],
        next_hops: Mapping[Address, Mapping[Address, Address]],
        stores: Mapping[Address, Store],
        seed: int = 0,
        config: Config | None = None,
        *,
        service: float = 0.0,
        slow: Mapping[Address, float] | None = None,
        capacity: int | None = None,
        record_queues: bool = False,
        transcode: Callable[[Message], Message] | None = None,
        joining: bool = False,
    ) -> None:
        self.protocol = protocol
        self.config = config or Config()
        self.stores = dict(stores)
        self.now = 0.0
        self.rng = random.Random(seed)
        #: Messages handed to links, by type.
        self.sent: Counter[str] = Counter()
        #: Messages on links now, by type.
        self.on_wire: Counter[str] = Counter()
        self.lost = 0
        self.handled = 0
        #: When something other than refreshing last happened.
        self.busy_at = 0.0
        self.observers: list[Callable[[Address, Effect, float], None]] = []
        self.after_event: Callable[[Address, Router], None] | None = None
        #: Seconds that a router takes for a message: all of them, and those that differ.
        self._service, self._slow = service, dict(slow or {})
        self._capacity = capacity
        self._record = record_queues
        self._transcode = transcode
        self._joining = joining
        self._runs: dict[tuple[Address, Address], _Run] = {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._next_hops = dict(next_hops)
        self._links: dict[tuple[Address, Address], Link] = {}
        self._arrival: dict[tuple[Address, Address], float] = {}
        self._cut: set[tuple[Address, Address]] = set()
        self._told_down: set[tuple[Address, Address]] = set()
        self._neighbors: dict[Address, list[Address]] = {}
        for (a, b), link in links.items():
            for one, other in ((a, b), (b, a)):
                self._links[one, other] = link
                self._neighbors.setdefault(one, []).append(other)
        self.routers: dict[Address, Router | None] = dict.fromkeys(sorted(self._neighbors))
        self.queues = {address: Queue() for address in self.routers}
        self._lives: Counter[Address] = Counter()
        self._ticks: dict[Address, float | None] = {}
        self._spins: dict[Address, tuple[float, int]] = {}
        for address in self.routers:
            self._boot(address)

    # -- running -------------------------------------------------------------------------

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something at a time to come."""
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, action))

    def step(self) -> bool:
        """Let the next thing happen; false if nothing is left to happen."""
        if not self._heap:
            return False
        self.now, _, action = heapq.heappop(self._heap)
        action()
        return True

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._heap and self._heap[0][0] <= until:
            self.step()
        self.now = max(self.now, until)

    def settle(self, quiet: float | None = None, limit: float = 300.0) -> float:
        """Run until only refreshing has gone on for a while; returns how long it took.

        NotAtRestError if that does not come about within `limit` seconds of virtual time.
        """
        quiet = 3.0 * self.config.lifetime if quiet is None else quiet
        start = self.now
        self.busy_at = start
        while self._heap and self._heap[0][0] < self.busy_at + quiet:
            if self._heap[0][0] > start + limit:
                raise NotAtRestError(f"still busy after {limit} s: {self.sent.most_common(4)}")
            self.step()
        self.now = max(self.now, self.busy_at + quiet)
        return self.busy_at - start

    def event(self, address: Address, event: Event) -> list[Effect]:
        """Give a router an event now."""
        router = self.routers[address]
        if router is None:
            raise ValueError(f"router {address!r} is down")
        effects = router.handle(event, self.now)
        self.handled += 1
        for effect in effects:
            self._perform(address, effect)
        if self.after_event is not None:
            self.after_event(address, router)
        self._schedule_tick(address, router)
        return effects

    # -- faults --------------------------------------------------------------------------

    def crash(self, address: Address, noticed: bool = True) -> None:
        """Stop a router; it forgets all but its store. Its neighbours may notice, or not."""
        self.routers[address] = None
        self._ticks[address] = None
        queue = self.queues[address]
        queue.waiting.clear()
        queue.by_link.clear()
        if noticed:
            for neighbor in self._neighbors[address]:
                self._notice_down(neighbor, address)

    def restart(self, address: Address, noticed: bool = True) -> None:
        """Start a crashed router again."""
        self._told_down = {pair for pair in self._told_down if pair[0] != address}
        self._boot(address)
        for neighbor in self._neighbors[address]:
            self._notice_up(address, neighbor, noticed)

    def cut(self, a: Address, b: Address, noticed: bool = True) -> None:
        """Break a link: what is on it is lost too."""
        self._cut |= {(a, b), (b, a)}
        if noticed:
            self._notice_down(a, b)
            self._notice_down(b, a)

    def heal(self, a: Address, b: Address, noticed: bool = True) -> None:
        """Mend a link."""
        self._cut -= {(a, b), (b, a)}
        self._notice_up(a, b, noticed)

    def _notice_down(self, address: Address, neighbor: Address) -> None:
        if self.routers[address] is not None:
            self._told_down.add((address, neighbor))
            self.event(address, LinkDown(neighbor))

    def _notice_up(self, a: Address, b: Address, noticed: bool) -> None:
        """Whoever was told that a link is down is told when it works again."""
        if (a, b) in self._cut or self.routers[a] is None or self.routers[b] is None:
            return
        for one, other in ((a, b), (b, a)):
            if noticed or (one, other) in self._told_down:
                self._told_down.discard((one, other))
                self.event(one, LinkUp(other))

    def disturb(self, a: Address, b: Address, loss: float, duplicate: float) -> None:
        """Make a link lose and double messages from now on."""
        for pair in ((a, b), (b, a)):
            self._links[pair] = replace(self._links[pair], loss=loss, duplicate=duplicate)

    def reroute(self, address: Address, next_hop: Mapping[Address, Address]) -> None:
        """Tell a router of new trees; one that is down hears of them when it starts."""
        self._next_hops[address] = next_hop
        if self.routers[address] is not None:
            self.event(address, Reroute(next_hop))

    def links(self) -> Iterable[tuple[Address, Address]]:
        """Every link once, sorted."""
        return sorted(pair for pair in self._links if pair[0] < pair[1])

    # -- inside --------------------------------------------------------------------------

    def _boot(self, address: Address) -> None:
        self._lives[address] += 1
        view = View(
            neighbors=tuple(self._neighbors[address]),
            next_hop=self._next_hops.get(address, {}),
            rng=random.Random(self.rng.getrandbits(64)),
            incarnation=self._lives[address],
            config=self.config,
            store=self.stores.get(address),
        )
        self.routers[address] = self.protocol(address, view)
        self._ticks[address] = None
        self.event(address, Start())

    def _perform(self, address: Address, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._transmit(address, effect.dst, effect.message)
        elif isinstance(effect, Deliver):
            self.busy_at = self.now
        for observe in self.observers:
            observe(address, effect, self.now)

    def _transmit(self, src: Address, dst: Address, message: Message) -> None:
        link = self._links.get((src, dst))
        if link is None:
            raise ValueError(f"{src!r} sends to {dst!r}, which is no neighbour")
        self.sent[type(message).__name__] += 1
        if not is_refresh(message):
            self.busy_at = self.now
        if self._transcode is not None:
            message = self._transcode(message)
        run = self._runs.get((src, dst))
        if run is not None and run.takes(message, self.now):
            return
        if (src, dst) in self._cut or (link.loss and self.rng.random() < link.loss):
            self.lost += 1
            return
        delay = link.latency + (self.rng.uniform(0.0, link.jitter) if link.jitter else 0.0)
        arrival = max(self.now + delay, self._arrival.get((src, dst), 0.0))
        self._arrival[src, dst] = arrival
        life = self._lives[dst]
        self.on_wire[type(message).__name__] += 1
        carried = self._carry(src, dst, message)
        self.at(arrival, lambda: self._arrive(src, dst, carried, life, first=True))
        if link.duplicate and self.rng.random() < link.duplicate:
            again = arrival + self.rng.uniform(0.0, 4.0 * (link.latency + link.jitter))
            self.at(again, lambda: self._arrive(src, dst, carried, life))

    def _carry(self, src: Address, dst: Address, message: Message) -> Message | _Run:
        """A notification may be joined by others until time goes on or something else is sent."""
        self._runs.pop((src, dst), None)
        if not self._joining or not isinstance(message, Notify):
            return message
        run = self._runs[src, dst] = _Run(self.now, [message])
        return run

    def _arrive(
        self, src: Address, dst: Address, carried: Message | _Run, life: int, first: bool = False
    ) -> None:
        message = carried if not isinstance(carried, _Run) else carried.message()
        if isinstance(carried, _Run):
            carried.time = -1.0  # what has arrived takes nothing any more
        self.on_wire[type(message).__name__] -= first
        if self.routers[dst] is None or self._lives[dst] != life or (src, dst) in self._cut:
            self.lost += 1
            return
        if not self._service:
            self.event(dst, Received(src, message))
            return
        queue = self.queues[dst]
        if self._capacity is not None and queue.by_link[src] >= self._capacity:
            queue.dropped += 1
            return
        queue.waiting.append((src, message))
        queue.by_link[src] += 1
        self._measure(queue)
        if len(queue.waiting) == 1:
            self._serve_next(dst, life)

    def _serve_next(self, address: Address, life: int) -> None:
        done = self.now + self._slow.get(address, self._service)
        self.at(done, lambda: self._serve(address, life))

    def _serve(self, address: Address, life: int) -> None:
        if self._lives[address] != life or self.routers[address] is None:
            return
        queue = self.queues[address]
        src, message = queue.waiting.popleft()
        queue.by_link[src] -= 1
        self._measure(queue)
        if queue.waiting:
            self._serve_next(address, life)
        self.event(address, Received(src, message))

    def _measure(self, queue: Queue) -> None:
        length = len(queue.waiting)
        queue.longest = max(queue.longest, length)
        if self._record:
            queue.series.append((self.now, length))

    def _schedule_tick(self, address: Address, router: Router) -> None:
        due = router.next_timeout()
        planned = self._ticks[address]
        if due is None or (planned is not None and planned <= due):
            return
        due = max(due, self.now)
        self._ticks[address] = due
        self.at(due, lambda: self._tick(address, due))

    def _tick(self, address: Address, due: float) -> None:
        if self._ticks[address] != due or self.routers[address] is None:
            return
        self._ticks[address] = None
        last, spins = self._spins.get(address, (0.0, 0))
        self._spins[address] = (due, spins + 1 if last == due else 0)
        assert spins < _SPIN_MAX, f"router {address!r} asks for ticks without end"
        self.event(address, Tick())


def is_refresh(message: Message) -> bool:
    """Whether a message says only that nothing has changed."""
    if isinstance(message, messages.Resubscribe):
        return not message.listed
    if isinstance(message, messages.ResubscribeAck):
        return message.ok and not message.opened
    return isinstance(message, messages.Hello)
