"""Maximising the evidence itself over the hyperparameters, the minimum following along."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._evidence import log_evidence_fixed
from skbayesnn.inference._gauss_newton import difference_step, third_order
from skbayesnn.inference._gaussian import DenseGaussian
from skbayesnn.inference._newton import find_mode
from skbayesnn.posterior import Hyperparameters

ENOUGH = 0.5  # nats: an ascent that stops this close to its top has converged
IDLE = 1e-2  # well-determined weights below which a group does nothing
MAX_STEP = 1.0  # of any ln alpha or ln beta at once
LEAST_REACH = 1e-3  # of such a step, below which no shorter one is tried
STALLED = 0.2  # of the tolerance: what a step must gain for the ascent to go on
NEAR_MINIMUM = 1e-4  # of the tolerance: how far above its minimum M may be


class Derivatives(NamedTuple):
    """``log P(D | alpha, beta)`` and its derivatives in ``(ln alpha, ln beta)``.

    Attributes
    ----------
    value : float
    gradient : ndarray of shape (h,)
    curvature : ndarray of shape (h, h)
        Minus the second derivatives, third derivatives of the energy left out.
    gamma : ndarray of shape (n_groups,)
        ``k_c - alpha_c Tr_c(A^-1)``.
    """

    value: float
    gradient: np.ndarray
    curvature: np.ndarray
    gamma: np.ndarray


def evidence_derivatives(posterior, mode, hyper, exact=True, at_least=-np.inf):
    """How the evidence changes with the hyperparameters, including through the minimum.

    With ``lambda_a`` any precision, ``E_a`` its energy, ``g_a`` and ``B_a`` the gradient and
    Hessian of ``E_a``, ``n_a`` its count and ``S = A^-1`` (cf. MacKay 1992, section 2.4; Bishop
    3.5.2)::

        dL/d ln lambda_a = n_a/2 - lambda_a E_a - 1/2 lambda_a Tr(S B_a) + tau_a

    ``tau_a = -1/2 Tr(S dA/dw . dw/d ln lambda_a)`` with ``dw/d ln lambda_a = -S lambda_a g_a`` is
    the part that the re-estimation formulae drop; here it is a central difference of Hessians. It
    is zero for linear models with Gaussian noise.

    Parameters
    ----------
    posterior : Posterior
    mode : Mode
        A minimum with positive definite Hessian.
    hyper : Hyperparameters
    exact : bool
        ``False``: the same with the Gauss-Newton ``A`` in place of the exact one.
    at_least : float
        A lower evidence is not worth its derivatives.

    Returns
    -------
    Derivatives or None
        ``None`` if ``A`` is numerically singular, or the evidence lower than ``at_least``.
    """
    groups, likelihood = posterior.groups, posterior.likelihood
    gaussian = mode.gaussian
    if not exact:
        gaussian = DenseGaussian.from_precision(posterior.hessian(mode.theta, hyper, exact=False))
        if gaussian is None:
            return None
    value = log_evidence_fixed(posterior, hyper, mode.energies, gaussian.log_det)
    if value < at_least:
        return None
    S = gaussian.covariance()
    precisions = np.concatenate(hyper)
    energies = np.concatenate([mode.energies.weights, mode.energies.data])
    counts = np.concatenate([groups.sizes, posterior.n_rows * likelihood.level_sizes()])
    pulls, products = _pulls_and_products(posterior, mode.theta, hyper, S, exact)
    traces = np.concatenate(
        [hyper.alpha * groups.sums(np.diag(S)), [np.trace(P) for P in products]]
    )
    bending = np.diag(precisions * energies)
    if not likelihood.linear:
        n_groups = len(hyper.alpha)
        bending[n_groups:, n_groups:] = posterior.noise_information(mode.theta, hyper.beta)
    moves = -(mode.gaussian or gaussian).solve(pulls.T).T  # dw / d ln lambda_a
    gradient = 0.5 * counts - precisions * energies - 0.5 * traces
    apart = moves[: len(moves) - likelihood.linear]
    if exact:
        tau = _exact_third_order(posterior, mode, hyper, S, apart)
    else:
        tau = third_order(posterior, mode.theta, hyper, gaussian, apart)
    if likelihood.linear:
        tau = np.append(tau, -np.sum(tau))  # grad M = 0: all moves together are none
    gradient += tau
    curvature = bending + np.diag(0.5 * traces) + pulls @ moves.T
    curvature -= 0.5 * _cross_traces(groups, hyper, S, products)
    return Derivatives(value, gradient, curvature, (counts - traces)[: len(hyper.alpha)])


def _pulls_and_products(posterior, theta, hyper, S, exact):
    """``lambda_a g_a`` of all precisions (h, k), and ``lambda_l S B_l`` of the noise levels.

    Where these are linear in ``lambda``, the last level follows from ``grad M = 0`` and ``S A =
    1``, which spares its Hessian.
    """
    groups, likelihood = posterior.groups, posterior.likelihood
    alpha = groups.expand(hyper.alpha)
    pulls, products = [*((alpha * theta)[:, None] * groups.membership).T], []
    remainder = np.eye(len(S)) - S * alpha
    for level in range(likelihood.n_levels - likelihood.linear):
        gradient, B = posterior.level_derivatives(theta, hyper.beta, level, exact)
        pulls.append(gradient)
        products.append(S @ B)
        remainder = remainder - products[-1]
    if likelihood.linear:
        pulls.append(-np.sum(pulls, axis=0))
        products.append(remainder)
    return np.array(pulls), products


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


def _exact_third_order(posterior, mode, hyper, S, moves):
    """``-1/2 Tr(S dA/dw . move)`` with the exact ``A`` for every direction of ``moves`` (h, k)."""
    eps = difference_step(mode.theta, moves)
    points = np.concatenate([mode.theta + eps * moves, mode.theta - eps * moves])
    traces = [np.sum(posterior.hessian(point, hyper) * S) for point in points]
    plus, minus = np.split(np.array(traces), 2)
    return -0.5 * (plus - minus) / (2.0 * eps[:, 0])


class Settled(NamedTuple):
    """A minimum and the hyperparameters that belong to it."""

    hyper: Hyperparameters
    mode: object
    converged: bool


def reestimate_to_convergence(posterior, settled, free, max_iter=20, tol=1e-9):
    """Maximise the evidence with the Gauss-Newton log determinant over the precisions.

    Newton steps in ``(ln alpha, ln beta)`` inside the range of the hyperprior, the minimum
    following along; shorter ones after a step that lowered the evidence. For linear models the
    maximum solves the re-estimation equations, ``2 alpha_c E_W^c = gamma_c`` and ``2 beta E_D = N -
    gamma`` (MacKay 1992, equations 2.22-2.24, 3.18). Groups that determine nothing go to the upper
    bound of their precision.

    Parameters
    ----------
    posterior : Posterior
    settled : Settled
        Where to start.
    free : FreeHyperparameters
    max_iter : int
    tol : float
        Gain (nats) promised by a full step that ends the ascent, as does a shortened step that
        gains a fifth of it.

    Returns
    -------
    Settled
    """
    hyper, mode = settled.hyper, settled.mode
    derivatives = evidence_derivatives(posterior, mode, hyper, exact=False)
    if derivatives is None:
        return settled._replace(converged=False)
    reach, converged = MAX_STEP, False
    for _ in range(max_iter):
        active = _active(posterior, hyper, free, derivatives.gradient)
        step = _newton_step(derivatives, active, reach)
        promise = derivatives.gradient[active] @ _newton_step(derivatives, active, np.inf)
        converged = promise < tol or reach < LEAST_REACH
        if converged:  # or no step of any length leads higher: the minimum ends near here
            break
        new_hyper = _moved(hyper, active, step, free.prior)
        new_mode = find_mode(posterior, mode.theta, new_hyper, 30, NEAR_MINIMUM * tol)
        new = None
        if _well_conditioned(new_mode, new_hyper):
            least = derivatives.value - 1e-11 * abs(derivatives.value)
            new = evidence_derivatives(posterior, new_mode, new_hyper, False, least)
        if new is None:
            reach = 0.25 * min(reach, np.max(np.abs(step)))
            continue
        reach = min(2.0 * reach, MAX_STEP)
        gain = new.value - derivatives.value
        hyper, mode, derivatives = new_hyper, new_mode, new
        if gain < STALLED * tol and np.max(np.abs(step)) < MAX_STEP:
            converged = True
            break
    active = _active(posterior, hyper, free, derivatives.gradient)
    step = _newton_step(derivatives, active, MAX_STEP)
    left = 0.5 * derivatives.gradient[active] @ step  # nats still to gain
    settled = Settled(hyper, mode, bool(converged or left < ENOUGH))
    idle = free.alpha & (derivatives.gamma < IDLE)
    if np.any(idle):
        alpha = np.where(idle, np.exp(free.prior.log_range[1]), settled.hyper.alpha)
        hyper = settled.hyper._replace(alpha=alpha)
        mode = find_mode(posterior, settled.mode.theta, hyper, max_iter=30, tol=1e-8)
        settled = settled._replace(hyper=hyper, mode=mode)
    return settled


def maximise_evidence(posterior, settled, free, max_iter=10, tol=1e-6):
    """Newton ascent of ``log P(D | alpha, beta)`` itself, as long as it nears a stationary point.

    ``-1/2 log det A`` is unbounded where an eigenvalue of ``A`` vanishes, and far uphill there
    often is such a place. A step is therefore kept only if the evidence rises, the steps get
    shorter, and the smallest eigenvalue of ``A`` stays above a tenth of the smallest weight
    precision.

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
    length = np.inf
    for _ in range(max_iter):
        derivatives = evidence_derivatives(posterior, mode, hyper)
        active = _active(posterior, hyper, free, derivatives.gradient)
        if len(active) == 0:
            break
        step = _newton_step(derivatives, active, MAX_STEP)
        if np.linalg.norm(step) > 0.9 * length:
            break
        length = np.linalg.norm(step)
        for _ in range(4):
            new_hyper = _moved(hyper, active, step, free.prior)
            new_mode = find_mode(posterior, mode.theta, new_hyper, max_iter=20, confined=True)
            if new_mode.converged and _well_conditioned(new_mode, new_hyper):
                log_det = new_mode.gaussian.log_det
                value = log_evidence_fixed(posterior, new_hyper, new_mode.energies, log_det)
                if value > derivatives.value - 1e-10 * max(1.0, abs(value)):
                    break
            step = 0.5 * step
        else:
            break
        hyper, mode = new_hyper, new_mode
        if np.max(np.abs(step)) < tol:
            break
    return Settled(hyper, mode, settled.converged)


def _present(posterior, free):
    """Mask of the free precisions that belong to any weights or noise at all."""
    return np.concatenate([free.alpha & (posterior.groups.sizes > 0), free.beta])


def _active(posterior, hyper, free, gradient):
    """Free precisions that do not press against a bound of their range."""
    low, high = free.prior.log_range
    logs = np.log(np.concatenate(hyper))
    pressed = ((logs <= low + 1e-9) & (gradient < 0)) | ((logs >= high - 1e-9) & (gradient > 0))
    return np.flatnonzero(_present(posterior, free) & ~pressed)


def _newton_step(derivatives, active, reach):
    """Uphill Newton step, negative curvatures reflected, no component over ``reach``."""
    gradient = derivatives.gradient[active]
    values, vectors = np.linalg.eigh(derivatives.curvature[np.ix_(active, active)])
    step = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-3))
    return step * min(1.0, reach / np.max(np.abs(step), initial=1e-300))


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
