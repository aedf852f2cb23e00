"""Evidence (type-II) maximisation by Newton steps in the log hyperparameters.

The minimum of the energy is found anew after every step: first with the Gauss-Newton approximation
of the log determinant, then with the exact Hessian.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._precision import DensePrecision
from skbayesnn.inference.evidence._evidence import (
    level_derivatives,
    level_information,
    log_evidence_fixed,
)
from skbayesnn.inference.optimise._damped import Search
from skbayesnn.inference.optimise._reestimation import third_order
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.posterior import Hyperparameters

ENOUGH = 0.5  # nats: an ascent that stops this close to the maximum has converged
IDLE = 1e-2  # effective number of parameters below which a group has no effect
MAX_STEP = 1.0  # largest change of any ln alpha or ln beta in one step
MIN_REACH = 1e-3  # largest change below which no shorter step is tried
STALLED = 0.2  # fraction of the tolerance that a step must gain for the ascent to continue
TRIALS = 40  # trial steps to the minimum after each change of the precisions
NEAR_MINIMUM = 1e-4  # fraction of the tolerance by which M may exceed its minimum
MIN_EIGENVALUE = 0.1  # least eigenvalue of A, in units of the smallest alpha


class Derivatives(NamedTuple):
    """Log evidence plus log hyperprior and its derivatives in ``(ln alpha, ln beta)``."""

    value: float  # log P(D | alpha, beta) p(alpha, beta)
    gradient: np.ndarray  # (h,)
    # (h, h), negative second derivatives, without third derivatives of the energy
    curvature: np.ndarray
    gamma: np.ndarray  # (n_groups,), k_c - alpha_c Tr_c(A^-1)


def evidence_derivatives(posterior, method, point, prior, exact=True, at_least=-np.inf):
    """Differentiate the log evidence in the log hyperparameters, with the shift of the minimum.

    With ``lambda_a`` any precision, ``E_a`` its energy, ``g_a`` and ``B_a`` the gradient and
    Hessian of ``E_a``, ``n_a`` its count and ``S = A^-1`` (cf. MacKay 1992, section 2.4; Bishop
    3.5.2)::

        dL/d ln lambda_a = n_a/2 - lambda_a E_a - 1/2 lambda_a Tr(S B_a) + tau_a

    ``tau_a = -1/2 Tr(S dA/dw . dw/d ln lambda_a)`` with ``dw/d ln lambda_a = -S lambda_a g_a`` is
    the term that the re-estimation formulae neglect; here it is a central difference of Hessians.
    It is zero for linear models with Gaussian noise. The log hyperprior and its derivatives are
    added.

    The point is a minimum with its exact Hessian; unless ``exact``, the Gauss-Newton ``A`` replaces
    it. ``prior`` are the `Hyperpriors` of all precisions, whose constants are omitted. Returns
    ``None`` if ``A`` is numerically singular or the log evidence is below ``at_least``.
    """
    groups, likelihood = posterior.groups, posterior.likelihood
    theta, hyper, energies = point.theta, point.hyper, point.energies
    precision = point.precision
    if not exact:
        precision = method.gauss_newton(posterior, theta, hyper).precision
        if not precision.definite:
            return None
    precisions = np.concatenate(hyper)
    logs = np.log(precisions)
    there = point._replace(precision=precision)
    value = log_evidence_fixed(posterior, there)
    value = value + np.sum(prior.log_kernel(logs))
    if value < at_least:
        return None
    S = precision.covariance()
    energies = np.concatenate([energies.weights, energies.errors])
    counts = np.concatenate([groups.sizes, posterior.noise_counts(hyper.beta)])
    pulls, products = _pulls_and_products(posterior, theta, hyper, S, exact)
    by_prior = groups.applied(S)
    traces = np.concatenate(
        [hyper.alpha * groups.sums(np.diag(by_prior)), [np.trace(P) for P in products]]
    )
    n_groups = len(hyper.alpha)
    bending = np.diag(precisions * energies)
    if not likelihood.linear:
        bending[n_groups:, n_groups:] = level_information(posterior, theta, hyper.beta)
    bending += np.diag(prior.rate * precisions)
    around = point.precision if point.precision.definite else precision
    moves = -around.solve(pulls.T).T  # dw / d ln lambda_a
    gradient = 0.5 * counts - precisions * energies - 0.5 * traces + prior.slope(logs)
    gradient += third_order(posterior, method, there, moves, exact=exact)
    curvature = bending + np.diag(0.5 * traces) + pulls @ moves.T
    curvature -= 0.5 * _cross_traces(groups, hyper, by_prior, products)
    return Derivatives(value, gradient, curvature, (counts - traces)[:n_groups])


def _pulls_and_products(posterior, theta, hyper, S, exact):
    """Vectors ``lambda_a g_a`` of all precisions (h, k), and ``lambda_l S B_l`` of noise levels."""
    pulls, products = [*posterior.groups.pulls(theta, hyper.alpha)], []
    for level in range(posterior.likelihood.n_levels):
        gradient, B = level_derivatives(posterior, theta, hyper.beta, level, exact)
        pulls.append(gradient)
        products.append(S @ B)
    return np.array(pulls), products


def _cross_traces(groups, hyper, by_prior, products):
    """Traces ``lambda_a lambda_b Tr(S B_a S B_b)`` of all pairs of precisions, shape (h, h).

    Computed from ``S R``, with the blocks ``B_c = R_c`` of the prior, and from ``lambda_l S B_l``.
    """
    n_groups, n_levels = len(hyper.alpha), len(products)
    cross = np.empty((n_groups + n_levels, n_groups + n_levels))
    squares = groups.membership.T @ (by_prior * by_prior.T) @ groups.membership
    cross[:n_groups, :n_groups] = hyper.alpha[:, None] * squares * hyper.alpha
    for i, P in enumerate(products):
        mixed = hyper.alpha * groups.sums(np.sum(P * by_prior.T, axis=1))
        cross[n_groups + i, :n_groups] = cross[:n_groups, n_groups + i] = mixed
        for j, Q in enumerate(products[: i + 1]):
            value = np.sum(P * Q.T)
            cross[n_groups + i, n_groups + j] = cross[n_groups + j, n_groups + i] = value
    return cross


class Manner(NamedTuple):
    """Step-size control of an ascent."""

    exact: bool  # whether the log determinant uses the exact Hessian
    shrink: float  # factor of the maximum step size after a step that lowered the evidence
    regrow: float  # factor of the maximum step size after a step that raised the evidence
    cuts: float  # number of times a step may be shortened before the ascent ends
    shorter: float  # maximum length of a step relative to the previous one


BOLD = Manner(exact=False, shrink=0.25, regrow=2.0, cuts=np.inf, shorter=np.inf)
WARY = Manner(exact=True, shrink=0.5, regrow=np.inf, cuts=3, shorter=0.9)


class Ascended(NamedTuple):
    """Result of an ascent."""

    search: Search  # state at the last minimum
    settled: bool  # whether the ascent converged, with little evidence left to gain
    # (n_groups,), effective number of parameters of every group there; nan if not known
    gamma: np.ndarray


def ascend(posterior, method, search, free, manner, tol, max_iter=20):
    """Maximise the evidence over the free precisions, with the minimum updated at every step.

    Newton steps in ``(ln alpha, ln beta)`` stay inside the range of the hyperprior, and are
    shortened after a step that lowered the evidence. With the Gauss-Newton log determinant (`BOLD`)
    the maximum of a linear model solves the re-estimation equations, ``2 alpha_c E_W^c = gamma_c``
    and ``2 beta E_D = N - gamma`` (MacKay 1992, equations 2.22-2.24, 3.18).

    With the exact log determinant (`WARY`), ``-1/2 log det A`` is unbounded where an eigenvalue of
    ``A`` vanishes, which often occurs far from the start. The ascent therefore stays in the basin
    of its minimum and continues only while its steps get shorter. In either case the
    smallest eigenvalue of the exact ``A`` must stay above a tenth of the smallest weight precision.

    The search starts at a minimum, with a positive definite Hessian for an exact ascent. It ends if
    the squared Newton decrement (nats) is below ``tol``, or after a step that was not shortened and
    gained less than a fifth of it. It is not settled if the evidence is not defined at the starting
    point or time is up.
    """
    derivatives = evidence_derivatives(posterior, method, search.point, free.prior, manner.exact)
    if derivatives is None:
        return Ascended(search, False, np.full(len(free.alpha), np.nan))
    reach, cuts, converged, length = MAX_STEP, 0, False, np.inf
    for _ in range(max_iter):
        active = _active(posterior, search.point.hyper, free, derivatives.gradient)
        full = _newton_step(derivatives, active)
        step = full * min(1.0, reach / np.max(np.abs(full), initial=1e-300))
        converged = derivatives.gradient[active] @ full < tol or reach < MIN_REACH
        far = cuts == 0 and np.linalg.norm(step) > manner.shorter * length
        if converged or far or cuts > manner.cuts or method.deadline.passed:
            break
        length = length if cuts else np.linalg.norm(step)
        moved = np.concatenate(search.point.hyper)
        logs = np.clip(np.log(moved[active]) + step, *free.prior[active].log_range)
        moved[active] = np.exp(logs)
        hyper = Hyperparameters(*np.split(moved, [len(free.alpha)]))
        found, new = _followed(
            posterior, method, search, hyper, free.prior, manner, tol, derivatives.value
        )
        if new is None:
            reach, cuts = manner.shrink * min(reach, np.max(np.abs(step))), cuts + 1
            continue
        gain, reach, cuts = new.value - derivatives.value, min(manner.regrow * reach, MAX_STEP), 0
        search, derivatives = found, new
        if gain < STALLED * tol and np.max(np.abs(step), initial=0.0) < MAX_STEP:
            converged = True
            break
    active = _active(posterior, search.point.hyper, free, derivatives.gradient)
    left = 0.5 * derivatives.gradient[active] @ _newton_step(derivatives, active)
    return Ascended(search, bool(converged or left < ENOUGH), derivatives.gamma)


def _followed(posterior, method, search, hyper, prior, manner, tol, value):
    """Find the minimum at other precisions, with derivatives there if the evidence is higher."""
    near, exact = 1e-12 if manner.exact else NEAR_MINIMUM * tol, manner.exact
    found = find_mode(posterior, method, search.point.theta, hyper, TRIALS, near, confined=exact)
    lost = exact and not found.converged
    if lost or not _well_conditioned(posterior.groups, found.point):
        return found, None
    least = value - 1e-11 * abs(value)
    return found, evidence_derivatives(posterior, method, found.point, prior, exact, least)


def without_idle_groups(posterior, method, found, free):
    """Search state with groups without effect set to the upper bound of their precision.

    Networks that learn nothing are then equal, and count as one minimum.
    """
    search = found.search
    prior, hyper = free.alpha_prior, search.point.hyper
    idle = free.alpha & (found.gamma < IDLE) & ~prior.informative
    if not np.any(idle):
        return search
    hyper = hyper._replace(alpha=np.where(idle, np.exp(prior.high), hyper.alpha))
    return find_mode(posterior, method, search.point.theta, hyper, TRIALS, 1e-8)


def _active(posterior, hyper, free, gradient):
    """Indices of free precisions that are in use and not held at a bound by the gradient."""
    low, high = free.prior.log_range
    logs = np.log(np.concatenate(hyper))
    pressed = ((logs <= low + 1e-9) & (gradient < 0)) | ((logs >= high - 1e-9) & (gradient > 0))
    present = np.concatenate([free.alpha & (posterior.groups.sizes > 0), free.beta])
    return np.flatnonzero(present & ~pressed)


def _newton_step(derivatives, active):
    """Newton step of ascent, with the signs of negative curvatures reversed."""
    gradient = derivatives.gradient[active]
    values, vectors = np.linalg.eigh(derivatives.curvature[np.ix_(active, active)])
    return vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-3))


def _well_conditioned(groups, point):
    """Return True if no eigenvalue of ``A`` is far below the smallest one of the prior."""
    # less the bound, A has a Cholesky factor only if all eigenvalues exceed it
    matrix = point.precision.dense()
    matrix[np.diag_indices(len(matrix))] -= MIN_EIGENVALUE * groups.least(point.hyper.alpha)
    return DensePrecision(matrix).definite
