"""Overlays by name: the papers' networks, simple shapes, and files.

transit-stub-64  transit-stub-100  transit-stub-1200  chen-55
chain:LENGTH  star:LEAVES  tree:FAN_OUT,DEPTH
any file that ends in .graphml, .json or .toml
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from topology import shapes
from topology.files import read_json, read_toml
from topology.graphml import read_graphml
from topology.overlay import CutOffError, Overlay, TopologyError
from topology.transit_stub import PRESETS, transit_stub

_SHAPES: dict[str, tuple[str, Callable[..., Overlay]]] = {
    "chain": ("LENGTH", shapes.chain),
    "star": ("LEAVES", shapes.star),
    "tree": ("FAN_OUT,DEPTH", shapes.balanced_tree),
}
_READERS = {".graphml": read_graphml, ".json": read_json, ".toml": read_toml}
_BYTES_MAX = 50_000_000

NAMES = (
    *(f"transit-stub-{size}" for size in sorted(PRESETS)),
    "chen-55",
    *(f"{name}:{arguments}" for name, (arguments, _) in _SHAPES.items()),
)


def load(name: str, seed: int = 0) -> Overlay:
    """The connected overlay of a name or in a file; `seed` is for the random ones."""
    path = Path(name)
    if path.suffix.lower() in _READERS:
        return _load_file(path)
    if name == "chen-55":
        return shapes.chen()
    for size in PRESETS:
        if name == f"transit-stub-{size}":
            return transit_stub(size, seed)
    return _shape(name)


def _shape(name: str) -> Overlay:
    word, _, rest = name.partition(":")
    if word not in _SHAPES:
        known = ", ".join(NAMES)
        raise TopologyError(
            f"no topology is called {name!r}; known are {known}, "
            f"and files ending in {', '.join(_READERS)}"
        )
    arguments, make = _SHAPES[word]
    numbers = rest.split(",")
    if len(numbers) != arguments.count(",") + 1 or not all(n.isdecimal() for n in numbers):
        raise TopologyError(f"write {word}:{arguments} with whole numbers, not {name!r}")
    return make(*map(int, numbers))


def _load_file(path: Path) -> Overlay:
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror or error}") from error
    if len(data) > _BYTES_MAX:
        raise TopologyError(f"{path}: a file of more than {_BYTES_MAX} bytes is no topology")
    try:
        return _READERS[path.suffix.lower()](data).require_connected()
    except CutOffError as error:
        raise CutOffError(error.root, error.routers, f"{path}: ") from error
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error
