"""Checksums: content does not see how a file was cut, bytes see everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workloads.checksums import content_sha256, sha256

ROWS: dict[str, list[Any]] = {
    "number": [1, 2, 3, 4],
    "text": ["ab", "", "c", "ä"],
    "code": [b"x", b"\0", b"", b"yy"],
    "nodes": [[1, 2], [], [3], []],
}


def written(folder: Path, rows: dict[str, list[Any]], **options: Any) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(rows), path, **options)
    return path


def test_cuts_and_codecs_do_not_show_in_the_content(tmp_path: Path) -> None:
    one = written(tmp_path, ROWS)
    two = written(tmp_path, ROWS, row_group_size=1, compression="gzip", use_dictionary=False)
    assert sha256(one) != sha256(two)
    assert content_sha256(one) == content_sha256(two)


@pytest.mark.parametrize(
    "change",
    [
        {"number": [1, 2, 4, 3]},
        {"text": ["a", "b", "c", "ä"]},
        {"code": [b"x", b"", b"\0", b"yy"]},
        {"nodes": [[1], [2], [3], []]},
        {"nodes": [[1, 2], [], [], [3]]},
    ],
)
def test_every_change_shows(tmp_path: Path, change: dict[str, list[Any]]) -> None:
    assert content_sha256(written(tmp_path, ROWS)) != content_sha256(
        written(tmp_path, ROWS | change)
    )


def test_a_name_is_content(tmp_path: Path) -> None:
    other = {"nummer" if name == "number" else name: column for name, column in ROWS.items()}
    assert content_sha256(written(tmp_path, ROWS)) != content_sha256(written(tmp_path, other))
