"""Damped Newton steps with the exact Hessian: from near a minimum to the minimum itself."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from skbayesnn.inference._descent import by_descent, descend
from skbayesnn.inference._gauss_newton import accelerated, gauss_newton_forms
from skbayesnn.inference._gaussian import DenseGaussian

LEVEL = 1e-9  # decrease of M (nats) that is none
ROUNDING = 1e-11  # of M
NEAR = 1e-2  # decrease of M (nats) by one descent below which Newton steps take over
LEAST_DAMPING = 1e-6


class Mode(NamedTuple):
    """A stationary point of ``M(w)``.

    Attributes
    ----------
    theta : ndarray of shape (k,)
    energies : Energies
    hessian : ndarray of shape (k, k)
        Exact ``A`` at ``theta``.
    gaussian : DenseGaussian or None
        ``None`` if ``A`` is not positive definite.
    gradient_norm : float
        Length of ``dM/dw``.
    decrement : float
        Half the squared Newton step in the metric ``A``: by how many nats ``M`` lies above the
        minimum of its quadratic approximation.
    converged : bool
    """

    theta: np.ndarray
    energies: object
    hessian: np.ndarray
    gaussian: object
    gradient_norm: float
    decrement: float
    converged: bool


def find_mode(posterior, theta, hyper, max_iter=100, tol=1e-12, exact=True, confined=False):
    """Minimise ``M(w)`` at fixed hyperparameters.

    Newton steps with the exact Hessian, damped as those of Levenberg and Marquardt where it is not
    positive definite or a full step would not help, and bent along their valleys. The Gauss-Newton
    Hessian needs several times as many steps where residuals are not small. A saddle point is left
    along its lowest eigenvector.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
        Of one network.
    max_iter : int
    tol : float
        Bound on the Newton decrement (nats).
    exact : bool
        ``False``: the curvature returned is the Gauss-Newton one.
    confined : bool
        Give up where the Hessian is not positive definite: outside the basin of the minimum.

    Returns
    -------
    Mode
    """
    if by_descent(posterior):
        theta = _descended(posterior, theta, hyper, max_iter)
    energies, damping = posterior.energies(theta, hyper.beta), Damping()
    for iteration in range(max_iter + 1):
        gradient, A = posterior.gradient_and_hessian(theta, hyper, exact=True)
        gaussian = DenseGaussian.from_precision(A)
        decrement = np.inf if gaussian is None else 0.5 * gradient @ gaussian.solve(gradient)
        limit = max(tol, 1e-14 * abs(energies.total(hyper)))
        if decrement < limit or iteration == max_iter or (confined and gaussian is None):
            break
        step = _newton_step(posterior, theta, hyper, energies, gradient, A, damping)
        if step is None:  # the gradient shows no way down: a minimum to rounding, or a saddle point
            if gaussian is not None:
                break
            step = (*_escape(posterior, theta, hyper, energies, A), Damping())
            if step[0] is theta:
                break
        theta, energies, damping = step
    if not exact:
        A = posterior.hessian(theta, hyper, exact=False)
        gaussian = DenseGaussian.from_precision(A)
    norm = float(np.linalg.norm(gradient))
    converged = bool(decrement < 10 * limit)
    return Mode(theta, energies, A, gaussian, norm, float(decrement), converged)


class Damping(NamedTuple):
    """Multiple of its diagonal that is added to the Hessian, and the least one worth a trial."""

    value: float = 0.0
    retry: float = 1e-3

    def grown(self):
        """After a step that did not help."""
        return Damping(max(4.0 * self.value, self.retry), self.retry)

    def shrunk(self):
        """After a good step."""
        value = 0.2 * self.value
        return Damping(value if value > LEAST_DAMPING else 0.0, max(value, LEAST_DAMPING))


def _newton_step(posterior, theta, hyper, energies, gradient, A, damping):
    """A damped step that lowers ``M``: weights, energies, damping; ``None`` if there is none."""
    start = energies.total(hyper)
    diagonal = np.maximum(np.abs(np.diag(A)), posterior.groups.expand(hyper.alpha))
    for _ in range(40):
        damped = A + np.diag(damping.value * diagonal)
        gaussian = DenseGaussian.from_precision(damped)
        if gaussian is not None:
            step = -gaussian.solve(gradient)
            hoped = -(gradient @ step + 0.5 * step @ A @ step)
            trial, energies = _along(posterior, theta, hyper, step, gaussian, diagonal)
            gain = start - energies.total(hyper)
            if gain > 1e-4 * hoped - ROUNDING * abs(start):
                good = gain > 0.1 * hoped
                return trial, energies, damping.shrunk() if good else damping
            if -(gradient @ step) < LEVEL:
                return None
        damping = damping.grown()
    return None


def _descended(posterior, theta, hyper, max_iter):
    """Weights after descents by gradients alone, until one gains little."""
    energy = posterior.energies(theta, hyper.beta).total(hyper)
    for _ in range(max_iter):
        theta, before = descend(posterior, theta, hyper), energy
        energy = posterior.energies(theta, hyper.beta).total(hyper)
        if before - energy < NEAR:
            break
    return theta


def find_large_mode(posterior, theta, hyper, max_iter=100, tol=1e-4):
    """`find_mode` by damped Gauss-Newton steps alone, in the dual form where that is smaller.

    For networks too large for a dense Hessian. The steps end when they gain less than ``tol`` nats.

    Parameters
    ----------
    posterior, theta, hyper, max_iter, tol
        As in `find_mode`.

    Returns
    -------
    Mode
        Without Hessian; its Gaussian is the Gauss-Newton one.
    """
    energies, damping, gain = posterior.energies(theta, hyper.beta), 1e-3, np.inf
    for _ in range(max_iter):
        before = energies.total(hyper)
        step = _downhill(posterior, theta, hyper, energies, damping)
        if step is None:
            gain = 0.0
            break
        theta, energies, damping = step
        gain = before - energies.total(hyper)
        if gain < tol:
            break
    gradient, (curvature,) = gauss_newton_forms(posterior, theta[None], hyper.repeated(1))
    gaussian, norm = curvature.gaussian(), float(np.linalg.norm(gradient))
    return Mode(theta, energies, None, gaussian, norm, float(gain), bool(gain < 10 * tol))


def _downhill(posterior, theta, hyper, energies, damping):
    """A lower point by the cheaper method, its energies and damping; ``None`` if there is none."""
    if not by_descent(posterior):
        return _damped_step(posterior, theta, hyper, energies, damping)
    trial = descend(posterior, theta, hyper)
    trial_energies = posterior.energies(trial, hyper.beta)
    if energies.total(hyper) - trial_energies.total(hyper) < LEVEL:
        return None
    return trial, trial_energies, damping


def _damped_step(posterior, theta, hyper, energies, damping):
    """A Levenberg-Marquardt step that lowers ``M``; ``None`` if it would gain nothing."""
    gradient, (curvature,) = gauss_newton_forms(posterior, theta[None], hyper.repeated(1))
    gradient, start = gradient[0], energies.total(hyper)
    for _ in range(30):
        gaussian = curvature.gaussian(damping)
        if gaussian is not None:
            step = -gaussian.solve(gradient)
            slope = gradient @ step
            if -slope < LEVEL:
                return None
            trial, energies = _along(posterior, theta, hyper, step, gaussian, curvature.diagonal)
            if start - energies.total(hyper) > -1e-4 * slope:
                return trial, energies, max(0.1 * damping, 1e-12)
        damping *= 4.0
    return None


def _along(posterior, theta, hyper, step, gaussian, diagonal):
    """Where a step leads that bends with its valley, the output layer at its best; its energies."""
    force = posterior.bending_force(theta, hyper, step)
    bent = accelerated(gaussian, diagonal, step, force)
    trial = posterior.with_best_outputs(theta + (step if bent is None else bent), hyper)
    return trial, posterior.energies(trial, hyper.beta)


def _escape(posterior, theta, hyper, energies, A):
    """Leave a saddle point along the lowest eigenvector of ``A``, downhill."""
    direction = eigh(A, subset_by_index=[0, 0])[1][:, 0]
    start = energies.total(hyper)
    size = 1.0
    for _ in range(20):
        for signed in (size, -size):
            trial = theta + signed * direction
            trial_energies = posterior.energies(trial, hyper.beta)
            if trial_energies.total(hyper) < start:
                return trial, trial_energies
        size *= 0.5
    return theta, energies
