"""Re-estimation of the precisions of weights and noise between the steps of training."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._damped import RuleTerms
from skbayesnn.posterior import Hyperparameters

MAX_CHANGE = np.log(2.0)  # of ln alpha and ln beta at one re-estimation
MAX_TAU = 4.0  # factor by which tau may change a group's gamma
TAU_EVERY = 5  # accepted steps between evaluations of tau
CALM_STEPS = 2  # consecutive small steps that end the training
NOTHING = 1e-12  # well-determined weights of a group whose precision is left as it is
LEAST_FREE = 0.1  # of the targets of a noise level that count for it: early, weak data only
LEAST_GAMMA = 1e-3  # well-determined weights to which tau is compared
STEP, LONGEST = 1e-4, 1e8  # of differences: of the weights' size, and in units of a move
TINY = np.finfo(float).tiny


def reestimate(posterior, hyper, energies, determined, free, tau_factor=1.0):
    """New precisions from the well-determined weights (MacKay 1992, equations 2.22-2.24, 3.18).

    ``alpha_c <- (gamma_c + 2 a) / (2 E_W^c + 2 b)`` and ``beta <- (N - gamma + 2 a) / (2 E_D + 2
    b)``, ``a`` and ``b`` of the `Hyperprior`, with ``gamma_c = k_c - alpha_c Tr_c(A^-1) + 2
    tau_c``. The last term is not in the original: it accounts for the change of ``A`` with the
    minimum. Without it units in their linear range drift for ever to smaller incoming and larger
    outgoing weights, although that leaves the evidence as it is. With several noise levels gamma is
    shared out in proportion to their outputs, which the exact treatment at the end corrects.

    Parameters
    ----------
    posterior : Posterior
    hyper : Hyperparameters
    energies : Energies
    determined : ndarray of shape (n_groups,)
        ``k_c - alpha_c Tr_c(A^-1)`` (Gauss-Newton).
    free : FreeHyperparameters
    tau_factor : ndarray of shape (n_groups,), default=1
        ``1 + 2 tau_c / (k_c - alpha_c Tr_c(A^-1))``, see `evidence_derivatives`.
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
    """``(n + 2 a) / (2 E + 2 b)``, at most the upper bound of the `Hyperprior`."""
    counts, twice = counts + prior.counts, 2.0 * (energies + prior.rate)
    top = np.exp(prior.high)
    return np.divide(counts, twice, out=np.array(top), where=counts < top * twice)


def noise_precisions(posterior, beta, energies, gamma, prior):
    """``(N - gamma) / 2 E_D`` of every noise level (MacKay 1992, equation 2.24), and its prior.

    ``gamma``, by group, is shared out in proportion to the targets that measure a level at the
    present precisions ``beta``.
    """
    counts = posterior.noise_counts(beta)
    remaining = counts - gamma.sum() * counts / np.maximum(posterior.level_counts.sum(), TINY)
    remaining = np.maximum(remaining, LEAST_FREE * counts)
    return precision_of(remaining, energies.errors, prior)


def _limited(new, old, free, prior):
    """Move free precisions towards ``new`` by at most `MAX_CHANGE`, inside the prior's range."""
    change = np.clip(np.log(prior.clip(new) / old), -MAX_CHANGE, MAX_CHANGE)
    return np.where(free, old * np.exp(change), old)


class Calm(NamedTuple):
    """What `Reestimation` keeps: small steps in a row, accepted ones, and the factor of tau."""

    small: int
    accepted: int
    tau_factor: np.ndarray


class Reestimation(NamedTuple):
    """Rule of training: the precisions move after every accepted step.

    From a strong prior towards the data: this path leads to minima of far higher evidence than
    training hard first. They are re-estimated with the curvature before the step.

    Attributes
    ----------
    posterior : Posterior
    method : Method
    free : FreeHyperparameters
    tol : float
        Nats that a step, and the change of precisions after it, gain at the end.
    """

    posterior: object
    method: object
    free: object
    tol: float

    @property
    def terms(self):
        """For the compiled loop."""
        return RuleTerms(exact=False, tol=self.tol, free=self.free)

    def begun(self, search, tau_factor=1.0):
        """A search with the memory that this rule needs."""
        return search._replace(memory=Calm(0, 0, tau_factor * np.ones_like(self._alpha(search))))

    def after(self, search, trial):
        """Re-estimate, then expand ``M`` at the new weights and precisions."""
        before, calm = search.point, search.memory
        hyper, gain = before.hyper, 0.0
        if before.precision.definite:
            if calm.accepted % TAU_EVERY == 0:
                calm = calm._replace(tau_factor=self._tau_factor(before, calm.tau_factor))
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
        """Nothing helps where no step leads lower."""
        return search

    def _alpha(self, search):
        return search.point.hyper.alpha

    def _tau_factor(self, point, factor):
        """How ``tau`` changes the gammas, half-way: the correction answers with delay."""
        groups, (theta, hyper, precision) = self.posterior.groups, (point[0], point[1], point[4])
        moves = -precision.solve(groups.pulls(theta, hyper.alpha).T).T
        tau = third_order(self.posterior, self.method, point, moves, one_sided=True)
        gamma = precision.determined(groups, hyper.alpha)
        new = np.clip(1.0 + 2.0 * tau / np.maximum(gamma, LEAST_GAMMA), 1.0 / MAX_TAU, MAX_TAU)
        return np.sqrt(new * factor)


def third_order(posterior, method, point, moves, one_sided=False):
    """``-1/2 Tr(A^-1 dA/dw . move)`` with the Gauss-Newton ``A``, by differences.

    Parameters
    ----------
    posterior : Posterior
    method : Method
    point : Point
        With the Gauss-Newton ``A``, positive definite.
    moves : ndarray of shape (h, k)
    one_sided : bool
        Half the work, for some four digits: ``Tr(A^-1 A)`` is known.

    Returns
    -------
    ndarray of shape (h,)
    """
    theta, hyper = point.theta, point.hyper
    if posterior.is_quadratic:
        return np.zeros(len(moves))
    eps = difference_step(theta, moves)
    given = hyper, point.precision
    plus = method.traces(posterior, theta + eps * moves, *given)
    if one_sided:
        return -0.5 * (plus - len(theta)) / eps[:, 0]
    minus = method.traces(posterior, theta - eps * moves, *given)
    return -0.5 * (plus - minus) / (2.0 * eps[:, 0])


def difference_step(theta, moves):
    """Lengths ``(h, 1)`` that make ``moves`` small against the weights."""
    size = (1.0 + np.linalg.norm(theta)) / np.sqrt(len(theta))
    lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-300)
    return np.minimum(STEP * size / lengths, LONGEST)


# --- training by gradients ------------------------------------------------------------------------


def fair_moves(posterior, point, total, prior):
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
    point : Point
        With the Gauss-Newton ``A``.
    total : float
        Well-determined weights of the network.
    prior : Hyperpriors
        Of the groups' precisions. Those that are not uniform break the line.

    Returns
    -------
    moves : ndarray of shape (n_groups,)
        Zero for groups that determine nothing.
    gamma : ndarray of shape (n_groups,)
        Shared out among the layers; the sum is that of the counts.
    """
    groups, alpha = posterior.groups, posterior.groups.diagonal(point.hyper.alpha)
    sizes = [rows * columns for rows, columns in posterior.network.shapes]
    layer = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.maximum(1.0 - alpha * point.precision.variances(), 0.0)  # 2.23
    squares = alpha * groups.deviation(point.theta) ** 2
    fair = total / len(sizes)
    gamma = groups.sums(counts * (fair / np.maximum(np.bincount(layer, counts), TINY))[layer])
    excess = np.log(fair / np.maximum(np.bincount(layer, squares), TINY))
    excess -= excess.mean()
    in_layer = groups.membership.T @ (layer[:, None] == np.arange(len(sizes)))
    whole = in_layer == groups.sizes[:, None]  # groups that lie in one layer
    whole &= ~prior.informative[:, None]
    counts, twice = gamma + prior.counts, 2.0 * point.hyper.alpha * prior.rate
    twice = groups.sums(squares) + twice
    moves = np.log(np.maximum(counts, TINY) / np.maximum(twice, TINY))  # 2.22
    return np.where(counts > NOTHING, moves - whole @ excess, 0.0), gamma
