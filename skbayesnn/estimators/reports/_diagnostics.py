"""Convergence diagnostics of chains, in function space and for the hyperparameters."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.estimators.reports._printed import Printed, Table
from skbayesnn.network import outputs
from skbayesnn.samplers import bulk_ess, r_hat, tail_ess

ROWS = 200  # training rows, evenly spread, at which functions are compared
MAX_TIMES = 1000.0  # the present number of draws, in advice
MAX_R_HAT = 1.05  # of chains that have roughly converged
GOOD_R_HAT, GOOD_ESS = 1.01, 400.0  # of chains that have converged (Vehtari et al. 2021)
MIN_DRAWS = 8
MAX_SHARE = 0.1  # of trajectories that may diverge where few are accepted
MIN_ACCEPTANCE = 0.5


@dataclass(frozen=True, repr=False)
class Diagnostics(Printed):
    """Convergence diagnostics of the chains of a sampler.

    The printed form holds the verdict, advice, and the most important numbers; ``print(full())``
    prints everything.

    The chains are compared by the outputs of their networks, not by their weights, because label
    switching of hidden units changes the weights but not the outputs. R-hat and effective sample
    sizes (ESS) follow Vehtari et al. (2021).

    Attributes
    ----------
    r_hat : float
        Largest rank-normalised split R-hat of any output at up to 200 training rows, outputs of a
        noise network included.
    bulk_ess, tail_ess : float
        Smallest effective sample sizes, for means and for 5 % and 95 % quantiles.
    hyper_r_hat, hyper_ess : dict
        R-hat and bulk ESS of the logarithm of every inferred precision, and of the degrees of
        freedom of Student-t noise, by name.
    n_chains, n_draws : int
        Number of chains, and draws kept of each.
    acceptance : float
        Mean acceptance probability.
    acceptance_by_chain : ndarray of shape (n_chains,)
    divergences : int
        Number of divergent trajectories, whose energy error became huge.
    n_transitions : int
        Trajectories of all chains after warm-up.
    n_gradients : int
        Leapfrog steps of all chains after warm-up.
    step_size : ndarray of shape (n_chains,)
    energy : ndarray of shape (n_chains, n_draws)
        Minus log posterior density of the sampler's coordinates, up to the evidence.
    """

    r_hat: float
    bulk_ess: float
    tail_ess: float
    hyper_r_hat: dict
    hyper_ess: dict
    n_chains: int
    n_draws: int
    acceptance: float
    acceptance_by_chain: np.ndarray
    divergences: int
    n_transitions: int
    n_gradients: int
    step_size: np.ndarray
    energy: np.ndarray

    @property
    def converged(self):
        """True if R-hat of the functions is at most 1.05: at least roughly converged."""
        return bool(self.r_hat <= MAX_R_HAT)

    @property
    def n_draws_needed(self):
        """Draws per chain for R-hat 1.01 and an effective sample size of 400 at the present rate.

        ``R-hat^2 - 1`` falls and the effective sample size rises in proportion to the draws. The
        number has two significant digits. It is ``n_draws`` where both are reached, at most 1,000
        times that, and 0 if there are too few draws to compute it.
        """
        if np.isnan(self.r_hat):
            return 0
        by_r_hat = (self.r_hat**2 - 1.0) / (GOOD_R_HAT**2 - 1.0)
        factor = min(max(1.0, by_r_hat, GOOD_ESS / self.bulk_ess), MAX_TIMES)
        return self.n_draws if factor == 1.0 else int(float(f"{self.n_draws * factor:.1e}"))

    @property
    def stuck(self):
        """True if more than a tenth of the trajectories diverged and most were rejected."""
        many = self.divergences > MAX_SHARE * self.n_transitions
        return many and not self.acceptance > MIN_ACCEPTANCE

    @property
    def verdict(self):
        """Verdict on the representation of the posterior by the draws, in words."""
        return self._judged[0]

    @property
    def advice(self):
        """Advice that follows from the verdict."""
        return self._judged[1]

    @property
    def _judged(self):
        if np.isnan(self.r_hat):
            return (
                f"not converged: too few draws per chain to judge ({self.n_draws})",
                "Raise n_draws.",
            )
        if not self.converged:
            return (
                f"not converged: R-hat of the outputs is {self.r_hat:.3f}, above {MAX_R_HAT}",
                f"Raise n_draws to about {self.n_draws_needed:,}, or simplify the model.",
            )
        if self.stuck:
            return (
                f"diverged in {self.divergences} trajectories",
                "Reduce sampler.step_size, or raise n_warmup.",
            )
        if self.n_draws_needed > self.n_draws:
            return (
                f"roughly converged: R-hat {self.r_hat:.3f}, effective sample size "
                f"{self.bulk_ess:.0f}",
                f"Use the predictions; for R-hat {GOOD_R_HAT} and effective sample size "
                f"{GOOD_ESS:.0f} raise n_draws to about {self.n_draws_needed:,}.",
            )
        return "converged", "Use the predictions."

    def _summary(self):
        share = self.divergences / self.n_transitions
        effective = f"{self.bulk_ess:.0f} for means, {self.tail_ess:.0f} for 5 % and 95 % quantiles"
        return [
            ("Verdict", self.verdict),
            ("To do", self.advice),
            ("Draws", f"{self.n_chains} chain{'s' * (self.n_chains > 1)} of {self.n_draws} draws"),
            ("Largest R-hat of outputs", f"{self.r_hat:.3f}"),
            ("Effective sample size", effective),
            (
                "Error of posterior means",
                f"at most {self.bulk_ess**-0.5:.2f} of their error bars",  # Vehtari et al. 2021
            ),
            ("Acceptance", f"{self.acceptance:.2f}"),
            ("Divergent trajectories", f"{self.divergences} of {self.n_transitions} ({share:.1%})"),
            ("Chains and hyperparameters", "print(diagnostics_.full())"),
        ]

    def _tables(self):
        pairs = zip(self.acceptance_by_chain, self.step_size, strict=True)
        chains = [(str(i), f"{rate:.2f}", f"{step:.3g}") for i, (rate, step) in enumerate(pairs)]
        header = "chain", "acceptance", "step size"
        tables = [Table(f"Chains ({self.n_gradients} leapfrog steps)", chains, header)]
        if self.hyper_r_hat:
            rows = [
                (name, f"{value:.3f}", f"{self.hyper_ess[name]:.0f}")
                for name, value in self.hyper_r_hat.items()
            ]
            header = "name", "R-hat", "effective sample size"
            tables.append(Table("Hyperparameters", rows, header))
        return tables


def spread_rows(n):
    """Row numbers, evenly spread, at most `ROWS`."""
    return np.unique(np.linspace(0, n - 1, ROWS).round().astype(int))


def diagnose(fit):
    """Compare the chains of a `SampledFit`; R-hat and ESS of fewer than 8 draws are ``nan``."""
    draws, joint, posterior = fit.draws, fit.sampled.joint, fit.posed.posterior
    n_chains, n_draws = draws.energy.shape
    rows = posterior.X[spread_rows(len(posterior.X))]
    f = outputs(posterior.network, draws.theta.astype(float), rows)
    f = posterior.likelihood.identified(f)
    f = np.concatenate([f, joint.noise_functions(draws.noise, rows)], axis=-1)
    levels = [f"noise_{level}" for level in range(posterior.likelihood.n_levels)]
    names = zip([*joint.groups.names, *levels], joint.free.mask, strict=True)
    chosen = [name for name, is_free in names if is_free]
    logs = np.log(np.concatenate([draws.alpha, draws.beta], axis=-1))[..., joint.free.mask]
    if joint.state_names:
        chosen += joint.state_names
        logs = np.concatenate([logs, np.log(draws.noise)], axis=-1)

    def judged(measure, values):
        comparable = n_draws >= MIN_DRAWS and values.shape[-1] > 0
        return measure(values) if comparable else np.full(values.shape[2:], np.nan)

    step_size = np.concatenate([chains.steps.average for chains in fit.sampled.chains])
    return Diagnostics(
        r_hat=float(np.max(judged(r_hat, f))),
        bulk_ess=float(np.min(judged(bulk_ess, f))),
        tail_ess=float(np.min(judged(tail_ess, f))),
        hyper_r_hat=dict(zip(chosen, judged(r_hat, logs).tolist(), strict=True)),
        hyper_ess=dict(zip(chosen, judged(bulk_ess, logs).tolist(), strict=True)),
        n_chains=n_chains,
        n_draws=n_draws,
        acceptance=float(draws.acceptance.mean()),
        acceptance_by_chain=draws.acceptance.mean(axis=1),
        divergences=int(draws.diverged.sum()),
        n_transitions=n_chains * n_draws * fit.settings.thin,
        n_gradients=int(draws.n_steps.sum()),
        step_size=step_size.reshape(n_chains, -1).mean(axis=1),
        energy=draws.energy,
    )
