"""Measures of calibration against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.metrics import (
    expected_calibration_error,
    interval_coverage,
    quantile_calibration_error,
)

RNG = np.random.default_rng(0)


def test_coverage():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    interval = np.column_stack([np.full(4, 1.0), np.full(4, 2.5)])
    assert interval_coverage(y, interval) == 0.5
    assert interval_coverage(y, interval, sample_weight=[1, 2, 3, 0]) == pytest.approx(5 / 6)
    both = np.stack([interval, interval + 2.0], axis=1)
    assert interval_coverage(np.column_stack([y, y]), both) == pytest.approx(3 / 8)


@pytest.mark.parametrize("n", [1, 7, 100])
def test_quantile_calibration(n):
    """The mean over a fine grid of levels, share of the targets below against the level."""
    pit, weight = RNG.beta(2.0, 3.0, n), RNG.uniform(0.0, 2.0, n)
    levels = (np.arange(100_000) + 0.5) / 100_000
    order = np.argsort(pit)
    heights = np.append(0.0, np.cumsum(weight[order]) / weight.sum())
    share = heights[np.searchsorted(pit[order], levels, side="right")]
    found = quantile_calibration_error(pit, sample_weight=weight)
    assert_allclose(found, np.mean(np.abs(share - levels)), atol=1e-4)


def test_quantile_calibration_of_perfect_predictions():
    n = 1000
    found = [quantile_calibration_error(RNG.uniform(size=n)) for _ in range(400)]
    expected = np.sqrt(2.0 / np.pi) * np.pi / 8.0 / np.sqrt(n)
    assert abs(np.mean(found) - expected) < 4 * np.std(found) / 20
    both = np.column_stack([np.linspace(0, 1, 101), np.full(101, 0.5)])
    by_column = [quantile_calibration_error(column) for column in both.T]
    assert_allclose(quantile_calibration_error(both), np.mean(by_column))


def error_by_loops(predicted, happened, weight, n_bins):
    total = 0.0
    for i in range(n_bins):
        inside = (predicted > i / n_bins) & (predicted <= (i + 1) / n_bins)
        if i == 0:
            inside |= predicted == 0
        if np.any(weight[inside] > 0):
            gap = np.average(predicted[inside] - happened[inside], weights=weight[inside])
            total += weight[inside].sum() / weight.sum() * abs(gap)
    return total


@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_two_classes(n_bins):
    p, weight = RNG.uniform(size=80), RNG.integers(0, 3, 80).astype(float)
    p[:2] = 0.0, 1.0
    y = RNG.uniform(size=80) < p**2
    expected = error_by_loops(p, y, weight, n_bins)
    options = {"n_bins": n_bins, "sample_weight": weight}
    assert_allclose(expected_calibration_error(y, p, **options), expected, rtol=1e-12)
    columns = np.column_stack([1 - p, p])
    names = np.where(y, "yes", "no")
    assert_allclose(expected_calibration_error(names, columns, **options), expected, rtol=1e-12)


def test_several_classes():
    proba = RNG.dirichlet([1.0, 2.0, 3.0], 90)
    names = np.array(["b", "c", "a"])  # columns in an order of the user's own
    y = names[RNG.integers(0, 3, 90)]
    found = expected_calibration_error(y, proba, labels=names, n_bins=5)
    right = names[np.argmax(proba, axis=1)] == y
    assert_allclose(found, error_by_loops(proba.max(axis=1), right, np.ones(90), 5), rtol=1e-12)


def test_weights_are_repetitions():
    times = RNG.integers(0, 4, 50)
    y, interval = RNG.normal(size=50), np.sort(RNG.normal(size=(50, 2)))
    pit, label = RNG.uniform(size=50), RNG.integers(0, 2, 50)
    for measure, arrays in [
        (interval_coverage, (y, interval)),
        (quantile_calibration_error, (pit,)),
        (expected_calibration_error, (label, pit)),
    ]:
        repeated = measure(*(array.repeat(times, axis=0) for array in arrays))
        assert_allclose(measure(*arrays, sample_weight=times), repeated, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantile_calibration_error([0.5, 1.2]), "pit must lie between 0 and 1"),
        (lambda: quantile_calibration_error([0.5], sample_weight=[0]), "must not be negative"),
        (lambda: quantile_calibration_error([0.5], sample_weight=[1, 1]), r"shape \(1,\)"),
        (lambda: expected_calibration_error([0, 1], [0.5, 2.0]), "y_proba must lie between"),
        (lambda: expected_calibration_error([0, 1], [0.5]), r"got \(2,\) and \(1,\)"),
        (lambda: expected_calibration_error([1, 1], [0.5, 0.5]), "there are 1 labels"),
        (
            lambda: expected_calibration_error([0, 2], [0.5, 0.5], labels=[0, 1]),
            r"classes that are not in labels \(\[0, 1\]\)",
        ),
        (lambda: expected_calibration_error([0, 1], [[0.5, 0.4]] * 2), "must add up to 1"),
        (lambda: expected_calibration_error([0, 1], [0.5, 0.5], n_bins=0), "n_bins must be"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
