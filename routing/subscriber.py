"""The subscriber end: exactly once to each client, and nothing lost unnoticed.

Two signs tell of a loss (Kulik 2004, section 3.4.9, made whole). A gap in the sequence numbers
of a node shows that a notification before this one is missing. And the acknowledgements of
resubscription say since which position the stream from the rendezvous point has been without a
break, which shows the loss of a last notification as well. Either way, what is missing is asked
of the rendezvous point's log; what the log has dropped is reported as lost.

Everything up to `floor` is settled: delivered, not wanted, or reported lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, TypeVar

from routing.api import Address, Config, Confirmed, Deliver, Effect, Notification, Refused, Report
from routing.content_graph import NodeId
from routing.errors import ProtocolError
from routing.messages import (
    RecoverReply,
    RecoverRequest,
    RequestMessage,
    SequenceReply,
    SequenceRequest,
)
from routing.payload import unpack

#: No clients.
_NOBODY: dict[str, int] = {}
#: How often the wait for a reply doubles.
_BACKOFF_MAX = 4

_Request = TypeVar("_Request", SequenceRequest, RecoverRequest)


@dataclass(slots=True)
class _Asked(Generic[_Request]):
    """A request that is repeated, ever more rarely, until its reply comes.

    A repetition is the same request: however long the way, the first reply answers it.
    """

    message: _Request
    again_at: float
    repeats: int = 0

    def repeat(self, retry: float, now: float) -> _Request:
        """The request to send again."""
        self.repeats += 1
        self.again_at = now + retry * 2.0 ** min(self.repeats, _BACKOFF_MAX)
        return self.message


class SubscriberEnd:
    """The local subscribers of one namespace at one router."""

    def __init__(
        self,
        namespace: Address,
        config: Config,
        emit: Callable[[Effect], None],
        ask: Callable[[RequestMessage, float], None],
    ) -> None:
        self._namespace = namespace
        self._config = config
        self._emit = emit
        self._ask = ask
        #: Confirmed clients per node, each with the last position of before its subscription.
        self._holders: dict[NodeId, dict[str, int]] = {}
        #: Clients whose subscription is not in force yet, per node.
        self._hopeful: dict[NodeId, dict[str, None]] = {}
        self._requests = 0
        self._asked: dict[int, _Asked[SequenceRequest]] = {}
        #: Nothing in `_asked` is to be repeated before this; found anew when it has passed.
        self._quiet_until = 0.0
        self._recovery: _Asked[RecoverRequest] | None = None
        #: The last number heard of each lowest node; a node first heard of starts at 1.
        self._numbers: dict[NodeId, int] = {}
        #: Per node held here, it and its descendants as far as they are known; and how many
        #: of the nodes held here have a node among theirs.
        self._tracks: dict[NodeId, set[NodeId]] = {}
        self._tracked: Counter[NodeId] = Counter()
        #: Numbers that wait for their node's subscription to be in force.
        self._replies: dict[NodeId, tuple[tuple[NodeId, int], ...]] = {}
        self._floor: int | None = None
        self._upper = 0
        self._mark = 0
        self._since = 0
        self._gap = 0
        #: Clients that have had a notification, for positions above the floor.
        self._served: dict[int, set[str]] = {}

    # -- subscriptions -------------------------------------------------------------------

    def subscribe(self, client: str, node: NodeId, now: float) -> None:
        """Take a client's subscription; new nodes first ask for their sequence numbers."""
        if client in self._hopeful.get(node, ()):
            return
        if node in self._holders:
            self._confirm(client, node)
            return
        hopeful = self._hopeful.setdefault(node, {})
        hopeful[client] = None
        if len(hopeful) == 1:
            self._ask_numbers(node, now)

    def unsubscribe(self, client: str, node: NodeId) -> bool:
        """End a client's subscription; true if the router need not hold the node any more."""
        for index in (self._hopeful, self._holders):
            clients: dict[str, int] | dict[str, None] = index.get(node, {})
            if client in clients:
                del clients[client]
                if not clients:
                    del index[node]
                    self._untrack(node)
                    return True
                return False
        raise ProtocolError(f"{client!r} has no subscription to node {node} of {self._namespace!r}")

    def confirmed(self, node: NodeId, upper: int) -> None:
        """The node is in force here: so are its clients' subscriptions, beyond this position."""
        self._upper = max(self._upper, upper)
        self._track(node)
        for client in self._hopeful.pop(node, {}):
            self._confirm(client, node)

    def refused(self, node: NodeId, reason: str) -> None:
        """The node is none of the namespace's, or no longer."""
        self._untrack(node)
        clients = {**self._hopeful.pop(node, {}), **self._holders.pop(node, {})}
        for client in sorted(clients):
            self._emit(Refused(client, self._namespace, reason, node=node))

    def _confirm(self, client: str, node: NodeId) -> None:
        holders = self._holders.setdefault(node, {})
        holders.setdefault(client, self._upper)
        self._emit(Confirmed(client, self._namespace, node))

    # -- sequence numbers ----------------------------------------------------------------

    def _ask_numbers(self, node: NodeId, now: float) -> None:
        self._requests += 1
        request = SequenceRequest(self._namespace, (), self._requests, node)
        again_at = now + self._config.retry
        self._quiet_until = min(self._quiet_until, again_at) if self._asked else again_at
        self._asked[self._requests] = _Asked(request, again_at)
        self._ask(request, now)

    def sequenced(self, reply: SequenceReply) -> NodeId | None:
        """Keep the numbers; returns the node to subscribe to, if somebody still wants it."""
        asked = self._asked.pop(reply.request, None)
        if asked is None:
            return None
        self._upper = max(self._upper, reply.position)
        if self._floor is None or not self._holders:
            self._floor = max(self._floor or 0, reply.position)
        node = asked.message.node
        if node not in self._hopeful:
            return None
        self._replies[node] = reply.numbers
        return node

    def _track(self, node: NodeId) -> None:
        """From now on, every notification with the node or a descendant lowest is due here."""
        for below, number in self._replies.pop(node, ()):
            if not self._tracked[below]:
                self._numbers[below] = max(number, self._numbers.get(below, 0))
            self._track_below(node, below)

    def _track_below(self, node: NodeId, below: NodeId) -> None:
        if below not in self._tracks.setdefault(node, set()):
            self._tracks[node].add(below)
            self._tracked[below] += 1

    def _untrack(self, node: NodeId) -> None:
        for below in self._tracks.pop(node, ()):
            self._tracked[below] -= 1
            if not self._tracked[below]:
                del self._tracked[below]

    def _missed(self, held: Iterable[NodeId], numbers: list[tuple[NodeId, int]]) -> bool:
        """Whether a number was jumped over (Figure 3-32).

        A notification may have lowest nodes that no node held here covers: their numbers mean
        nothing here. One that stands alone is covered for sure, since the notification came.
        """
        if len(numbers) == 1:
            for node in held:
                self._track_below(node, numbers[0][0])
        missed = False
        for below, number in numbers:
            last = self._numbers.get(below, 0)
            missed |= number > last + 1 and below in self._tracked
            self._numbers[below] = max(number, last)
        return missed

    # -- notifications -------------------------------------------------------------------

    def held(self, covering: AbstractSet[NodeId]) -> tuple[NodeId, ...]:
        """Those of some nodes that clients here are subscribed to."""
        return tuple(sorted(covering & self._holders.keys()))

    def notified(
        self, held: Sequence[NodeId], position: int, payload: bytes, trace: bytes = b""
    ) -> None:
        """Deliver a notification that came by the tree; `recover_if_due` follows the last one."""
        numbers, body = unpack(payload)
        if position > self._upper:
            self._upper = position
        if self._missed(held, numbers):
            self._gap = max(self._gap, position - 1)
        self._deliver(held, position, body, trace)

    def _deliver(self, nodes: Iterable[NodeId], position: int, body: bytes, trace: bytes) -> int:
        """Hand it to every client due that has not had it; returns how many."""
        if self._floor is None or position <= self._floor:
            return 0
        due: set[str] = set()
        for node in nodes:
            for client, start in self._holders.get(node, _NOBODY).items():
                if position > start:
                    due.add(client)
        served = self._served.get(position)
        if served is not None:
            due -= served
        if not due:
            return 0
        self._served[position] = due if served is None else served | due
        notification = Notification(self._namespace, position, body, trace)
        for client in sorted(due):
            self._emit(Deliver(client, notification))
        return len(due)

    # -- loss ----------------------------------------------------------------------------

    def advance(self, mark: int, since: int, upper: int, now: float) -> None:
        """The stream holds everything due in (since, mark]; nothing came from beyond upper."""
        self._mark, self._since = max(self._mark, mark), max(self._since, since)
        self._upper = max(self._upper, upper)
        self.recover_if_due(now)

    def recover_if_due(self, now: float) -> None:
        """Ask for what is missing, or settle what is not."""
        if self._floor is None or self._recovery is not None:
            return
        upto = max(self._since, self._gap)
        if upto > self._floor and self._holders:
            self._request_recovery(self._floor, upto, now)
        else:
            self._settle(max(upto, self._mark))

    def _request_recovery(self, after: int, upto: int, now: float) -> None:
        self._requests += 1
        nodes = tuple(sorted(self._holders))
        request = RecoverRequest(self._namespace, (), self._requests, nodes, after, upto)
        self._recovery = _Asked(request, now + self._config.retry)
        self._emit(Report("recover", {"namespace": self._namespace, "after": after, "upto": upto}))
        self._ask(request, now)

    def recovered(self, reply: RecoverReply, now: float) -> None:
        """Deliver what was lost; ask on while there is more of it."""
        if self._recovery is None or reply.request != self._recovery.message.request:
            return
        recovery, self._recovery = self._recovery.message, None
        if reply.first > recovery.after + 1:
            self._lost(recovery.after + 1, min(reply.first - 1, recovery.upto))
        delivered, contexts = 0, reply.batch.contexts()
        for row, (header, position, payload) in enumerate(reply.batch.rows()):
            trace = contexts.get(row, b"")
            delivered += self._deliver(header, position, unpack(payload)[1], trace)
        if delivered:
            fields = {"namespace": self._namespace, "deliveries": delivered}
            self._emit(Report("recovered", fields))
        if reply.through > recovery.after:
            self._settle(min(reply.through, recovery.upto))
        else:
            self._lost(recovery.after + 1, recovery.upto)
            self._settle(recovery.upto)
        self.recover_if_due(now)

    def _lost(self, first: int, last: int) -> None:
        fields = {"namespace": self._namespace, "first": first, "last": last}
        self._emit(Report("lost", fields))

    def _settle(self, position: int) -> None:
        """Nothing up to this position is outstanding."""
        if self._floor is not None and position > self._floor:
            self._floor = position
            self._served = {p: who for p, who in self._served.items() if p > position}

    # -- time ----------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Repeat requests whose reply is overdue."""
        if self._asked and self._quiet_until <= now:
            self._repeat_asked(now)
        if self._recovery is not None and self._recovery.again_at <= now:
            self._ask(self._recovery.repeat(self._config.retry, now), now)

    def _repeat_asked(self, now: float) -> None:
        for request, asked in list(self._asked.items()):
            if asked.message.node not in self._hopeful:
                del self._asked[request]
            elif asked.again_at <= now:
                self._ask(asked.repeat(self._config.retry, now), now)
        self._quiet_until = min((asked.again_at for asked in self._asked.values()), default=now)

    def next_timeout(self) -> float | None:
        """When the next repetition may be due."""
        times = [self._quiet_until] if self._asked else []
        if self._recovery is not None:
            times.append(self._recovery.again_at)
        return min(times, default=None)

    def size(self) -> dict[str, int]:
        """Entries by kind."""
        return {
            "local_subscriptions": sum(map(len, self._holders.values())),
            "local_numbers": len(self._numbers),
            "local_served": len(self._served),
        }
