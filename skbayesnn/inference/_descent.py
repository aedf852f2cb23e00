"""Training of networks whose Hessians are dear: descents of ``M(w)`` by its gradient alone.

A gradient costs a few matrix products, a Gauss-Newton step of a network with thousands of weights a
hundred times that; and where softmax outputs are fitted closely, the second derivatives of the
network outweigh the Gauss-Newton part, so that damped Gauss-Newton steps creep. Quasi-Newton
descents take their place here, and one Gauss-Newton curvature after each re-estimates the
precisions of weights and noise.
"""

import numpy as np
from scipy.optimize import minimize

from skbayesnn.inference._fixed_point import FixedPoint
from skbayesnn.inference._gauss_newton import gauss_newton_forms, is_of_some_rows
from skbayesnn.inference._training import Trained, noise_precisions
from skbayesnn.posterior import Hyperparameters

DEAR_HESSIAN = 1e9  # rows times squared weights from which gradients take the place of Hessians
DESCENT_STEPS = 1000  # quasi-Newton steps of one descent
CORRECTIONS = 20  # pairs of steps and gradients that a descent remembers
ROUGH = 1e-3  # decrease of M (nats) by one step that ends a descent during training
SHARE = 1e-3  # of what the last re-estimation promised: the same as long as it is more
FINE = 1e-7  # the same at the end
MAX_MOVE = np.log(10.0)  # of any ln alpha at once
MEMORY = 2  # earlier steps that the next one takes into account
NOTHING = 1e-12  # well-determined weights of a group whose precision is left as it is
TINY = np.finfo(float).tiny
OVERSHOOT = 1.5  # how much further than to gamma / 2 E_W precisions move at first


def by_descent(posterior):
    """Whether descents serve better than Gauss-Newton steps.

    They do for large softmax networks, and where the curvature is that of some of the rows. With
    two classes most units are pruned, and Gauss-Newton steps with ``tau`` lead to minima of higher
    evidence; noise levels need these steps, too, as long as they can be had.
    """
    network, likelihood = posterior.network, posterior.likelihood
    dear = len(posterior.X) * network.n_weights**2 > DEAR_HESSIAN
    softmax = network.n_outputs > 1 and not likelihood.has_noise
    without_steps = softmax or is_of_some_rows(posterior)
    return dear and without_steps and bool(network.hidden_layer_sizes)


def descend(posterior, theta, hyper, tol=FINE, max_steps=DESCENT_STEPS):
    """Lower ``M(w)`` by L-BFGS steps (Byrd et al. 1995) at fixed hyperparameters.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
        Of one network.
    tol : float
        Decrease (nats) by one step that ends the descent.
    max_steps : int

    Returns
    -------
    ndarray of shape (k,)
        Never higher than ``theta``.
    """

    def energy_and_gradient(w):
        energies, gradient = posterior.energies_and_gradient(w, hyper)
        return float(energies.total(hyper)), gradient

    start = float(posterior.energies(theta).total(hyper))
    result = minimize(
        energy_and_gradient,
        theta,
        method="L-BFGS-B",
        jac=True,
        options={
            "maxcor": CORRECTIONS,
            "maxiter": max_steps,
            "maxfun": 2 * max_steps,
            "ftol": tol / max(1.0, abs(start)),
            "gtol": 1e-9,
        },
    )
    return result.x if result.fun <= start else theta


def precision_moves(posterior, theta, hyper, variances):
    """Changes of ``ln alpha`` towards the highest evidence, the ratio between layers kept.

    With units in their linear range the evidence stays the same if the weights into them grow by a
    factor and those out of them shrink by it, together with their prior widths. The counts
    ``gamma_i = 1 - alpha_i (A^-1)_ii`` (MacKay 1992, equation 2.23) take ``A`` as constant, and
    with them the precisions drift along this line for ever. The correction ``tau`` of
    `evidence_derivatives` needs a minimum and many Hessians. Therefore every layer is given the
    same part of the total ``gamma``, as on that line every layer has the same
    ``sum_i alpha_i w_i^2``, and the precisions of all layers move by the same amount. Groups within
    a layer move apart as their own counts say; groups that span layers need no such rule.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
        Of one network.
    variances : ndarray of shape (k,)
        Diagonal of ``A^-1`` (Gauss-Newton).

    Returns
    -------
    moves : ndarray of shape (n_groups,)
        Zero for groups that determine nothing.
    gamma : ndarray of shape (n_groups,)
        Shared out among the layers; the sum is that of the counts.
    """
    groups, alpha = posterior.groups, posterior.groups.expand(hyper.alpha)
    sizes = [rows * columns for rows, columns in posterior.network.shapes]
    layer = np.repeat(np.arange(len(sizes)), sizes)
    counts, squares = np.maximum(1.0 - alpha * variances, 0.0), alpha * theta**2
    fair = counts.sum() / len(sizes)
    gamma = groups.sums(counts * (fair / np.maximum(np.bincount(layer, counts), TINY))[layer])
    excess = np.log(fair / np.maximum(np.bincount(layer, squares), TINY))
    excess -= excess.mean()
    in_layer = groups.membership.T @ (layer[:, None] == np.arange(len(sizes)))
    whole = in_layer == groups.sizes[:, None]  # groups that lie in one layer
    moves = np.log(np.maximum(gamma, TINY) / np.maximum(groups.sums(squares), TINY))  # eq. 2.22
    return np.where(gamma > NOTHING, moves - whole @ excess, 0.0), gamma


def train_by_descent(posterior, theta, hyper, settings, progress=None):
    """Minimise ``M(w)`` and re-estimate the precisions in turns, for one network.

    The approach to the fixed point of `precision_moves` is speeded up, see `FixedPoint`.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    settings : Settings
        ``max_iter`` counts re-estimations.
    progress : callable, optional
        Called with lines of text.

    Returns
    -------
    Trained
        Of one network.
    """
    free, tol = settings.free, settings.tol * max(1.0, len(theta) / 100.0)
    alphas = np.flatnonzero(free.alpha & (posterior.groups.sizes > 0))
    betas, n_alphas = np.flatnonzero(free.beta), len(alphas)
    counts = posterior.n_rows * posterior.likelihood.level_sizes()[betas]
    start = np.log(np.concatenate([hyper.alpha[alphas], hyper.beta[betas]]))
    gain = 1.0 / SHARE
    path = FixedPoint(start, MEMORY, 1e-3, OVERSHOOT, free.prior.log_range, MAX_MOVE)
    for iteration in range(1, settings.max_iter + 1):
        theta = descend(posterior, theta, hyper, max(ROUGH, SHARE * gain))
        energies = posterior.energies(theta, hyper.beta)
        if progress is not None:
            progress(f"re-estimation {iteration}: energy M = {energies.total(hyper):.4f}")
        gaussian = gauss_newton_forms(posterior, theta[None], hyper.repeated(1))[1][0].gaussian()
        if len(start) == 0 or gaussian is None:
            return Trained(theta, hyper, iteration, len(start) == 0)
        moves, gamma = precision_moves(posterior, theta, hyper, gaussian.variances())
        beta = noise_precisions(posterior, energies, gamma, np.exp(free.prior.log_range[1]))
        moves = np.append(moves[alphas], np.log(beta / hyper.beta)[betas])
        residual = path.inside(moves)
        determined = np.append(gamma[alphas], counts)
        gain = 0.25 * determined @ residual**2  # of evidence, to second order
        if gain < tol:
            return Trained(theta, hyper, iteration, True)
        there = np.exp(path.move(residual))
        hyper = Hyperparameters(hyper.alpha.copy(), hyper.beta.copy())
        hyper.alpha[alphas], hyper.beta[betas] = np.split(there, [n_alphas])
    return Trained(theta, hyper, settings.max_iter, False)
