"""Checksums of Parquet files: of their bytes, to find damage, and of their content, to compare.

Two runs of Spark may write the same rows in other bytes (it lists a column's encodings in the order
of a hash table), so equal data is told by the content: every column's values in order, whatever
the row groups and pages they came in.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_BATCH = 65_536


def sha256(path: Path) -> str:
    """The checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: Path) -> str:
    """The checksum of a file's columns: names, and values in order; nulls do not occur."""
    columns: dict[str, Any] = defaultdict(hashlib.sha256)
    with pq.ParquetFile(path, pre_buffer=False) as file:  # batch by batch, not all at once
        for batch in file.iter_batches(batch_size=_BATCH):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                _feed(columns, name, column)
    whole = hashlib.sha256()
    for name in sorted(columns):
        whole.update(f"{name} {columns[name].hexdigest()}\n".encode())
    return whole.hexdigest()


def _feed(columns: dict[str, Any], name: str, column: pa.Array) -> None:
    """Lengths and items of lists and strings go apart, so that no cut of the rows shows."""
    if pa.types.is_list(column.type):
        _feed(columns, f"{name} lengths", pa.array(np.diff(column.offsets.to_numpy())))
        _feed(columns, f"{name} items", column.flatten())
    elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        _, offsets, letters = column.buffers()
        at = np.frombuffer(offsets, dtype=np.int32)[column.offset :][: len(column) + 1]
        columns[f"{name} lengths"].update(np.diff(at).tobytes())
        columns[f"{name} letters"].update(memoryview(letters or b"")[at[0] : at[-1]])
    else:
        columns[name].update(column.to_numpy().tobytes())
