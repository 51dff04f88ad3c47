"""Preprocessors of a cluster: a central actor, several actors, or one embedded in each client.

All three are replicas of one content graph (`preprocess.replica`; Kulik 2004, section 3.4.4).
The authority over a namespace's graph is an actor beside its rendezvous point. It writes a change
to its file before the rendezvous point makes it, so that after a kill the two agree again: the
last change of the file is made once more, and refused if it was made already.

Messages between these are calls of Ray: they carry subscriptions, never notifications.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import ray

from actors.answers import RefusedError
from actors.connect import administer
from actors.publisher import Publisher
from preprocess.language import Language
from preprocess.preprocessor import Change, Header, Inserted, Preprocessor, Removed
from preprocess.replica import Authority, DynamicPreprocessor, Fetch, Proposal, insertions
from routing.api import InsertNode, NodeId, Refusal, RemoveNode
from routing.errors import ProtocolError

if TYPE_CHECKING:
    from actors.cluster import Cluster

T = TypeVar("T")

_CALL_SECONDS = 30.0
#: How often a publication whose header was found in too old a graph is tried again.
ATTEMPTS = 20
#: Refusals that a newer copy of the graph may cure: it has grown, or a node has left it.
_STALE = frozenset((Refusal.OLD_VERSION, Refusal.UNKNOWN_NODE))


class ChangeFile:
    """The changes of a graph as lines of JSON; the last one may be torn by a kill."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        self.changes = [_change(line, path) for line in whole.splitlines()]
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(len(whole))
        self._file.seek(len(whole))
        self._before = len(whole)

    def append(self, *changes: Change) -> None:
        """Write changes down before they are made."""
        self._before = self._file.tell()
        self._file.writelines(map(_line, changes))
        self._sync()

    def take_back(self) -> None:
        """What was appended last cannot be made."""
        self._file.truncate(self._before)
        self._file.seek(self._before)
        self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _line(change: Change) -> bytes:
    kind = "removed" if isinstance(change, Removed) else "inserted"
    fields = {name: getattr(change, name) for name in type(change).__slots__}
    return json.dumps({"change": kind, **fields}).encode() + b"\n"


def _change(line: bytes, path: Path) -> Change:
    try:
        fields = json.loads(line)
        if fields.pop("change") == "removed":
            return Removed(**fields)
        fields["parents"], fields["children"] = tuple(fields["parents"]), tuple(fields["children"])
        return Inserted(**fields)
    except (ValueError, TypeError, KeyError) as error:
        raise ProtocolError(f"{path} is no file of changes: {error}") from error


class DurableAuthority:
    """An authority whose changes survive it; `perform` has the rendezvous point take an event."""

    def __init__(self, path: Path, perform: Callable[[InsertNode | RemoveNode], None]) -> None:
        self._file = ChangeFile(path)
        self._perform = perform
        self._authority = Authority(perform, self._file.changes)
        if self._file.changes:
            self._make_again(self._file.changes[-1], perform)

    def _make_again(self, last: Change, perform: Callable[[InsertNode | RemoveNode], None]) -> None:
        try:
            if isinstance(last, Removed):
                perform(RemoveNode(last.node))
            else:
                perform(InsertNode(last.node, last.parents, last.children, last.version - 1))
        except ProtocolError:
            return  # it was made before the kill

    def propose(self, proposal: Proposal) -> Sequence[Change]:
        """Take a proposal if it is for the current version; the changes since the proposer's."""
        authority = self._authority
        if proposal.version != authority.version:
            return authority.propose(proposal)
        place = proposal.parents, proposal.children
        version, node = authority.version + 1, authority.next_node
        self._file.append(Inserted(version, node, proposal.topic, *place))
        try:
            return authority.propose(proposal)
        except ProtocolError:
            self._file.take_back()
            raise

    def remove(self, node: NodeId) -> None:
        """Take a node out; ProtocolError if it is not there."""
        self._file.append(Removed(self._authority.version + 1, node))
        try:
            self._authority.remove(node)
        except ProtocolError:
            self._file.take_back()
            raise

    def adopt(self, insertions: Sequence[Inserted]) -> None:
        """Begin with a graph that the rendezvous point has; only before there is any change."""
        self._authority.require_none()
        self._file.append(*insertions)
        self._authority = Authority(self._perform, insertions)

    def fetch(self, fetch: Fetch) -> Sequence[Change]:
        """The changes after a version."""
        return self._authority.fetch(fetch)

    @property
    def conflicts(self) -> int:
        """Proposals that came too late."""
        return self._authority.conflicts

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class AuthorityActor:
    """The authority over one namespace's graph, as a Ray actor."""

    def __init__(self, cluster: str, namespace: str, folder: str) -> None:
        path = Path(folder) / f"{quote(namespace, safe='')}.changes"

        def perform(event: InsertNode | RemoveNode) -> None:
            administer(cluster, namespace, [event])

        self._authority = DurableAuthority(path, perform)

    def propose(self, proposal: Proposal) -> Sequence[Change]:
        """Take a proposal if it is for the current version; the changes since the proposer's."""
        return self._or_start_over(lambda: self._authority.propose(proposal))

    def remove(self, node: NodeId) -> None:
        """Take a node out; ProtocolError if it is not there."""
        self._or_start_over(lambda: self._authority.remove(node))

    def adopt(self, insertions: Sequence[Inserted]) -> None:
        """Begin with a graph that the rendezvous point has; only before there is any change."""
        self._or_start_over(lambda: self._authority.adopt(insertions))

    def _or_start_over(self, action: Callable[[], T]) -> T:
        """Any failure but a refusal leaves file and graph in doubt; says why it ends."""
        try:
            return action()
        except ProtocolError:
            raise
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def fetch(self, fetch: Fetch) -> Sequence[Change]:
        """The changes after a version."""
        return self._authority.fetch(fetch)

    def conflicts(self) -> int:
        """Proposals that came too late."""
        return self._authority.conflicts

    def stop(self) -> None:
        """End in good order."""
        self._authority.close()


class PreprocessorActor:
    """One of any number of preprocessors of a namespace, as a Ray actor."""

    def __init__(self, language: Language[Any, Any], authority: Any) -> None:
        self._preprocessor = embedded(language, authority)

    def subscription(self, subscription: object) -> NodeId:
        """The node of a subscription, inserted if it is new."""
        return self._preprocessor.subscription(subscription)

    def notification(self, notification: object) -> Header:
        """The header of a notification."""
        return self._preprocessor.notification(notification)

    def notifications(
        self, notifications: Sequence[object]
    ) -> tuple[list[tuple[NodeId, ...]], int]:
        """The nodes of many notifications, and the graph version."""
        return self._preprocessor.notifications(notifications)

    def catch_up(self) -> None:
        """Take over whatever has changed."""
        self._preprocessor.catch_up()

    def graph(self) -> dict[NodeId, tuple[str, tuple[NodeId, ...]]]:
        """Every node with its topic and its parents."""
        found = self._preprocessor
        return {
            node: (found.language.text(topic), tuple(sorted(found.graph.parents(node))))
            for topic, node in found.nodes.items()
        }

    def stop(self) -> None:
        """Nothing to close."""


def embedded(language: Language[Any, Any], authority: Any) -> DynamicPreprocessor[Any, Any]:
    """A preprocessor in this process, within reach of a namespace's authority."""

    def call(method: str) -> Callable[[Any], Sequence[Change]]:
        def ask(request: Any) -> Sequence[Change]:
            try:
                ref = getattr(authority, method).remote(request)
                changes: Sequence[Change] = ray.get(ref, timeout=_CALL_SECONDS)
                return changes
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, ProtocolError) else error from None

        return ask

    return DynamicPreprocessor(language, call("propose"), call("fetch"))


class RemotePreprocessor:
    """A preprocessor that is an actor, with the methods of one that is embedded."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def subscription(self, subscription: object) -> NodeId:
        """The node of a subscription, inserted if it is new."""
        return int(self._call("subscription", subscription))

    def notification(self, notification: object) -> Header:
        """The header of a notification."""
        return Header(*self._call("notification", notification))

    def notifications(
        self, notifications: Sequence[object]
    ) -> tuple[list[tuple[NodeId, ...]], int]:
        """The nodes of many notifications, and the graph version: one call for all."""
        nodes, version = self._call("notifications", notifications)
        return nodes, version

    def catch_up(self) -> None:
        """Take over whatever has changed."""
        self._call("catch_up")

    def _call(self, method: str, *args: object) -> Any:
        try:
            return ray.get(getattr(self.actor, method).remote(*args), timeout=_CALL_SECONDS)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, ValueError) else error from None


def adopt(cluster: Cluster, namespace: str, finished: Preprocessor[Any, Any]) -> None:
    """Give a namespace without nodes the graph of a static preprocessor, which may then grow."""
    rows = insertions(finished)
    cluster.load_graph(namespace, [(row.node, row.parents) for row in rows])
    try:
        ray.get(cluster.authority(namespace).adopt.remote(rows), timeout=_CALL_SECONDS)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, ProtocolError) else error from None


def publish(
    publisher: Publisher,
    preprocessor: DynamicPreprocessor[Any, Any] | RemotePreprocessor,
    namespace: str,
    notification: object,
    body: bytes,
    timeout: float = 10.0,
    sample: bool | None = None,
) -> int:
    """Publish content: find its header, and find it again if the graph has changed meanwhile.

    Every attempt is a publication of its own and, where sampled (see `Publisher.send`), a trace:
    its preprocessing has a span, which from the second on begins with catching up.
    """
    for attempt in range(1, ATTEMPTS + 1):
        since_ns = time.time_ns()
        if attempt > 1:
            preprocessor.catch_up()
        header = preprocessor.notification(notification)
        send = partial(publisher.publish, version=header.version, timeout=timeout)
        try:
            return send(namespace, header.nodes, body, sample=sample, since_ns=since_ns)
        except RefusedError as error:
            if error.code not in _STALE or attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")
