"""Laplace engine: minima of one network, each with its evidence (MacKay 1992)."""

from dataclasses import dataclass, field, replace

import numpy as np

from skbayesnn.inference.minima._minimum import total_log_evidence
from skbayesnn.inference.minima._search import distinct, find_minima
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._noise_search import continuing, p_values_of, search_under_noise
from skbayesnn.inference.task._problem import Fit

# hidden layers: the first with many targets per weight, where Laplace's approximation is accurate
SIZES = (8,), (4,), (2,), ()


@dataclass(frozen=True, kw_only=True)
class EvidenceFit(Fit):
    """Result of the evidence engine, by Laplace's approximation."""

    minima: list  # in descending order of evidence
    others: list = field(default_factory=list)  # pairs as in `pool`, of other models
    unmeasured: str = ""  # why networks were drawn and do not predict

    log_evidence_std = np.nan  # not estimated

    @property
    def log_evidence(self):
        """Log evidence by Laplace's approximation, summed over minima; ``nan`` if none has one."""
        return total_log_evidence(self.minima) + self.problem.log_scale

    @property
    def best(self):
        """Minimum of highest evidence."""
        return self.minima[0]

    @property
    def pool(self):
        """Pairs of posteriors and minima: those of the chosen network, then ``others``."""
        return [*((self.posed.posterior, minimum) for minimum in self.minima), *self.others]

    @property
    def typical_prior(self):
        """Prior at the best minimum, see `draw_prior`."""
        return self.best.network, self.best.groups, self.best.hyper.alpha[None]

    def without_matrices(self):
        """Copy of the fit without the precision matrices of its minima."""
        others = [(posterior, without_matrices(minimum)) for posterior, minimum in self.others]
        minima = [without_matrices(m) for m in self.minima]
        return replace(self, minima=minima, others=others)


def without_matrices(minimum):
    """Copy of a minimum without its precision matrices."""
    noise = minimum.noise and replace(minimum.noise, precision=None)
    return replace(minimum, precision=None, noise=noise)


def seeds_of(entropy, hidden_layer_sizes, n_starts):
    """Seeds of the random starts; a single one without hidden layers."""
    return np.random.SeedSequence(entropy).spawn(n_starts if hidden_layer_sizes else 1)


def fit_by_laplace(problem, hidden_layer_sizes, noise, entropy, n_restarts, previous, workers):
    """Find the minima of one network, each with its evidence by Laplace's approximation.

    ``hidden_layer_sizes`` and ``noise``, one of `NOISE_MODELS`, may be ``"auto"``.
    """
    if hidden_layer_sizes == "auto":
        hidden_layer_sizes = next(sizes for sizes in SIZES if has_enough_targets(problem, sizes))
    fit = of_network(problem, hidden_layer_sizes, entropy, n_restarts, previous, workers)
    return under_noise(fit, "constant" if noise == "auto" else noise, previous, workers)


def has_enough_targets(problem, hidden_layer_sizes):
    """Return True if Laplace's approximation is accurate for a network, as for a linear model."""
    few = problem.limits.few_targets(problem.posed(hidden_layer_sizes).posterior)
    return not (hidden_layer_sizes and few)


def of_network(problem, hidden_layer_sizes, entropy, n_restarts, previous, workers):
    """Fit one network under constant noise, from all starts."""
    posed = problem.posed(hidden_layer_sizes)
    old = continuing("constant", problem, posed, previous)
    seeds = seeds_of(entropy, hidden_layer_sizes, n_restarts)[len(old) :]  # of the old minima
    minima = distinct(find_minima(*posed, seeds, old, workers=workers))
    return EvidenceFit(problem=problem, posed=posed, minima=minima)


def under_noise(fit, noise, previous, workers):
    """Continue a fit under constant noise with a given noise model."""
    if NOISE_MODELS[noise].plain:
        return replace(fit, noise=noise, noise_p_values=p_values_of(fit))
    posed, minima = search_under_noise(noise, fit, previous, workers)
    return replace(fit, posed=posed, minima=minima, others=[], noise=noise)
