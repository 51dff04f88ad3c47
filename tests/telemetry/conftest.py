"""Live networks without Ray, as the tests of the actors have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "actors"))

from local_network import LocalNetwork


@pytest.fixture
def network() -> Iterator[Callable[..., LocalNetwork]]:
    """Make networks; each is closed after the test, and no host may have failed."""
    made: list[LocalNetwork] = []

    def make(*args: object, **kwargs: object) -> LocalNetwork:
        made.append(LocalNetwork(*args, **kwargs))
        return made[-1]

    yield make
    for each in made:
        each.close()
