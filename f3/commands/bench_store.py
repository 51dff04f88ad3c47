"""`f3 bench store`: what durability costs a rendezvous point, and which engine makes it cheapest.

`sqlite` and `lmdb` write the bare log, one record a commit; `store` is the whole durable store on
SQLite, with its graph, numbers and settled publications; `memory` is the same without durability.
All are measured in turns and the medians reported, for disks have moods. LMDB is measured only
where its package is installed.
"""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

if TYPE_CHECKING:
    from routing.store import Store

BATCH = 1000
#: Batches, and entries committed one by one, in a round.
_BATCHES = 20
_SINGLES = 200
_SCANNED = 100_000
_SYNCS = ("full", "normal")
_NAMES = ("single_appends_per_s", "batch_appends_per_s")


class Engine(Protocol):
    """A log in some database, opened by its constructor."""

    def append(self, payloads: list[bytes]) -> None:
        """Add entries at the end, and commit."""

    def close(self) -> None:
        """Let go of the file."""


Make = Callable[[Path, str], Engine]


def store(
    entries: Annotated[int, typer.Option(min=1, help="in the log when it is opened")] = 1_000_000,
    nodes: Annotated[int, typer.Option(min=1, help="in the content graph")] = 50_000,
    payload: Annotated[int, typer.Option(min=0, help="bytes of one entry")] = 150,
    rounds: Annotated[int, typer.Option(min=1, help="of appends; medians count")] = 5,
    folder: Annotated[Path | None, typer.Option(help="on the disk to measure")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Measure appends one by one and in batches of 1000, the recovery scan, and opening."""
    if folder is not None and not folder.is_dir():
        typer.echo(f"error: {folder} is no folder", err=True)
        raise typer.Exit(2)
    result: dict[str, Any] = {"entries": entries, "nodes": nodes, "payload_bytes": payload}
    engines: dict[str, Make] = {"sqlite": _Sqlite}
    if _has_lmdb():
        engines["lmdb"] = _Lmdb
    engines["store"] = lambda path, sync: _Whole(path, sync, nodes)
    with tempfile.TemporaryDirectory(dir=folder, prefix="f3-bench-") as place:
        for sync in _SYNCS:
            typer.echo(f"measuring appends, synchronous {sync} …", err=True)
            found = _appends(engines, Path(place), sync, bytes(payload), rounds)
            for name, rates in found.items():
                result.setdefault(name, {})[sync] = rates
        typer.echo(f"filling a log with {entries} entries …", err=True)
        result["store"] |= _reopen(Path(place) / "large", entries, nodes, bytes(payload))
    result["memory"] = {"appends_per_s": _memory_rate(nodes, bytes(payload))}
    typer.echo(json.dumps(result) if as_json else _text(result))


# -- measuring ---------------------------------------------------------------------------------


def _appends(
    engines: dict[str, Make], place: Path, sync: str, payload: bytes, rounds: int
) -> dict[str, dict[str, int]]:
    """Per engine, entries a second one by one and in batches: the medians of some rounds."""
    opened = {name: make(place / f"{name}-{sync}", sync) for name, make in engines.items()}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in opened}
    for _ in range(rounds):
        for name, engine in opened.items():
            single = _rate(engine.append, [payload], _SINGLES)
            batch = _rate(engine.append, [payload] * BATCH, _BATCHES)
            rates[name].append((single, batch * BATCH))
    for engine in opened.values():
        engine.close()
    return {
        name: {key: round(median(column)) for key, column in zip(_NAMES, columns, strict=True)}
        for name, columns in ((name, zip(*pairs, strict=True)) for name, pairs in rates.items())
    }


def _rate(append: Callable[[list[bytes]], None], payloads: list[bytes], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        append(payloads)
    return count / (time.perf_counter() - begin)


def _reopen(path: Path, entries: int, nodes: int, payload: bytes) -> dict[str, Any]:
    """Fill a store, open it again, and read the end of its log as a recovery would."""
    from actors.store import DurableStore

    whole = _Whole(path, "normal", nodes, entries)
    for start in range(0, entries, BATCH):
        whole.append([payload] * min(BATCH, entries - start))
    whole.close()
    begin = time.perf_counter()
    kept = DurableStore(path, entries)
    opened = time.perf_counter()
    assert kept.last == entries
    for position in range(max(1, entries - _SCANNED + 1), entries + 1):
        kept.entry(position)
    scanned = time.perf_counter()
    kept.close()
    return {
        "open_s": round(opened - begin, 4),
        "scan_entries_per_s": round(min(entries, _SCANNED) / (scanned - opened)),
        "disk_bytes_per_entry": round(path.stat().st_size / entries, 1),
    }


def _memory_rate(nodes: int, payload: bytes) -> int:
    from routing.store import Store

    kept, rng = Store(capacity=1_000_000), _rng()
    _grow(kept, nodes)
    begin = time.perf_counter()
    for i in range(_SCANNED):
        kept.append(("publisher", "host"), 1, i, (rng.randrange(nodes),), payload)
    return round(_SCANNED / (time.perf_counter() - begin))


def _grow(kept: Store, nodes: int) -> None:
    """A content graph of ten children a node."""
    for node in range(nodes):
        kept.insert_node(node, ((node - 1) // 10,) if node else (), ())


def _rng() -> random.Random:
    return random.Random(1)


def _text(result: dict[str, Any]) -> str:
    lines = [f"{'entries a second':<18}{'1 by 1':>12}{'batches':>12}"]
    for sync in _SYNCS:
        for name in ("sqlite", "lmdb", "store"):
            if one := result.get(name):
                cells = "".join(f"{rate:>12}" for rate in one[sync].values())
                lines.append(f"{name + ', ' + sync:<18}{cells}")
    lines.append(f"{'memory':<18}{result['memory']['appends_per_s']:>12}")
    large = result["store"]
    lines.append(
        f"with {result['entries']} entries of {result['payload_bytes']} bytes and "
        f"{result['nodes']} nodes: opened in {large['open_s']} s, "
        f"scanned at {large['scan_entries_per_s']} a second, "
        f"{large['disk_bytes_per_entry']} bytes an entry"
    )
    return "\n".join(lines)


# -- the engines -------------------------------------------------------------------------------


def _record(payloads: list[bytes]) -> bytes:
    import msgpack  # type: ignore[import-untyped]

    return bytes(msgpack.packb([(0.0, (1,), one) for one in payloads]))


class _Sqlite:
    def __init__(self, path: Path, sync: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {sync}")
        self._db.execute("CREATE TABLE log (last INTEGER PRIMARY KEY, entries BLOB)")
        self._last = 0

    def append(self, payloads: list[bytes]) -> None:
        self._last += len(payloads)
        self._db.execute("INSERT INTO log VALUES (?, ?)", (self._last, _record(payloads)))

    def close(self) -> None:
        self._db.close()


def _has_lmdb() -> bool:
    from importlib.util import find_spec

    return find_spec("lmdb") is not None


class _Lmdb:
    def __init__(self, path: Path, sync: str) -> None:
        import lmdb

        # The map must be given the largest size that the log will ever have.
        self._db = lmdb.open(str(path), map_size=8 << 30, sync=sync == "full")
        self._last = 0

    def append(self, payloads: list[bytes]) -> None:
        self._last += len(payloads)
        with self._db.begin(write=True) as transaction:
            transaction.put(self._last.to_bytes(8, "big"), _record(payloads), append=True)

    def close(self) -> None:
        self._db.close()


class _Whole:
    """The durable store; each entry has one random node and comes from one publisher."""

    def __init__(self, path: Path, sync: str, nodes: int, capacity: int = 1_000_000) -> None:
        from actors.store import DurableStore

        self._store = DurableStore(path, capacity, sync="full" if sync == "full" else "normal")
        self._nodes = nodes
        self._rng = _rng()
        _grow(self._store, nodes)
        self._store.commit()

    def append(self, payloads: list[bytes]) -> None:
        append, pick, last = self._store.append, self._rng.randrange, self._store.last
        for number, one in enumerate(payloads, last + 1):
            append(("publisher", "host"), 1, number, (pick(self._nodes),), one)
        self._store.commit()

    def close(self) -> None:
        self._store.close()
