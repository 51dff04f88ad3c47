"""Scenario files: those that come with the package, and what is refused and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.errors import ScenarioError
from workloads.scenario import load_scenario, parse_parameters, scenario_names, scenario_of

LEAGUE = {"teams": 30, "one_team": 0.4, "two_teams": 0.5, "all_teams": 0.1}


def test_every_scenario_of_the_package_loads_and_says_what_it_is() -> None:
    names = scenario_names()
    for name in names:
        scenario = load_scenario(name)
        assert scenario.about
        assert scenario.content_kind().parameters == scenario.content
    plain = {name for name in names if f"{name}-zipf" in names}
    assert plain == {
        "baseball",
        "traffic",
        "attribute-value",
        "varying-attributes",
        "varying-degree",
        "varying-depth",
    }
    for name in plain:
        skewed, even = load_scenario(f"{name}-zipf"), load_scenario(name)
        assert (even.content.skew, skewed.content.skew) == (0.0, 1.0)


def test_thesis_parameters() -> None:
    """Kulik 2004, Tables 4.1, 4.3, 4.5, 4.7 and 4.8."""
    assert load_scenario("baseball-30").content.teams == 30
    assert load_scenario("baseball").content.teams == 100
    assert load_scenario("traffic-20").content.exits == 20
    assert load_scenario("traffic").content.exits == 60
    small, large = (
        load_scenario("attribute-value-5").content,
        load_scenario("attribute-value").content,
    )
    assert (small.attributes, small.values) == (5, 4)
    assert (large.attributes, large.values, large.wildcard, large.appears) == (6, 5, 0.3, 0.7)
    assert load_scenario("varying-attributes").subscribers.count == 1_000
    assert load_scenario("varying-degree").content.nodes == 100
    assert load_scenario("varying-depth").subscribers.count == 2_000
    assert load_scenario("baseball").subscribers.routers == 10
    assert load_scenario("baseball").subscribers.count == 1_000_000


def test_parameters_reach_every_part() -> None:
    scenario = load_scenario(
        "baseball",
        parse_parameters(
            ["teams=30", "churn.moves=0", "subscribers.routers=3", "seconds=2.5", "about=mine"]
        ),
    )
    assert scenario.content.teams == 30
    assert scenario.churn.moves == 0.0
    assert scenario.subscribers.routers == 3
    assert (scenario.seconds, scenario.about) == (2.5, "mine")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"team": 30}, r"content: unknown key 'team'; did you mean 'teams'\?"),
        ({"zzz": 30}, "content: unknown key 'zzz'; it takes teams, one_team"),
        ({"teams": 1}, "content.teams must lie between 2 and 100,000, not 1"),
        ({"teams": "many"}, "content.teams must be a whole number, not 'many'"),
        ({"teams": 3.5}, "content.teams must be a whole number, not 3.5"),
        ({"teams": True}, "content.teams must be a whole number, not True"),
        ({"skew": float("nan")}, "content.skew must be finite"),
        ({"skew": -1.0}, "content.skew must lie between 0 and 10, not -1"),
        ({"one_team": 0.5}, "one_team .* must make 1, not 1.1"),
        ({"churn.move": 1}, r"churn: unknown key 'move'; did you mean 'moves'\?"),
        ({"subscribers.count": 0}, "subscribers.count must lie between 1"),
        ({"notifications.sources": 11}, "11 sources need as many routers"),
        ({"subscribers.routers": 1}, "nowhere to move to"),
        ({"kind": "chess"}, "no content kind 'chess'"),
        ({"kind": "../chess"}, "neither a content kind's name nor a dotted module"),
        ({"kind": "json.decoder"}, "json.decoder is no content kind"),
        ({"colour.x": 1}, r"unknown key 'colour'; it takes kind, about, seconds, content, subscr"),
        ({"subscriber.count": 1}, r"unknown key 'subscriber'; did you mean 'subscribers'\?"),
    ],
)
def test_refused_parameters(parameters: dict[str, object], reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        load_scenario("baseball", parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("varying-degree", {"nodes": 101}, "101 nodes do not make 5 equal layers"),
        ("varying-degree", {"degree": 21}, "a layer has only 20 nodes"),
        ("varying-depth", {"depth": 11}, "has more than the 1024 nodes there are"),
        ("varying-depth", {"depth": 5000}, "has more than the 1024 nodes there are"),
        ("attribute-value", {"attributes": 14, "values": 1000}, "too many topics to number"),
        ("traffic", {"one_exit": 1}, "content.one_exit must be true or false, not 1"),
    ],
)
def test_refused_by_a_kind(name: str, parameters: dict[str, object], reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        load_scenario(name, parameters)


def test_refused_pairs_and_names() -> None:
    with pytest.raises(ScenarioError, match="'teams' is not of the form key=value"):
        parse_parameters(["teams"])
    with pytest.raises(ScenarioError, match="no scenario 'cricket'; there are attribute-value"):
        load_scenario("cricket")


def test_a_missing_key_is_named() -> None:
    table = {"kind": "baseball", "content": {"teams": 3, "one_team": 1.0, "two_teams": 0.0}}
    with pytest.raises(ScenarioError, match="content: the key 'all_teams' is missing"):
        scenario_of("mine", table)
    with pytest.raises(ScenarioError, match="scenario mine: the key 'kind' is missing"):
        scenario_of("mine", {"content": LEAGUE})
    with pytest.raises(ScenarioError, match="content must be a table"):
        scenario_of("mine", {"kind": "baseball", "content": 3})


def test_a_scenario_is_one_file(tmp_path: Path) -> None:
    mine = tmp_path / "cup.toml"
    mine.write_text('about = "A cup"\nextends = "baseball-30"\n[content]\nteams = 8\n')
    scenario = load_scenario(str(mine))
    assert (scenario.name, scenario.content.teams) == ("cup", 8)
    assert scenario.subscribers.count == 1_200  # from baseball-30
    assert scenario.content.two_teams == 0.5  # from baseball


def test_a_file_extends_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "league.toml").write_text('extends = "baseball"\n[content]\nteams = 16\n')
    (tmp_path / "cup.toml").write_text('extends = "league.toml"\n')
    assert load_scenario(str(tmp_path / "cup.toml")).content.teams == 16


def test_a_parameter_of_what_is_no_table(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "baseball"\nchurn = 3\n')
    with pytest.raises(ScenarioError, match="churn must be a table of keys and values, not 3"):
        load_scenario(str(mine), {"churn.moves": 0})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind = ", "is not valid TOML"),
        ("extends = 3", "extends must be a name, not 3"),
        ('extends = "SELF"', "extends itself"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, reason: str) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace("SELF", str(mine)))
    with pytest.raises(ScenarioError, match=reason):
        load_scenario(str(mine))
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario(str(tmp_path / "none.toml"))
