"""Content kinds: what subscribers can ask for, how topics cover one another, what matches.

A kind is one module here (or any importable module, named with its dots) that holds a class called
`Kind`. Topics and notices are numpy arrays of one type, 64-bit codes or fixed-width bytes; the
order of the codes is the canonical order that numbers the nodes of a content graph.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from workloads.errors import ScenarioError
from workloads.randomness import Draws, Ints

Codes = NDArray[Any]
Pairs = tuple[Ints, Ints]


class Order(ABC):
    """The partial order of the topics that were subscribed to; topics are known by their index."""

    @abstractmethod
    def parents(self, start: int, stop: int) -> Pairs:
        """Edges of the transitive reduction above topics [start, stop): (children, parents)."""

    @abstractmethod
    def headers(self, notices: Codes) -> Pairs:
        """The lowest topics that match each notice: (rows of the notices, topics)."""


class ContentKind(ABC):
    """A language of subscriptions and notices with its probabilities."""

    #: A frozen dataclass: the keys of a scenario's [content] table (see workloads.schema).
    parameter_type: ClassVar[type]
    #: The numpy type of the codes: int64, or bytes of a fixed width such as "S40".
    code_type: ClassVar[DTypeLike] = np.int64

    parameters: Any

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters

    @abstractmethod
    def topics(self, draws: Draws) -> Codes:
        """What one subscription a row asks for."""

    @abstractmethod
    def notices(self, draws: Draws) -> Codes:
        """What one notification a row is about."""

    @abstractmethod
    def order(self, topics: Codes) -> Order:
        """The order among distinct topics, given in canonical (ascending) order."""

    @abstractmethod
    def text(self, codes: Codes) -> pa.Array:
        """Topics or notices as people would read them, an array of strings."""


def kind_named(name: str) -> type[ContentKind]:
    """The class behind a scenario's `kind`: a module of this package, or package.module."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*|\w+(\.\w+)+", name):
        raise ScenarioError(f"kind {name!r} is neither a content kind's name nor a dotted module")
    module = name if "." in name else f"{__name__}.{name.replace('-', '_')}"
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise ScenarioError(f"there is no content kind {name!r}: no module {module}") from None
    kind = getattr(found, "Kind", None)
    if not (isinstance(kind, type) and issubclass(kind, ContentKind)):
        raise ScenarioError(f"{module} is no content kind: it has no ContentKind class `Kind`")
    return kind
