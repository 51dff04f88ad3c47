"""The types of attributes, each an ordered set of values with a next one.

int, float   numbers; floats are finite, and 5 is 5.0 where floats are meant
string       texts, ordered by code points
bool         false before true
date         calendar days, written 2004-05-24
ip           addresses; IPv4 before IPv6; a network stands for all its addresses
"""

from __future__ import annotations

import datetime
import ipaddress
import math
import sys
from abc import ABC, abstractmethod
from typing import Any

from preprocess.errors import LanguageError
from preprocess.forms import VALUE_MAX, shown
from preprocess.spans import TOP, Span, Spans

#: Larger whole numbers are refused, so that all of them have a place among the floats.
_INT_MAX = 2**127
_V4 = 2**32
_ADDRESSES = _V4 + 2**128


class Kind(ABC):
    """One type: how values are read, written, and what comes next."""

    name: str
    #: All values are in [bottom, top).
    bottom: Any
    top: Any
    #: Whether bottom and top are far from all values in use.
    open = False

    @abstractmethod
    def read(self, value: object) -> Any:
        """The value behind a Python object or its text; ValueError if there is none."""

    def after(self, value: Any) -> Any:
        """The next value."""
        return value + 1

    def before(self, value: Any) -> Any:
        """The value before."""
        return value - 1

    def scale(self, value: Any) -> float:
        """A number that never decreases where values increase."""
        return float(value)

    def value(self, source: object, position: str) -> Any:
        """As `read`, with an error that says where."""
        try:
            return self.read(source)
        except (ValueError, TypeError, OverflowError) as error:
            reason = f"not a value of type {self.name}: {shown(source)}"
            raise LanguageError(f"{reason} ({error})" if str(error) else reason, position) from None

    def span(self, source: object, position: str) -> Span:
        """The span that one operand stands for."""
        value = self.value(source, position)
        return (value, self.after(value))

    @property
    def whole(self) -> Spans:
        """Every value."""
        return ((self.bottom, self.top),)

    def raw(self, source: Any, position: str, end: Any) -> Any:
        """A value as it was written by `shown`."""
        if source is None:
            return end
        if type(source) is not type(self.bottom):
            raise LanguageError(
                f"not an end of a span of type {self.name}: {shown(source)}", position
            )
        if not self.bottom <= source <= self.top:
            raise LanguageError(f"{shown(source)} is out of range for type {self.name}", position)
        return source

    def shown(self, value: Any) -> Any:
        """A value for JSON; None for the bottom and the top."""
        return None if value in (self.bottom, self.top) else value


class Int(Kind):
    """Whole numbers."""

    name, bottom, top, open = "int", 1 - _INT_MAX, _INT_MAX, True

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError("a whole number expected")
        number = int(value)
        if not -_INT_MAX < number < _INT_MAX:
            raise ValueError("too large")
        return number


class Float(Kind):
    """Finite numbers."""

    name, bottom, top, open = "float", -sys.float_info.max, math.inf, True

    def read(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError("a number expected")
        number = float(value)
        if not math.isfinite(number):
            raise ValueError("not finite")
        return number + 0.0

    def after(self, value: float) -> float:
        return math.nextafter(value, math.inf)

    def before(self, value: float) -> float:
        return math.nextafter(value, -math.inf)


class String(Kind):
    """Texts."""

    name, bottom, top = "string", "", TOP

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise TypeError("a text expected")
        if len(value) > VALUE_MAX:
            raise ValueError(f"more than {VALUE_MAX} characters")
        value.encode()
        return value

    def after(self, value: str) -> str:
        return value + "\0"

    def before(self, value: str) -> str:
        raise NotImplementedError("there is no last text before another")

    def scale(self, value: str | Any) -> float:
        """Six bytes and the length, of which 7 stands for all that are longer: 51 bits."""
        if value is TOP:
            return 2.0**52
        data = value.encode()
        return float(int.from_bytes(data[:6].ljust(6, b"\0"), "big") * 8 + min(len(data), 7))

    def shown(self, value: Any) -> Any:
        return None if value is TOP else value


class Bool(Kind):
    """False and true, as 0 and 1."""

    name, bottom, top = "bool", 0, 2

    def read(self, value: object) -> int:
        texts = {"true": 1, "false": 0}
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, str) and value.lower() in texts:
            return texts[value.lower()]
        raise TypeError("true or false expected")


class Date(Kind):
    """Days, as their number."""

    name, bottom, top = "date", 1, datetime.date.max.toordinal() + 1

    def read(self, value: object) -> int:
        if isinstance(value, str):
            value = datetime.date.fromisoformat(value)
        if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
            raise TypeError("a day such as 2004-05-24 expected")
        return value.toordinal()


class Ip(Kind):
    """Addresses, as numbers on one line."""

    name, bottom, top = "ip", 0, _ADDRESSES

    def read(self, value: object) -> int:
        address = ipaddress.ip_address(self._checked(value))
        return int(address) + (0 if address.version == 4 else _V4)

    def span(self, source: object, position: str) -> Span:
        """An address, or all addresses of a network."""
        try:
            network = ipaddress.ip_network(self._checked(source))
        except (ValueError, TypeError) as error:
            raise LanguageError(f"not an address or network: {error}", position) from None
        offset = 0 if network.version == 4 else _V4
        first = int(network.network_address) + offset
        return (first, first + network.num_addresses)

    def _checked(self, value: object) -> str:
        """A number would be taken for an address; only texts and address objects are."""
        if isinstance(value, bool | int | float) or value is None:
            raise TypeError("an address such as 10.0.0.1 expected")
        return str(value)


KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (Int(), Float(), String(), Bool(), Date(), Ip())
}
