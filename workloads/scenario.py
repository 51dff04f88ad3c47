"""Scenarios: declarative files that say who subscribes to what, what is published, who leaves.

A scenario is one TOML file, `scenarios/<name>.toml` here or anywhere on disk. It names a content
kind and gives its parameters; a file may extend another one and restate only what differs. Every
key is checked (see workloads.schema), and parameters may be set from the command line.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from workloads.errors import ScenarioError
from workloads.kinds import ContentKind, kind_named
from workloads.schema import fill, limited

_SECTIONS = ("content", "subscribers", "notifications", "churn")
_LOOSE = ("about", "kind", "seconds", "extends")


@dataclass(frozen=True)
class Subscribers:
    """How many subscribers there are at first, their topics each, the routers they sit on.

    They choose a router at random, or take them in turn: as many subscribers as routers are then
    one at each (Kulik 2004, section 4.1.1).
    """

    count: int = limited(1, 10**12, 1_000_000)
    topics_each: int = limited(1, 1_000, 1)
    routers: int = limited(1, 100_000, 10)
    in_turn: bool = False


@dataclass(frozen=True)
class Notifications:
    """How many notifications come, from how many different routers."""

    count: int = limited(0, 10**12, 1_000)
    sources: int = limited(1, 100_000, 1)


@dataclass(frozen=True)
class Churn:
    """Arrivals as a share of the subscribers; departures as a probability; moves per subscriber."""

    arrivals: float = limited(0, 100, 0.01)
    departures: float = limited(0, 1, 0.01)
    moves: float = limited(0, 1_000, 0.01)


@dataclass(frozen=True)
class Scenario:
    """A checked scenario; `content` is the parameters of its content kind."""

    name: str
    kind: str
    content: Any
    about: str = ""
    seconds: float = 60.0
    subscribers: Subscribers = field(default_factory=Subscribers)
    notifications: Notifications = field(default_factory=Notifications)
    churn: Churn = field(default_factory=Churn)

    def __post_init__(self) -> None:
        routers = self.subscribers.routers
        if self.notifications.sources > routers:
            raise ScenarioError(
                f"notifications.sources: {self.notifications.sources} sources need as many "
                f"routers, and subscribers.routers is {routers}"
            )
        if self.churn.moves and routers < 2:
            raise ScenarioError(
                "churn.moves: with one router there is nowhere to move to; "
                "set churn.moves to 0 or subscribers.routers to 2 or more"
            )

    def content_kind(self) -> ContentKind:
        """The language with this scenario's parameters."""
        return kind_named(self.kind)(self.content)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values, for a manifest."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class _Loose:
    """The keys outside the sections."""

    kind: str
    about: str = ""
    seconds: float = limited(0.001, 10**9, 60.0)


def scenario_names() -> list[str]:
    """The scenarios that come with the package."""
    folder = resources.files("workloads") / "scenarios"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def load_scenario(name: str, parameters: Mapping[str, object] | None = None) -> Scenario:
    """The scenario of that name (or of the file at that path), with some parameters replaced.

    A parameter is called `section.key`, or just `key` if it is one of the content.
    """
    table = _merged(name, ())
    for key, value in (parameters or {}).items():
        section, dot, entry = key.rpartition(".")
        if not dot:
            section = "" if key in _LOOSE else "content"
        if not section:
            table[key] = value
        elif isinstance(table.setdefault(section, {}), dict):  # else it is refused below
            table[section][entry] = value
    return scenario_of(Path(name).stem if name.endswith(".toml") else name, table)


def scenario_of(name: str, table: Mapping[str, Any]) -> Scenario:
    """A scenario of a table as a file would hold it, with everything checked."""
    loose = {key: value for key, value in table.items() if key not in _SECTIONS}
    top = fill(_Loose, loose, f"scenario {name}", also=(*_SECTIONS, "extends"))
    kind = kind_named(top.kind)
    return Scenario(
        name=name,
        kind=top.kind,
        about=top.about,
        seconds=top.seconds,
        content=fill(kind.parameter_type, table.get("content", {}), "content"),
        subscribers=fill(Subscribers, table.get("subscribers", {}), "subscribers"),
        notifications=fill(Notifications, table.get("notifications", {}), "notifications"),
        churn=fill(Churn, table.get("churn", {}), "churn"),
    )


def parse_parameters(pairs: Iterable[str]) -> dict[str, object]:
    """Command-line parameters `key=value`; values are read as TOML, else as plain words."""
    parameters: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(f"parameter {pair!r} is not of the form key=value")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        parameters[key.strip()] = value
    return parameters


def _merged(name: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """A file's table on top of that of the file it extends."""
    if name in seen:
        raise ScenarioError(f"scenario {name} extends itself: {' -> '.join((*seen, name))}")
    table = _read(name)
    base_name = table.pop("extends", None)
    if base_name is None:
        return table
    if not isinstance(base_name, str):
        raise ScenarioError(f"scenario {name}: extends must be a name, not {base_name!r}")
    if base_name.endswith(".toml"):  # as seen from the file that names it
        base_name = str(Path(name).parent / base_name)
    base = _merged(base_name, (*seen, name))
    for key, value in table.items():
        if key in _SECTIONS and isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] |= value
        else:
            base[key] = value
    return base


def _read(name: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        source: Any = Path(name)
    else:
        source = resources.files("workloads") / "scenarios" / f"{name}.toml"
        if name not in scenario_names():
            raise ScenarioError(
                f"there is no scenario {name!r}; there are {', '.join(scenario_names())}, "
                "or give the path of a .toml file"
            )
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"scenario {name} is not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"scenario {name} cannot be read: {error}") from None
