"""Very many subscribers on one host: one neighbour of its edge router, whatever their number.

Subscribers here are names, not objects with queues; what they receive is counted, and recorded
if wanted. `actors.client` is for the few that somebody reads from.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from functools import partial

from actors.edge import ClientHost, Elsewhere
from actors.member import Plan
from actors.wiring import Ask
from routing.api import Confirmed, Deliver, Effect, NodeId, Refused, Subscribe, Unsubscribe
from routing.errors import ProtocolError

Wanted = tuple[str, str, NodeId]
"""(client, namespace, node)."""

#: Subscriptions asked for in one command, so that the loop comes round meanwhile.
_AT_ONCE = 1000


class Crowd(ClientHost):
    """A host of subscribers without queues."""

    def __init__(
        self,
        plan: Plan,
        edge: str,
        ask: Ask,
        incarnation: int,
        record: bool,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        super().__init__(plan, edge, ask, incarnation, elsewhere)
        self.deliveries = 0
        self._record = record
        self._received: dict[tuple[str, str], array[int]] = {}
        self._waiting: set[Wanted] = set()
        self._refused: dict[Wanted, str] = {}
        self._settled = threading.Condition()

    def subscribe(self, wanted: Sequence[Wanted], timeout: float = 60.0) -> dict[Wanted, str]:
        """Returns once every subscription is in force or refused, with those refused and why."""
        self._waiting.update(wanted)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            self.host.submit(partial(self._subscribe, some)).result(timeout)
        with self._settled:
            if not self._settled.wait_for(lambda: not self._waiting, timeout):
                raise TimeoutError(f"{len(self._waiting)} subscriptions without an answer")
        refused, self._refused = self._refused, {}
        return refused

    def unsubscribe(self, held: Sequence[Wanted], timeout: float = 60.0) -> dict[Wanted, str]:
        """End subscriptions: nothing more comes for them. Returns those that were none, and why."""
        none: dict[Wanted, str] = {}
        for start in range(0, len(held), _AT_ONCE):
            some = held[start : start + _AT_ONCE]
            none |= self.host.submit(partial(self._unsubscribe, some)).result(timeout)
        return none

    def received(self) -> dict[str, list[tuple[str, int]]]:
        """Per subscriber, the (namespace, position) of all that it got, in order."""
        return self.host.submit(self._copy).result(30.0)  # type: ignore[no-any-return]

    def _copy(self) -> dict[str, list[tuple[str, int]]]:
        found: dict[str, list[tuple[str, int]]] = {}
        for (client, namespace), positions in self._received.items():
            found.setdefault(client, []).extend((namespace, position) for position in positions)
        return found

    def _subscribe(self, wanted: Sequence[Wanted]) -> None:
        for each in wanted:
            try:
                self.host.take(Subscribe(*each))
            except ProtocolError as error:
                self._refused[each] = str(error)
                self._answered(each)

    def _unsubscribe(self, held: Sequence[Wanted]) -> dict[Wanted, str]:
        none: dict[Wanted, str] = {}
        for each in held:
            try:
                self.host.take(Unsubscribe(*each))
            except ProtocolError as error:
                none[each] = str(error)
        return none

    def _observe(self, effect: Effect) -> None:
        if isinstance(effect, Deliver):
            self.deliveries += 1
            if self._record:
                note = effect.notification
                key = (effect.client, note.namespace)
                self._received.setdefault(key, array("Q")).append(note.position)
        elif isinstance(effect, Confirmed):
            self._answered((effect.client, effect.namespace, effect.node))
        elif isinstance(effect, Refused) and effect.node is not None:
            wanted = (effect.client, effect.namespace, effect.node)
            self._refused[wanted] = effect.reason
            self._answered(wanted)

    def _answered(self, wanted: Wanted) -> None:
        self._waiting.discard(wanted)
        if not self._waiting:
            with self._settled:
                self._settled.notify_all()
