"""The tests bite: each exact rule, broken alone, is caught by the oracle or an invariant."""

from __future__ import annotations

import pytest

from routing.errors import ProtocolError
from routing.registry import protocol
from sim.schedule import Plan, run
from tests.sim.mutants import MUTANTS, Mutant

#: Without faults, whatever goes wrong is the protocol's own doing. One router with many
#: neighbours makes labels meet; several routers make messages cross.
PLANS = (
    Plan(routers=3, hosts=4, actions=250, seconds=8.0, faults=False),
    Plan(routers=1, hosts=5, actions=300, seconds=30.0, faults=False),
)
SCHEDULES = 400


def caught(mutant: Mutant) -> str | None:
    """What a schedule says of the mutant; None if none of them notices."""
    cls = protocol(mutant.protocol)
    for seed in range(SCHEDULES):
        try:
            run(seed, cls, PLANS[seed % 2], minimal=True)
        except (AssertionError, LookupError, ProtocolError) as error:
            return f"{type(error).__name__}: {error}"
    return None


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
