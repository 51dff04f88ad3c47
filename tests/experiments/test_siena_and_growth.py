"""The SIENA figures and the fits of appendix A at the smallest size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "experiments.opponents", reason="the compiled opponents were not built", exc_type=ImportError
)

from experiments import growth, study_siena


def test_the_workload_has_the_printed_shares() -> None:
    """Section 5.1: half strings, 60 % of integer constraints are equality, Zipf names."""
    filters = study_siena.random_filters(np.random.default_rng(1), 20_000, 10)
    is_string = filters.op >= 3
    assert abs(is_string.mean() - 0.5) < 0.02
    assert abs((filters.op[~is_string] == 0).mean() - 0.6) < 0.02
    assert abs((filters.op[is_string] == 3).mean() - 0.35) < 0.02
    common = np.bincount(filters.name, minlength=study_siena.NAMES)
    assert 1.6 < common[0] / common[1] < 2.4
    assert abs(len(filters.name) / 20_000 - 5) < 0.1


def test_siena_points_page_and_plot(tmp_path: Path) -> None:
    results = []
    for point in study_siena.points(quick=True):
        small = {**point.parameters, "constraints": min(point.parameters["constraints"], 2000)}
        results.append(study_siena.run(**small))
    rows = study_siena.rows(True, results)
    assert {row["figure"] for row in rows} == {"8", "9", "10", "11"}
    assert any(row["matched"] > 0 for row in rows)
    study_siena.plot(rows, tmp_path)
    assert (tmp_path / "studysiena.png").stat().st_size > 10_000
    text = study_siena.page(True, results, rows, tmp_path)
    assert "Figure 11" in text
    assert "## Errata" in text


def test_exponents_are_fitted() -> None:
    xs = [1.0, 2.0, 4.0, 8.0]
    slope, error = growth.exponent(xs, [3 * x**1.5 for x in xs])
    assert (round(slope, 6), round(error, 6)) == (1.5, 0.0)


def test_growth_page_and_plot(tmp_path: Path) -> None:
    """Measured at small values: the fit needs points, not size."""
    results = [
        {"kilobytes": 1.0 + n, "us_per_subscription": 2.0, "us_per_notification": 3.0}
        for n, _ in enumerate(growth.points(quick=True))
    ]
    point = growth.run("degree", 2, "f3")
    results[-1] = {key: point[key] for key in results[-1]}
    rows = growth.rows(True, results)
    assert len(rows) == len(growth.PREDICTED)
    growth.plot(rows, tmp_path)
    assert "0.00 ± 0.00" in growth.page(True, results, rows, tmp_path)
    assert (tmp_path / "studygrowth.png").stat().st_size > 10_000
