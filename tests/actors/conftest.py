"""A fixture that makes networks and sees them closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
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
