"""Attribute-value subscriptions with wildcards; the order comes from generalisation.

Kulik 2004, sections 4.1.1 and 4.3.1. A topic gives each attribute a value or a wildcard; it covers
the topics that it becomes when wildcards are given values. A notice gives values to some of the
attributes and matches the topics whose values it all has. Codes are numbers in base values + 1,
digit 0 being the wildcard (in a notice: absent), so a generalisation is a code with digits zeroed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workloads.errors import ScenarioError
from workloads.kinds import Codes, ContentKind, Order, Pairs
from workloads.kinds.lookup import Flags, Lookup
from workloads.randomness import Choice, Draws, Floats, Ints
from workloads.schema import limited

#: Generalisations that are looked at in one go; some 40 bytes each.
_BLOCK = 2**18


@dataclass(frozen=True)
class Parameters:
    """Attributes, values of each, probabilities of a wildcard and of an attribute in a notice."""

    attributes: int = limited(1, 14)
    values: int = limited(1, 1_000)
    wildcard: float = limited(0, 1, 0.3)
    appears: float = limited(0, 1, 0.7)
    skew: float = limited(0, 10, 0.0)
    notice_skew: float = limited(0, 10, 0.0)

    def __post_init__(self) -> None:
        if (self.values + 1) ** self.attributes >= 2**62:
            raise ScenarioError(
                f"content: {self.attributes} attributes of {self.values} values make too many "
                "topics to number: (values + 1) ** attributes must stay below 2 ** 62"
            )


class Kind(ContentKind):
    """Conjunctions of attribute = value."""

    parameter_type = Parameters
    parameters: Parameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        powers = range(parameters.attributes - 1, -1, -1)
        self.weights: Ints = np.array([(parameters.values + 1) ** power for power in powers])
        self._asked = Choice(parameters.values, parameters.skew)
        self._said = Choice(parameters.values, parameters.notice_skew)

    def topics(self, draws: Draws) -> Codes:
        """A wildcard or a value for each attribute, independently."""
        return self._assign(draws, self._asked, 1 - self.parameters.wildcard)

    def notices(self, draws: Draws) -> Codes:
        """Each attribute present or not, with a value, independently."""
        return self._assign(draws, self._said, self.parameters.appears)

    def order(self, topics: Codes) -> Order:
        """Generalisation among the topics."""
        return _Generalisations(topics, self.weights, self.parameters.values + 1)

    def text(self, codes: Codes) -> pa.Array:
        """Such as "a0=2 a3=1", and "anything" without any value."""
        base = self.parameters.values + 1
        terms = []
        for place, weight in enumerate(self.weights):
            digit = codes // weight % base
            value = pa.array(digit, mask=digit == 0).cast(pa.string())
            term = pc.binary_join_element_wise(f"a{place}=", value, " ", "")
            # Not null_handling="skip" below: it loses the rows in which all terms are null.
            terms.append(pc.fill_null(term, ""))
        joined = pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*terms, ""))
        return pc.if_else(pc.equal(joined, ""), "anything", joined)

    def _assign(self, draws: Draws, choice: Choice, given: float) -> Ints:
        """A value with the probability `given`, else digit 0; one random number an attribute."""
        codes = np.zeros(len(draws), dtype=np.int64)
        for place, weight in enumerate(self.weights):
            point = draws.uniform(f"attribute {place}")
            has = point < given
            value = choice.pick(_stretched(point, given))
            codes += np.where(has, value + 1, 0) * weight
        return codes


def _stretched(point: Floats, given: float) -> Floats:
    """Points of [0, given) spread over [0, 1); what lies beyond is not looked at."""
    return np.minimum(point / max(given, 1e-300), np.nextafter(1.0, 0.0))


class _Generalisations(Order):
    """Looks every generalisation of a topic up, and keeps those that no other one lies below.

    A topic with k values has 2 ** k generalisations: the subsets of its values to drop. A subset
    is redundant if a smaller subset of it leads to a topic as well.
    """

    def __init__(self, topics: Codes, weights: Ints, base: int) -> None:
        self._topics = topics
        self._weights = weights
        self._base = base
        self._find = Lookup(topics, space=int(weights[0]) * base)

    def parents(self, start: int, stop: int) -> Pairs:
        """The lowest proper generalisations that were subscribed to."""
        children, parents = self._lowest(self._topics[start:stop], proper=True)
        return children + start, parents

    def headers(self, notices: Codes) -> Pairs:
        """The lowest generalisations of each notice that were subscribed to."""
        return self._lowest(notices, proper=False)

    def _lowest(self, codes: Codes, proper: bool) -> Pairs:
        rows = [np.empty(0, dtype=np.int64)]
        found = [np.empty(0, dtype=np.int64)]
        for block, terms in self._alike(codes):
            at = self._find(codes[block][:, None] - _subset_sums(terms))
            present = at >= 0
            if proper:
                present[:, 0] = False
            row, subset = np.nonzero(present & ~_has_smaller(present))
            rows.append(block[row])
            found.append(at[row, subset])
        return np.concatenate(rows), np.concatenate(found)

    def _alike(self, codes: Codes) -> Iterator[tuple[Ints, Ints]]:
        """Rows whose codes have equally many values, with each value's share of the code.

        Such rows have equally many generalisations, so a block of them is a plain matrix.
        """
        terms = codes[:, None] // self._weights % self._base * self._weights
        values = (terms > 0).sum(axis=1)
        for many in np.unique(values).tolist():
            group = np.flatnonzero(values == many)
            size = max(1, _BLOCK >> many)
            for start in range(0, len(group), size):
                block = group[start : start + size]
                given = terms[block]
                yield block, given[given > 0].reshape(len(block), many)


def _subset_sums(terms: Ints) -> Ints:
    """Row by row, the sums of all subsets of its terms; bit i of the column picks term i."""
    sums = np.zeros((len(terms), 1), dtype=np.int64)
    for column in range(terms.shape[1]):
        sums = np.concatenate([sums, sums + terms[:, column : column + 1]], axis=1)
    return sums


def _has_smaller(present: Flags) -> Flags:
    """Row by row, whether a proper subset of a column's subset is present."""
    rows, subsets = present.shape
    within = present.copy()  # a subset of it, itself included
    smaller = np.zeros_like(present)
    for bit in range(subsets.bit_length() - 1):
        shape = (rows, subsets >> (bit + 1), 2, 1 << bit)
        halves = within.reshape(shape)
        halves[:, :, 1, :] |= halves[:, :, 0, :]
    for bit in range(subsets.bit_length() - 1):
        shape = (rows, subsets >> (bit + 1), 2, 1 << bit)
        smaller.reshape(shape)[:, :, 1, :] |= within.reshape(shape)[:, :, 0, :]
    return smaller
