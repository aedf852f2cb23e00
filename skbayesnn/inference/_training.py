"""Training from a random start: damped Gauss-Newton steps with re-estimation between them."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._gauss_newton import accelerated, gauss_newton_forms, third_order
from skbayesnn.posterior import Hyperparameters

MAX_CHANGE = np.log(2.0)  # of ln alpha and ln beta at one re-estimation
MAX_TAU = 4.0  # factor by which tau may change a group's gamma
LOW_NOISE = 100.0  # noise precision of every other start: a tenth of the targets' spread
STRONG_PRIOR = 10.0  # weight precision of the starts in between
TAU_EVERY = 5  # accepted steps between evaluations of tau
CALM_STEPS = 2  # consecutive small steps that end the training


class FreeHyperparameters(NamedTuple):
    """Which hyperparameters are inferred, and their common prior.

    Attributes
    ----------
    alpha : ndarray of bool, shape (n_groups,)
    beta : ndarray of bool, shape (n_levels,)
    prior : LogUniform

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters
    >>> from skbayesnn.posterior import LogUniform
    >>> free = FreeHyperparameters(np.array([True, False]), np.array([True]), LogUniform())
    >>> free.mask
    array([ True, False,  True])
    """

    alpha: np.ndarray
    beta: np.ndarray
    prior: object

    @property
    def mask(self):
        """Both masks in one array, groups first."""
        return np.concatenate([self.alpha, self.beta])


class Settings(NamedTuple):
    """How to search for minima.

    Attributes
    ----------
    free : FreeHyperparameters
    fixed : Hyperparameters
        Values (standardised units) of the precisions that are not free.
    exact : bool
        Exact Hessian at the minimum; ``False``: Gauss-Newton.
    max_iter : int
        Training steps per start.
    tol : float
        Training ends when steps lower ``M``, and re-estimation raises the evidence (to second
        order, by ``gamma/4`` times the squared change of ``ln alpha``), by less than ``tol`` nats
        (``tol k / 100`` for more than 100 weights).
    noise_plan : NoisePlan or None
        Network of input-dependent noise, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Settings
    >>> from skbayesnn.posterior import Hyperparameters, LogUniform
    >>> free = FreeHyperparameters(np.array([True]), np.array([False]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.array([100.0])))
    >>> settings.with_fixed(Hyperparameters(np.array([0.5]), np.array([7.0])))
    Hyperparameters(alpha=array([0.5]), beta=array([100.]))
    """

    free: FreeHyperparameters
    fixed: Hyperparameters
    exact: bool = True
    max_iter: int = 300
    tol: float = 1e-3
    noise_plan: object = None

    def with_fixed(self, hyper):
        """``hyper`` with the values that are not free put in place."""
        return Hyperparameters(
            np.where(self.free.alpha, hyper.alpha, self.fixed.alpha),
            np.where(self.free.beta, hyper.beta, self.fixed.beta),
        )


class Trained(NamedTuple):
    """Networks after training; the leading axis, if there are several, counts the networks.

    ``tau_factor`` is that of `reestimate`, where the method of training uses it.
    """

    theta: np.ndarray
    hyper: Hyperparameters
    n_iter: np.ndarray
    converged: np.ndarray
    tau_factor: np.ndarray = 1.0

    def networks(self):
        """One by one."""
        for i in range(len(self.theta)):
            hyper, factor = self.hyper.select(i), self.tau_factor[i]
            yield Trained(self.theta[i], hyper, self.n_iter[i], self.converged[i], factor)


def random_starts(posterior, rngs):
    """Initial weights, and hyperparameters of a strong prior (MacKay 1992, section 3.3).

    Weights into hidden units get standard deviation ``fan_in^(-1/2)`` (LeCun et al. 1998). Starts
    with a noise of a tenth of the targets' own spread and weight precision 1 take turns with
    starts with all of that spread and a stronger prior: the former may end where everything is
    fitted, the latter where everything is taken for noise. The latter come first if weights
    outnumber the data. Classifiers start with weight precision 1.

    Parameters
    ----------
    posterior : Posterior
    rngs : list of numpy.random.Generator
        One per start, so that a start does not depend on how many others there are.

    Returns
    -------
    theta : ndarray of shape (n_starts, k)
    hyper : Hyperparameters
    """
    sd = np.concatenate([np.full(i * o, i**-0.5) for i, o in posterior.network.shapes])
    theta = np.stack([rng.standard_normal(len(sd)) * sd for rng in rngs])
    alpha = np.ones((len(rngs), len(posterior.groups.names)))
    beta = np.ones((len(rngs), posterior.likelihood.n_levels))
    if posterior.likelihood.has_noise:
        n_targets = len(posterior.X) * posterior.network.n_outputs
        low_noise = np.arange(len(rngs)) % 2 == (n_targets <= posterior.network.n_weights)
        beta[low_noise] = LOW_NOISE
        alpha[~low_noise] = STRONG_PRIOR
    return theta, Hyperparameters(alpha, beta)


def reestimate(posterior, hyper, energies, variances, free, tau_factor=1.0):
    """New precisions from the well-determined weights (MacKay 1992, equations 2.22-2.24, 3.18).

    ``alpha_c <- gamma_c / 2 E_W^c`` and ``beta <- (N - gamma) / 2 E_D`` with
    ``gamma_c = k_c - alpha_c Tr_c(A^-1) + 2 tau_c``. The last term is not in the original: it
    accounts for the change of ``A`` with the minimum. Without it units in their linear range drift
    for ever to smaller incoming and larger outgoing weights, although that leaves the evidence as
    it is. With several noise levels gamma is shared out in proportion to their outputs, which the
    exact treatment at the end corrects.

    Parameters
    ----------
    posterior : Posterior
    hyper : Hyperparameters
    energies : Energies
    variances : ndarray of shape (..., k)
        Diagonal of ``A^-1`` (Gauss-Newton).
    free : FreeHyperparameters
    tau_factor : ndarray of shape (..., n_groups), default=1
        ``1 + 2 tau_c / (k_c - alpha_c Tr_c(A^-1))``, see `evidence_derivatives`.

    Returns
    -------
    hyper : Hyperparameters
    gamma : ndarray of shape (..., n_groups)
        ``k_c - alpha_c Tr_c(A^-1)``.
    """
    groups = posterior.groups
    determined = np.maximum(groups.sizes - hyper.alpha * groups.sums(variances), 0.0)
    gamma = determined * tau_factor
    twice = 2.0 * energies.weights
    top = np.exp(free.prior.log_range[1])
    alpha = np.divide(gamma, twice, out=np.full_like(gamma, top), where=gamma < top * twice)
    alpha = np.where(gamma > 1e-12, alpha, hyper.alpha)
    beta = noise_precisions(posterior, energies, gamma, top)
    return (
        Hyperparameters(
            _limited(alpha, hyper.alpha, free.alpha, free.prior),
            _limited(beta, hyper.beta, free.beta, free.prior),
        ),
        determined,
    )


def noise_precisions(posterior, energies, gamma, largest):
    """``(N - gamma) / 2 E_D`` of every noise level (MacKay 1992, equation 2.24).

    ``gamma``, by group, is shared out in proportion to the levels' outputs.
    """
    sizes = posterior.likelihood.level_sizes()
    share = sizes / sizes.sum()
    remaining = posterior.n_rows * sizes - share * gamma.sum(-1, keepdims=True)
    remaining = np.maximum(remaining, 0.1 * posterior.n_rows * sizes)  # early, weak data only
    twice = 2.0 * energies.data
    return np.divide(
        remaining, twice, out=np.full_like(remaining, largest), where=remaining < largest * twice
    )


def _limited(new, old, free, prior):
    """Move free precisions towards ``new`` by at most `MAX_CHANGE`, inside the prior's range."""
    change = np.clip(np.log(prior.clip(new) / old), -MAX_CHANGE, MAX_CHANGE)
    return np.where(free, old * np.exp(change), old)


def train(posterior, theta, hyper, settings, progress=None, tau_factor=1.0):
    """Minimise ``M(w)`` for several networks at once, re-estimating as it goes.

    Levenberg-Marquardt: Gauss-Newton steps with multiplicative damping that follows the ratio of
    actual to predicted decrease (Marquardt 1963; Nielsen 1999). The hyperparameters move after
    every accepted step, from a strong prior towards the data: this path leads to minima of far
    higher evidence than training hard first.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (n_networks, k)
    hyper : Hyperparameters
    settings : Settings
    progress : callable, optional
        Called with lines of text.
    tau_factor : ndarray of shape (n_networks, n_groups), default=1
        Where it starts, see `reestimate`.

    Returns
    -------
    Trained
    """
    batch = _Batch(posterior, theta, hyper, settings.free, tau_factor)
    for iteration in range(1, settings.max_iter + 1):
        active = np.flatnonzero((batch.calm < CALM_STEPS) & ~batch.stuck)
        if len(active) == 0:
            break
        batch.step(active, settings.tol * max(1.0, theta.shape[1] / 100.0))
        if progress is not None:
            energies = batch.energies.total(batch.hyper)
            progress(
                f"iteration {iteration}: {len(active)} of {len(theta)} starts in training, "
                f"lowest energy M = {energies.min():.4f}"
            )
    converged = batch.calm >= CALM_STEPS
    return Trained(batch.theta, batch.hyper, batch.n_iter, converged, batch.tau_factor)


class _Batch:
    """Several networks under training; each is treated exactly as it would be alone."""

    def __init__(self, posterior, theta, hyper, free, tau_factor=1.0):
        self.posterior, self.free = posterior, free
        self.theta = theta.copy()
        self.hyper = Hyperparameters(hyper.alpha.copy(), hyper.beta.copy())
        self.energies = posterior.energies(theta, hyper.beta)
        gradient, self.curvature = gauss_newton_forms(posterior, theta, hyper)
        self.gradient = gradient.copy()
        n = len(theta)
        self.damping, self.growth = np.full(n, 1e-2), np.full(n, 2.0)
        self.calm, self.n_iter = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
        self.stuck, self.accepted = np.zeros(n, dtype=bool), np.zeros(n, dtype=int)
        self.tau_factor = np.ones_like(hyper.alpha) * tau_factor
        self.expanded_at = theta.copy()

    def step(self, active, tol):
        """One trial step of the ``active`` networks."""
        steps, predicted = self._trial_steps(active)
        hyper = self.hyper.select(active)
        trial = self.posterior.with_best_outputs(self.theta[active] + steps, hyper)
        energies = self.posterior.energies(trial, hyper.beta)
        before = self.energies.select(active).total(hyper)
        decrease = before - energies.total(hyper)
        with np.errstate(invalid="ignore"):
            ratio = decrease / np.maximum(predicted, 1e-300)
            accepted = np.isfinite(decrease) & (ratio > 1e-4)
        self._adapt_damping(active, accepted, ratio, predicted, tol)
        self.n_iter[active] += 1
        if np.any(accepted):
            moved = active[accepted]
            self.theta[moved] = trial[accepted]
            self._set_energies(moved, energies.select(accepted))
            self._reestimate(moved, decrease[accepted], tol)

    def _set_energies(self, moved, energies):
        for mine, new in zip(self.energies, energies, strict=True):
            if np.ndim(mine):
                mine[moved] = new

    def _trial_steps(self, active):
        """Damped steps bent along their valleys, and the decrease the straight ones promise."""
        steps = np.zeros((len(active), self.theta.shape[1]))
        predicted = np.zeros(len(active))
        gaussians = [self.curvature[b].gaussian(self.damping[b]) for b in active]
        for i, (b, gaussian) in enumerate(zip(active, gaussians, strict=True)):
            if gaussian is not None:
                steps[i] = -gaussian.solve(self.gradient[b])
                bowl = self.curvature[b].quadratic(steps[i])
                predicted[i] = -self.gradient[b] @ steps[i] - 0.5 * bowl
        if self.posterior.network.hidden_layer_sizes:
            forces = self.posterior.bending_force(
                self.theta[active], self.hyper.select(active), steps
            )
            for i, (b, gaussian) in enumerate(zip(active, gaussians, strict=True)):
                if gaussian is not None:
                    diagonal = self.curvature[b].diagonal
                    bent = accelerated(gaussian, diagonal, steps[i], forces[i])
                    steps[i] = steps[i] if bent is None else bent
        return steps, predicted

    def _adapt_damping(self, active, accepted, ratio, predicted, tol):
        for b, good, rho, hoped in zip(active, accepted, ratio, predicted, strict=True):
            if good:
                shrink = max(0.2, 1.0 - (2.0 * rho - 1.0) ** 3)
                self.damping[b] = max(self.damping[b] * shrink, 1e-10)
                self.growth[b] = 2.0
            else:
                self.damping[b] *= self.growth[b]
                self.growth[b] *= 2.0
                if self.damping[b] > 1e12:  # at the limit of precision: a minimum, or hopeless
                    self.stuck[b] = True
                if 0 < hoped < 1e-6 * tol:
                    self.calm[b] = CALM_STEPS

    def _reestimate(self, moved, decrease, tol):
        """Re-estimate with the curvature before the step, then renew the curvature."""
        old = self.hyper.select(moved)
        gaussians = [self.curvature[b].gaussian() for b in moved]
        for b, gaussian in zip(moved, gaussians, strict=True):
            if gaussian is not None and self.accepted[b] % TAU_EVERY == 0:
                self.tau_factor[b] = self._tau_factor(b, gaussian)
            self.accepted[b] += 1
        usable = np.array([gaussian is not None for gaussian in gaussians])
        variances = np.stack(
            [g.variances() if g is not None else np.zeros(self.theta.shape[1]) for g in gaussians]
        )
        energies = self.energies.select(moved)
        new, gamma = reestimate(
            self.posterior, old, energies, variances, self.free, self.tau_factor[moved]
        )
        new = Hyperparameters(
            np.where(usable[:, None], new.alpha, old.alpha),
            np.where(usable[:, None], new.beta, old.beta),
        )
        counts = self.posterior.n_rows * self.posterior.likelihood.level_sizes()
        gain = np.sum(gamma * np.log(new.alpha / old.alpha) ** 2, axis=-1)
        gain += np.sum(counts * np.log(new.beta / old.beta) ** 2, axis=-1)
        small = (np.abs(decrease) < tol) & (0.25 * gain < tol)
        self.calm[moved] = np.where(small, self.calm[moved] + 1, 0)
        self.hyper.alpha[moved], self.hyper.beta[moved] = new
        if not self.posterior.likelihood.linear:
            self._set_energies(moved, self.posterior.energies(self.theta[moved], new.beta))
        self.gradient[moved], curvature = gauss_newton_forms(self.posterior, self.theta[moved], new)
        self.expanded_at[moved] = self.theta[moved]
        for b, form in zip(moved, curvature, strict=True):
            self.curvature[b] = form

    def _tau_factor(self, b, gaussian):
        """How ``tau`` changes one network's gammas, where its curvature was taken."""
        theta, hyper = self.expanded_at[b], self.hyper.select(b)
        groups = self.posterior.groups
        pulls = ((groups.expand(hyper.alpha) * theta)[:, None] * groups.membership).T
        moves = -gaussian.solve(pulls.T).T
        tau = third_order(self.posterior, theta, hyper, gaussian, moves, one_sided=True)
        gamma = groups.sizes - hyper.alpha * groups.sums(gaussian.variances())
        factor = np.clip(1.0 + 2.0 * tau / np.maximum(gamma, 1e-3), 1.0 / MAX_TAU, MAX_TAU)
        return np.sqrt(factor * self.tau_factor[b])  # half-way: the correction answers with delay
