"""The durable store of a rendezvous point: what routing.store holds, in an SQLite database.

Everything but the log is kept in memory too, so answers cost what they cost there; entries of
the log are read from the database once they are committed. A change only marks what it touched,
and `commit` writes all of it in one transaction: the runtime holds back the effects of a batch of
events until then, so whatever was acknowledged is there after a kill (Kulik 2004, section 3.4.9,
leaves the log's home open).

SQLite in WAL mode rather than LMDB, by `f3 bench store`: with every commit flushed to the disk
SQLite took 1.5 to 2 times as many single commits, for LMDB flushes twice; LMDB was 3 times ahead
in large batches that are not flushed, where both are far above what a rendezvous point accepts.
And SQLite needs no package, no guess of the database's final size, and stays whole on power
failure even where commits are not flushed.

Not here: several processes on one database (the second one is refused), and replication.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgpack  # type: ignore[import-untyped]

from routing.content_graph import ContentGraph, NodeId
from routing.store import Entry, Log, Settled, Source, Store, add_run

Sync = Literal["full", "normal"]
"""full: a commit survives power failure; normal: a killed process, and is never torn."""

_FORMAT = 2
_APPLICATION = 0x4633_5250
_SCHEMA = """
CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER, inserted INTEGER,
                   first INTEGER, last INTEGER, bytes INTEGER, now REAL, restricted INTEGER);
CREATE TABLE log (last INTEGER PRIMARY KEY, entries BLOB);
CREATE TABLE nodes (node INTEGER PRIMARY KEY, parents BLOB);
CREATE TABLE numbers (node INTEGER PRIMARY KEY, number INTEGER);
CREATE TABLE retired (node INTEGER PRIMARY KEY, parents BLOB, last INTEGER);
CREATE TABLE settled (publisher TEXT, host TEXT, number INTEGER, position INTEGER, count INTEGER,
                      incarnation INTEGER, PRIMARY KEY (publisher, host, number)) WITHOUT ROWID;
CREATE TABLE access (publisher TEXT PRIMARY KEY, key BLOB) WITHOUT ROWID;
"""
_DELETE_PASSED = """
DELETE FROM settled
WHERE publisher = ? AND host = ? AND number <= ? AND number + count <= ? + 1
"""
#: A segment of the log is closed when it has so many bytes; a record is more than its payload.
_SEGMENT_BYTES = 1 << 16
_RECORD_BYTES = 16

_Record = tuple[float, Sequence[NodeId], bytes] | tuple[float, Sequence[NodeId], bytes, bytes]
"""An entry in a segment: when it came, its nodes, its payload; its trace context, if sampled."""


class StoreError(Exception):
    """The database cannot be opened, read or written; names its file and the reason."""


class DurableStore(Store):
    """The durable state of one rendezvous point, in a database file; for one thread at a time."""

    def __init__(
        self,
        path: Path,
        capacity: int = 100_000,
        window: int = 64,
        access: Mapping[str, bytes] | None = None,
        *,
        bytes_max: int | None = None,
        age_max: float | None = None,
        sync: Sync = "full",
        timeout: float = 5.0,
    ) -> None:
        """Open or make the database, waiting so long for another process to let go of it.

        Without `access` the list in the database stays; a new one lets everybody publish.
        """
        super().__init__(capacity, window, bytes_max=bytes_max, age_max=age_max)
        self.path = path
        self._touched_nodes: set[NodeId] = set()
        self._touched_numbers: set[NodeId] = set()
        #: Per source, the runs (number, position, count) that it has published since.
        self._settling: dict[Source, list[tuple[int, int, int]]] = {}
        self._newly_retired: dict[NodeId, tuple[tuple[NodeId, ...], int]] = {}
        self._forgotten: list[Source] = []
        self._touched_access = False
        with _explained(path, "opened"):
            self._db = _open(path, sync, timeout)
        self._log: _SqlLog = _SqlLog(self._db, path)
        try:
            with _explained(path, "read"):
                self._load()
        except BaseException:
            self._db.close()
            raise
        if access is not None:
            self.set_access(access)
        self._trim()

    # -- changes: as in memory, and marked -----------------------------------------------

    def insert_node(
        self, node: NodeId, parents: Iterable[NodeId], children: Iterable[NodeId]
    ) -> None:
        """Add a node; ProtocolError where it has no such place, or had one before."""
        below = tuple(children)
        super().insert_node(node, parents, below)
        self._touched_nodes.update((node, *below))

    def remove_node(self, node: NodeId) -> None:
        """Take a node out, and remember what covered it for as long as the log names it."""
        below = tuple(self.graph.children(node)) if node in self.graph else ()
        super().remove_node(node)
        self._touched_nodes.update((node, *below))
        self._touched_numbers.add(node)
        self._newly_retired[node] = self._removed[node]

    def append(
        self,
        source: Source,
        incarnation: int,
        number: int,
        nodes: tuple[NodeId, ...],
        payload: bytes,
        trace: bytes = b"",
    ) -> Entry:
        """Accept a publication: the next position, and one more for each of its nodes."""
        entry = super().append(source, incarnation, number, nodes, payload, trace)
        self._touched_numbers.update(nodes)
        return entry

    def _settle(self, source: Source, incarnation: int, number: int) -> None:
        known = self._settled.get(source)
        if known is None or incarnation > known.incarnation:
            self._forget_rows(source)
        super()._settle(source, incarnation, number)
        add_run(self._settling.setdefault(source, []), number, self.last)

    def _forget_source(self, source: Source) -> None:
        super()._forget_source(source)
        self._forget_rows(source)

    def _forget_rows(self, source: Source) -> None:
        """Nothing of an earlier life, or of a source that is forgotten, stays in the database."""
        self._forgotten.append(source)
        self._settling.pop(source, None)

    def set_access(self, access: Mapping[str, bytes] | None) -> None:
        """Replace the access list; None lets everybody publish."""
        super().set_access(None if access is None else dict(access))
        self._touched_access = True

    # -- durability ----------------------------------------------------------------------

    def commit(self) -> None:
        """Write every change in one transaction; StoreError if that fails, and nothing is written.

        After a failure the store is ahead of its database: try again, or stop.
        """
        if not self._is_touched():
            return
        with _explained(self.path, "written"), _transaction(self._db) as db:
            self._log.write(db, self.first)
            self._write_graph(db)
            self._write_settled(db)
            if self._touched_access:
                _write_access(db, self.access)
            restricted = self.access is not None
            row = (*self._position(), self.now, restricted)
            db.execute("REPLACE INTO meta VALUES (1, ?, ?, ?, ?, ?, ?, ?)", row)
        self._log.written()
        self._forget_touched()

    def close(self) -> None:
        """Close the database; what was not committed is given up, as in a crash."""
        self._db.close()

    def _position(self) -> tuple[int, int, int, int, int]:
        return self.version, self.inserted, self.first, self.last, self.bytes

    def _is_touched(self) -> bool:
        return self._position() != self._committed or self._touched_access

    def _forget_touched(self) -> None:
        self._committed = self._position()
        self._touched_nodes.clear()
        self._touched_numbers.clear()
        self._settling.clear()
        self._forgotten.clear()
        self._newly_retired.clear()
        self._touched_access = False

    def _write_graph(self, db: sqlite3.Connection) -> None:
        graph, numbers = self.graph, self.numbers
        kept = [(n, _pack(sorted(graph.parents(n)))) for n in self._touched_nodes if n in graph]
        db.executemany("REPLACE INTO nodes VALUES (?, ?)", kept)
        gone = [(node,) for node in self._touched_nodes if node not in graph]
        db.executemany("DELETE FROM nodes WHERE node = ?", gone)
        counted = [(n, numbers[n]) for n in self._touched_numbers if n in numbers]
        db.executemany("REPLACE INTO numbers VALUES (?, ?)", counted)
        gone = [(node,) for node in self._touched_numbers if node not in numbers]
        db.executemany("DELETE FROM numbers WHERE node = ?", gone)
        retired = [(n, _pack(parents), last) for n, (parents, last) in self._newly_retired.items()]
        db.executemany("REPLACE INTO retired VALUES (?, ?, ?)", retired)

    def _write_settled(self, db: sqlite3.Connection) -> None:
        """Only what is new: a run is written once, and deleted when the window has passed it."""
        db.executemany("DELETE FROM settled WHERE publisher = ? AND host = ?", self._forgotten)
        for source, runs in self._settling.items():
            known = self._settled[source]
            passed = known.newest - self._window
            db.execute(_DELETE_PASSED, (*source, passed, passed))
            rows = [(*source, *run, known.incarnation) for run in runs]
            db.executemany("REPLACE INTO settled VALUES (?, ?, ?, ?, ?, ?)", rows)

    # -- coming back ---------------------------------------------------------------------

    def _load(self) -> None:
        db = self._db
        row = db.execute("SELECT * FROM meta").fetchone()
        if row is not None:
            _, self.version, self.inserted, self.first, self.last, self.bytes, self.now, _ = row
            self._load_graph(db)
            self._load_settled(db)
            if row[-1]:
                self.access = dict(db.execute("SELECT publisher, key FROM access"))
        self._committed = self._position()

    def _load_settled(self, db: sqlite3.Connection) -> None:
        found: dict[Source, Settled] = {}
        rows = db.execute("SELECT * FROM settled ORDER BY publisher, host, number")
        for publisher, host, number, position, count, incarnation in rows:
            known = found.setdefault((publisher, host), Settled(incarnation))
            known.add(number, position, self._window, count)
        self._settled = dict(sorted(found.items(), key=lambda each: each[1].last))

    def _load_graph(self, db: sqlite3.Connection) -> None:
        rows = db.execute("SELECT node, parents FROM nodes")
        self.graph = ContentGraph.of_parents({node: _unpack(above) for node, above in rows})
        self.numbers = dict(db.execute("SELECT node, number FROM numbers"))
        for node, parents, last in db.execute("SELECT * FROM retired ORDER BY last, rowid"):
            self._retired.add(node)
            if last >= self.first:
                self._removed[node] = (tuple(_unpack(parents)), last)


class _SqlLog(Log):
    """Entries that wait for the next commit in memory, all others in the database.

    A commit writes its entries as a few segments, each under the position of its last entry: a
    row for every entry would cost several times as much.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        super().__init__()
        #: Nothing before this is in the database; and after the next commit.
        self._first = self._next_first = 0
        # One follows the old end of the log, the other whoever asks for entries.
        self._oldest = _Reader(db, path)
        self._asked = _Reader(db, path)

    def entry(self, position: int) -> Entry:
        """An entry that is still there."""
        if position in self._entries:
            return super().entry(position)
        _, nodes, *rest = self._asked.at(position)
        return Entry(position, tuple(nodes), *rest)

    def oldest(self, position: int) -> tuple[int, float]:
        """The size of the oldest entry's payload, and when it came; it is at this position."""
        if position in self._entries:
            return super().oldest(position)
        record = self._oldest.at(position)
        return len(record[2]), record[0]

    def drop(self, position: int) -> None:
        """Forget the oldest entry, the one at this position; commits delete whole segments."""
        self._entries.pop(position, None)

    def write(self, db: sqlite3.Connection, first: int) -> None:
        """Put what waits into the transaction, and delete what is before `first`."""
        rows: list[tuple[int, bytes]] = []
        segment: list[_Record] = []
        size = 0
        for entry, came in self._entries.values():
            record = (came, entry.nodes, entry.payload)
            segment.append((*record, entry.trace) if entry.trace else record)
            size += len(entry.payload) + _RECORD_BYTES
            if size >= _SEGMENT_BYTES:
                rows.append((entry.position, _pack(segment)))
                segment, size = [], 0
        if segment:
            rows.append((entry.position, _pack(segment)))
        db.executemany("INSERT INTO log VALUES (?, ?)", rows)
        if first > self._first:
            db.execute("DELETE FROM log WHERE last < ?", (first,))
            self._next_first = first

    def written(self) -> None:
        """The transaction is durable: nothing waits any longer."""
        self._first = self._next_first
        self._entries.clear()


class _Reader:
    """Reads entries by position, and keeps the segment of the latest one."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._first = 0
        self._segment: list[_Record] = []

    def at(self, position: int) -> _Record:
        """When the entry came, its nodes and its payload."""
        if not 0 <= position - self._first < len(self._segment):
            self._fetch(position)
        return self._segment[position - self._first]

    def _fetch(self, position: int) -> None:
        query = "SELECT last, entries FROM log WHERE last >= ? ORDER BY last LIMIT 1"
        with _explained(self._path, "read"):
            row = self._db.execute(query, (position,)).fetchone()
            segment = [] if row is None else _unpack(row[1])
        if row is None or row[0] - len(segment) >= position:
            raise StoreError(f"{self._path}: the log has lost its entry {position}")
        self._first, self._segment = row[0] - len(segment) + 1, segment


# -- the database ------------------------------------------------------------------------------


def _open(path: Path, sync: Sync, timeout: float) -> sqlite3.Connection:
    # The access list holds secrets: nobody else may read the file (its WAL has the same mode).
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if sync == 'full' else 'NORMAL'}")
        db.execute(f"PRAGMA journal_size_limit = {64 << 20}")
        _check_format(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new database; StoreError for one that is not ours."""
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if not application and not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        with _transaction(db):
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.execute(f"PRAGMA user_version = {_FORMAT}")
    elif application != _APPLICATION:
        raise StoreError(f"{path} is a database, but not that of a rendezvous point")
    elif version != _FORMAT:
        raise StoreError(f"{path} has format {version}; this program reads format {_FORMAT}")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        # A full disk may have ended the transaction already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """Say which file it was, and what may be wrong, where SQLite says little."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError) as error:
        hint = "; another process has it open" if "locked" in str(error) else ""
        raise StoreError(f"{path} cannot be {what}: {error}{hint}") from error


def _write_access(db: sqlite3.Connection, access: Mapping[str, bytes] | None) -> None:
    db.execute("DELETE FROM access")
    db.executemany("INSERT INTO access VALUES (?, ?)", sorted((access or {}).items()))


def _pack(value: object) -> bytes:
    return bytes(msgpack.packb(value))


def _unpack(data: bytes) -> list:  # type: ignore[type-arg]
    return msgpack.unpackb(data, strict_map_key=False)  # type: ignore[no-any-return]
