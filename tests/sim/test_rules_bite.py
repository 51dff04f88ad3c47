"""The tests bite: each exact rule, broken alone, is caught by the oracle or an invariant."""

from __future__ import annotations

import random

import pytest

from routing.errors import ProtocolError
from routing.registry import protocol
from routing.router import TreeRouter
from sim.schedule import Plan, run
from tests.sim.mutants import MUTANTS, Mutant
from tests.unit.test_table import History

#: Without faults, whatever goes wrong is the protocol's own doing. One router with many
#: neighbours makes labels meet; several routers make messages cross.
PLANS = (
    Plan(routers=3, hosts=4, actions=250, seconds=8.0, faults=False),
    Plan(routers=1, hosts=5, actions=300, seconds=30.0, faults=False),
)
SCHEDULES = 400
#: Rules 1 to 9 are about tables and graphs, the others about messages.
LAST_RULE_OF_TABLES = 9


def caught(mutant: Mutant) -> str | None:
    """What a history or a schedule says of the mutant; None if none of them notices."""
    one = one_history if mutant.rule <= LAST_RULE_OF_TABLES else one_schedule
    for seed in range(SCHEDULES):
        try:
            one(seed, mutant)
        except (AssertionError, LookupError, ProtocolError) as error:
            return f"{type(error).__name__}: {error}"
    return None


def one_history(seed: int, mutant: Mutant) -> None:
    """A table alone, against the definition of its labels and headers."""
    cls = protocol(mutant.protocol)
    assert issubclass(cls, TreeRouter)
    history = History(cls.table(), random.Random(seed))
    for _ in range(80):
        history.step()


def one_schedule(seed: int, mutant: Mutant) -> None:
    """A network, against the oracle."""
    run(seed, protocol(mutant.protocol), PLANS[seed % 2], minimal=True)


@pytest.mark.sim
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"rule {m.rule}: {m.what}")
def test_a_broken_rule_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.apply(monkeypatch)
    assert caught(mutant) is not None


def test_every_rule_of_labels_graphs_and_messages_is_broken_once() -> None:
    assert {mutant.rule for mutant in MUTANTS} == set(range(1, 15))


@pytest.mark.sim
@pytest.mark.parametrize("name", ["f3", "minimal-graph"])
def test_unbroken_they_pass_the_same_schedules(name: str) -> None:
    for seed in range(60):
        run(seed, protocol(name), PLANS[seed % 2], minimal=True)
