"""The session with the next hop towards the rendezvous point: what is asked of it, and the stream.

Kulik 2004, sections 3.4.5 to 3.4.7. This end opens the session with a listing of everything it
wants, says from then on what changes, and compares digests once a period. Whatever comes back
is numbered, so a break is noticed, and passed on to whoever is below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from routing import messages
from routing.api import Address, Effect, Report, Send, View
from routing.batch import Batch
from routing.digest import NodeSet
from routing.errors import ProtocolError
from routing.messages import UNKNOWN
from routing.nodes import Nodes, Phase
from routing.session import Stream, Upstream
from routing.table import Neighbor

#: How often the wait before the next listing doubles while none is answered.
_BACKOFF_MAX = 3


class UpstreamSession:
    """The one session of a namespace in which this router is the lower end."""

    def __init__(
        self,
        name: Address,
        view: View,
        up: Upstream,
        nodes: Nodes,
        stream: Stream,
        emit: Callable[[Effect], None],
        follow: Callable[[bool, float], None],
        forward: Callable[[Batch, float], None],
    ) -> None:
        self._name = name
        self._config = view.config
        self._rng = view.rng
        self._up = up
        self._nodes = nodes
        self._stream = stream
        self._emit = emit
        #: Called when the stream has moved, with whether that is news to those below.
        self._follow = follow
        self._forward = forward

    # -- messages ------------------------------------------------------------------------

    def receive(self, src: Neighbor, message: messages.DownMessage, now: float) -> None:
        """GraphSetup, UnsubscribeAck, Reject, ResubscribeAck or Notify from upstream."""
        up = self._up
        if src != up.neighbor:
            self._report("misrouted", src=src)
            return
        if isinstance(message, messages.Notify):
            self._notified(message, now)
            return
        if message.session != up.session:
            return
        if isinstance(message, messages.ResubscribeAck):
            self._acknowledged(message, now)
            return
        if message.number != up.received + 1 or not up.opened:
            if message.number > up.received:
                self._open(now)
            return
        up.received += 1
        try:
            self._answered(message)
        except ProtocolError as error:
            self._report("bad-setup", reason=str(error))
            up.opened = False

    def _answered(
        self, message: messages.GraphSetup | messages.UnsubscribeAck | messages.Reject
    ) -> None:
        nodes = self._nodes
        if isinstance(message, messages.GraphSetup):
            self._stream.upper = max(self._stream.upper, message.upper)
            for setup in message.graph:
                nodes.learn(setup)
            for setup in message.setups:
                nodes.set_up(setup)
        elif isinstance(message, messages.UnsubscribeAck):
            for node in message.nodes:
                nodes.closed(node)
        else:
            for node in message.nodes:
                nodes.rejected(node, message.reason)

    def _acknowledged(self, ack: messages.ResubscribeAck, now: float) -> None:
        up = self._up
        if not ack.ok:
            self._open(now)
            return
        if ack.opened and not up.opened:
            self._opened()
        elif ack.number > up.received:
            self._open(now)
            return
        elif ack.number < up.received or ack.notified < up.notified:
            return  # an old one, doubled on its way
        up.heard = now
        if up.interrupted:
            up.interrupted = False
            self._report("restored")
        self._follow_stream(ack, now)

    def _opened(self) -> None:
        """The listing has arrived: what was given up before it is no longer on the wire."""
        up = self._up
        up.opened = True
        up.attempts = 0
        up.received = 1
        closing, up.closing = up.closing, []
        for node in closing:
            self._nodes.closed(node)

    # -- the stream of notifications -----------------------------------------------------

    def _follow_stream(self, ack: messages.ResubscribeAck, now: float) -> None:
        """Whether the stream is whole, and passing it on if that has changed."""
        up, stream = self._up, self._stream
        up.broken |= ack.notified != up.notified
        up.notified = ack.notified
        if ack.mark == UNKNOWN:
            return
        since = max(stream.since, ack.upper if up.broken else ack.since)
        news = since != stream.since or stream.mark == UNKNOWN
        up.broken = False
        stream.since = since
        stream.mark = max(stream.mark, ack.mark)
        stream.upper = max(stream.upper, ack.upper)
        self._follow(news, now)

    def _notified(self, message: messages.Notify, now: float) -> None:
        batch, up, stream = message.batch, self._up, self._stream
        if not len(batch):
            return
        if message.session == up.session:
            if message.number <= up.notified:
                self._report("duplicate")
                return
            if message.number > up.notified + 1:
                stream.since = max(stream.since, batch.first() - 1)
                self._follow(True, now)
            up.notified = message.number + len(batch) - 1
        if batch.first() <= stream.upper:
            batch = self._without_stale(batch, now)
            if not len(batch):
                return
        stream.upper = batch.last()
        self._forward(batch, now)

    def _without_stale(self, batch: Batch, now: float) -> Batch:
        """Positions rise along a tree: an older one is doubled, or comes while trees change.

        Then it may be going round in a circle of routers that have not all heard of the new
        tree yet, so it goes no farther; whoever is due it still finds it in the log.
        """
        stream = self._stream
        rows = [row for row in range(len(batch)) if batch.position(row) > stream.upper]
        self._report("stale", notifications=len(batch) - len(rows))
        stream.since = max(stream.since, min(stream.upper, batch.last()))
        self._follow(True, now)
        headers = list(batch.headers())
        return batch.select(rows, [headers[row] for row in rows])

    # -- sending -------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Send the requests and releases that have gathered."""
        up = self._up
        if not self._nodes.states:
            up.refresh_at = None
        requests, releases = self._nodes.take()
        if not up.up or not (requests or releases):
            return
        if up.session is None:
            self._open(now)
            return
        if up.refresh_at is None:
            up.heard, up.refresh_at = now, now + self._period()
        if releases:
            up.sent += 1
            self._send(messages.Unsubscribe(self._name, up.session, up.sent, tuple(releases)))
        if requests:
            up.sent += 1
            self._send(messages.Subscribe(self._name, up.session, up.sent, tuple(requests)))

    def _open(self, now: float) -> None:
        """Open a session with a listing of everything wanted."""
        self._nodes.take()
        up = self._up
        if not up.up:
            return
        session = up.open(self._nodes.in_phase(Phase.CLOSING), now)
        up.refresh_at = now + self._period(up.attempts)
        self._send(
            messages.Resubscribe(
                self._name,
                session,
                0,
                0,
                self._nodes.wanted.digest(),
                True,
                tuple(self._nodes.in_phase(Phase.ACTIVE)),
                tuple(self._nodes.in_phase(Phase.PENDING)),
            )
        )

    def _reopen(self, now: float) -> None:
        self._up.session = None
        self._up.attempts = 0
        if self._nodes.states:
            self._open(now)

    def _send(self, message: messages.UpMessage) -> None:
        self._emit(Send(self._up.neighbor, message))

    # -- links ---------------------------------------------------------------------------

    def link_down(self, neighbor: Neighbor) -> None:
        """Nothing can be sent until the link is back."""
        if neighbor == self._up.neighbor:
            self._up.up = False
            self._up.session = None

    def link_up(self, neighbor: Neighbor, now: float) -> None:
        """Whatever was on the link may be lost: start over."""
        if neighbor == self._up.neighbor:
            self._up.up = True
            self._reopen(now)

    def restarted(self, neighbor: Neighbor, now: float) -> None:
        """A neighbour has forgotten everything."""
        if neighbor == self._up.neighbor:
            self._reopen(now)

    def leads_to(self, neighbor: Neighbor) -> bool:
        """Whether a neighbour is the next hop."""
        return neighbor == self._up.neighbor

    def leave(self, now: float) -> None:
        """Tell the next hop, while it still is, that it need not keep anything."""
        up = self._up
        if up.session is not None and up.up:
            session, digest = up.open([], now), NodeSet().digest()
            self._send(messages.Resubscribe(self._name, session, 0, 0, digest, listed=True))

    def move(self, neighbor: Neighbor, up: bool, now: float) -> None:
        """Take all subscriptions to another next hop."""
        self._up.neighbor, self._up.up = neighbor, up
        self._reopen(now)

    # -- time ----------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Refresh the session, or open it anew, if that is due (section 3.4.7)."""
        up = self._up
        if up.refresh_at is None or up.refresh_at > now:
            return
        if not self._nodes.states or not up.up:
            up.refresh_at = None
            return
        silent = now - up.heard > self._config.lifetime
        if silent and not up.interrupted:
            up.interrupted = True
            self._report("interrupted", neighbor=up.neighbor)
        if up.session is None or not up.opened or silent:
            self._open(now)
            return
        up.refresh_at = now + self._period()
        digest = self._nodes.wanted.digest()
        self._send(messages.Resubscribe(self._name, up.session, up.sent, up.received, digest))

    def timeouts(self) -> Iterator[float]:
        """When a tick is due."""
        if self._up.refresh_at is not None and self._nodes.states:
            yield self._up.refresh_at

    def _period(self, attempts: int = 0) -> float:
        """Between two refreshes; spread so that routers do not fall into step."""
        spread: float = self._rng.uniform(0.75, 1.25)
        return self._config.period * spread * 2.0 ** min(attempts, _BACKOFF_MAX)

    def _report(self, name: str, **fields: object) -> None:
        self._emit(Report(name, {"namespace": self._name, **fields}))
