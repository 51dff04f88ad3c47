"""The store in memory and the one on disk: one contract, also across restarts and kills."""

from __future__ import annotations

import copy
import json
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import store_history
from store_history import limits, run_batch, state
from typer.testing import CliRunner

from actors.store import DurableStore, StoreError
from f3.cli import app
from routing.errors import ProtocolError
from routing.store import Store

Make = Callable[..., Store]
SOURCE = ("publisher", "host")


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes stores of one kind; on disk each has a file of its own."""
    made: list[Store] = []

    def one(**options: Any) -> Store:
        if request.param == "memory":
            made.append(Store(**options))
        else:
            made.append(DurableStore(tmp_path / f"{len(made)}.db", **options))
        return made[-1]

    yield one
    for store in made:
        store.close()


def fill(store: Store, count: int, size: int = 10) -> None:
    """Append so many entries of one source."""
    for _ in range(count):
        store.append(SOURCE, 1, store.last + 1, (1,), bytes(size))


# -- the contract ------------------------------------------------------------------------------


@pytest.mark.parametrize("commit_every", [1, 7, 1000])
def test_retention_by_count(make: Make, commit_every: int) -> None:
    store = make(capacity=10)
    for i in range(50):
        fill(store, 1)
        if i % commit_every == 0:
            store.commit()
    assert (store.first, store.last, store.bytes) == (41, 50, 100)
    assert [store.entry(p).position for p in range(41, 51)] == list(range(41, 51))
    for gone in (0, 40, 51):
        with pytest.raises(KeyError):
            store.entry(gone)


@pytest.mark.parametrize("commit_every", [1, 7, 1000])
def test_retention_by_bytes_keeps_the_newest(make: Make, commit_every: int) -> None:
    store = make(bytes_max=35)
    for i in range(20):
        fill(store, 1)
        if i % commit_every == 0:
            store.commit()
    assert (store.first, store.last, store.bytes) == (18, 20, 30)
    fill(store, 1, size=500)
    store.commit()
    assert (store.first, store.last, store.bytes) == (21, 21, 500)
    assert len(store.entry(21).payload) == 500


def test_retention_by_age_may_leave_nothing(make: Make) -> None:
    store = make(age_max=10.0)
    for now in range(100, 120):
        store.advance(float(now))
        fill(store, 1)
        store.commit()
    assert (store.first, store.last) == (11, 20)
    store.advance(50.0)
    assert (store.now, store.first) == (119.0, 11)
    store.advance(1000.0)
    store.commit()
    assert (store.first, store.last, store.bytes) == (21, 20, 0)
    fill(store, 1)
    assert store.entry(21).position == 21


def test_a_publication_is_settled_once(make: Make) -> None:
    store = make(window=4)
    assert store.settled(SOURCE, 1, 1) is None
    fill(store, 20)
    assert store.settled(SOURCE, 1, 20) == 20
    assert store.settled(SOURCE, 1, 21) is None
    assert store.settled(SOURCE, 1, 2) == 0
    assert store.settled(SOURCE, 2, 1) is None
    store.append(SOURCE, 2, 1, (1,), b"")
    assert store.settled(SOURCE, 1, 20) == 0
    assert store.settled(("publisher", "elsewhere"), 1, 20) is None


def test_removed_nodes_cover_what_the_log_still_names(make: Make) -> None:
    store = make(capacity=2)
    for node, parents in ((1, ()), (2, (1,)), (3, (2,))):
        store.insert_node(node, parents, ())
    store.append(SOURCE, 1, 1, (3,), b"")
    store.remove_node(3)
    store.commit()
    store.remove_node(2)
    assert store.covering((3,)) == {1}
    with pytest.raises(ProtocolError, match="not used twice"):
        store.insert_node(3, (), ())
    store.append(SOURCE, 1, 2, (1,), b"")
    store.append(SOURCE, 1, 3, (1,), b"")
    assert store.covering((3,)) == set()
    store.commit()
    with pytest.raises(ProtocolError, match="not used twice"):
        store.insert_node(2, (), ())


@pytest.mark.parametrize(
    "bounds", [{"capacity": 0}, {"bytes_max": 0}, {"age_max": 0.0}, {"age_max": -1.0}]
)
def test_a_log_needs_room(make: Make, bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a log "):
        make(**bounds)


# -- disk against memory -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_disk_and_memory_agree_across_restarts_and_crashes(tmp_path: Path, seed: int) -> None:
    """Batches of changes, then a commit, a restart, or a crash that forgets the batch."""
    path = tmp_path / "store.db"
    seen: Counter[str] = Counter()
    rng = random.Random(seed)
    memory, disk = Store(**limits(seed)), DurableStore(path, **limits(seed))
    committed = copy.deepcopy(memory)
    for batch in range(200):
        run_batch(memory, seed, batch, seen)
        run_batch(disk, seed, batch, Counter())
        if batch % 5 == 0:
            assert state(disk) == state(memory)
        end = rng.random()
        if end < 0.8:
            disk.commit()
            committed = copy.deepcopy(memory)
        if end > 0.7:
            seen["crash" if end >= 0.8 else "restart"] += 1
            memory = copy.deepcopy(committed)
            disk.close()
            disk = DurableStore(path, **limits(seed))
            assert state(disk) == state(memory)
            disk.graph.check()
    disk.close()
    for kind in (
        "insert",
        "refused",
        "remove",
        "append",
        "dropped",
        "sampled",
        "again",
        "long ago",
    ):
        assert seen[kind] >= 10, (kind, seen)
    assert min(seen["access"], seen["crash"], seen["restart"]) >= 3, seen


def kill_after(path: Path, seed: int, batch: int, commits: int) -> int:
    """Let a process go on with a history, kill it, and say how far it had told us it was."""
    child = subprocess.Popen(
        [sys.executable, store_history.__file__, str(path), str(seed), str(batch)],
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = threading.Timer(60, child.kill)
    deadline.start()
    try:
        assert child.stdout is not None
        told = batch
        for _ in range(commits):
            told = int(child.stdout.readline())
        child.kill()
        rest = child.stdout.read()
    finally:
        deadline.cancel()
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
    whole = rest.rpartition("\n")[0].split()
    return int(whole[-1]) if whole else told


def test_what_was_committed_comes_back_after_a_kill(tmp_path: Path) -> None:
    """SIGKILL at any moment: the store is at the last batch told of, or one further."""
    path, seed = tmp_path / "store.db", 42
    rng = random.Random(seed)
    memory, done = Store(**limits(seed)), 0
    for _ in range(8):
        told = kill_after(path, seed, done, rng.randint(1, 150))
        while done < told:
            run_batch(memory, seed, done, Counter())
            done += 1
        disk = DurableStore(path, **limits(seed))
        found = state(disk)
        if found != state(memory):
            run_batch(memory, seed, done, Counter())
            done += 1
        assert found == state(memory)
        disk.graph.check()
        disk.close()
    assert done > 200
    assert memory.last > 500


# -- the database ------------------------------------------------------------------------------


def test_options_may_change_between_lives(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = DurableStore(path, access={"p": b"key"})
    fill(store, 100)
    store.commit()
    store.close()
    store = DurableStore(path, capacity=10)
    assert (store.first, store.last, store.access) == (91, 100, {"p": b"key"})
    store.set_access(None)
    store.commit()
    store.close()
    store = DurableStore(path, access={"q": b"other"}, sync="normal")
    assert (store.first, store.access) == (91, {"q": b"other"})
    store.close()
    store = DurableStore(path)
    assert store.access is None
    store.close()


def test_secrets_are_private(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = DurableStore(path, access={"p": b"key"})
    store.commit()
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600}
    store.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = DurableStore(path)
    program = (
        "import sys; from pathlib import Path; from actors.store import DurableStore;"
        "DurableStore(Path(sys.argv[1]), timeout=0.05)"
    )
    second = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60
    )
    assert second.returncode == 1
    assert "another process has it open" in second.stderr
    fill(store, 1)
    store.commit()
    store.close()


def test_files_that_are_no_store_are_refused_and_kept(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match=r"garbage cannot be opened: file is not a database"):
        DurableStore(garbage)
    assert garbage.read_bytes() == b"no database at all" * 100
    with pytest.raises(StoreError, match=r"none/x\.db cannot be opened"):
        DurableStore(tmp_path / "none" / "x.db")
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(StoreError, match="not that of a rendezvous point"):
        DurableStore(other)
    later = tmp_path / "later.db"
    DurableStore(later).close()
    db = sqlite3.connect(later)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="has format 99"):
        DurableStore(later)


def test_a_failed_commit_writes_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    """The disk is full: the database may not grow beyond what it has."""
    path = tmp_path / "store.db"
    store = DurableStore(path)
    store.insert_node(1, (), ())
    fill(store, 10)
    store.commit()
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    fill(store, 50, size=1000)
    with pytest.raises(StoreError, match=r"store\.db cannot be written: database or disk is full"):
        store.commit()
    assert store.entry(60).payload == bytes(1000)
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.commit()
    store.close()
    store = DurableStore(path)
    assert (store.last, store.numbers, len(store.entry(60).payload)) == (60, {1: 60}, 1000)
    store.close()


def test_the_file_stops_growing(tmp_path: Path) -> None:
    """What retention drops is deleted, and its pages are used again."""
    store = DurableStore(tmp_path / "store.db", capacity=100, sync="normal")
    sizes = []
    for _ in range(20):
        for _ in range(50):
            fill(store, 10, size=1000)
            store.commit()
        sizes.append(store._db.execute("PRAGMA page_count").fetchone()[0])
    assert sizes[-1] == sizes[4]
    rows = store._db.execute("SELECT count(*) FROM log").fetchone()[0]
    assert rows == 10
    fill(store, 1000)
    assert len(store._log._entries) == 100, "what is dropped before a commit waits for none"
    store.close()


def test_segments_of_any_size_are_read_right(tmp_path: Path) -> None:
    store = DurableStore(tmp_path / "store.db", sync="normal")
    rng = random.Random(3)
    payloads = [rng.randbytes(rng.choice((0, 10, 3000, 70_000))) for _ in range(200)]
    for i, payload in enumerate(payloads, 1):
        store.append(SOURCE, 1, i, (i, i + 1), payload)
        if rng.random() < 0.05:
            store.commit()
    store.commit()
    assert 20 < store._db.execute("SELECT count(*) FROM log").fetchone()[0] < 150
    for position in [*range(1, 201), *rng.sample(range(1, 201), 200)]:
        entry = store.entry(position)
        assert entry.payload == payloads[position - 1]
        assert entry.nodes == (position, position + 1)
    store.close()


def test_a_commit_without_changes_touches_nothing(tmp_path: Path) -> None:
    store = DurableStore(tmp_path / "store.db")
    fill(store, 3)
    store.commit()
    before = store._db.total_changes
    store.advance(5.0)
    store.commit()
    assert store._db.total_changes == before
    store.close()


def test_the_benchmark_measures_what_it_says(tmp_path: Path) -> None:
    arguments = ["--entries", "1500", "--nodes", "50", "--rounds", "3", "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, ["bench", "store", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    for name in ("sqlite", "lmdb", "store"):
        for sync in ("full", "normal"):
            rates = found[name][sync]
            assert rates["batch_appends_per_s"] > rates["single_appends_per_s"] > 0
    large = found["store"]
    assert large["disk_bytes_per_entry"] > found["payload_bytes"] == 150
    assert min(large["open_s"], large["scan_entries_per_s"], found["memory"]["appends_per_s"]) > 0
    assert list(tmp_path.iterdir()) == []
    wrong = CliRunner().invoke(app, ["bench", "store", "--folder", str(tmp_path / "none")])
    assert wrong.exit_code == 2
    assert "is no folder" in wrong.stderr


def test_a_hole_in_the_log_is_an_error(tmp_path: Path) -> None:
    store = DurableStore(tmp_path / "store.db", bytes_max=1000)
    fill(store, 5)
    store.commit()
    store._db.execute("DELETE FROM log")
    with pytest.raises(StoreError, match="lost its entry 1"):
        store.entry(1)
    with pytest.raises(StoreError, match="lost its entry 1"):
        fill(store, 1, size=2000)
    store.close()


def test_what_is_remembered_of_publishers_is_a_window_each(tmp_path: Path) -> None:
    """Two that take turns leave a row a publication, and the window takes it away again."""
    store = DurableStore(tmp_path / "store.db", window=16, sync="normal")
    store.insert_node(1, (), ())
    sources = [("p", "h"), ("q", "h")]
    for number in range(1, 200):
        for source in sources:
            store.append(source, 1, number, (1,), b"")
            store.commit()
    rows = store._db.execute("SELECT count(*) FROM settled").fetchone()[0]
    assert rows == 2 * 16
    store.close()
    again = DurableStore(tmp_path / "store.db", window=16)
    expected = [(0 if n <= 183 else 2 * n - 1, 0 if n <= 183 else 2 * n) for n in range(1, 200)]
    assert [tuple(again.settled(s, 1, n) for s in sources) for n in range(1, 200)] == expected
    again.append(sources[0], 2, 1, (1,), b"")
    again.commit()
    left = again._db.execute("SELECT count(*) FROM settled WHERE publisher = 'p'").fetchone()[0]
    assert left == 1, "an earlier life is over"
    again.close()
