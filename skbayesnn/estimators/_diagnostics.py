"""Whether chains have converged, in function space and for the hyperparameters."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.network import outputs
from skbayesnn.samplers import bulk_ess, r_hat, tail_ess

ROWS = 200  # training rows, evenly spread, at which functions are compared
LARGEST_R_HAT = 1.05
LEAST_DRAWS = 8


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """Convergence of the chains of a sampler.

    The chains are compared by the outputs of their networks, not by their weights, because hidden
    units may change places without any change of the outputs. R-hat and effective sample sizes
    (ESS) are those of Vehtari et al. (2021).

    Attributes
    ----------
    r_hat : float
        Largest rank-normalised split R-hat of any output at up to 200 training rows, outputs of a
        noise network included.
    bulk_ess, tail_ess : float
        Smallest effective sample size, for means and for 5 % and 95 % quantiles.
    median_bulk_ess : float
        Over the outputs and rows.
    hyper_r_hat, hyper_ess : dict
        R-hat and bulk ESS of the logarithm of every inferred precision, and of the degrees of
        freedom of Student-t noise, by name.
    n_chains, n_draws : int
        Number of chains, and draws kept of each.
    acceptance : float
        Mean acceptance probability.
    acceptance_by_chain : ndarray of shape (n_chains,)
    divergences : int
        Number of divergent trajectories, in which the error of the energy became huge.
    n_gradients : int
        Leapfrog steps of all chains after warm-up.
    step_size : ndarray of shape (n_chains,)
    energy : ndarray of shape (n_chains, n_draws)
        Minus log posterior density of the sampler's coordinates, up to the evidence.
    """

    r_hat: float
    bulk_ess: float
    tail_ess: float
    median_bulk_ess: float
    hyper_r_hat: dict
    hyper_ess: dict
    n_chains: int
    n_draws: int
    acceptance: float
    acceptance_by_chain: np.ndarray
    divergences: int
    n_gradients: int
    step_size: np.ndarray
    energy: np.ndarray

    @property
    def converged(self):
        """Whether R-hat of the functions is at most 1.05."""
        return bool(self.r_hat <= LARGEST_R_HAT)

    def __repr__(self):
        total = self.n_chains * self.n_draws
        lines = [
            f"{self.n_chains} chains of {self.n_draws} draws: "
            + ("converged" if self.converged else "NOT converged"),
            f"  R-hat of outputs, largest        {self.r_hat:8.3f}",
            f"  effective draws of {total:<7d}       bulk {self.bulk_ess:.0f}, "
            f"tail {self.tail_ess:.0f}, median bulk {self.median_bulk_ess:.0f}",
            f"  acceptance                       {self.acceptance:8.2f}",
            f"  divergent trajectories           {self.divergences:8d}",
            f"  leapfrog steps                   {self.n_gradients:8d}",
        ]
        lines += [
            f"  {name:22s} R-hat {value:6.3f}  ESS {self.hyper_ess[name]:.0f}"
            for name, value in self.hyper_r_hat.items()
        ]
        return "\n".join(lines)


def spread_rows(n):
    """Up to `ROWS` row numbers, evenly spread."""
    return np.unique(np.linspace(0, n - 1, ROWS).round().astype(int))


def diagnose(sampled):
    """Compare the chains of a run.

    Parameters
    ----------
    sampled : Sampled

    Returns
    -------
    Diagnostics
        With ``nan`` for R-hat and ESS of fewer than 8 draws.
    """
    draws, joint, posterior = sampled.draws, sampled.joint, sampled.joint.posterior
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
    enough = n_draws >= LEAST_DRAWS
    comparable = enough and len(chosen) > 0
    hyper_r_hat = r_hat(logs) if comparable else np.full(len(chosen), np.nan)
    hyper_ess = bulk_ess(logs) if comparable else np.full(len(chosen), np.nan)
    bulk = bulk_ess(f) if enough else np.array([np.nan])
    return Diagnostics(
        r_hat=float(np.max(r_hat(f))) if enough else np.nan,
        bulk_ess=float(np.min(bulk)),
        tail_ess=float(np.min(tail_ess(f))) if enough else np.nan,
        median_bulk_ess=float(np.median(bulk)),
        hyper_r_hat=dict(zip(chosen, hyper_r_hat.tolist(), strict=True)),
        hyper_ess=dict(zip(chosen, hyper_ess.tolist(), strict=True)),
        n_chains=n_chains,
        n_draws=n_draws,
        acceptance=float(draws.acceptance.mean()),
        acceptance_by_chain=draws.acceptance.mean(axis=1),
        divergences=int(draws.diverged.sum()),
        n_gradients=int(draws.n_steps.sum()),
        step_size=np.concatenate([chains.steps.average for chains in sampled.chains]),
        energy=draws.energy,
    )
