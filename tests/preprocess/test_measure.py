"""`f3 bench preprocess`: what it says, and that its scenes are what they claim to be."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from f3.cli import app
from preprocess.scenes import SCENES
from tests.preprocess import laws

KEYS = {
    "language",
    "subscriptions",
    "method",
    "us_per_notification",
    "us_per_notification_batched",
    "us_per_subscription",
}


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_a_correct_graph(name):
    """Small, but made as the large ones are: edges and headers by brute force."""
    scene = SCENES[name](60, random.Random(1))
    preprocessor, language = scene.preprocessor, scene.preprocessor.language
    preprocessor.graph.check()
    topics = list(preprocessor.nodes)
    assert len(topics) >= 50
    assert laws.edges_of(preprocessor) == laws.edges(language, topics)
    rng = random.Random(2)
    notes = [language.parse_notification(scene.notification(rng)) for _ in range(20)]
    laws.check_headers(preprocessor, topics, notes)


def test_every_language_has_rows_for_the_index_and_for_the_search():
    options = ["bench", "preprocess", "--size", "60", "--seconds", "0.01", "--json"]
    result = CliRunner().invoke(app, [*options, "--search-seconds", "0.01"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["language"], row["method"]) for row in rows] == [
        (name, method) for name in SCENES for method in ("index", "bfs")
    ]
    for row in rows:
        assert row.keys() >= KEYS
        assert row["us_per_notification"] > 0
        assert row["us_per_subscription"] is None or row["us_per_subscription"] > 0
        assert (row["us_per_notification_batched"] is None) == (row["method"] == "bfs")
    newcomers = {row["language"] for row in rows if row["us_per_subscription"]}
    assert newcomers == set(SCENES)


def test_a_table_for_people():
    options = ["--language", "ranges", "--size", "60", "--seconds", "0.01"]
    result = CliRunner().invoke(app, ["bench", "preprocess", *options])
    assert result.exit_code == 0
    assert "ranges" in result.stdout
    assert "bfs" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--language", "klingon"], "unknown language 'klingon'; known are attribute-value"),
        (["--size", "many"], "a size is one of 1k, 46k, 1M or a number, not 'many'"),
    ],
)
def test_bad_usage_says_what_is_known(options, message):
    result = CliRunner().invoke(app, ["bench", "preprocess", *options])
    assert result.exit_code == 2
    assert message in result.stderr
