"""Noise of constant level, tests of residuals against it, and the interface of all noise models."""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from skbayesnn.inference.minima._search import ALONE, find_minima, fits
from skbayesnn.posterior import (
    Hyperparameters,
    JointPosterior,
    MeasuredGaussian,
    MeasuredJoint,
)

NOISE_MINIMA = 3  # modes under constant noise that start searches under other noise models


class ConstantNoise:
    """Gaussian noise with a level per output or shared by outputs; or classes, without noise."""

    tried_below = 0.0  # p value below which the model is tried
    plain = True  # whether modes under constant noise are modes of this model
    hides = False  # whether such noise masks structure that larger networks could learn
    sampled = True  # whether the posterior under this noise is sampled by default

    def p_value(self, X, residuals, sample_weight):
        """P value of a test for this noise; ``None`` if there is no test.

        ``residuals`` (n, n_outputs) are those under constant noise, divided by their expected
        standard deviations; ``sample_weight`` (n,) are the numbers of repetitions of the rows.
        """
        return None

    def hidden_layer_sizes(self, problem):
        """Hidden layer sizes of the noise network; empty, as there is none."""
        return ()

    def pose(self, posed):
        """Convert posterior and settings under constant noise to those under this noise."""
        return posed

    def search(self, problem, posed, previous, workers=ALONE):
        """Find minima from given ones.

        There are no random starts, as misfit of an untrained network of the means would be
        attributed to noise.

        ``posed`` is the result of `pose`. ``previous`` are minima under this noise from an earlier
        fit, then minima under constant noise, best first.
        """
        return find_minima(*posed, (), previous, workers=workers)

    def continues(self, problem, posed, old):
        """Return True if a minimum of an earlier fit has this noise and a compatible network."""
        same = type(old.likelihood) is type(posed.posterior.likelihood) and old.noise is None
        return same and fits(old, posed.posterior.network, posed.posterior.groups)

    def joint(self, problem, posed, tuned):
        """Joint posterior that is sampled, in non-centred coordinates."""
        posterior, search = posed
        information = np.zeros(len(posterior.groups.names))
        measured = isinstance(posterior.likelihood, MeasuredGaussian)
        kind = MeasuredJoint if measured else JointPosterior
        return kind(posterior, search.free, search.fixed, information, tuned)

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """Build the starting points of chains under this noise.

        ``posed`` is the result of `pose`, ``tuned`` is that of `SamplingSettings`. ``starts`` hold
        a `Trained` network of the means for every chain, the first of which are at ``minima``;
        ``seeds`` hold a seed for each. With ``from_prior`` the weights will be drawn from the
        prior.
        """
        joint, (theta, hyper) = self.joint(problem, posed, tuned), stacked(starts)
        known = what_data_tell(posed.posterior, posed.settings, joint.n_mean, theta, hyper)
        return Positions(joint, theta, hyper, known)

    def information(self, problem, posed, joint, q):
        """Information ``h_c`` of the data about a weight of each group at positions.

        ``posed`` and ``joint`` are results of `pose` and `joint`; positions ``q`` of shape (n, d +
        n_conditions) give information of shape (n, n_groups).
        """
        theta, hyper = joint.mean_weights(q), joint.place(q).hyper
        return what_data_tell(posed.posterior, posed.settings, joint.n_mean, theta, hyper)


class Positions(NamedTuple):
    """Starting points of chains."""

    joint: JointPosterior
    theta: np.ndarray  # (n_chains, m), weights of all networks of the joint posterior
    hyper: Hyperparameters  # precisions of all groups of the joint posterior
    # (n_chains, n_groups), information of the data about a weight of every group, h_c
    known: np.ndarray


def stacked(starts):
    """Stack weights and hyperparameters of several networks along a leading axis."""
    hyper = zip(*(start.hyper for start in starts), strict=True)
    return np.stack([start.theta for start in starts]), Hyperparameters(*map(np.stack, hyper))


def what_data_tell(posterior, settings, n_sampled, theta, hyper):
    """Information ``h_c`` of the data, ``Tr_c(A^-1) = k_c / (alpha_c + h_c)``, at every start."""
    if n_sampled == 0 or posterior.network.n_weights > settings.limits.dense:
        return np.zeros_like(hyper.alpha)
    matrix = posterior.groups.white_matrix(posterior.expansion(theta, hyper).hessian)
    variances = np.diagonal(np.linalg.inv(matrix), axis1=-2, axis2=-1)[:, :n_sampled]
    member = posterior.groups.membership[:n_sampled]
    sizes = member.sum(axis=0)
    return np.maximum(sizes / np.maximum(variances @ member, 1e-300) - hyper.alpha, 0.0) * (
        sizes > 0
    )


def noise_trend(X, residuals, sample_weight):
    """Test whether residuals are larger at some inputs than at others.

    Absolute residuals (Glejser 1969, "A new test for heteroskedasticity", Journal of the American
    Statistical Association 64) are regressed on the inputs and their squares. Under constant noise
    the number of rows times ``R^2`` follows a chi-squared distribution, whatever the law of the
    residuals (Koenker 1981, Journal of Econometrics 17).

    Residuals, of shape (n, n_outputs), are divided by their expected standard deviations
    ``sqrt(gamma_m / beta)`` (MacKay 1992, thesis, chapter 6); ``sample_weight`` (n,) repeats rows.
    Returns the probability under constant noise of as strong a trend in any output; ``nan`` if no
    input varies, or if the rows do not outnumber the inputs and squares.
    """
    n, root = sample_weight.sum(), np.sqrt(sample_weight)[:, None]
    X = X - sample_weight @ X / n
    X = X / np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
    regressors, sizes = np.hstack([X, X**2]), np.abs(residuals)
    regressors = root * (regressors - sample_weight @ regressors / n)
    sizes = root * (sizes - sample_weight @ sizes / n)
    fit, _, rank, _ = np.linalg.lstsq(regressors, sizes)
    if n <= rank + 1 or rank == 0:
        return np.nan
    total = np.sum(sizes**2, axis=0)
    explained = np.sum((regressors @ fit) ** 2, axis=0) / np.where(total > 0.0, total, 1.0)
    return _of_any(chi2.sf(n * explained, rank))


def heavy_tails(residuals, sample_weight):
    """Test whether residuals have heavier tails than a Gaussian.

    The ratio of mean absolute deviation to standard deviation is ``sqrt(2 / pi)`` for a Gaussian
    and smaller for heavy tails (Geary 1935, "The ratio of the mean deviation to the standard
    deviation as a test of normality", Biometrika 27).

    Returns the probability under Gaussian noise of as heavy tails in any output; the arguments are
    those of `noise_trend`.
    """
    n = sample_weight.sum()
    deviation = sample_weight @ np.abs(residuals) / n
    rms = np.sqrt(sample_weight @ residuals**2 / n)
    expected = np.sqrt(2.0 / np.pi) * (1.0 + 0.25 / n)
    ratio = deviation / np.where(rms > 0.0, rms, 1.0)
    ratio = np.where(rms > 0.0, ratio, expected)
    return _of_any(norm.cdf((ratio - expected) * np.sqrt(n / (1.0 - 3.0 / np.pi))))


def _of_any(p_values):
    """Bonferroni-corrected p value of the most significant of several tests."""
    return float(min(1.0, len(p_values) * np.min(p_values)))
