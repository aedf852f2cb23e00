"""Where to start without hidden layer: the evidence may have several maxima, and is cheap there."""

import numpy as np

from skbayesnn.posterior import Hyperparameters

GRID_STEP = 0.5 * np.log(10.0)  # of ln alpha and ln beta


def linear_start(posterior, settings):
    """Precisions of highest evidence on a coarse grid, for Gaussian noise and no hidden layer.

    All free weight precisions share one value. Re-estimation from there ends in the same maximum,
    wherever the scale of the weights lies; from a strong prior it may end where everything is taken
    for noise.

    Parameters
    ----------
    posterior : Posterior
    settings : Settings

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
    all_free = bool(np.all(free.alpha))
    best, chosen = -np.inf, None
    spectra = _spectra(posterior, np.ones(len(groups.names))[labels]) if all_free else None
    for value in grid if np.any(free.alpha) else grid[:1]:
        alpha = np.where(free.alpha, value, settings.fixed.alpha)
        found = spectra or _spectra(posterior, alpha[labels])
        variance = 1.0 / value if all_free else 1.0
        tables = [np.zeros(len(betas)) for betas in levels]
        for level, relative, spectrum in zip(
            likelihood.levels, likelihood.relative, found, strict=True
        ):
            betas = relative * levels[level]
            tables[level] = tables[level] + _log_likelihood(
                *spectrum, variance, betas, posterior.n_rows
            )
        if sum(table.max() for table in tables) > best:
            best = sum(table.max() for table in tables)
            beta = [betas[np.argmax(t)] for betas, t in zip(levels, tables, strict=True)]
            chosen = Hyperparameters(alpha, np.array(beta))
    return chosen


def _spectra(posterior, alpha):
    """For every output: singular values of the scaled inputs, targets along and beside them."""
    root = np.sqrt(posterior.sample_weight)[:, None]
    inputs = root * np.column_stack([posterior.X, np.ones(len(posterior.X))])
    found, previous = [], None
    for t, a in zip((root * posterior.y).T, alpha.T, strict=True):
        if previous is None or np.any(a != previous):
            left, singular, _ = np.linalg.svd(inputs / np.sqrt(a), full_matrices=False)
            previous = a
        along = left.T @ t
        beside = t - left @ along
        found.append((singular**2, along**2, beside @ beside))
    return found


def _log_likelihood(squares, along, beside, variance, beta, n_rows):
    """``log P(D | alpha, beta)`` (MacKay 1992, equation 2.20) for each of some ``beta``."""
    total = 1.0 / beta[:, None] + variance * squares
    value = -0.5 * np.sum(np.log(2.0 * np.pi * total) + along / total, axis=1)
    others = n_rows - len(squares)
    return value + 0.5 * others * np.log(beta / (2.0 * np.pi)) - 0.5 * beta * beside
