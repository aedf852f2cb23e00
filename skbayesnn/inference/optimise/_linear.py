"""Starting precisions of linear models, whose evidence is cheap but may be multimodal."""

from typing import NamedTuple

import numpy as np

from skbayesnn.network import first_inputs
from skbayesnn.posterior import Hyperparameters

GRID_STEP = 0.5 * np.log(10.0)  # spacing of the grid in ln alpha and ln beta


def scannable(posterior, settings):
    """Return True if the evidence is exact and cheap on a grid, and the prior centred."""
    work = len(posterior.X) * posterior.network.n_weights**2
    cheap = work <= settings.limits.scan_work
    return posterior.is_quadratic and cheap and posterior.groups.centred


@np.errstate(over="ignore", invalid="ignore")
def linear_start(posterior, settings):
    """Find the precisions of highest evidence on a coarse grid, for linear models.

    The noise is Gaussian. All free weight precisions share one value, within their bounds; their
    hyperpriors, which hold for each by itself, are left out. Re-estimation from there reaches the
    same maximum for any scale of the weights; from a strong prior it may converge to a maximum
    where all variation of the targets is attributed to noise.
    """
    free, groups, likelihood = settings.free, posterior.groups, posterior.likelihood
    prior = free.alpha_prior
    levels = [
        _grid(free.beta_prior[i]) if f else settings.fixed.beta[[i]]
        for i, f in enumerate(free.beta)
    ]
    labels = groups.labels.reshape(-1, posterior.network.n_outputs)
    sheets = _sheets(posterior, levels)
    # with equal precisions, one decomposition is enough for all values
    equal = bool(np.all(free.alpha)) and np.ptp(prior.low) == np.ptp(prior.high) == 0
    spectra = _spectra(sheets, np.ones(labels.shape)) if equal else None
    best, chosen = -np.inf, settings.fixed  # the result if inputs overflow
    for value in _grid(prior[free.alpha]) if np.any(free.alpha) else [1.0]:
        alpha = np.where(free.alpha, prior.clip(value), settings.fixed.alpha)
        found = spectra or _spectra(sheets, alpha[labels])
        variance = 1.0 / value if equal else 1.0
        tables = [
            free.beta_prior[level].log_kernel(np.log(betas)) for level, betas in enumerate(levels)
        ]
        for o, some in enumerate(found):
            tables[likelihood.levels[o]] += np.concatenate(
                [_log_likelihood(spectrum, variance, posterior.n_rows) for spectrum in some]
            )
        total = sum(table.max() for table in tables)
        if total > best:
            beta = [betas[np.argmax(t)] for betas, t in zip(levels, tables, strict=True)]
            best, chosen = total, Hyperparameters(alpha, np.array(beta))
    return chosen


def _grid(prior):
    """Grid of precisions between the bounds of one or several priors."""
    low, high = np.min(prior.low), np.max(prior.high)
    return np.minimum(np.exp(np.arange(low, high + 0.5 * GRID_STEP, GRID_STEP)), np.exp(high))


class _Sheet(NamedTuple):
    """Compressed inputs and targets of one output, for several noise precisions ``betas``."""

    triangle: np.ndarray  # triangular factor of the inputs
    inside: np.ndarray  # targets in its coordinates
    beside: float  # squared distance of the targets from the span of the inputs
    betas: np.ndarray
    offset: float = 0.0  # of the log likelihood, where rows are weighted by their precisions


class _Spectrum(NamedTuple):
    """Singular values of scaled inputs, and the targets of one output in their basis.

    The inputs are multiplied by the prior standard deviations of their weights.
    """

    squares: np.ndarray  # squared singular values
    along: np.ndarray  # squared components of the targets along the singular vectors
    sheet: _Sheet


def _sheets(posterior, levels):
    """Compressed targets of every output, for all precisions ``levels`` of its noise.

    One sheet per output is enough, unless targets have known variances: then there is one for each
    precision.
    """
    likelihood, weight = posterior.likelihood, posterior.sample_weight
    rows = first_inputs(posterior.network, posterior.X)
    if posterior.known is None:
        given = zip(*_compressed(rows, posterior.y, weight), strict=True)
        betas = [r * levels[i] for r, i in zip(likelihood.relative, likelihood.levels, strict=True)]
        return [[_Sheet(*some, own)] for some, own in zip(given, betas, strict=True)]
    most, found = max(map(len, levels)), [[] for _ in likelihood.levels]
    for beta in np.column_stack([np.resize(betas, most) for betas in levels]):
        known = likelihood.output_rows(None, posterior.targets(), beta)
        precision = known.precision * known.factors
        offsets = 0.5 * weight @ np.log(precision)
        for o, sheets in enumerate(found):
            own = rows, posterior.y[:, [o]], weight * precision[:, o]
            (some,) = zip(*_compressed(*own), strict=True)
            sheets.append(_Sheet(*some, np.ones(1), offsets[o]))
    counts = [len(levels[level]) for level in likelihood.levels]
    return [sheets[:count] for sheets, count in zip(found, counts, strict=True)]


def _compressed(rows, y, weight):
    """Triangular factor, targets in its coordinates and squared residual norm of every output."""
    root = np.sqrt(weight)[:, None]
    basis, triangle = np.linalg.qr(root * rows)
    targets = root * y
    inside = basis.T @ targets
    return [triangle] * y.shape[1], inside.T, np.sum((targets - basis @ inside) ** 2, axis=0)


def _spectra(sheets, alpha):
    """Spectra of the sheets of every output, for precisions of shape (n_inputs + 1, n_outputs)."""
    found, previous = [], (None, None)
    for some, a in zip(sheets, alpha.T, strict=True):
        found.append([])
        for sheet in some:
            if sheet.triangle is not previous[0] or np.any(a != previous[1]):
                scaled = sheet.triangle / np.sqrt(a)
                left, singular, _ = np.linalg.svd(scaled, full_matrices=False)
                previous = sheet.triangle, a
            found[-1].append(_Spectrum(singular**2, (left.T @ sheet.inside) ** 2, sheet))
    return found


def _log_likelihood(spectrum, variance, n_rows):
    """Log evidence (MacKay 1992, equation 2.20) of one output, for each ``beta`` of a sheet."""
    squares, along, (*_, beside, beta, offset) = spectrum
    total = 1.0 / beta[:, None] + variance * squares
    value = -0.5 * np.sum(np.log(2.0 * np.pi * total) + along / total, axis=1)
    others = n_rows - len(squares)
    value = value + 0.5 * others * np.log(beta / (2.0 * np.pi)) - 0.5 * beta * beside
    return value + offset
