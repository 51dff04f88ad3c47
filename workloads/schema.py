"""Checked tables: a dataclass says which keys a table may have, of what type, within what limits.

Unknown keys, wrong types and impossible values are refused with a sentence that names the key, the
value and what would be accepted; nothing is converted in silence and nothing is ignored.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

from workloads.errors import ScenarioError

Record = TypeVar("Record")

_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


def limited(low: float, high: float, default: Any = dataclasses.MISSING) -> Any:
    """A number field with limits, both of them allowed; required if it has no default."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high})


def fill(
    record: type[Record], table: Mapping[str, object], where: str, also: tuple[str, ...] = ()
) -> Record:
    """Make a record of a table, or say what is wrong with it; `also` are keys to hint at."""
    if not isinstance(table, Mapping):
        raise ScenarioError(f"{where} must be a table of keys and values, not {table!r}")
    types = get_type_hints(record)
    fields = {field.name: field for field in dataclasses.fields(record)}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            raise ScenarioError(f"{where}: {_unknown(str(key), (*fields, *also))}")
    values: dict[str, object] = {}
    for name, field in fields.items():
        if name in table:
            label = f"{where}.{name}"
            values[name] = _checked(table[name], types[name], field.metadata, label)
        elif field.default is dataclasses.MISSING:
            raise ScenarioError(f"{where}: the key {name!r} is missing")
    return record(**values)


def _unknown(key: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
    return f"unknown key {key!r}; {hint}"


def _checked(value: object, wanted: type, limits: Mapping[str, float], label: str) -> object:
    """The value, if it is of the type and within the limits; a whole number passes as a number."""
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ScenarioError(f"{label} must be {_NAMES[wanted]}, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{label} must be finite, not {value!r}")
    if limits and isinstance(value, (int, float)):
        low, high = limits["low"], limits["high"]
        if not low <= value <= high:
            raise ScenarioError(f"{label} must lie between {low:,} and {high:,}, not {value:,}")
    return value
