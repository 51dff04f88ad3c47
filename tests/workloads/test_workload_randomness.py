"""Counter-based randomness: the published generator, independence from cuts, fair choices."""

from __future__ import annotations

import numpy as np
import pytest

from workloads.randomness import Choice, Draws, split_mix


def test_split_mix_gives_the_published_numbers() -> None:
    """The first outputs of the reference generator (Vigna's splitmix64.c) for seed 1234567."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert split_mix(1234567, np.arange(5, dtype=np.uint64)).tolist() == expected


def test_a_row_draws_the_same_in_any_company() -> None:
    rows = np.arange(10_000, 11_000)
    whole = Draws(3, "stream", rows).uniform("column")
    shuffled = np.random.default_rng(1).permutation(len(rows))
    assert (Draws(3, "stream", rows[shuffled]).uniform("column") == whole[shuffled]).all()


def test_seed_stream_and_column_each_matter() -> None:
    rows = np.arange(1_000)
    columns = [
        Draws(1, "a", rows).uniform("x"),
        Draws(2, "a", rows).uniform("x"),
        Draws(1, "b", rows).uniform("x"),
        Draws(1, "a", rows).uniform("y"),
    ]
    # Under independence a correlation of 1000 rows exceeds 0.16 once in two million times.
    assert np.abs(np.corrcoef(columns) - np.eye(4)).max() < 0.16


def test_uniform_is_even_and_below_1() -> None:
    points = Draws(5, "s", np.arange(200_000)).uniform("u")
    assert points.min() >= 0
    assert points.max() < 1
    counts = np.bincount((points * 100).astype(int), minlength=100)
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 161  # chi-square, 99 free: 99.99 %


def test_below_covers_its_range() -> None:
    numbers = Draws(5, "s", np.arange(10_000)).below(7, "n")
    assert set(numbers.tolist()) == set(range(7))


@pytest.mark.parametrize("skew", [0.0, 1.0, 2.5])
def test_zipf_weights(skew: float) -> None:
    p = Choice(5, skew).probabilities
    assert p.sum() == pytest.approx(1)
    assert p[0] / p[3] == pytest.approx(4**skew)


def test_choices_at_the_rims() -> None:
    choice = Choice(3, 0.0)
    almost = np.nextafter(1.0, 0.0)
    assert choice.pick(np.array([0.0, 0.4, almost])).tolist() == [0, 1, 2]
    for taken in range(3):
        points = np.linspace(0, almost, 1_001)
        other = choice.pick_other(points, np.full(1_001, taken))
        assert set(other.tolist()) == {0, 1, 2} - {taken}


def test_of_two_the_other_one_is_picked() -> None:
    points = Draws(1, "s", np.arange(10_000)).uniform("u")
    taken = np.arange(10_000) % 2
    assert (Choice(2, 3.0).pick_other(points, taken) == 1 - taken).all()
