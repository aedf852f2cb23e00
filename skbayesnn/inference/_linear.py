"""Where to start without hidden layer: the evidence may have several maxima, and is cheap there."""

from typing import NamedTuple

import numpy as np

from skbayesnn.posterior import Hyperparameters

GRID_STEP = 0.5 * np.log(10.0)  # of ln alpha and ln beta


def scannable(posterior, settings):
    """Whether the evidence is exact, cheap on a grid of precisions, and the prior centred."""
    work = len(posterior.X) * posterior.network.n_weights**2
    cheap = work <= settings.limits.scan_work
    return posterior.is_quadratic and cheap and posterior.groups.centred


@np.errstate(over="ignore", invalid="ignore")
def linear_start(posterior, settings):
    """Precisions of highest evidence on a coarse grid, for Gaussian noise and no hidden layer.

    All free weight precisions share one value. Re-estimation from there ends in the same maximum,
    wherever the scale of the weights lies; from a strong prior it may end where everything is taken
    for noise.

    Returns
    -------
    Hyperparameters
        Of shapes (n_groups,) and (n_levels,).
    """
    free, groups, likelihood = settings.free, posterior.groups, posterior.likelihood
    low, high = free.prior.log_range
    grid = np.exp(np.arange(low, high + 0.5 * GRID_STEP, GRID_STEP))
    levels = [grid if f else settings.fixed.beta[[i]] for i, f in enumerate(free.beta)]
    labels = groups.labels.reshape(-1, posterior.network.n_outputs)
    compressed = _compressed(posterior)
    all_free = bool(np.all(free.alpha))  # then one spectrum serves all values
    spectra = _spectra(compressed, np.ones(labels.shape)) if all_free else None
    best, chosen = -np.inf, settings.fixed  # which stays if inputs overflow
    for value in grid if np.any(free.alpha) else grid[:1]:
        alpha = np.where(free.alpha, value, settings.fixed.alpha)
        found = spectra or _spectra(compressed, alpha[labels])
        variance = 1.0 / value if all_free else 1.0
        tables = [np.zeros(len(betas)) for betas in levels]
        for o, spectrum in enumerate(found):
            level = likelihood.levels[o]
            betas = likelihood.relative[o] * levels[level]
            tables[level] += _log_likelihood(spectrum, variance, betas, posterior.n_rows)
        total = sum(table.max() for table in tables)
        if total > best:
            beta = [betas[np.argmax(t)] for betas, t in zip(levels, tables, strict=True)]
            best, chosen = total, Hyperparameters(alpha, np.array(beta))
    return chosen


class _Spectrum(NamedTuple):
    """Of the inputs scaled by their prior standard deviations, and one output's targets."""

    squares: np.ndarray  # of the singular values
    along: np.ndarray  # squared components of the targets along the singular vectors
    beside: float  # their squared distance from what the inputs span


def _compressed(posterior):
    """Triangular factor of the inputs, targets in its coordinates, and what they leave out."""
    root = np.sqrt(posterior.sample_weight)[:, None]
    inputs = root * np.column_stack([posterior.X, np.ones(len(posterior.X))])
    basis, triangle = np.linalg.qr(inputs)
    targets = root * posterior.y
    inside = basis.T @ targets
    return triangle, inside, np.sum((targets - basis @ inside) ** 2, axis=0)


def _spectra(compressed, alpha):
    """One for every output, from precisions of shape (n_inputs + 1, n_outputs)."""
    triangle, inside, beside = compressed
    found, previous = [], None
    for t, rest, a in zip(inside.T, beside, alpha.T, strict=True):
        if previous is None or np.any(a != previous):
            left, singular, _ = np.linalg.svd(triangle / np.sqrt(a), full_matrices=False)
            previous = a
        found.append(_Spectrum(singular**2, (left.T @ t) ** 2, rest))
    return found


def _log_likelihood(spectrum, variance, beta, n_rows):
    """``log P(D | alpha, beta)`` (MacKay 1992, equation 2.20) for each of some ``beta``."""
    total = 1.0 / beta[:, None] + variance * spectrum.squares
    value = -0.5 * np.sum(np.log(2.0 * np.pi * total) + spectrum.along / total, axis=1)
    others = n_rows - len(spectrum.squares)
    return value + 0.5 * others * np.log(beta / (2.0 * np.pi)) - 0.5 * beta * spectrum.beside
