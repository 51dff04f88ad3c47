"""Brute force for content kinds: topics as plain sets, orders by comparing all pairs.

Nothing here uses the arithmetic of the kinds: a code is turned into the set of things that it
stands for by listing all codes of a small parameter space.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

Things = frozenset[Any]


class Brute:
    """A small language: what every topic covers and every notice is about, as sets."""

    def __init__(
        self,
        topics: dict[int, Things],
        notices: dict[int, Things],
        matches: Callable[[Things, Things], bool],
    ) -> None:
        self.topics = topics
        self.notices = notices
        self._matches = matches

    def above(self, one: int, other: int) -> bool:
        """Strictly covers."""
        return self.topics[one] > self.topics[other]

    def between(self, one: int, other: int) -> bool:
        """Whether the language has a topic between two, subscribed to or not."""
        return any(self.above(one, topic) and self.above(topic, other) for topic in self.topics)

    def edges(self, nodes: list[int]) -> set[tuple[int, int]]:
        """The transitive reduction: (parent, child) with nothing in between."""
        order = {(a, b) for a in nodes for b in nodes if self.above(a, b)}
        return {
            (a, b) for a, b in order if not any((a, c) in order and (c, b) in order for c in nodes)
        }

    def header(self, nodes: list[int], notice: int) -> set[int]:
        """The matching nodes that cover no other matching node."""
        about = self.notices[notice]
        hits = [node for node in nodes if self._matches(self.topics[node], about)]
        return {a for a in hits if not any(self.above(a, b) for b in hits)}


def baseball(teams: int) -> Brute:
    """Topics are sets of games; from three teams on, a team has more than one game."""
    games = [frozenset(pair) for pair in combinations(range(teams), 2)]
    topics = {0: frozenset(games)}
    for team in range(teams):
        topics[1 + team] = frozenset(game for game in games if team in game)
    pairs = {1 + teams + min(game) * teams + max(game): frozenset([game]) for game in games}
    return Brute(topics | pairs, pairs, lambda topic, game: game <= topic)


def ranges(exits: int, one_exit: bool) -> Brute:
    """Topics are sets of exits: containment orders them, overlap matches."""
    stretches = {
        low * exits + high: frozenset(range(low, high + 1))
        for low in range(exits)
        for high in range(low + (not one_exit), exits)
    }
    return Brute(stretches, stretches, lambda topic, notice: bool(topic & notice))


def attribute_value(attributes: int, values: int) -> Brute:
    """Topics are sets of notices; a notice is a tuple with None where an attribute is absent."""
    points = list(product([None, *range(1, values + 1)], repeat=attributes))
    topics, notices = {}, {}
    for digits in product(range(values + 1), repeat=attributes):
        code = 0
        for digit in digits:
            code = code * (values + 1) + digit
        topics[code] = frozenset(
            point
            for point in points
            if all(d in (0, p) for d, p in zip(digits, point, strict=True))
        )
        notices[code] = frozenset([tuple(digit or None for digit in digits)])
    return Brute(topics, notices, lambda topic, notice: notice <= topic)


def from_children(children: dict[int, list[int]]) -> Brute:
    """Topics are the nodes that can be reached, oneself included."""

    def reach(node: int) -> Things:
        met, stack = {node}, [node]
        while stack:
            for child in children[stack.pop()]:
                if child not in met:
                    met.add(child)
                    stack.append(child)
        return frozenset(met)

    topics = {node: reach(node) for node in children}
    notices = {node: frozenset([node]) for node in children}
    return Brute(topics, notices, lambda topic, notice: notice <= topic)


def layers(nodes: int, depth: int, degree: int) -> Brute:
    """Equal layers around a circle."""
    width = nodes // depth
    children: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for layer, place, step in product(range(depth - 1), range(width), range(degree)):
        children[layer * width + place].append((layer + 1) * width + (place + step) % width)
    return from_children(children)


def tree(nodes: int, depth: int, degree: int) -> Brute:
    """Trees filled level by level, one after the other."""
    children: dict[int, list[int]] = {node: [] for node in range(nodes)}
    fresh = iter(range(nodes))
    node = next(fresh, None)
    while node is not None:
        level = [node]
        for _ in range(depth - 1):
            below = []
            for parent in level:
                for child in (next(fresh, None) for _ in range(degree)):
                    if child is not None:
                        children[parent].append(child)
                        below.append(child)
            level = below
        node = next(fresh, None)
    return from_children(children)
