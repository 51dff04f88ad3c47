"""Static preprocessors from the Parquet graph that the workload job writes.

Two folders: nodes (node, text) and edges (parent, child). The texts are subscriptions of the
language that the graph was made for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from preprocess.errors import LanguageError
from preprocess.language import Language, N, T
from preprocess.preprocessor import Preprocessor
from routing.content_graph import NodeId


def load_graph(language: Language[T, N], folder: str | Path) -> Preprocessor[T, N]:
    """A static preprocessor for a graph on disk; LanguageError names the node that is wrong."""
    texts = dict(_rows(Path(folder) / "nodes", "node", "text"))
    parents: defaultdict[NodeId, list[NodeId]] = defaultdict(list)
    for parent, child in _rows(Path(folder) / "edges", "parent", "child"):
        for node in (parent, child):
            if node not in texts:
                raise LanguageError("an edge names it, and there is no such node", f"node {node}")
        parents[child].append(parent)
    _check_texts(language, texts)
    preprocessor = Preprocessor(language)
    preprocessor.adopt((node, text, parents[node]) for node, text in texts.items())
    return preprocessor


def _check_texts(language: Language[T, N], texts: dict[NodeId, str]) -> None:
    for node, text in texts.items():
        try:
            language.parse(text)
        except LanguageError as error:
            raise LanguageError(str(error), f"node {node}") from error


def _rows(folder: Path, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows of all Parquet files in a folder."""
    import pyarrow.parquet

    if not folder.is_dir():
        raise LanguageError("there is no such folder; has the workload job run?", str(folder))
    for path in sorted(folder.rglob("*.parquet")):
        table = pyarrow.parquet.read_table(path, columns=list(columns), partitioning=None)
        yield from zip(*(table.column(name).to_pylist() for name in columns), strict=True)
