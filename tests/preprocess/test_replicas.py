"""Three preprocessors, one authority and a real F3 network, all in virtual time.

Requests, replies and news of changes take random times and overtake one another; some news never
arrives. Clients subscribe to new topics and publish through any of the three meanwhile.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from preprocess.attribute_value import AttributeValue
from preprocess.feeds import Feeds, Item
from preprocess.language import Language
from preprocess.predicates import Predicates
from preprocess.preprocessor import Change, Inserted, Preprocessor
from preprocess.ranges import Ranges
from preprocess.replica import (
    Answer,
    Authority,
    DynamicPreprocessor,
    Effect,
    Fetch,
    Proposal,
    Replica,
)
from routing import api
from routing.content_graph import ContentGraph
from routing.protocols.f3 import F3Router
from routing.router import TreeRouter
from routing.store import Store
from sim.network import Link, Network
from sim.oracle import Oracle
from tests.preprocess import laws
from topology.overlay import overlay
from topology.paths import next_hops

SCHEDULES = max(20, int(os.environ.get("F3_SCHEDULES", "0")) // 20)

PAIRS: list[Any] = [
    {n: v for n, v in zip("abc", values, strict=True) if v != "*"}
    for values in itertools.product("12*", repeat=3)
]
STRETCHES: list[Any] = [(a, b) for a in range(7) for b in range(a, 7)]

STOCKS = Predicates({"symbol": "string", "price": "int"})
TRADES: list[Any] = [{"symbol": s, "price": p} for s in ("IBM", "ICL") for p in range(6)]
ORDERS: list[Any] = [
    *(
        f"symbol prefix {prefix} and price < {price}"
        for prefix in ["I", "IB", "IC"]
        for price in (2, 4)
    ),
    *(f"price in {a}..{b}" for a in range(5) for b in range(a, 6)),
    *(
        "symbol = IBM or price > 3",
        "symbol = ICL and price != 2",
        "symbol exists",
        "price < 1 or price > 4",
    ),
]
ITEMS: list[Any] = [
    Item(feed, title, categories=categories)
    for feed in ("One", "Two")
    for title in ("ant bee", "bee cow", "ant cow dog")
    for categories in ((), ("x",), ("x", "y"))
]
READERS: list[Any] = [
    {**feed, **category, **words}
    for feed in ({}, {"feed": "one"})
    for category in ({}, {"category": "x"}, {"category": ["x", "y"]})
    for words in ({}, {"words": "ant"}, {"words": "cow"}, {"words": "ant cow"})
]


class World:
    """A tree of routers, three replicas, an authority, and clients who use them."""

    versions = True

    def __init__(
        self, seed: int, language: Language[Any, Any], universe: list[Any], wishes: list[Any]
    ) -> None:
        """`universe` is all that can be published, `wishes` all that may be subscribed to."""
        self.rng = rng = random.Random(seed)
        self.language, self.universe, self.wishes = language, universe, wishes
        self.items = [language.parse_notification(item) for item in universe]
        routers = [f"r{i}" for i in range(rng.randint(1, 5))]
        self.hosts = [f"h{i}" for i in range(3)]
        tree = [(routers[rng.randrange(i)], routers[i]) for i in range(1, len(routers))]
        tree += [(rng.choice(routers), host) for host in self.hosts]
        self.root = routers[0]
        self.network = Network(
            F3Router,
            {pair: Link(latency=rng.choice((0.01, 0.1, 0.3))) for pair in tree},
            next_hops(overlay(tree), [self.root]),
            {self.root: Store()},
            seed=seed,
        )
        self.network.observers.append(self._observe)
        self.network.after_event = self._after
        self.meanings: dict[tuple[str, int], frozenset[int]] = {}
        self.oracle = Oracle(self.meanings)
        self.authority = Authority(self._perform)
        self.replicas: list[Replica[Any, Any]] = [Replica(language) for _ in range(3)]
        self.reached: Counter[str] = Counter()
        self.tickets = itertools.count(1)
        self.asking: dict[int, str] = {}
        self.publishing: dict[int, tuple[str, int]] = {}
        self.checked = 0

    @property
    def store(self) -> Store:
        return self.network.stores[self.root]

    # -- the authority and the replicas --------------------------------------------------

    def _perform(self, event: api.InsertNode | api.RemoveNode) -> None:
        self.network.event(self.root, event)

    def _later(self, action: Any, *arguments: Any) -> None:
        time = self.network.now + self.rng.choice((0.001, 0.05, 0.4)) * self.rng.random()
        self.network.at(time, lambda: action(*arguments))

    def effects(self, replica: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                self._subscribe(self.asking.pop(effect.ticket), effect.node)
            else:
                self._later(self._request, replica, effect)

    def _request(self, replica: int, request: Proposal | Fetch) -> None:
        before = self.authority.version
        if isinstance(request, Proposal):
            changes = self.authority.propose(request)
            self._spread(before)
        else:
            changes = self.authority.fetch(request)
        if self.rng.random() < 0.1:
            self.reached["reply lost"] += 1
            self._later(lambda: self.effects(replica, self.replicas[replica].unanswered()))
        else:
            self._later(self._reply, replica, changes)

    def _reply(self, replica: int, changes: Iterable[Change]) -> None:
        self.effects(replica, self.replicas[replica].replied(changes))

    def _spread(self, before: int) -> None:
        """What is new is told to everybody, sooner or later or never."""
        for change in self.authority.fetch(Fetch(before)):
            if isinstance(change, Inserted):
                topic = self.language.parse(change.topic)
                self.meanings[self.root, change.node] = frozenset(
                    i for i, item in enumerate(self.items) if self.language.matches(topic, item)
                )
            for replica in range(3):
                if self.rng.random() < 0.8:
                    self._later(self._tell, replica, change)

    def _tell(self, replica: int, change: Change) -> None:
        if change.version > self.replicas[replica].version + 1:
            self.reached["news out of order"] += 1
        self.effects(replica, self.replicas[replica].told([change]))

    # -- clients -------------------------------------------------------------------------

    def ask(self) -> None:
        """A client wants a topic, and asks one of the preprocessors for its node."""
        replica, ticket = self.rng.randrange(3), next(self.tickets)
        self.asking[ticket] = f"{self.rng.choice(self.hosts)}.{self.rng.randrange(3)}"
        topic = self.rng.choice(self.wishes)
        self.effects(replica, self.replicas[replica].subscribe(ticket, topic))

    def _subscribe(self, client: str, node: int) -> None:
        # Nobody is ever told a node before the rendezvous point has it.
        assert (self.root, node) in self.meanings
        if not self.oracle.holds(client, self.root, node):
            self.oracle.subscribes(client, self.root, node)
            host = client.split(".")[0]
            self.network.event(host, api.Subscribe(client, self.root, node))

    def publish(self, item: int | None = None) -> None:
        """A client has a header made by one of the preprocessors, and publishes."""
        item = self.rng.randrange(len(self.universe)) if item is None else item
        header = self.rng.choice(self.replicas).notification(self.universe[item])
        ticket, host = next(self.tickets), self.rng.choice(self.hosts)
        body = b"%06d" % ticket
        self.publishing[ticket] = (host, item)
        self._later(self._send, host, ticket, body, item, header.nodes, header.version)

    def _send(
        self, host: str, ticket: int, body: bytes, item: int, nodes: Any, version: int
    ) -> None:
        self.oracle.published(body, self.root, item, self.network.now)
        stated = version if self.versions else None
        event = api.Publish(
            "publisher", self.root, (api.Publication(nodes, body),), ticket, b"", stated
        )
        self.network.event(host, event)

    def remove(self) -> None:
        """The administrator takes a topic out of the graph."""
        if nodes := sorted(self.store.graph):
            self.reached["removal"] += 1
            before = self.authority.version
            self.authority.remove(self.rng.choice(nodes))
            self._spread(before)

    # -- what is checked -----------------------------------------------------------------

    def _observe(self, _: str, effect: api.Effect, now: float) -> None:
        match effect:
            case api.Deliver(client, notification):
                self.oracle.delivered(client, notification.namespace, notification.body)
            case api.Confirmed(client, namespace, node):
                self.oracle.confirmed(client, namespace, node, now)
            case api.Accepted(_, _, ticket, _):
                self.publishing.pop(ticket)
                self.oracle.accepted(b"%06d" % ticket)
            case api.Refused():
                self._refused(effect)

    def _refused(self, refused: api.Refused) -> None:
        node, ticket = refused.node, refused.ticket
        if node is not None:
            self.reached["subscription refused"] += 1
            self.oracle.withdrawn(refused.client, self.root, node)
            return
        assert ticket is not None
        self.reached[refused.code.name] += 1
        self.oracle.forget_publication(b"%06d" % ticket)
        _, item = self.publishing.pop(ticket)
        for replica in range(3):
            self.effects(replica, self.replicas[replica].refresh())
        self._later(self.publish, item)

    def _after(self, _: str, router: api.Router) -> None:
        """Each publication in the log has the header that brute force gives it, right then."""
        assert isinstance(router, TreeRouter)
        while self.checked < self.store.last:
            self.checked += 1
            entry = self.store.entry(self.checked)
            item = self.items[self._item(entry.payload)]
            topics = self._topics()
            expected = laws.lowest(self.language, list(topics), item)
            assert {topics[topic] for topic in expected} == set(entry.nodes)

    def _item(self, payload: bytes) -> int:
        bodies = {b"%06d" % t: i for t, (_, i) in self.publishing.items()}
        return next(item for body, item in bodies.items() if payload.endswith(body))

    def _topics(self) -> dict[Any, int]:
        """Topics of the rendezvous point's graph, from the log alone."""
        topics = {
            c.node: c.topic for c in self.authority.fetch(Fetch(0)) if isinstance(c, Inserted)
        }
        return {self.language.parse(topics[node]): node for node in self.store.graph}

    # -- the run -------------------------------------------------------------------------

    def run(self) -> None:
        rng, network = self.rng, self.network
        for _ in range(60):
            action = rng.choice((self.ask, self.ask, self.publish, self.publish, self.publish))
            network.at(rng.uniform(0, 8), action)
        for _ in range(rng.choice((0, 2))):
            network.at(rng.uniform(0, 8), self.remove)
        network.run(8)
        network.settle()
        for item in range(len(self.universe)):
            self.publish(item)
        network.settle()
        self._check_at_rest()

    def _check_at_rest(self) -> None:
        assert not self.asking
        assert not self.publishing
        assert self.oracle.missing() == []
        assert self.oracle.unsettled() == []
        topics = list(self._topics())
        for i, replica in enumerate(self.replicas):
            self.effects(i, replica.refresh())
        self.network.settle()
        for replica in self.replicas:
            assert replica.version == self.authority.version == self.store.version
            assert _shape(replica.graph) == _shape(self.store.graph)
            assert laws.edges_of(replica) == laws.edges(self.language, topics)
        self.reached["conflict"] += self.authority.conflicts
        self.reached["delivery"] += self.oracle.deliveries


def _shape(graph: ContentGraph) -> dict[int, set[int]]:
    return {node: set(graph.children(node)) for node in graph}


@pytest.mark.sim
@pytest.mark.parametrize(
    ("language", "universe", "wishes"),
    [
        (AttributeValue(), PAIRS, PAIRS),
        (Ranges(), STRETCHES, STRETCHES),
        (STOCKS, TRADES, ORDERS),
        (Feeds(), ITEMS, READERS),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_three_replicas_end_with_one_graph_and_no_header_is_wrong(language, universe, wishes):
    reached: Counter[str] = Counter()
    for seed in range(SCHEDULES):
        world = World(seed, language, universe, wishes)
        world.run()
        reached += world.reached
    assert {
        "conflict",
        "delivery",
        "OLD_VERSION",
        "UNKNOWN_NODE",
        "news out of order",
        "removal",
        "reply lost",
        "subscription refused",
    } <= reached.keys()
    assert reached["conflict"] > SCHEDULES
    assert reached["OLD_VERSION"] > SCHEDULES


class CarelessWorld(World):
    """Publishes without saying which version a header is from."""

    versions = False


@pytest.mark.sim
def test_without_versions_headers_go_wrong():
    """The schedules above would notice."""

    def run() -> None:
        for seed in range(SCHEDULES):
            CarelessWorld(seed, AttributeValue(), PAIRS, PAIRS).run()

    with pytest.raises(AssertionError):
        run()


# -- one process -------------------------------------------------------------------------------


def _authority(store: Store) -> Authority:
    def perform(event: api.InsertNode | api.RemoveNode) -> None:
        if isinstance(event, api.InsertNode):
            store.insert_node(event.node, event.parents, event.children)
        else:
            store.remove_node(event.node)

    return Authority(perform)


def test_a_dynamic_preprocessor_inserts_what_is_new_and_knows_what_others_inserted():
    store = Store()
    authority = _authority(store)
    one = DynamicPreprocessor(AttributeValue(), authority.propose, authority.fetch)
    two = DynamicPreprocessor(AttributeValue(), authority.propose, authority.fetch)
    general = one.subscription({"team": "Boston"})
    special = two.subscription({"team": "Boston", "day": "Monday"})
    assert store.graph.children(general) == {special}
    assert one.subscription({"day": "Monday", "team": "Boston"}) == special
    assert authority.conflicts == 2
    two.catch_up()
    assert one.notification({"team": "Boston", "day": "Monday"}) == ((special,), 2)
    assert two.notification({"team": "Boston", "day": "Sunday"}) == ((general,), 2)


def test_an_authority_starts_again_from_its_log():
    store = Store()
    authority = _authority(store)
    one = DynamicPreprocessor(Ranges(), authority.propose, authority.fetch)
    nodes = [one.subscription((0, i)) for i in range(5)]
    authority.remove(nodes[2])
    again = Authority(authority._perform, authority.fetch(Fetch(0)))
    two = DynamicPreprocessor(Ranges(), again.propose, again.fetch)
    assert two.subscription((1, 2)) == 6
    assert _shape(two.graph) == _shape(store.graph)


def test_a_static_graph_can_go_on_growing():
    finished = laws.grown(Ranges(), [(0, 9), (2, 5), (4, 9), (4, 5)])
    store = Store()
    authority = _authority(store)
    authority.adopt(finished)
    one = DynamicPreprocessor(Ranges(), authority.propose, authority.fetch)
    assert one.subscription((4, 5)) == 3
    new = one.subscription((2, 9))
    assert new == 4
    assert store.graph.parents(new) == {0}
    assert store.graph.children(new) == {1, 2}
    assert _shape(one.graph) == _shape(store.graph)
    with pytest.raises(api.ProtocolError, match="there were 5 changes already"):
        authority.adopt(finished)


def test_a_change_that_does_not_follow_is_refused():
    preprocessor = Preprocessor(Ranges())
    with pytest.raises(api.ProtocolError, match="change 2 does not follow version 0"):
        preprocessor.apply(Inserted(2, 1, "[0, 1]", (), ()))


def test_a_failed_call_leaves_the_preprocessor_usable():
    authority = _authority(Store())
    calls = iter([ConnectionError("gone"), None])

    def propose(proposal: Proposal) -> Any:
        error = next(calls)
        if error:
            raise error
        return authority.propose(proposal)

    one = DynamicPreprocessor(Ranges(), propose, authority.fetch)
    with pytest.raises(ConnectionError):
        one.subscription((0, 1))
    assert one.subscription((0, 2)) == 1
    assert len(one.graph) == 1


def test_a_subscription_that_loses_every_race_gives_up():
    """The other side inserts something before each proposal; a thousand times is enough."""
    authority = _authority(Store())
    rival = DynamicPreprocessor(Ranges(), authority.propose, authority.fetch)
    numbers = itertools.count()

    def propose(proposal: Proposal) -> Any:
        rival.subscription((0, next(numbers) + 10))
        return authority.propose(proposal)

    one = DynamicPreprocessor(Ranges(), propose, authority.fetch)
    with pytest.raises(api.ProtocolError, match="others were faster 1000 times"):
        one.subscription((0, 5))
    assert one.version == len(rival.graph) == 1000
    one._propose = authority.propose
    assert one.subscription((0, 5)) == 1001
