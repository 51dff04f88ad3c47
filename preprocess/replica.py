"""Dynamic preprocessors: one authority over a content graph, any number of replicas.

Kulik 2004, section 3.4.4, leaves open how distributed preprocessors stay consistent while the
graph grows. Here the authority, which sits beside the rendezvous point, numbers the changes of
the graph and keeps them as a log. A replica finds the place of a new topic in its own copy and
proposes it together with the version of that copy. The authority takes the proposal only if
nothing has changed since, and first tells the rendezvous point, so that no router can ask for a
node that is not there yet. The answer, yes or no, is the same: the changes since the replica's
version. A replica that has lost the race catches up, finds the topic there or places it anew.

Changes may also be told as they happen, in any order and more than once. Headers need no lock:
each carries its version, and the rendezvous point refuses those from before its latest insertion,
whereupon the client asks again after `refresh`. While topics arrive faster than a round trip,
publishers repeat themselves; what is absent here is a bound on that.

Nothing here waits or sends: whoever runs a replica performs its effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from preprocess.language import Language, N, T
from preprocess.preprocessor import Change, Inserted, Preprocessor, Removed
from routing.api import InsertNode, RemoveNode
from routing.content_graph import NodeId
from routing.errors import ProtocolError

#: Topics that may wait for the authority, and changes that may arrive too early.
WAITING_MAX = 100_000
EARLY_MAX = 1_000
#: Races that a subscription may lose before its client is told.
ATTEMPTS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """A replica asks for a topic to be inserted where it belongs in a version of the graph."""

    version: int
    topic: str
    parents: tuple[NodeId, ...]
    children: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """A replica asks for the changes after a version."""

    version: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A subscription has a node, and the rendezvous point knows it."""

    ticket: int
    node: NodeId


Effect = Proposal | Fetch | Answer


class Authority:
    """The order of changes, and the identifiers; one for each namespace."""

    def __init__(
        self, perform: Callable[[InsertNode | RemoveNode], None], log: Iterable[Change] = ()
    ) -> None:
        """`perform` has the rendezvous point take an event; `log` is that of an earlier life."""
        self._perform = perform
        self._log: list[Change] = list(log)
        nodes = [change.node for change in self._log]
        self._next = max(nodes, default=0) + 1
        #: Proposals that came too late.
        self.conflicts = 0

    @property
    def version(self) -> int:
        """How many changes there were."""
        return len(self._log)

    @property
    def next_node(self) -> NodeId:
        """The identifier that the next new topic will have."""
        return self._next

    def propose(self, proposal: Proposal) -> Sequence[Change]:
        """Take a proposal if it is for the current version; the changes since the proposer's."""
        if proposal.version == self.version:
            node = self._next
            place = proposal.parents, proposal.children
            self._perform(InsertNode(node, *place, version=proposal.version))
            self._log.append(Inserted(self.version + 1, node, proposal.topic, *place))
            self._next += 1
        else:
            self.conflicts += 1
        return self.fetch(Fetch(proposal.version))

    def adopt(self, finished: Preprocessor[Any, Any]) -> None:
        """Begin with the graph of a static preprocessor; only before there is any other change."""
        self.require_none()
        for change in insertions(finished):
            self._perform(InsertNode(change.node, change.parents, (), version=self.version))
            self._log.append(change)
            self._next = max(self._next, change.node + 1)

    def require_none(self) -> None:
        """ProtocolError if there was any change already."""
        if self._log:
            raise ProtocolError(f"there were {self.version} changes already")

    def remove(self, node: NodeId) -> None:
        """Take a node out; ProtocolError if it is not there."""
        self._perform(RemoveNode(node))
        self._log.append(Removed(self.version + 1, node))

    def fetch(self, fetch: Fetch) -> Sequence[Change]:
        """The changes after a version, the oldest first."""
        if not 0 <= fetch.version <= self.version:
            raise ProtocolError(f"version {fetch.version} is unknown: this is {self.version}")
        return self._log[fetch.version :]


def insertions(finished: Preprocessor[Any, Any]) -> list[Inserted]:
    """The graph of a static preprocessor as the changes that make it, parents first."""
    text, topics, graph = finished.language.text, finished.index.topics, finished.graph
    return [
        Inserted(version, node, text(topics[node]), tuple(sorted(graph.parents(node))), ())
        for version, node in enumerate(graph.topological(), 1)
    ]


class Replica(Preprocessor[T, N]):
    """A preprocessor that grows. At most one request to the authority is under way."""

    def __init__(self, language: Language[T, N]) -> None:
        super().__init__(language)
        self._waiting: dict[T, list[int]] = {}
        self._answers: list[Effect] = []
        self._early: dict[int, Change] = {}
        self._asked = False
        self._behind = False

    def subscribe(self, ticket: int, subscription: object) -> list[Effect]:
        """A client asks for the node of a subscription; an Answer with its ticket will follow."""
        topic = self.language.parse(subscription)
        node = self.nodes.get(topic)
        if node is not None:
            return [Answer(ticket, node)]
        if len(self._waiting) >= WAITING_MAX:
            raise ProtocolError(f"{WAITING_MAX} new topics wait for the authority already")
        self._waiting.setdefault(topic, []).append(ticket)
        return self._ask()

    def refresh(self) -> list[Effect]:
        """A client's header was refused as too old: catch up."""
        self._behind = True
        return self._ask()

    def replied(self, changes: Iterable[Change]) -> list[Effect]:
        """The authority has answered a Proposal or Fetch."""
        self._asked = False
        return self.told(changes)

    def unanswered(self) -> list[Effect]:
        """No answer will come. The request may have been heard: asking again does no harm."""
        self._asked = False
        self._behind = True
        return self._ask()

    def told(self, changes: Iterable[Change]) -> list[Effect]:
        """Changes have come to notice, in any order; those that follow are taken over."""
        for change in changes:
            if change.version > self.version and len(self._early) < EARLY_MAX:
                self._early[change.version] = change
            while self.version + 1 in self._early:
                self.apply(self._early.pop(self.version + 1))
        answers, self._answers = self._answers, []
        return answers + self._ask()

    def insert(self, topic: T, change: Inserted) -> None:
        """Also answer whoever has waited for the topic."""
        super().insert(topic, change)
        self._answers += [Answer(ticket, change.node) for ticket in self._waiting.pop(topic, ())]

    def _ask(self) -> list[Effect]:
        """The next request, if one is due and none is under way."""
        if self._asked or not (self._waiting or self._early or self._behind):
            return []
        self._asked = True
        # Whatever is asked for, the reply brings all changes up to now.
        self._behind = False
        if not self._waiting:
            return [Fetch(self.version)]
        topic = next(iter(self._waiting))
        place = self.place(topic, 0)
        return [Proposal(self.version, place.topic, place.parents, place.children)]


class DynamicPreprocessor(Replica[T, N]):
    """A replica within reach of its authority: in one process, or behind calls that answer."""

    def __init__(
        self,
        language: Language[T, N],
        propose: Callable[[Proposal], Sequence[Change]],
        fetch: Callable[[Fetch], Sequence[Change]],
    ) -> None:
        super().__init__(language)
        self._propose = propose
        self._fetch = fetch
        self.catch_up()

    def subscription(self, subscription: object) -> NodeId:
        """The node of a subscription, inserted if it is new."""
        effects = self.subscribe(0, subscription)
        for _ in range(ATTEMPTS_MAX):
            if isinstance(effects[0], Answer):
                return effects[0].node
            effects = self._perform(effects[0])
        self._abandon()
        raise ProtocolError(f"others were faster {ATTEMPTS_MAX} times; try again later")

    def catch_up(self) -> None:
        """Take over whatever has changed."""
        for effect in self.refresh():
            self._perform(effect)

    def _perform(self, request: Effect) -> list[Effect]:
        try:
            if isinstance(request, Proposal):
                return self.replied(self._propose(request))
            assert isinstance(request, Fetch)
            return self.replied(self._fetch(request))
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Nobody waits any more, so that the next call starts afresh."""
        self._asked = False
        self._waiting.clear()
