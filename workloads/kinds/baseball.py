"""Baseball news: all games, the games of a team, or the games between two teams.

Kulik 2004, section 4.1.1. All games cover a team's games, which cover the games of that team
against another: a two-team topic is one node under both teams (this is what depth 3 and degree 29
in Table 4.1 imply). A notice is about one game. Codes: 0 all games, 1 + i team i, then the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workloads.errors import ScenarioError
from workloads.kinds import Codes, ContentKind, Order, Pairs
from workloads.kinds.lookup import Lookup
from workloads.randomness import Choice, Draws, Ints
from workloads.schema import limited

_ALL = 0


@dataclass(frozen=True)
class Parameters:
    """Teams in the league, the shares of the three sorts of topic, Zipf exponents (0 is even)."""

    teams: int = limited(2, 100_000)
    one_team: float = limited(0, 1)
    two_teams: float = limited(0, 1)
    all_teams: float = limited(0, 1)
    skew: float = limited(0, 10, 0.0)
    notice_skew: float = limited(0, 10, 0.0)

    def __post_init__(self) -> None:
        total = self.one_team + self.two_teams + self.all_teams
        if abs(total - 1) > 1e-9:
            raise ScenarioError(
                f"content: one_team + two_teams + all_teams must make 1, not {total:g}"
            )


class Kind(ContentKind):
    """Subscriptions to teams, notices of games."""

    parameter_type = Parameters
    parameters: Parameters

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._teams = parameters.teams
        self._popular = Choice(parameters.teams, parameters.skew)
        self._playing = Choice(parameters.teams, parameters.notice_skew)

    def topics(self, draws: Draws) -> Codes:
        """One team, two different teams or all of them, in the scenario's shares."""
        sort = draws.uniform("sort")
        first = self._popular.pick(draws.uniform("first"))
        second = self._popular.pick_other(draws.uniform("second"), first)
        one, two = self.parameters.one_team, self.parameters.two_teams
        pair = self._pair(first, second)
        return np.where(sort < one, first + 1, np.where(sort < one + two, pair, _ALL))

    def notices(self, draws: Draws) -> Codes:
        """A game between two different teams."""
        first = self._playing.pick(draws.uniform("first"))
        return self._pair(first, self._playing.pick_other(draws.uniform("second"), first))

    def order(self, topics: Codes) -> Order:
        """All games over teams over pairs."""
        return _LeagueOrder(topics, self._teams)

    def text(self, codes: Codes) -> pa.Array:
        """Such as "all games", "team 3" and "team 3 v team 17"."""
        first, second = _teams_of(codes, self._teams)
        left = pc.binary_join_element_wise("team ", _words(first), "")
        pair = pc.binary_join_element_wise(left, " v team ", _words(second), "")
        single = pc.if_else(pa.array(codes == _ALL), "all games", left)
        return pc.if_else(pa.array(codes > self._teams), pair, single)

    def _pair(self, one: Ints, other: Ints) -> Ints:
        low, high = np.minimum(one, other), np.maximum(one, other)
        return 1 + self._teams + low * self._teams + high


class _LeagueOrder(Order):
    """Pairs look up to their two teams, and past teams that nobody asked for to all games."""

    def __init__(self, topics: Codes, teams: int) -> None:
        self._topics = topics
        self._teams = teams
        self._find = Lookup(topics)

    def parents(self, start: int, stop: int) -> Pairs:
        """A pair's teams, else all games; a team's parent is all games."""
        children, parents = self._above(self._topics[start:stop])
        return children + start, parents

    def headers(self, notices: Codes) -> Pairs:
        """The pair's own node, else what would be above it."""
        own = self._find(notices)
        missing = np.flatnonzero(own < 0)
        rows, above = self._above(notices[missing])
        exact = np.flatnonzero(own >= 0)
        return np.concatenate([exact, missing[rows]]), np.concatenate([own[exact], above])

    def _above(self, codes: Codes) -> Pairs:
        """The lowest subscribed topics strictly above each code: (rows, topics)."""
        first, second = _teams_of(codes, self._teams)
        is_pair = codes > self._teams
        at_first = np.where(is_pair, self._find(first + 1), -1)
        at_second = np.where(is_pair, self._find(second + 1), -1)
        orphan = (at_first < 0) & (at_second < 0) & (codes != _ALL)
        at_all = np.where(orphan, self._find(np.full(len(codes), _ALL)), -1)
        found = np.stack([at_first, at_second, at_all], axis=1)
        rows, columns = np.nonzero(found >= 0)
        return rows, found[rows, columns]


def _teams_of(codes: Codes, teams: int) -> tuple[Ints, Ints]:
    """The team or the two teams of a code; meaningless for all games."""
    low, high = np.divmod(codes - 1 - teams, teams)
    return np.where(codes > teams, low, codes - 1), high


def _words(numbers: Ints) -> pa.Array:
    return pa.array(numbers).cast(pa.string())
