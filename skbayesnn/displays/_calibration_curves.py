"""Observed frequencies at predicted probabilities."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_consistent_length

LEVELS = np.linspace(0.0, 1.0, 41)
CONFIDENCE = 0.95
Z = 1.959963984540054  # standard normal quantile of (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Calibration:
    """Calibration curve.

    Attributes
    ----------
    name : str
    predicted : ndarray of shape (n_points,)
        Predicted probabilities.
    observed : ndarray of shape (n_points,)
        Observed frequencies.
    interval : ndarray of shape (n_points, 2) or None
        Confidence intervals (95 %) of the true frequencies, if the points have error bars.
    values : ndarray of shape (n_samples,)
        Values of the histogram.
    """

    name: str
    predicted: np.ndarray
    observed: np.ndarray
    interval: np.ndarray | None
    values: np.ndarray


def coverage(name, pit):
    """Fractions of targets inside central intervals: ``|2 u - 1| <= coverage``."""
    inside = np.sort(np.abs(2.0 * pit - 1.0))
    observed = np.searchsorted(inside, LEVELS, side="right") / len(pit)
    return Calibration(name, LEVELS, observed, None, pit)


def reliability(name, hits, probabilities, n_bins, strategy):
    """Frequencies in bins of predicted probability."""
    check_consistent_length(hits, probabilities)
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise ValueError(f"The probabilities {name!r} do not lie between 0 and 1.")
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}.")
    if not (isinstance(n_bins, int | np.integer) and n_bins >= 1):
        raise ValueError(f"n_bins must be a positive int, got {n_bins!r}.")
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "quantile":
        edges = np.unique(np.quantile(probabilities, edges))
    bins = np.searchsorted(edges[1:-1], probabilities, side="right")
    counts = np.bincount(bins, minlength=len(edges))
    used = counts > 0
    predicted = np.bincount(bins, probabilities, len(edges))[used] / counts[used]
    observed = np.bincount(bins, hits, len(edges))[used] / counts[used]
    return Calibration(
        name, predicted, observed, wilson_interval(observed, counts[used]), probabilities
    )


def wilson_interval(frequency, n):
    """Confidence interval of a probability from its frequency in `n` trials (Wilson 1927).

    Parameters
    ----------
    frequency, n : ndarray of shape (n_points,)

    Returns
    -------
    ndarray of shape (n_points, 2)
        Ends of the intervals of 95 % confidence.
    """
    centre = (frequency + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(frequency * (1 - frequency) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return np.column_stack([centre - half, centre + half])
