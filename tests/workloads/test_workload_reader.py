"""A reader holds a batch and a row group, however long the file is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workloads.reader import Workload

ROWS, GROUP, BATCH = 2_000_000, 50_000, 10_000
ROW_BYTES = 16


@pytest.fixture
def long(tmp_path: Path) -> Workload:
    """A workload of one router with very many subscriptions, and nothing else."""
    file = tmp_path / "subscriptions" / "router=0" / "part-00000.parquet"
    file.parent.mkdir(parents=True)
    rng = np.random.default_rng(1)
    rows = {"subscriber": np.arange(ROWS), "node": rng.integers(0, 2**60, ROWS)}
    pq.write_table(pa.table(rows), file, row_group_size=GROUP, use_dictionary=False)
    manifest = {
        "format": 1,
        "counts": {"subscriptions": ROWS},
        "scenario": {"subscribers": {"routers": 1}},
        "files": {str(file.relative_to(tmp_path)): {"bytes": file.stat().st_size}},
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return Workload(tmp_path)


def test_memory_does_not_grow_with_the_file(long: Workload) -> None:
    before = pa.total_allocated_bytes()
    most = rows = 0
    for batch in long.subscriptions(batch_rows=BATCH):
        rows += len(batch.node)
        assert len(batch.node) <= BATCH
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == ROWS
    assert 0 < most < 5 * GROUP * ROW_BYTES < ROWS * ROW_BYTES / 7
