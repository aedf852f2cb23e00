"""Re-estimation of weight and noise precisions during training: evidence maximisation."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.posterior import Hyperparameters, Posterior

MAX_CHANGE = np.log(2.0)  # of ln alpha and ln beta at one re-estimation
MAX_TAU = 4.0  # largest factor by which tau may change the gamma of a group
TAU_EVERY = 5  # accepted steps between evaluations of tau
MAX_TAU_GROUPS = 16  # groups that have a tau each
TAU_ROWS = 4  # rows of which one counts for tau, where training ends before the minimum
CALM_STEPS = 2  # consecutive small steps that end the training
NOTHING = 1e-12  # effective number of parameters below which a precision is kept fixed
MIN_FREE = 0.1  # least share of the targets of a noise level kept as degrees of freedom
MIN_GAMMA = 1e-3  # least effective number of parameters to which tau is compared
STEP, LONGEST = 1e-4, 1e8  # finite-difference step relative to the weights; largest multiple
TINY = np.finfo(float).tiny


def reestimate(posterior, hyper, energies, determined, free, tau_factor=1.0):
    """Re-estimate precisions by evidence maximisation (MacKay 1992, equations 2.22-2.24, 3.18).

    ``alpha_c <- (gamma_c + 2 a) / (2 E_W^c + 2 b)`` and ``beta <- (N - gamma + 2 a) / (2 E_D + 2
    b)``, ``a`` and ``b`` of the `Hyperprior`, with ``gamma_c = k_c - alpha_c Tr_c(A^-1) + 2
    tau_c``. The last term is not in the original: it accounts for the change of ``A`` with the
    minimum. Without it, units in their linear range drift indefinitely to smaller incoming and
    larger outgoing weights, although the evidence does not change. With several noise levels,
    ``gamma`` is divided in proportion to their outputs, which the exact treatment at the end
    corrects.

    ``determined`` (n_groups,) are the numbers ``k_c - alpha_c Tr_c(A^-1)``, with the Gauss-Newton
    ``A``, and ``tau_factor`` the factors ``1 + 2 tau_c / (k_c - alpha_c Tr_c(A^-1))``, see
    `evidence_derivatives`.
    """
    gamma = np.maximum(determined, 0.0) * tau_factor
    alpha = precision_of(gamma, energies.weights, free.alpha_prior)  # 2.22
    alpha = np.where(gamma + free.alpha_prior.counts > NOTHING, alpha, hyper.alpha)
    beta = noise_precisions(posterior, hyper.beta, energies, gamma, free.beta_prior)
    return Hyperparameters(
        _limited(alpha, hyper.alpha, free.alpha, free.alpha_prior),
        _limited(beta, hyper.beta, free.beta, free.beta_prior),
    )


def precision_of(counts, energies, prior):
    """Precisions ``(n + 2 a) / (2 E + 2 b)``, at most the upper bound of the `Hyperprior`."""
    counts, twice = counts + prior.counts, 2.0 * (energies + prior.rate)
    top = np.exp(prior.high)
    return np.divide(counts, twice, out=np.array(top), where=counts < top * twice)


def noise_precisions(posterior, beta, energies, gamma, prior):
    """Noise precisions ``(N - gamma + 2 a) / (2 E_D + 2 b)`` (MacKay 1992, equation 2.24).

    ``gamma``, given by group, is divided in proportion to the number of targets that measure a
    level at the present precisions ``beta``; ``a`` and ``b`` are those of the hyperprior.
    """
    counts = posterior.noise_counts(beta)
    remaining = counts - gamma.sum() * counts / np.maximum(posterior.level_counts.sum(), TINY)
    remaining = np.maximum(remaining, MIN_FREE * counts)
    return precision_of(remaining, energies.errors, prior)


def _limited(new, old, free, prior):
    """Move free precisions towards ``new`` by at most `MAX_CHANGE`, inside the prior's range."""
    change = np.clip(np.log(prior.clip(new) / old), -MAX_CHANGE, MAX_CHANGE)
    return np.where(free, old * np.exp(change), old)


class Calm(NamedTuple):
    """Memory of `Reestimation`: consecutive small steps, accepted steps, and factor of tau."""

    small: int
    accepted: int
    tau_factor: np.ndarray


class Reestimation(NamedTuple):
    """Training rule that re-estimates the precisions after every accepted step.

    Training starts from a strong prior, which is relaxed as the fit improves: this path leads to
    minima of far higher evidence than converging the weights first. The re-estimation uses the
    curvature before the step.
    """

    posterior: Posterior
    method: Method
    free: FreeHyperparameters
    # gain in nats, of a step and of the re-estimation after it, below which training ends
    tol: float

    def after(self, search, trial):
        """Re-estimate, then expand ``M`` to second order at the new weights and precisions."""
        before = search.point
        calm, hyper, gain = self.calm(search), before.hyper, 0.0
        if before.precision.definite:
            gamma = before.precision.determined(self.posterior.groups, hyper.alpha)
            hyper = reestimate(
                self.posterior, hyper, trial.energies, gamma, self.free, calm.tau_factor
            )
            determined = gamma + self.free.alpha_prior.counts
            gain = determined @ np.log(hyper.alpha / before.hyper.alpha) ** 2
            counts = self.posterior.level_counts + self.free.beta_prior.counts
            gain += counts @ np.log(hyper.beta / before.hyper.beta) ** 2
        small = abs(trial.gain) < self.tol and 0.25 * gain < self.tol
        calm = calm._replace(small=calm.small + 1 if small else 0, accepted=calm.accepted + 1)
        point = self.method.point(self.posterior, trial.theta, hyper)
        done = calm.small >= CALM_STEPS
        search = search.accepted(trial, point)
        return search._replace(memory=calm, done=done, converged=done)

    def stuck(self, search):
        """Return the search unchanged: no step lowers ``M``."""
        return search

    def calm(self, search):
        """Memory of the next step, for which tau is evaluated if that is due."""
        calm = search.memory or Calm(0, 0, np.ones_like(search.point.hyper.alpha))
        if calm.accepted % TAU_EVERY or not search.point.precision.definite:
            return calm
        return calm._replace(tau_factor=self._tau_factor(search.point, calm.tau_factor))

    def _tau_factor(self, point, factor):
        """Factor by which ``tau`` changes the gammas, damped by a geometric mean with the last.

        Every group takes a Hessian. Many groups of the same layer share one, and the factor.
        """
        groups, (theta, hyper, precision) = self.posterior.groups, (point[0], point[1], point[4])
        sets = np.eye(len(groups.names))
        if len(sets) > MAX_TAU_GROUPS:
            layers = weights_by_layer(self.posterior) > 0
            kinds = np.unique(layers, axis=1, return_inverse=True)[1].ravel()
            sets = (kinds == np.arange(kinds.max() + 1)[:, None]).astype(float)
        moves = -precision.solve((sets @ groups.pulls(theta, hyper.alpha)).T).T
        part, trace = self.posterior, float(len(theta))  # Tr(A^-1 A) of all rows
        if self.method.early:  # a part of the many rows has to do
            part = part.of_rows(slice(None, None, TAU_ROWS))
            part = part.scaled(self.posterior.n_rows / part.n_rows)
            trace = self.method.traces(part, theta[None], hyper, precision)[0]
        tau = third_order(part, self.method, point, moves, trace=trace)
        gamma = sets @ precision.determined(groups, hyper.alpha)
        new = np.clip(1.0 + 2.0 * tau / np.maximum(gamma, MIN_GAMMA), 1.0 / MAX_TAU, MAX_TAU)
        return np.sqrt((new @ sets) * factor)


def weights_by_layer(posterior):
    """Number of weights of every group in every layer, ``(n_layers, n_groups)``."""
    sizes = [rows * columns for rows, columns in posterior.network.shapes]
    layer = np.repeat(np.arange(len(sizes)), sizes) == np.arange(len(sizes))[:, None]
    return layer @ posterior.groups.membership


def third_order(posterior, method, point, moves, trace=None, exact=False):
    """Third-order terms ``-1/2 Tr(A^-1 dA/dw . move)`` by finite differences.

    For ``moves`` of shape (h, k) the result has shape (h,). The point has a positive definite
    Gauss-Newton ``A``, or the ``exact`` one. If the ``trace`` at the point is known, one-sided
    differences halve the work, and about four digits are right.
    """
    theta, hyper = point.theta, point.hyper
    if posterior.is_quadratic:
        return np.zeros(len(moves))
    size = (1.0 + np.linalg.norm(theta)) / np.sqrt(len(theta))  # of a weight
    lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-300)
    eps = np.minimum(STEP * size / lengths, LONGEST)
    plus = method.traces(posterior, theta + eps * moves, hyper, point.precision, exact)
    if trace is not None:
        return -0.5 * (plus - trace) / eps[:, 0]
    minus = method.traces(posterior, theta - eps * moves, hyper, point.precision, exact)
    return -0.5 * (plus - minus) / (2.0 * eps[:, 0])


# --- training by gradients ------------------------------------------------------------------------


def fair_moves(posterior, point, prior):
    """Changes of ``ln alpha`` towards the highest evidence at a fixed ratio between layers.

    For units in their linear range the evidence is invariant if their incoming weights grow by a
    factor and their outgoing weights shrink by it, together with the prior widths. The counts
    ``gamma_i = 1 - alpha_i (A^-1)_ii`` (MacKay 1992, equation 2.23) neglect the change of ``A``, so
    that the precisions would drift along this line indefinitely. The correction ``tau`` of
    `evidence_derivatives` needs a minimum and many Hessians. Every layer therefore gets the same
    share of the total ``gamma``, as every layer has the same ``sum_i alpha_i w_i^2`` on that line,
    and the precisions of all layers move by the same amount. Groups within a layer move relative to
    each other by their own counts; groups that span layers need no such rule.

    The point has the Gauss-Newton ``A``. Informative `Hyperpriors` of the groups' precisions break
    the invariance. Returns changes of ``ln alpha`` (n_groups,), zero for groups without
    well-determined weights, and effective numbers of parameters (n_groups,), with equal sums in all
    layers.
    """
    groups, alpha = posterior.groups, posterior.groups.diagonal(point.hyper.alpha)
    sizes = [rows * columns for rows, columns in posterior.network.shapes]
    layer = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.maximum(1.0 - alpha * point.precision.variances(), 0.0)  # 2.23
    squares = alpha * (point.theta - groups.mean) ** 2
    fair = counts.sum() / len(sizes)
    gamma = groups.sums(counts * (fair / np.maximum(np.bincount(layer, counts), TINY))[layer])
    excess = np.log(fair / np.maximum(np.bincount(layer, squares), TINY))
    excess -= excess.mean()
    whole = groups.sizes[:, None] == weights_by_layer(posterior).T  # groups that lie in one layer
    whole &= ~prior.informative[:, None]
    counts, twice = gamma + prior.counts, 2.0 * point.hyper.alpha * prior.rate
    twice = groups.sums(squares) + twice
    moves = np.log(np.maximum(counts, TINY) / np.maximum(twice, TINY))  # 2.22
    return np.where(counts > NOTHING, moves - whole @ excess, 0.0), gamma
