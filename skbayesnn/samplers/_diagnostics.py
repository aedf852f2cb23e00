"""Convergence diagnostics: R-hat and effective sample sizes (Vehtari et al. 2021)."""

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata


def split(draws):
    """Halve every chain: (n_chains, n_draws, ...) to (2 n_chains, n_draws // 2, ...)."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _normalised_ranks(draws):
    """Normal scores of the ranks of every quantity over all chains."""
    flat = draws.reshape(-1, *draws.shape[2:])
    return ndtri((rankdata(flat, axis=0) - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _between_and_within(chains):
    """Mean variance within chains (m, n, ...), and the pooled variance estimate ``var+``."""
    n = chains.shape[1]
    within = np.mean(np.var(chains, axis=1, ddof=1), axis=0)
    between = np.var(np.mean(chains, axis=1), axis=0, ddof=1)
    return within, within * (n - 1) / n + between


def r_hat(draws):
    """Rank-normalised split R-hat, the larger of bulk and tails; 1 for constant quantities.

    Draws have the shape ``(n_chains, n_draws, ...)``, here and below, with at least 4 draws per
    chain, and the result has that of the quantities, ``(...)``.
    """
    chains = split(draws)
    folded = np.abs(chains - np.median(chains, axis=(0, 1)))
    values = []
    for some in (chains, folded):
        within, pooled = _between_and_within(_normalised_ranks(some))
        with np.errstate(divide="ignore", invalid="ignore"):
            values.append(np.where(pooled <= 1e-12, 1.0, pooled / within))
    return np.sqrt(np.maximum(*values))


def effective_sample_size(draws):
    """Effective number of independent draws, by Geyer's initial monotone sequence.

    All chains count together. Constant quantities have the number of draws.
    """
    chains = split(draws)
    m, n = chains.shape[:2]
    within, pooled = _between_and_within(chains)
    centred = chains - np.mean(chains, axis=1, keepdims=True)
    spectrum = rfft(centred, next_fast_len(2 * n), axis=1)
    covariance = irfft(np.abs(spectrum) ** 2, next_fast_len(2 * n), axis=1)[:, :n] / n
    covariance = np.mean(covariance, axis=0) * n / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - covariance) / pooled  # (n, ...)
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(n // 2, 2, *rho.shape[1:]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    pairs = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(2.0 * np.sum(pairs, axis=0) - 1.0, 1.0 / np.log10(m * n))
    constant = pooled <= (1e-12 * np.max(np.abs(chains), axis=(0, 1))) ** 2
    return np.where(constant, float(m * n), m * n / time)


def bulk_ess(draws):
    """Effective sample size of the rank-normalised draws, for the bulk of the distribution."""
    return effective_sample_size(_normalised_ranks(draws))


def tail_ess(draws):
    """Smaller effective sample size of the indicators of the 5 % and 95 % quantiles."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return np.minimum(
        effective_sample_size((draws <= low).astype(float)),
        effective_sample_size((draws <= high).astype(float)),
    )
