"""Terms of the log evidence of a model at one minimum (MacKay 1992, chapters 2 and 3).

One of them counts the symmetries of the prior under label switching: exchanges and sign changes of
hidden units.

Occam factors are those of Gaussian widths of the log precisions, or `integrated` numerically. The
Gaussian width of ``ln alpha_c`` (MacKay 1992, equation 2.27) is a poor approximation where
``gamma_c`` is small: the minimum moves with the precision, and the evidence is not Gaussian. There
the evidence is evaluated along ``ln alpha_c``, with the weights re-optimised at every value, and
integrated: nested Laplace approximation (Tierney & Kadane 1986; Rue, Martino & Chopin 2009,
section 3).
"""

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import gammaln

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.curvature._precision import Precision
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.posterior import Hyperparameters

GAUSSIAN_FROM = 5.0  # well-determined parameters above which ln alpha is treated as Gaussian
MIN_DEGREES = 1e-3  # fewer of them leave a precision undetermined
DEPTH = -5.0  # log evidence relative to the minimum at which a profile ends: omits 1 % of its area
MIN_STEP, FIRST_STEP, LONGEST_STEP = 0.05, 0.3, 2.0  # in ln alpha
STRETCH = 1.4  # factor from one step to the next
FINE_POINTS = 801  # points of the interpolated curve for the integral
LEVEL_STEP = 1e-4  # finite-difference step in ln beta, which leaves eight digits
# most steps to a minimum along a profile, and the Newton decrement (nats) at which they end
PROFILE_STEPS, PROFILE_TOL = 80, 1e-8


class UnitSymmetry(NamedTuple):
    """Symmetry operations on the units of a hidden layer that keep the density of the weights."""

    kinds: np.ndarray  # (n_units,), kind of every unit; units of the same kind can be exchanged
    # (n_units,), whether the signs of all weights into and out of a unit can be changed
    mirrored: np.ndarray

    def costs(self, same, flipped):
        """Costs of assigning unit ``i`` to place ``j``, `FORBIDDEN` where that is no symmetry."""
        apart = self.kinds[:, None] != self.kinds
        flipped = np.where(self.mirrored[:, None], flipped, same)
        return np.where(apart, FORBIDDEN, same), np.where(apart, FORBIDDEN, flipped)


FORBIDDEN = 1e300  # cost of a forbidden assignment; an assignment without any always exists


def symmetries(network, groups):
    """List the `UnitSymmetry` of a prior for every hidden layer.

    Units are of a kind if their weights have the same groups, means and precisions. A prior with a
    precision matrix is taken to have no symmetries.
    """
    k, found = network.n_weights, []
    shape = np.arange(k) if groups.coupled else groups.shape
    values = [groups.labels, *(np.broadcast_to(part, k) for part in (shape, groups.mean))]
    for before, after in pairwise(zip(*map(network.layers, values), strict=True)):
        # a column has all weights into a unit and out of it, not the biases of the next layer
        units = [np.vstack([w, v[: w.shape[1]].T]) for w, v in zip(before, after, strict=True)]
        kinds = np.unique(np.vstack(units), axis=1, return_inverse=True)[1].ravel()
        # signs can be changed under an odd activation if all means (``units[-1]``) are zero
        mirrored = network.phi.odd and not groups.coupled and ~units[-1].any(axis=0)
        found.append(UnitSymmetry(kinds, np.full(len(kinds), mirrored)))
    return found


@dataclass(frozen=True, repr=False)
class EvidenceTerms:
    """Terms that add up to ``log P(D | H)`` at one minimum, in nats."""

    misfit: float  # ``-sum_l beta_l E_D,l``, or ``G`` for classifiers
    noise_normaliser: float  # ``N/2 log beta - N/2 log 2 pi``; zero for classifiers
    weight_prior: float  # ``-sum_c alpha_c E_W^c + 1/2 sum_c k_c log alpha_c``
    log_det: float  # ``-1/2 log det A``
    symmetry: float  # logarithm of the number of equivalent minima
    # logarithms of the Occam factors of the free ``alpha_c`` and ``beta_l``: posterior over prior
    # width, never positive under log-uniform priors; a Gamma prior has its own density in place of
    # the inverse width
    weight_precision_occam: float
    noise_occam: float
    # log Jacobian from standardised targets to targets in their own units
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


def log_evidence_fixed(posterior, point):
    """Log evidence at fixed precisions, ``log P(D | alpha, beta)``, without the symmetry factor.

    The `Point` is a minimum. See MacKay (1992), equation 3.8, and Bishop (2006), equation 5.175.
    """
    alpha, beta = point.hyper
    prior = posterior.groups.log_normaliser(alpha)
    noise = posterior.likelihood.log_normaliser(beta, posterior.n_rows)
    return -point.energies.total(point.hyper) - 0.5 * point.precision.log_det + prior + noise


def log_symmetry(network, groups, switched_off=()):
    """Log number of equivalent minima under label switching and sign changes of hidden units.

    The number is ``H!`` per hidden layer, times ``2^H`` for odd activations (MacKay 1992, section
    3.3; Bishop 5.7). Only units with the same prior are exchangeable.

    Units of layers ``switched_off`` (from 0) equal their own mirror images. The result is ``nan``
    where units can be rotated continuously (linear hidden layers of several units).
    """
    total = 0.0
    for layer, (kinds, mirrored) in enumerate(symmetries(network, groups)):
        if network.phi.linear and np.max(np.bincount(kinds)) > 1:
            return np.nan
        if layer in switched_off:
            continue
        total += np.sum(gammaln(np.bincount(kinds) + 1.0)) + np.sum(mirrored) * np.log(2.0)
    return float(total)


def log_occam(prior, log_value, log_area):
    """Log Occam factor ``log [P(ln lambda) area]``, with the area bounded by the prior width.

    ``log_value`` is ``ln lambda`` at the maximum of the posterior density, and ``log_area`` the
    logarithm of the area below that density, divided by its maximum. That of a Gaussian is ``(2 pi
    2/degrees)^(1/2)`` (MacKay 1992, equations 2.27, 3.15), where ``degrees`` is the number of
    well-determined parameters that measure the precision, including the prior counts.
    """
    return prior.log_density(log_value) + np.minimum(log_area, prior.log_width)


class WellDetermined(NamedTuple):
    """Effective numbers of parameters, by the Gauss-Newton approximation."""

    gamma: np.ndarray  # (n_groups,), gamma_c = k_c - alpha_c Tr_c(A^-1), between 0 and k_c
    # (n_levels,), gamma_l = beta_l Tr(A^-1 B_l); with noise levels, gamma has the same sum
    noise_gamma: np.ndarray
    precision: Precision  # Gauss-Newton approximation of the Hessian, positive definite


def well_determined(posterior, method, theta, hyper):
    """Compute effective numbers of parameters (MacKay 1992, equations 2.23 and 3.18).

    The result is ``None`` if the curvature is numerically singular.
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
            _, B = level_derivatives(posterior, theta, hyper.beta, level, exact=False)
            noise_gamma[level] = np.sum(covariance * B)
        noise_gamma[-1] = gamma.sum() - noise_gamma[:-1].sum()
    return WellDetermined(gamma, noise_gamma, precision)


def level_derivatives(posterior, theta, beta, level, exact):
    """Derivatives of the misfit's gradient and Hessian with respect to one ``ln beta``."""
    mine = np.arange(len(beta)) == level
    if posterior.likelihood.linear:
        return posterior.data_expansion(theta, beta * mine, exact)[1:]
    return _central_difference(
        lambda logs: posterior.data_expansion(theta, np.exp(logs), exact)[1:], beta, mine
    )


def level_information(posterior, theta, beta):
    """Second derivatives of the misfit in ``ln beta``, ``(n_levels, n_levels)``."""

    def slope(logs):
        misfit = posterior.energies(theta, np.exp(logs))
        yield np.exp(logs) * misfit.errors - 0.5 * posterior.noise_counts(np.exp(logs))

    return np.array([_central_difference(slope, beta, one)[0] for one in np.eye(len(beta))])


def _central_difference(function, beta, direction):
    """Derivatives of arrays, functions of ``ln beta``, along a direction."""
    ends = (function(np.log(beta) + step * direction) for step in (LEVEL_STEP, -LEVEL_STEP))
    return [(up - down) / (2.0 * LEVEL_STEP) for up, down in zip(*ends, strict=True)]


def occam_factors(posterior, point, free, determined):
    """Sums of the log Occam factors of the free precisions, of weights and of the noise.

    They are Gaussian approximations by the `WellDetermined` parameters. Where few of these
    determine a precision, `integrated` improves on them.
    """
    alpha, beta = point.hyper
    mask = free.alpha & (posterior.groups.sizes > 0)
    of_weights = _sum_of_gaussian(free.alpha_prior, mask, alpha, determined.gamma)
    if np.any(free.beta) and not posterior.likelihood.linear:
        return of_weights, _joint_noise_occam(posterior, point, free)
    degrees = posterior.level_counts - determined.noise_gamma
    return of_weights, _sum_of_gaussian(free.beta_prior, free.beta, beta, degrees)


def _sum_of_gaussian(prior, mask, precisions, degrees):
    """Sum of Gaussian log Occam factors of the precisions in a mask."""
    areas = 0.5 * np.log(4.0 * np.pi / np.maximum(degrees + prior.counts, MIN_DEGREES))
    return float(np.sum(log_occam(prior[mask], np.log(precisions[mask]), areas[mask])))


def _joint_noise_occam(posterior, point, free):
    """Joint log Occam factor of the free noise precisions, Gaussian in their logarithms."""
    beta, prior = point.hyper.beta, free.beta_prior
    information = level_information(posterior, point.theta, beta) + np.diag(prior.rate * beta)
    sign, log_det = np.linalg.slogdet(information[np.ix_(free.beta, free.beta)])
    prior, logs = prior[free.beta], np.log(beta[free.beta])
    density, widest = prior.log_density(logs), np.sum(prior.log_width)
    if sign <= 0:  # all targets are fitted exactly
        return float(np.sum(density) + widest)
    widths = np.sum(density + 0.5 * np.log(2.0 * np.pi)) - 0.5 * log_det
    return float(min(widths, np.sum(density) + widest))


def integrated(posterior, minimum, settings):
    """Integrate Occam factors numerically where few weights determine a precision.

    The posterior has the layout of the minimum.
    """
    method, free = Method.choose(posterior, settings), settings.free
    if minimum.trouble is not None or not method.profiled:
        return minimum
    n_groups, logs = len(minimum.hyper.alpha), np.log(np.concatenate(minimum.hyper))
    by_level = minimum.noise_counts - minimum.noise_gamma
    degrees = np.concatenate([minimum.gamma, by_level]) + free.prior.counts
    if not posterior.likelihood.linear:  # with known errors the profile is never Gaussian
        degrees[n_groups:] = 0.0
    present = [
        free.alpha & (posterior.groups.sizes > 0),
        free.beta & posterior.likelihood.quadratic,
    ]
    occam = np.zeros(len(logs))
    for i in np.flatnonzero(np.concatenate(present)):
        if settings.deadline.passed:
            return minimum
        prior = free.prior[i]
        reach = 3.0 * np.sqrt(2.0 / max(degrees[i], GAUSSIAN_FROM))  # standard deviations
        inside = prior.low + reach < logs[i] < prior.high - reach
        if degrees[i] > GAUSSIAN_FROM and inside:
            occam[i] = log_occam(prior, logs[i], 0.5 * np.log(4.0 * np.pi / degrees[i]))
            continue
        with method.threads():
            curve = profile(posterior, method, minimum, i, prior)
        if curve is None:
            return minimum
        fine = np.linspace(curve[0][0], curve[0][-1], FINE_POINTS)
        heights = PchipInterpolator(*curve)(fine)
        area = np.trapezoid(np.exp(heights - np.max(heights)), fine)
        occam[i] = log_occam(prior, logs[i], np.max(heights) + np.log(area))
    terms = replace(minimum.terms, weight_precision_occam=float(occam[:n_groups].sum()))
    if posterior.likelihood.quadratic:
        terms = replace(terms, noise_occam=float(occam[n_groups:].sum()))
    return replace(minimum, terms=terms)


def profile(posterior, method, minimum, index, prior):
    """Log evidence along one precision, hyperprior included, relative to the minimum.

    Returns rising values ``ln lambda`` and the heights there, both of shape (m,), or ``None`` if
    the minimum cannot be continued at all.
    """
    start = np.log(np.concatenate(minimum.hyper))
    origin = minimum_at(posterior, method, minimum.theta, minimum.hyper)
    found = [(start[index], 0.0)]
    for sign, end in zip((-1.0, 1.0), prior.log_range, strict=True):
        theta, value, height, step = minimum.theta, start[index], 0.0, FIRST_STEP
        while abs(end - value) > 1e-9 and step > MIN_STEP and height > DEPTH:
            logs = start.copy()
            logs[index] = value + sign * min(step, abs(end - value))
            hyper = Hyperparameters(*np.split(np.exp(logs), [len(minimum.hyper.alpha)]))
            moved = origin and minimum_at(posterior, method, theta, hyper)
            if moved is None:  # this minimum cannot be followed so far
                step *= 0.25
                continue
            theta, value = moved[0].theta, logs[index]
            rise = prior.log_kernel(value) - prior.log_kernel(start[index])
            height = moved[1] - origin[1] + rise
            found.append((value, height))
            step = min(STRETCH * step, LONGEST_STEP)
    if len(found) == 1:
        return None
    values, heights = np.array(sorted(found)).T
    return values, heights


def minimum_at(posterior, method, theta, hyper):
    """Continue a minimum to other precisions: its `Point`, and its log evidence there.

    ``theta`` are the weights at the present precisions. Returns ``None`` if there is no minimum.
    """
    search = find_mode(posterior, method, theta, hyper, PROFILE_STEPS, PROFILE_TOL)
    point = search.point
    if not (search.converged and point.precision.definite):
        return None
    return point, log_evidence_fixed(posterior, point)
