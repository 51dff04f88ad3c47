"""A content kind from outside the package: paths in a tree, such as b"/1/0/2"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from workloads.kinds import Codes
from workloads.kinds.lookup import DenseKind, Flags
from workloads.randomness import Draws
from workloads.schema import limited


@dataclass(frozen=True)
class Parameters:
    """Steps of the longest path; whether to fail in the midst of the job."""

    depth: int = limited(1, 8)
    unlucky: bool = False


class Kind(DenseKind):
    """A path covers the paths that it begins."""

    parameter_type = Parameters
    parameters: Parameters
    code_type = "S16"

    def topics(self, draws: Draws) -> Codes:
        if self.parameters.unlucky:
            raise ValueError("no such luck")
        return self._paths(draws, 1 + draws.below(self.parameters.depth, "length"))

    def notices(self, draws: Draws) -> Codes:
        return self._paths(draws, np.full(len(draws), self.parameters.depth))

    def covers(self, above: Codes, below: Codes) -> Flags:
        begins: Any = np.char.startswith(below[None, :], np.char.add(above, b"/")[:, None])
        return np.asarray(begins, dtype=np.bool_)

    def matches(self, topics: Codes, notices: Codes) -> Flags:
        same: Flags = topics[:, None] == notices[None, :]
        return self.covers(topics, notices) | same

    def text(self, codes: Codes) -> pa.Array:
        return pa.array(codes.tolist(), pa.binary()).cast(pa.string())

    def _paths(self, draws: Draws, length: Any) -> Codes:
        paths: Codes = np.full(len(draws), b"", dtype=self.code_type)
        for step in range(self.parameters.depth):
            name = np.char.add(b"/", draws.below(3, f"step {step}").astype("S1"))
            paths = np.where(step < length, np.char.add(paths, name), paths).astype(self.code_type)
        return paths
