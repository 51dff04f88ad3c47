"""An index for attribute-value topics: hash probes of a notification's generalisations.

The thesis asks for something better than breadth-first search (Kulik 2004, section 6.3). Here an
attribute has a field of a few bits and each of its values a number in it, so that a topic is one
integer, with zeros for wildcards. A notification's generalisations are made field by field, and
only as far as some topic begins like that. Of two topics that match the same notification, one
covers the other exactly if its bits are among the other's, and is then the smaller number.

Batches are worked off column by column with numpy, as long as all fields fit into 63 bits.
"""

from __future__ import annotations

from preprocess.attribute_value import Pair, Pairs, Values
from preprocess.language import Language, Position
from preprocess.subsets import AtomIndex
from routing.content_graph import ContentGraph, NodeId

#: In the table: the beginning of a topic that is not one itself.
_PREFIX = -1

#: Bits of a new field; a field that is full gets two more.
_FIELD = 3


class PairIndex(AtomIndex[Pair, Values]):
    """Topics as integers."""

    def __init__(self, language: Language[Pairs, Values], graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._widths: dict[str, int] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._lay_out()

    def _lay_out(self) -> None:
        """Give each field its place; all numbers of topics change."""
        #: Per attribute and value, the number at its place.
        self._codes: dict[str, dict[str, int]] = {}
        self._table: dict[int, NodeId] = {0: _PREFIX}
        self._stale = 0
        self._bits = 0
        for name in self._widths:
            self._place_field(name)
        for node, topic in self.topics.items():
            self._enter(topic, node)

    def _place_field(self, name: str) -> None:
        shift = self._bits
        numbers = self._numbers[name]
        self._codes[name] = {value: number << shift for value, number in numbers.items()}
        self._bits += self._widths[name]

    # -- changes -------------------------------------------------------------------------

    def insert(self, topic: Pairs, node: NodeId) -> None:
        if self._make_room(topic):
            self._lay_out()
        super().insert(topic, node)
        self._enter(topic, node)

    def remove(self, topic: Pairs, node: NodeId) -> None:
        """Beginnings stay behind, until half of the table is of no use."""
        super().remove(topic, node)
        self._table[sum(self._parts(topic))] = _PREFIX
        self._stale += 1
        if 2 * self._stale > len(self.topics):
            self._lay_out()

    def _make_room(self, topic: Pairs) -> bool:
        """Number new values; true if a field has become too narrow."""
        full = False
        for name, value in sorted(topic):
            if name not in self._widths:
                self._widths[name], self._numbers[name] = _FIELD, {}
                self._place_field(name)
            numbers = self._numbers[name]
            if value not in numbers:
                number = numbers[value] = len(numbers) + 1
                if number >> self._widths[name]:
                    self._widths[name] += 2
                    full = True
                self._codes[name][value] = number << self._shift(name)
        return full

    def _shift(self, name: str) -> int:
        shift = 0
        for other, width in self._widths.items():
            if other == name:
                break
            shift += width
        return shift

    def _parts(self, topic: Pairs) -> list[int]:
        """The numbers of a topic's values at their places, in the order of the fields."""
        return sorted(self._codes[name][value] for name, value in topic)

    def _enter(self, topic: Pairs, node: NodeId) -> None:
        key, table = 0, self._table
        for part in self._parts(topic):
            key += part
            if key not in table:
                table[key] = _PREFIX
        table[key] = node

    # -- looking up ----------------------------------------------------------------------

    def _known(self, values: Values) -> list[int]:
        """The numbers of a notification's values that any topic names, in order."""
        codes = self._codes
        known = [
            code
            for name, value in values.items()
            if name in codes and (code := codes[name].get(value, 0))
        ]
        known.sort()
        return known

    def _contained(self, known: list[int]) -> list[int]:
        """The numbers of all topics among the generalisations."""
        table = self._table
        keys = [0]
        for code in known:
            keys += [key for key in map(code.__add__, keys) if key in table]
        return [key for key in keys if table[key] >= 0]

    def lowest(self, notification: Values) -> list[NodeId]:
        known = self._known(notification)
        # The topic of all that is known, if there is one, lies below all others.
        node = self._table.get(sum(known), _PREFIX)
        if node >= 0:
            return [node]
        return self._low(self._contained(known))

    def _low(self, keys: list[int]) -> list[NodeId]:
        keys.sort(reverse=True)
        lowest: list[int] = []
        for key in keys:
            for other in lowest:
                if key & other == key:
                    break
            else:
                lowest.append(key)
        return [self._table[key] for key in lowest]

    def matching(self, notification: Values) -> set[NodeId]:
        return {self._table[key] for key in self._contained(self._known(notification))}

    def position(self, topic: Pairs) -> Position:
        parents = self._low(self._contained(self._known(dict(topic))))
        return set(parents), self.high(self.below(topic))

    def above(self, topic: Pairs) -> set[NodeId]:
        return self.matching(dict(topic))
