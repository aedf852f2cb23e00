"""Terms of the log evidence of a model at one minimum (MacKay 1992, chapters 2 and 3)."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaln, logsumexp

from skbayesnn.inference.evidence._symmetries import symmetries
from skbayesnn.posterior import Hyperparameters

GAUSSIAN_FROM = 5.0  # well-determined parameters above which ln alpha is treated as Gaussian
PROFILE_POINTS = 801  # of the quadrature over a log precision


@dataclass(frozen=True, repr=False)
class EvidenceTerms:
    """Terms that add up to ``log P(D | H)`` at one minimum, in nats.

    Attributes
    ----------
    misfit : float
        ``-sum_l beta_l E_D,l``, or ``G`` for classifiers.
    noise_normaliser : float
        ``N/2 log beta - N/2 log 2 pi``; zero for classifiers.
    weight_prior : float
        ``-sum_c alpha_c E_W^c + 1/2 sum_c k_c log alpha_c``.
    log_det : float
        ``-1/2 log det A``.
    symmetry : float
        Logarithm of the number of equivalent minima.
    weight_precision_occam, noise_occam : float
        Logarithms of the Occam factors of the free ``alpha_c`` and ``beta_l``: posterior over prior
        width. Never positive under log-uniform priors; a Gamma prior has its own density in place
        of the inverse width.
    target_scale : float
        Log Jacobian from standardised targets to targets in their own units.
    """

    misfit: float
    noise_normaliser: float
    weight_prior: float
    log_det: float
    symmetry: float
    weight_precision_occam: float
    noise_occam: float
    target_scale: float = 0.0

    def items(self):
        """List pairs of the name and value of every term."""
        return [(field.name, float(getattr(self, field.name))) for field in fields(self)]

    @property
    def total(self):
        """Log evidence ``log P(D | H)``, the sum of all terms."""
        return float(sum(value for _, value in self.items()))

    def __repr__(self):
        lines = [*self.items(), ("total", self.total)]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:{width}} {value:12.2f}" for name, value in lines)


def log_evidence_fixed(posterior, hyper, energies, log_det):
    """Log evidence at fixed precisions, ``log P(D | alpha, beta)``, without the symmetry factor.

    See MacKay (1992), equation 3.8, and Bishop (2006), equation 5.175.

    Parameters
    ----------
    posterior : Posterior
    hyper : Hyperparameters
    energies : Energies
    log_det : float
        ``log det A`` at the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Method, Problem
    >>> from skbayesnn.inference.optimise._steps import find_mode
    >>> from skbayesnn.inference.evidence._evidence import log_evidence_fixed
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters
    >>> X, rng = np.linspace(-1, 1, 20)[:, None], np.random.default_rng(0)
    >>> y = X + 0.1 * rng.standard_normal((20, 1))
    >>> posterior, settings = Problem(X, y, np.ones(20), Gaussian.per_output(1)).posed(())
    >>> hyper = Hyperparameters(np.ones(1), np.full(1, 100.0))
    >>> method = Method.choose(posterior, settings)
    >>> point = find_mode(posterior, method, np.zeros(2), hyper).point
    >>> value = log_evidence_fixed(posterior, hyper, point.energies, point.precision.log_det)
    >>> Phi = np.hstack([X, np.ones((20, 1))])
    >>> K = Phi @ Phi.T + 0.01 * np.eye(20)  # covariance of the targets
    >>> exact = -0.5 * (y.T @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1])
    >>> bool(np.isclose(value, exact[0, 0]))
    True
    """
    prior = posterior.groups.log_normaliser(hyper.alpha)
    noise = posterior.noise_normaliser(hyper.beta)
    return -energies.total(hyper) - 0.5 * log_det + prior + noise


def log_symmetry(network, groups, switched_off=()):
    """Log number of equivalent minima under label switching and sign changes of hidden units.

    The number is ``H!`` per hidden layer, times ``2^H`` for odd activations (MacKay 1992, section
    3.2; Bishop 5.7). Only units with the same prior are exchangeable.

    Parameters
    ----------
    network : Network
    groups : WeightGroups
    switched_off : sequence of int
        Hidden layers (from 0) without effect: their units equal their own mirror images.

    Returns
    -------
    float
        ``nan`` where units can be rotated continuously (linear hidden layers of several units).

    Examples
    --------
    >>> from skbayesnn.inference.evidence._evidence import log_symmetry
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import weight_groups
    >>> network = Network((1, 2, 1))
    >>> round(log_symmetry(network, weight_groups(network, "single")), 3)  # ln (2! 2^2)
    2.079
    """
    total = 0.0
    for layer, (kinds, mirrored) in enumerate(symmetries(network, groups)):
        if network.phi.linear and np.max(np.bincount(kinds)) > 1:
            return np.nan
        if layer in switched_off:
            continue
        total += np.sum(gammaln(np.bincount(kinds) + 1.0)) + np.sum(mirrored) * np.log(2.0)
    return float(total)


def log_occam_profile(prior, log_value, energy, count, b, q2):
    """Log Occam factor of one precision by quadrature over its whole range.

    With all other precisions fixed and a quadratic energy, changing a precision ``lambda`` by
    ``delta`` changes the log evidence by::

        -delta E + 1/2 delta^2 sum_i q_i^2 / (1 + delta b_i) - 1/2 sum_i log(1 + delta b_i)
        + 1/2 n log(lambda'/lambda)

    Parameters
    ----------
    prior : Hyperprior
    log_value : float
        ``ln lambda`` at the maximum of the evidence times the prior.
    energy : float
        The energy ``E`` that ``lambda`` multiplies.
    count : float
        ``n``: weights in the group, or targets of the noise level.
    b, q2 : ndarray of shape (m,)
        Eigenvalues of ``A^-1/2 grad grad E A^-1/2`` and squared components of ``A^-1/2 grad E``
        along their eigenvectors.

    Returns
    -------
    float
        ``log int P(ln lambda) P(D | lambda) / P(D | lambda_0) d ln lambda``; at most 0 under a
        uniform prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference.evidence._evidence import log_occam_gaussian, log_occam_profile
    >>> from skbayesnn.posterior import LogUniform
    >>> given = LogUniform(), 0.0, 50.0, 100.0, np.zeros(1), np.zeros(1)  # all well determined
    >>> log_occam_profile(*given) < -3.0
    True
    >>> abs(log_occam_profile(*given) - log_occam_gaussian(LogUniform(), 0.0, 100.0)) < 0.002
    True
    """
    low, high = prior.log_range
    x = np.linspace(low, high, PROFILE_POINTS)
    delta = np.exp(x) - np.exp(log_value)
    shrink = 1.0 + delta[:, None] * b
    valid = np.all(shrink > 0, axis=1)
    shrink = np.where(valid[:, None], shrink, 1.0)
    profile = -delta * energy + 0.5 * delta**2 * np.sum(q2 / shrink, axis=1)
    profile += 0.5 * (count * (x - log_value) - np.sum(np.log(shrink), axis=1))
    profile += prior.log_kernel(x) - prior.log_kernel(log_value)
    weight = np.full(len(x), x[1] - x[0])
    weight[[0, -1]] *= 0.5
    return log_occam(prior, log_value, logsumexp(np.where(valid, profile, -np.inf), b=weight))


def log_occam(prior, log_value, log_area):
    """Log Occam factor ``log [P(ln lambda) area]``, with the area bounded by the prior width.

    Parameters
    ----------
    prior : Hyperprior
    log_value : float
        ``ln lambda`` at the maximum of the posterior density.
    log_area : float
        Logarithm of the area below that density, divided by its maximum.
    """
    return float(prior.log_density(log_value) + min(log_area, prior.log_width))


def log_occam_gaussian(prior, log_value, degrees):
    """Log Occam factor of one precision by a Gaussian approximation in ``ln lambda``.

    It is ``log [P(ln lambda) (2 pi 2/degrees)^(1/2)]`` (MacKay 1992, equations 2.27, 3.15).

    Parameters
    ----------
    prior : Hyperprior
    log_value : float
        ``ln lambda`` at the maximum.
    degrees : float
        Number of well-determined parameters that measure the precision, including the prior
        counts.
    """
    return log_occam(prior, log_value, 0.5 * np.log(4.0 * np.pi / degrees))


class WellDetermined(NamedTuple):
    """Effective numbers of parameters, by the Gauss-Newton approximation.

    Attributes
    ----------
    gamma : ndarray of shape (n_groups,)
        ``gamma_c = k_c - alpha_c Tr_c(A^-1)``, between 0 and ``k_c``.
    noise_gamma : ndarray of shape (n_levels,)
        ``gamma_l = beta_l Tr(A^-1 B_l)``; with noise levels, ``gamma`` has the same sum.
    precision : Precision
        Gauss-Newton approximation of the Hessian, positive definite.
    """

    gamma: np.ndarray
    noise_gamma: np.ndarray
    precision: object


def well_determined(posterior, method, theta, hyper):
    """Compute effective numbers of parameters (MacKay 1992, equations 2.23 and 3.18).

    Returns
    -------
    WellDetermined or None
        ``None`` if the curvature is numerically singular.
    """
    point = method.gauss_newton(posterior, theta, hyper)
    precision = point.precision
    if not precision.definite:
        return None
    gamma = method.determined(posterior, point)
    counts = posterior.level_counts
    noise_gamma = gamma.sum() * counts / max(counts.sum(), 1.0)
    if method.dense and len(counts) > 1:
        covariance = precision.covariance()
        for level in range(len(counts) - 1):
            B = posterior.level_hessian(theta, hyper.beta, level)
            noise_gamma[level] = np.sum(covariance * B)
        noise_gamma[-1] = gamma.sum() - noise_gamma[:-1].sum()
    return WellDetermined(gamma, noise_gamma, precision)


def alpha_occam(posterior, method, point, free, determined):
    """Sum of the log Occam factors of the free weight precisions.

    The Gaussian approximation is used if more than `GAUSSIAN_FROM` parameters determine a precision
    far from the bounds of its prior, else quadrature. The Gauss-Newton approximation is exact for
    linear models and keeps every profile well-defined.
    """
    groups, total = posterior.groups, 0.0
    for c in np.flatnonzero(free.alpha & (groups.sizes > 0)):
        alpha, prior = point.hyper.alpha[c], free.alpha_prior[c]
        degrees = determined.gamma[c] + prior.counts
        if not method.dense or gaussian_serves(prior, np.log(alpha), degrees):
            total += log_occam_gaussian(prior, np.log(alpha), max(degrees, 1e-3))
            continue
        covariance, deviation = groups.within(c, determined.precision.covariance(), point.theta)
        b, vectors = eigh(covariance)
        b = np.clip(b, 0.0, 1.0 / alpha)  # exact bounds, up to rounding
        q2 = b * (vectors.T @ deviation) ** 2
        energy = point.energies.weights[c]
        total += log_occam_profile(prior, np.log(alpha), energy, len(b), b, q2)
    return total


def noise_occam(posterior, method, point, free, determined):
    """Sum of the log Occam factors of the free noise precisions; see `alpha_occam`."""
    hyper, counts, total = point.hyper, posterior.level_counts, 0.0
    if np.any(free.beta) and not posterior.likelihood.linear:
        return _joint_noise_occam(posterior, point, free)
    for level in np.flatnonzero(free.beta):
        beta, prior = hyper.beta[level], free.beta_prior[level]
        degrees = counts[level] - determined.noise_gamma[level] + prior.counts
        if not method.dense or gaussian_serves(prior, np.log(beta), degrees):
            total += log_occam_gaussian(prior, np.log(beta), max(degrees, 1e-3))
            continue
        alone = Hyperparameters(0.0 * hyper.alpha, np.eye(len(hyper.beta))[level])
        _, gradient, B = posterior.expansion(point.theta, alone)
        whiten = determined.precision.whiten
        white = whiten(whiten(B).T)
        b, vectors = eigh(0.5 * (white + white.T))
        b = np.clip(b, 0.0, 1.0 / beta)
        q2 = (vectors.T @ whiten(gradient)) ** 2
        energy = point.energies.errors[level]
        total += log_occam_profile(prior, np.log(beta), energy, counts[level], b, q2)
    return total


def _joint_noise_occam(posterior, point, free):
    """Joint log Occam factor of the free noise precisions, Gaussian in their logarithms."""
    beta, prior = point.hyper.beta, free.beta_prior
    information = posterior.level_information(point.theta, beta) + np.diag(prior.rate * beta)
    sign, log_det = np.linalg.slogdet(information[np.ix_(free.beta, free.beta)])
    prior, logs = prior[free.beta], np.log(beta[free.beta])
    density, widest = prior.log_density(logs), np.sum(prior.log_width)
    if sign <= 0:  # all targets are fitted exactly
        return float(np.sum(density) + widest)
    widths = np.sum(density + 0.5 * np.log(2.0 * np.pi)) - 0.5 * log_det
    return float(min(widths, np.sum(density) + widest))


def gaussian_serves(prior, log_value, degrees):
    """Return True if ``ln lambda`` is nearly Gaussian and its bounds 3 standard deviations away."""
    if degrees <= GAUSSIAN_FROM:
        return False
    low, high = prior.log_range
    reach = 3.0 * np.sqrt(2.0 / degrees)
    return low + reach < log_value < high - reach
