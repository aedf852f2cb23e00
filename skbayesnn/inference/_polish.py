"""Maximising the evidence itself over the hyperparameters, the minimum following along."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._evidence import log_evidence_fixed
from skbayesnn.inference._gaussian import DenseGaussian
from skbayesnn.inference._newton import find_mode
from skbayesnn.posterior import Hyperparameters

DETERMINED_BY_NOTHING = 1e-2  # curvature of the log evidence in ln alpha: half of gamma
MAX_STEP = 1.0  # of any ln alpha or ln beta at once


class Derivatives(NamedTuple):
    """Derivatives of ``log P(D | alpha, beta)`` in ``(ln alpha, ln beta)``.

    Attributes
    ----------
    gradient : ndarray of shape (h,)
    curvature : ndarray of shape (h, h)
        Minus the second derivatives, third derivatives of the energy left out.
    """

    gradient: np.ndarray
    curvature: np.ndarray


def evidence_derivatives(posterior, mode, hyper, exact=True):
    """How the evidence changes with the hyperparameters, including through the minimum.

    With ``lambda_a`` any precision, ``E_a`` its energy, ``g_a`` and ``B_a`` the gradient and Hessian
    of ``E_a``, ``n_a`` its count and ``S = A^-1`` (cf. MacKay 1992, section 2.4; Bishop 3.5.2)::

        dL/d ln lambda_a = n_a/2 - lambda_a E_a - 1/2 lambda_a Tr(S B_a) + tau_a

    ``tau_a = -1/2 Tr(S dA/dw . dw/d ln lambda_a)`` with ``dw/d ln lambda_a = -S lambda_a g_a`` is the
    part that re-estimation drops. It is a central difference of exact Hessians.

    Parameters
    ----------
    posterior : Posterior
    mode : Mode
        A minimum with positive definite Hessian.
    hyper : Hyperparameters
    exact : bool
        ``False``: Gauss-Newton ``A`` and no ``tau``. The gradient then vanishes where the
        re-estimation formulae have their fixed point, ``2 alpha_c E_W^c = gamma_c``.

    Returns
    -------
    Derivatives or None
        ``None`` if ``A`` is numerically singular.
    """
    groups, likelihood = posterior.groups, posterior.likelihood
    gaussian = mode.gaussian
    if not exact:
        gaussian = DenseGaussian.from_precision(posterior.hessian(mode.theta, hyper, exact=False))
        if gaussian is None:
            return None
    S = gaussian.covariance()
    precisions = np.concatenate(hyper)
    energies = np.concatenate(mode.energies)
    counts = np.concatenate([groups.sizes, posterior.n_rows * likelihood.level_sizes()])
    pulls, products = _pulls_and_products(posterior, mode.theta, hyper, S, exact)
    traces = np.concatenate(
        [hyper.alpha * groups.sums(np.diag(S)), [np.trace(P) for P in products]]
    )
    moves = -(mode.gaussian or gaussian).solve(pulls.T).T  # dw / d ln lambda_a
    gradient = 0.5 * counts - precisions * energies - 0.5 * traces
    if exact:
        gradient += _third_order(posterior, mode, hyper, S, moves)
    curvature = np.diag(precisions * energies + 0.5 * traces) + pulls @ moves.T
    return Derivatives(gradient, curvature - 0.5 * _cross_traces(groups, hyper, S, products))


def _pulls_and_products(posterior, theta, hyper, S, exact):
    """``lambda_a g_a`` of all precisions (h, k), and ``lambda_l S B_l`` of the noise levels.

    The last level follows from ``grad M = 0`` and ``S A = 1``, which spares its Hessian.
    """
    groups, n_levels = posterior.groups, posterior.likelihood.n_levels
    alpha = groups.expand(hyper.alpha)
    pulls, products = [*((alpha * theta)[:, None] * groups.membership).T], []
    remainder = np.eye(len(S)) - S * alpha
    for level in range(n_levels - 1):
        alone = Hyperparameters(0.0 * hyper.alpha, hyper.beta * (np.arange(n_levels) == level))
        gradient, B = posterior.gradient_and_hessian(theta, alone, exact)
        pulls.append(gradient)
        products.append(S @ B)
        remainder = remainder - products[-1]
    pulls.append(-np.sum(pulls, axis=0))
    return np.array(pulls), [*products, remainder]


def _cross_traces(groups, hyper, S, products):
    """``lambda_a lambda_b Tr(S B_a S B_b)`` of all pairs of precisions, shape (h, h)."""
    n_groups, n_levels = len(hyper.alpha), len(products)
    cross = np.empty((n_groups + n_levels, n_groups + n_levels))
    squares = groups.membership.T @ (S**2) @ groups.membership
    cross[:n_groups, :n_groups] = hyper.alpha[:, None] * squares * hyper.alpha
    for i, P in enumerate(products):
        mixed = hyper.alpha * groups.sums(np.sum(P * S.T, axis=1))
        cross[n_groups + i, :n_groups] = cross[:n_groups, n_groups + i] = mixed
        for j, Q in enumerate(products[: i + 1]):
            value = np.sum(P * Q.T)
            cross[n_groups + i, n_groups + j] = cross[n_groups + j, n_groups + i] = value
    return cross


def _third_order(posterior, mode, hyper, S, moves):
    """``-1/2 Tr(S dA/dw . move)`` for every direction of ``moves`` (h, k)."""
    if not posterior.network.hidden_layer_sizes and posterior.likelihood.has_noise:
        return np.zeros(len(moves))
    lengths = np.maximum(np.linalg.norm(moves, axis=1), 1e-300)
    eps = 1e-4 * (1.0 + np.linalg.norm(mode.theta)) / np.sqrt(len(mode.theta)) / lengths
    eps = np.minimum(eps, 1e8)[:, None]
    points = np.concatenate([mode.theta + eps * moves, mode.theta - eps * moves])
    every = Hyperparameters(
        np.tile(hyper.alpha, (len(points), 1)), np.tile(hyper.beta, (len(points), 1))
    )
    matrices = posterior.hessian(points, every, exact=True)
    traces = np.sum(matrices * S, axis=(-1, -2))
    plus, minus = np.split(traces, 2)
    return -0.5 * (plus - minus) / (2.0 * eps[:, 0])


class Settled(NamedTuple):
    """A minimum and the hyperparameters that belong to it."""

    hyper: Hyperparameters
    mode: object
    converged: bool


def reestimate_to_convergence(posterior, settled, free, exact=True, max_iter=40, tol=1e-9):
    """Solve the re-estimation equations (MacKay 1992, equations 2.22-2.24, 3.18) by Newton's method.

    Parameters
    ----------
    posterior : Posterior
    settled : Settled
        Where to start.
    free : FreeHyperparameters
    exact : bool
        Whether minima are found with the exact Hessian; ``gamma`` is the Gauss-Newton one always.
    max_iter : int
    tol : float
        Bound on what the next step can still gain (nats).

    Returns
    -------
    Settled
    """
    hyper, mode = settled.hyper, settled.mode
    moved = previous = None
    failures = 0
    correction = np.zeros((len(free.mask), len(free.mask)))
    for _ in range(max_iter):
        derivatives = evidence_derivatives(posterior, mode, hyper, exact=False)
        if derivatives is None:
            break
        gradient, curvature = derivatives
        active = _active(posterior, hyper, free, gradient)
        if len(active) == 0:
            return Settled(hyper, mode, mode.converged)
        if moved is not None and np.any(moved):  # Broyden's (1965) rank-one correction
            error = previous - gradient - (curvature + correction) @ moved
            correction += np.outer(error, moved) / (moved @ moved)
        step = _newton_step(Derivatives(gradient, curvature + correction), active)
        idle = (np.diag(curvature)[active] < DETERMINED_BY_NOTHING) & (gradient[active] > 0)
        step[idle] = np.ptp(free.prior.log_range)  # straight to the upper bound
        if 0.5 * abs(step @ gradient[active]) < tol:
            return Settled(hyper, mode, mode.converged)
        new_hyper = _moved(hyper, active, step, free.prior)
        moved = np.log(np.concatenate(new_hyper)) - np.log(np.concatenate(hyper))
        previous, hyper = gradient, new_hyper
        mode = find_mode(posterior, mode.theta, hyper, max_iter=50, tol=1e-8, exact=exact)
        failures += not mode.converged
        if failures > 2:
            break
    return Settled(hyper, mode, False)


def maximise_evidence(posterior, settled, free, max_iter=10, tol=1e-6):
    """Newton ascent of ``log P(D | alpha, beta)`` itself, as long as it nears a stationary point.

    ``-1/2 log det A`` is unbounded where an eigenvalue of ``A`` vanishes, and far uphill there often
    is such a place. A step is therefore kept only if the evidence rises, the steps get shorter, and the
    smallest eigenvalue of ``A`` stays above a tenth of the smallest weight precision.

    Parameters
    ----------
    posterior : Posterior
    settled : Settled
        Where to start: a minimum with positive definite Hessian.
    free : FreeHyperparameters
    max_iter : int
    tol : float
        Bound on the step in ``ln alpha`` and ``ln beta``.

    Returns
    -------
    Settled
    """
    hyper, mode = settled.hyper, settled.mode
    value, length = _log_evidence(posterior, mode, hyper), np.inf
    for _ in range(max_iter):
        derivatives = evidence_derivatives(posterior, mode, hyper)
        active = _active(posterior, hyper, free, derivatives.gradient)
        if len(active) == 0:
            break
        step = _newton_step(derivatives, active)
        if np.linalg.norm(step) > 0.9 * length:
            break
        length = np.linalg.norm(step)
        for _ in range(4):
            new_hyper = _moved(hyper, active, step, free.prior)
            new_mode = find_mode(posterior, mode.theta, new_hyper, max_iter=20)
            if new_mode.converged and _well_conditioned(new_mode, new_hyper):
                gain = _log_evidence(posterior, new_mode, new_hyper) - value
                if gain > -1e-10 * max(1.0, abs(value)):
                    break
            step = 0.5 * step
        else:
            break
        hyper, mode, value = new_hyper, new_mode, value + gain
        if np.max(np.abs(step)) < tol:
            break
    return Settled(hyper, mode, settled.converged)


def _log_evidence(posterior, mode, hyper):
    return log_evidence_fixed(posterior, hyper, mode.energies, mode.gaussian.log_det)


def _active(posterior, hyper, free, gradient):
    """Free precisions of non-empty groups that do not press against a bound of their range."""
    low, high = free.prior.log_range
    logs = np.log(np.concatenate(hyper))
    present = np.concatenate([posterior.groups.sizes > 0, np.ones(len(hyper.beta), dtype=bool)])
    pressed = ((logs <= low + 1e-9) & (gradient < 0)) | ((logs >= high - 1e-9) & (gradient > 0))
    return np.flatnonzero(free.mask & present & ~pressed)


def _newton_step(derivatives, active):
    """Uphill Newton step, no component over `MAX_STEP`.

    Where the curvature is not positive, its symmetric part with reflected directions replaces it.
    """
    gradient = derivatives.gradient[active]
    curvature = derivatives.curvature[np.ix_(active, active)]
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    if values[0] > 1e-3:
        step = np.linalg.solve(curvature, gradient)
    else:
        step = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-3))
    return step * min(1.0, MAX_STEP / max(np.max(np.abs(step)), 1e-300))


def _moved(hyper, active, step, prior):
    """Hyperparameters after a step in their logarithms, kept inside their range."""
    logs = np.log(np.concatenate(hyper))
    logs[active] = np.clip(logs[active] + step, *prior.log_range)
    precisions = np.concatenate(hyper)
    precisions[active] = np.exp(logs[active])
    return Hyperparameters(*np.split(precisions, [len(hyper.alpha)]))


def _well_conditioned(mode, hyper):
    """Whether the smallest eigenvalue of ``A`` exceeds a tenth of the smallest ``alpha``."""
    shifted = mode.hessian.copy()
    shifted[np.diag_indices(len(shifted))] -= 0.1 * np.min(hyper.alpha)
    return DenseGaussian.from_precision(shifted) is not None
