"""An index for attribute-value topics: hash probes of a notification's generalisations.

The thesis asks for something better than breadth-first search (Kulik 2004, section 6.3). Here an
attribute has a field of a few bits and each of its values a number in it, so that a topic is one
integer, with zeros for wildcards. (An attribute with many values has several fields.) A
notification's generalisations are made field by field, and only as far as some topic begins like
that. Of two topics that match the same notification, one covers the other exactly if its bits are
among the other's, and is then the smaller number.

Batches are worked off column by column with numpy, as long as all fields fit into 63 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from preprocess.attribute_value import WILDCARD, Pair, Pairs, Values
from preprocess.key_table import Ints, KeyTable, table_of
from preprocess.language import Language, Position
from preprocess.subsets import AtomIndex
from routing.content_graph import ContentGraph, NodeId

#: In the table: the beginning of a topic that is not one itself.
_PREFIX = -1

#: Bits of an attribute's first field, and bits that numpy can take in one number.
_FIELD = 4
_WORD = 63

#: Fewer notifications than this are faster one by one.
_BATCH_MIN = 16


@dataclass(slots=True)
class _Field:
    """Room for the numbers 1 to 2**width - 1 of an attribute's values."""

    shift: int
    width: int
    used: int = 0


class PairIndex(AtomIndex[Pair, Values]):
    """Topics as integers."""

    def __init__(self, language: Language[Pairs, Values], graph: ContentGraph) -> None:
        super().__init__(language, graph)
        self._lay_out()

    def _lay_out(self) -> None:
        """Give each attribute one field with room for as many values again, and start anew."""
        #: Per attribute and value, its number at its place.
        self._codes: dict[str, _Codes] = {}
        #: The field that an attribute's next value goes into.
        self._fields: dict[str, _Field] = {}
        self._bits = 0
        self._table: dict[int, NodeId] = {0: _PREFIX}
        self._stale = 0
        #: The table as numpy has it, and what has changed in it since; made at the first batch.
        self._twin: KeyTable | None = None
        self._news: list[int] = []
        for name, width in self._compact().items():
            self._add_field(name, width)
        for node, topic in self.topics.items():
            self._make_room(topic)
            self._enter(topic, node)

    def _compact(self) -> dict[str, int]:
        """The widths of a new layout."""
        counts = Counter(name for (name, _), nodes in self._having.items() if nodes)
        return {name: max(_FIELD, count.bit_length() + 1) for name, count in counts.items()}

    def _add_field(self, name: str, width: int) -> _Field:
        field = self._fields[name] = _Field(self._bits, width)
        self._twin = None
        self._codes.setdefault(name, _Codes())
        self._bits += width
        return field

    # -- changes -------------------------------------------------------------------------

    def insert(self, topic: Pairs, node: NodeId) -> None:
        self._make_room(topic)
        super().insert(topic, node)
        self._enter(topic, node)

    def remove(self, topic: Pairs, node: NodeId) -> None:
        """Beginnings stay behind, until half of the table is of no use."""
        super().remove(topic, node)
        self._set(sum(self._parts(topic)), _PREFIX)
        self._stale += 1
        if 2 * self._stale > len(self.topics):
            self._lay_out()

    def _make_room(self, topic: Pairs) -> None:
        """Number new values."""
        for name, value in topic:
            if name not in self._codes or value not in self._codes[name]:
                field = self._room_for(name)
                field.used += 1
                self._codes[name][value] = field.used << field.shift

    def _room_for(self, name: str) -> _Field:
        """A field with room. One that is full stays as it is, and a wider one takes over.

        Only where that would leave the machine word, and a new layout would not, all change.
        """
        field = self._fields.get(name)
        if field is not None and (field.used + 1).bit_length() <= field.width:
            return field
        width = 2 * field.width if field else _FIELD
        if self._bits + width > _WORD and sum(self._compact().values()) + width <= _WORD:
            self._lay_out()
            return self._room_for(name)
        return self._add_field(name, width)

    def _parts(self, topic: Pairs) -> list[int]:
        """The numbers of a topic's values at their places, in the order of the fields."""
        return sorted(self._codes[name][value] for name, value in topic)

    def _enter(self, topic: Pairs, node: NodeId) -> None:
        key, table = 0, self._table
        for part in self._parts(topic):
            key += part
            if key not in table:
                self._set(key, _PREFIX)
        self._set(key, node)

    def _set(self, key: int, node: NodeId) -> None:
        self._table[key] = node
        if self._twin is not None:
            self._news.append(key)

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

    # -- looking up many -----------------------------------------------------------------

    def lowest_of(self, notifications: Sequence[Values]) -> list[tuple[NodeId, ...]]:
        """As `lowest`; attributes that no topic names are not looked at."""
        parse = self.language.parse_notification
        if self._bits > _WORD or len(notifications) < _BATCH_MIN:
            return super().lowest_of([parse(notification) for notification in notifications])
        try:
            columns = self._columns(notifications)
        except TypeError:
            columns = self._columns([parse(notification) for notification in notifications])
        twin = self._table_twin()
        whole = twin.get(columns.sum(axis=0))
        result: list[tuple[NodeId, ...]] = list(zip(whole.tolist(), strict=True))
        rest = np.flatnonzero(whole < 0)
        if len(rest):
            # In the order of numbers, which is not that of attributes where one has two fields.
            columns[:, rest] = np.sort(columns[:, rest], axis=0)
            self._fill_in(result, rest, *_expand(twin, columns, rest))
        return result

    def _columns(self, notifications: Sequence[Values]) -> Ints:
        """Per field, the numbers of all notifications; zeros where there is none."""
        count = len(notifications)
        columns = np.zeros((max(1, len(self._codes)), count), np.int64)
        for i, (name, codes) in enumerate(self._codes.items()):
            values = map(dict.get, notifications, repeat(name))
            columns[i] = np.fromiter(map(codes.__getitem__, values), np.int64, count)
        return columns

    def _table_twin(self) -> KeyTable:
        if self._twin is None or len(self._news) > len(self._table) // 16:
            self._twin = table_of(self._table, self._bits)
        else:
            for key in self._news:
                self._twin.put(key, self._table[key])
        self._news.clear()
        return self._twin

    def _fill_in(
        self, result: list[tuple[NodeId, ...]], wanted: Ints, rows: Ints, keys: Ints, nodes: Ints
    ) -> None:
        """Write the lowest of each row's nodes into the result."""
        for row in wanted.tolist():
            result[row] = ()
        rows, nodes = _lowest(rows, keys, nodes)
        starts = np.flatnonzero(np.diff(rows, prepend=-1)).tolist()
        flat = nodes.tolist()
        for start, end in pairwise([*starts, len(flat)]):
            result[rows[start]] = tuple(flat[start:end])


class _Codes(dict[Any, int]):
    """The numbers of one attribute's values; a missing value, or one no topic names, has none."""

    def __init__(self) -> None:
        super().__init__({None: 0})

    def __missing__(self, value: object) -> int:
        if type(value) is str and value != WILDCARD:
            return 0
        raise TypeError("to be converted or refused before it is looked up")


def _expand(twin: KeyTable, columns: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """All topics among the generalisations of some rows: their rows, numbers and nodes."""
    keys = np.zeros(len(rows), np.int64)
    nodes = twin.get(keys)
    for column in columns:
        codes = column[rows]
        some = np.flatnonzero(codes)
        longer = keys[some] + codes[some]
        there, found = twin.find(longer)
        rows = np.concatenate([rows, rows[some[there]]])
        keys = np.concatenate([keys, longer[there]])
        nodes = np.concatenate([nodes, found])
    topics = nodes >= 0
    return rows[topics], keys[topics], nodes[topics]


def _lowest(rows: Ints, keys: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """Rows and nodes of the lowest topics, sorted.

    The largest number of a row is one of its lowest; with it go all that it is within. The same
    for what is left, until nothing is.
    """
    order = np.lexsort((-keys, rows))
    rows, keys, nodes = rows[order], keys[order], nodes[order]
    parts: list[tuple[Ints, Ints]] = []
    while len(rows):
        first = np.diff(rows, prepend=-1) != 0
        parts.append((rows[first], nodes[first]))
        leaders = keys[first][np.cumsum(first) - 1]
        apart = (keys & leaders) != keys
        rows, keys, nodes = rows[apart], keys[apart], nodes[apart]
    if not parts:
        return rows, nodes
    rows, nodes = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((nodes, rows))
    return rows[order], nodes[order]
