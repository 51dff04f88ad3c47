"""A language of one's own: subscriptions to geographic boxes, notifications at points.

Kulik 2004, section 3.3, has applications define their own functions for sorting subscriptions,
geographic data among them. This is all that takes: how a box is read, written, ordered and
matched. The index comes with the base class; a language for millions of boxes would bring its own.

    python examples/geographic_boxes.py
"""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from preprocess.errors import LanguageError
from preprocess.language import Language
from preprocess.preprocessor import Header
from preprocess.replica import Authority, DynamicPreprocessor
from routing.api import InsertNode, RemoveNode
from routing.store import Store


class Box(NamedTuple):
    """Degrees, edges included; a box may span the whole globe but not cross the date line."""

    south: float
    west: float
    north: float
    east: float


class Point(NamedTuple):
    """Degrees."""

    latitude: float
    longitude: float


class GeographicBoxes(Language[Box, Point]):
    """A box covers the boxes within it and holds the points within it."""

    name = "geographic-boxes"

    def parse(self, subscription: object) -> Box:
        """Four numbers, as a list, a tuple or JSON: south, west, north, east."""
        box = Box(*_degrees(subscription, ("south", "west", "north", "east")))
        if box.south > box.north or box.west > box.east:
            raise LanguageError(f"{tuple(box)} has no inside: this can match nothing")
        return box

    def parse_notification(self, notification: object) -> Point:
        """Two numbers: latitude, longitude."""
        return Point(*_degrees(notification, ("latitude", "longitude")))

    def covers(self, a: Box, b: Box) -> bool:
        """Whether b lies within a."""
        return a.south <= b.south and a.west <= b.west and b.north <= a.north and b.east <= a.east

    def matches(self, topic: Box, notification: Point) -> bool:
        """Whether the point lies within the box."""
        return (
            topic.south <= notification.latitude <= topic.north
            and topic.west <= notification.longitude <= topic.east
        )

    def text(self, topic: Box) -> str:
        """JSON, which `parse` reads."""
        return json.dumps(topic)


def _degrees(source: object, names: tuple[str, ...]) -> list[float]:
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except ValueError as error:
            raise LanguageError(f"not JSON: {error}") from None
    if not isinstance(source, list | tuple) or len(source) != len(names):
        raise LanguageError(f"{len(names)} numbers expected: {', '.join(names)}")
    for name, value in zip(names, source, strict=True):
        limit = 90 if name in ("south", "north", "latitude") else 180
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise LanguageError(f"a number expected, not {value!r}", name)
        if not math.isfinite(value) or abs(value) > limit:
            raise LanguageError(f"{value} is not within {limit} degrees", name)
    return [float(value) for value in source]


def _authority(store: Store) -> Authority:
    """The authority beside a rendezvous point, which in this example is only its store."""

    def perform(event: InsertNode | RemoveNode) -> None:
        if isinstance(event, InsertNode):
            store.insert_node(event.node, event.parents, event.children)
        else:
            store.remove_node(event.node)

    return Authority(perform)


def main() -> list[Header]:
    """Four subscriptions and three earthquakes."""
    authority = _authority(Store())
    preprocessor = DynamicPreprocessor(GeographicBoxes(), authority.propose, authority.fetch)
    subscriptions = {
        "the world": (-90, -180, 90, 180),
        "Japan": (24, 122, 46, 146),
        "around Tokyo": (35, 139, 36.5, 141),
        "Pacific, west": (-60, 120, 60, 180),
    }
    for name, box in subscriptions.items():
        print(f"{name:15} is node {preprocessor.subscription(box)}")
    headers = []
    for place, point in (("Tokyo", (35.7, 139.7)), ("Fiji", (-17.7, 178)), ("Lima", (-12, -77))):
        headers.append(preprocessor.notification(point))
        print(f"a quake near {place:6} carries {headers[-1].nodes}")
    return headers


if __name__ == "__main__":
    main()
