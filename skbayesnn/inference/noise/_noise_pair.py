"""Alternating training of the network of the means and of the noise network, and their evidence.

See `_noise_network.py` for the quantities that each network takes from the other.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._evidence import EvidenceTerms
from skbayesnn.inference.evidence._profile import integrated
from skbayesnn.inference.minima._minimum import Minimum, Trouble, complete, polish
from skbayesnn.inference.minima._training import Trained, random_starts, train
from skbayesnn.inference.noise._noise_network import (
    expected_noise_posterior,
    squared_residuals,
    with_rows,
)
from skbayesnn.inference.task._problem import Settings
from skbayesnn.network import outputs
from skbayesnn.posterior import Posterior

ROUNDS = 10
FEW_ROUNDS = 3  # before sampling; with one chains stay where they overfit the noise
EARLY_ROUNDS = 2  # with early stopping: each further round would fit the noise a little more
ROUGH, SETTLED = 0.1, 0.03  # root mean square change of log precisions that ends the training
REFINING_ROUNDS = 2  # rounds of polishing that re-estimate the precisions as well
MOST_ROUNDS, POLISHED = 200, 1e-8  # of polishing; its change of log precisions at the end
ROUGH_TOL = 10.0  # factor of the training tolerance while the other side still moves


@dataclass(frozen=True, repr=False)
class NoiseNetworkTerms(EvidenceTerms):
    """Terms of the log evidence with a noise network; the others are those of `EvidenceTerms`."""

    # ``-sum_c alpha_c E_v^c + 1/2 sum_c k_c log alpha_c`` over the weights ``v`` of the noise
    # network; its output biases have the hyperprior of a constant noise level instead
    noise_weight_prior: float = 0.0
    noise_log_det: float = 0.0  # ``-1/2 log det A_v``
    noise_symmetry: float = 0.0
    noise_weight_precision_occam: float = 0.0


class Side(NamedTuple):
    """State of the search for one of the two networks."""

    posterior: Posterior
    settings: Settings
    found: Trained | Minimum  # so far; a network that was not trained before has made no steps

    def outputs(self):
        """Outputs of the network at all rows."""
        return outputs(self.posterior.network, self.found.theta, self.posterior.X)

    def trained(self, tol_factor=1.0):
        """Train the network from its present weights and precisions."""
        settings = self.settings._replace(tol=tol_factor * self.settings.tol)
        return self._replace(found=train(self.posterior, self.found, settings)._replace(n_iter=1))

    def completed(self, finish=complete):
        """Move to the nearest minimum, and delete redundant units."""
        hyper = self.settings.with_fixed(self.found.hyper)
        found = finish(self.posterior, self.found.theta, hyper, self.settings)
        if isinstance(self.found, Minimum):
            found = replace(found, pruned=self.found.pruned + found.pruned)
        posterior = self.posterior.with_network(found.network, found.groups.labels)
        return Side(posterior, self.settings, found)

    def integrated(self):
        """Integrate the Occam factors of the precisions numerically where that is needed."""
        return self._replace(found=integrated(self.posterior, self.found, self.settings))


class Pair(NamedTuple):
    """Network of the means and noise network."""

    mean: Side
    noise: Side
    n_iter: int = 1  # number of training steps under constant noise

    @classmethod
    def start(cls, posterior, trained, settings, plan, seed):
        """Start from means trained under constant noise and a random noise network.

        The posterior is that of the means, with `Gaussian` noise. The seed of the noise network is
        derived from ``seed``.
        """
        noise = expected_noise_posterior(posterior, *plan)
        seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0))
        (start,) = random_starts(noise, [np.random.default_rng(seed)])
        level = np.log(posterior.likelihood.precisions(trained.hyper.beta))
        start.theta[-plan.network.n_outputs :] = level
        mean = Side(posterior, settings, trained._replace(n_iter=1))
        return cls(mean, Side(noise, plan.settings(settings), start), int(trained.n_iter))

    @classmethod
    def resume(cls, posterior, old, settings, plan):
        """Resume from both networks of an earlier fit.

        The posterior is that of the means, with the layout and the noise of ``old``.
        """
        noise = expected_noise_posterior(posterior, old.noise.network, old.noise.groups)
        return cls(
            Side(posterior, settings, Trained(old.theta, old.hyper, 1)),
            Side(noise, plan.settings(settings), Trained(old.noise.theta, old.noise.hyper, 1)),
        )

    @property
    def early(self):
        """True if early stopping ends before a minimum."""
        return Method.choose(*self.mean[:2]).early

    @property
    def out_of_time(self):
        """True if the deadline of the fit has passed."""
        return self.mean.settings.deadline.passed

    def round(self, advance):
        """Advance the noise network given the residuals, then the means given the noise."""
        (posterior, settings, found), noise = self.mean, self.noise
        y, gamma = squared_residuals(posterior, found.theta, found.hyper, settings)
        noise = noise._replace(posterior=replace(noise.posterior, y=y, factors=gamma))
        noise = advance(noise)
        posterior, level = with_rows(posterior, noise.outputs())
        settings = settings._replace(
            free=replace(settings.free, beta=np.zeros_like(settings.free.beta)),
            fixed=settings.fixed._replace(beta=np.exp(level)),
        )
        return self._replace(mean=advance(Side(posterior, settings, found)), noise=noise)

    @property
    def minimum(self):
        """Joint minimum of both networks, with its evidence (MacKay 1992, equation 6.1).

        The minimum of the means, whose ``noise`` is the minimum of the noise network.
        """
        mean, noise = self.mean.found, self.noise.found
        biases = noise.groups.labels == len(noise.groups.names) - 1
        pull = 0.5 * noise.hyper.alpha[-1] * np.sum(noise.theta[biases] ** 2)
        terms = NoiseNetworkTerms(
            **vars(mean.terms),
            noise_weight_prior=noise.terms.weight_prior + float(pull),  # flat for the biases
            noise_log_det=noise.terms.log_det,
            noise_symmetry=noise.terms.symmetry,
            noise_weight_precision_occam=noise.terms.weight_precision_occam,
        )
        return replace(
            mean,
            terms=terms,
            noise=noise,
            converged=mean.converged and noise.converged,
            trouble=mean.trouble or (noise.trouble and Trouble.NOISE_NETWORK),
            n_iter=self.n_iter,
        )


def in_turns(pair, advance, most, tol):
    """Advance both networks in at most some rounds, until the noise moves by less than ``tol``.

    Returns the pair, and the root mean square of the last change of log precisions.
    """
    moved, weight = np.inf, pair.mean.posterior.sample_weight
    for _ in range(most):
        before, pair = pair.noise.outputs(), pair.round(advance)
        change = pair.noise.outputs() - before
        moved = np.sqrt(np.max(weight @ change**2) / weight.sum())
        if moved < tol or pair.out_of_time:
            break
    return pair, moved


def train_with_noise(pair, tol=ROUGH, tol_factor=ROUGH_TOL, n_rounds=ROUNDS):
    """Train both networks in turns until the noise has settled (MacKay 1992, chapter 6)."""
    most = EARLY_ROUNDS if pair.early else n_rounds
    return in_turns(pair, partial(Side.trained, tol_factor=tol_factor), most, tol)[0]


def settle(pair):
    """Converge both networks to their minima, in turns; return the minimum of the means.

    Its ``noise`` is the minimum of the noise network.
    """
    if pair.early:
        return pair.round(Side.completed).minimum
    pair = train_with_noise(pair, SETTLED, 1.0).round(Side.completed)
    for refine, most in ((True, 0 if pair.out_of_time else REFINING_ROUNDS), (False, MOST_ROUNDS)):
        finish = partial(polish, refine=refine)
        pair, moved = in_turns(pair, partial(Side.completed, finish=finish), most, POLISHED)
    found = pair._replace(mean=pair.mean.integrated(), noise=pair.noise.integrated()).minimum
    return replace(found, converged=found.converged and bool(moved < 100.0 * POLISHED))
