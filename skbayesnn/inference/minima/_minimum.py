"""One minimum of the energy: search from trained weights, and evaluation of its evidence."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.curvature._precision import Precision
from skbayesnn.inference.evidence._ascent import BOLD, WARY, ascend, without_idle_groups
from skbayesnn.inference.evidence._evidence import (
    EvidenceTerms,
    log_symmetry,
    occam_factors,
    well_determined,
)
from skbayesnn.inference.minima._redundancy import layers_switched_off, prune
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.network import Network
from skbayesnn.posterior import Hyperparameters, Likelihood, WeightGroups

ASCENT = 20.0  # tolerance of the first ascent, relative to that of the exact one after it
PRUNING = 1e-6  # nats above the minimum at which redundant units are identified
TO_ROUNDING = 1e-12  # final tolerance in nats, of the energy and the evidence
APPROXIMATELY = 1e-8  # final tolerance with the Gauss-Newton approximation
TRIALS, FEW_TRIALS = 120, 30  # trial steps to a minimum, where Hessians are cheap or not
TRIALS_BENT = 1000  # where Hessians are cheap and the energy has negative curvature near minima


class Trouble(Enum):
    """Reason why a minimum has no evidence."""

    ROTATION = "linear hidden units have no isolated minimum"
    INDEFINITE = "the Hessian is not positive definite"
    NOT_REACHED = "training did not reach the minimum"
    SINGULAR = "the curvature is numerically singular"
    STRUCTURED = "the curvature of so large a network is approximated by Kronecker factors"
    EARLY = "training on many rows ends before the minimum"
    NOISE_NETWORK = "the noise network has no evidence"


OF_SIZE = Trouble.STRUCTURED, Trouble.EARLY  # due to problem size, whatever the search


@dataclass(frozen=True)
class Minimum:
    """One minimum of ``M(w)`` with its hyperparameters and Gaussian approximation.

    All quantities are in standardised units.
    """

    network: Network  # network after pruning
    groups: WeightGroups
    likelihood: Likelihood
    theta: np.ndarray  # (k,)
    hyper: Hyperparameters
    # posterior precision matrix of the weights; None if not positive definite
    precision: Precision | None
    terms: EvidenceTerms
    data_errors: np.ndarray  # (n_levels,), error E_D of every noise level
    gamma: np.ndarray  # (n_groups,), effective number of parameters of every group
    # (n_levels,), effective number of parameters determined by targets of every noise level
    noise_gamma: np.ndarray
    noise_counts: np.ndarray  # (n_levels,), number of targets of every noise level
    gradient_norm: float
    smallest_eigenvalue: float  # of the exact Hessian; nan where training ends before the minimum
    pruned: tuple
    n_iter: int
    converged: bool
    exact: bool  # whether the log determinant uses the exact Hessian
    trouble: Trouble | None  # reason why the evidence is nan
    noise: "Minimum | None" = None  # minimum of the noise network, if there is one

    @property
    def fits_everything(self):
        """True if almost no residual degrees of freedom are left to determine a noise level."""
        return bool(np.any(self.noise_gamma > 0.9 * self.noise_counts))

    @property
    def log_evidence(self):
        """Log evidence of this minimum, including its symmetric copies; ``nan`` if it has none."""
        return self.terms.total if self.trouble is None else np.nan


def complete(posterior, theta, hyper, settings):
    """Move from trained weights to a minimum without redundant units; evaluate its evidence."""
    free = settings.free
    posterior, search, pruned = _pruned(posterior, theta, hyper, settings)
    # the method is chosen again after every pruning, as sizes have changed
    method, settled = Method.choose(posterior, settings), search.converged
    if method.refines and np.any(free.mask) and not settings.deadline.passed:
        tol = ASCENT * settings.tol if posterior.network.hidden_layer_sizes else 1e-9
        found = ascend(posterior, method, search, free, BOLD, tol)  # Gauss-Newton evidence
        search, settled = without_idle_groups(posterior, method, found, free), found.settled
        posterior, search, more = _pruned(posterior, *search.point[:2], settings, search)
        pruned, method = pruned + more, Method.choose(posterior, settings)
    search = _converged(posterior, method, search, settings, refine=True)
    return evaluate(posterior, method, search, settings, pruned, settled)


def polish(posterior, theta, hyper, settings, refine):
    """Find and evaluate the minimum near a given one after a small change of the problem.

    In contrast to `complete`, no units are pruned, and precisions are fixed unless ``refine``.
    """
    method = Method.choose(posterior, settings)
    search = find_mode(posterior, method, theta, hyper, FEW_TRIALS, PRUNING)
    search = _converged(posterior, method, search, settings, refine)
    return evaluate(posterior, method, search, settings, ())


def _pruned(posterior, theta, hyper, settings, search=None):
    """Find the minimum of a network without redundant units, by pruning it repeatedly.

    Returns the posterior of the pruned network, the search at its minimum (the given one,
    unchanged, if no unit is redundant) and a tuple of `Pruned`.
    """
    pruned = ()
    while True:
        tolerance = posterior.likelihood.noise_sd(hyper.beta)
        posterior, theta, units = prune(posterior, theta, tolerance)
        if search is not None and not units:
            return posterior, search, pruned
        pruned, method = pruned + tuple(units), Method.choose(posterior, settings)
        search = find_mode(posterior, method, theta, hyper, _max_trials(posterior, method), PRUNING)
        theta = search.point.theta


def _converged(posterior, method, search, settings, refine):
    """Converge to the minimum up to rounding; with ``refine``, also maximise the evidence."""
    free, (theta, hyper) = settings.free, search.point[:2]
    if method.dense and not method.early:
        tol = TO_ROUNDING if method.exact else APPROXIMATELY
        search = find_mode(posterior, method, theta, hyper, _max_trials(posterior, method), tol)
    refine = refine and method.refines and method.exact and np.any(free.mask)
    if refine and search.point.precision.definite:
        return ascend(posterior, method, search, free, WARY, TO_ROUNDING, max_iter=10).search
    return search


def _max_trials(posterior, method):
    if not method.cheap:
        return FEW_TRIALS
    return TRIALS_BENT if posterior.likelihood.bends else TRIALS


def evaluate(posterior, method, search, settings, pruned, settled=True):
    """Evaluate all terms of the evidence at a minimum.

    ``settled`` is true if its precisions have converged.
    """
    free, groups, likelihood = settings.free, posterior.groups, posterior.likelihood
    point = search.point
    theta, hyper, energies, gradient, precision = point
    determined = well_determined(posterior, method, theta, hyper)
    if determined is not None and not method.exact:
        precision = determined.precision
    off = layers_switched_off(posterior, theta, likelihood.noise_sd(hyper.beta))
    occam = np.nan, np.nan
    if determined is not None:
        occam = occam_factors(posterior, point, free, determined)
    terms = EvidenceTerms(
        misfit=-float(energies.misfit),
        noise_normaliser=float(likelihood.log_normaliser(hyper.beta, posterior.n_rows)),
        weight_prior=float(-hyper.alpha @ energies.weights + groups.log_normaliser(hyper.alpha)),
        log_det=-0.5 * precision.log_det if precision.definite else np.nan,
        symmetry=log_symmetry(posterior.network, groups, off),
        weight_precision_occam=occam[0],
        noise_occam=occam[1],
    )
    usable = precision if precision.definite else determined and determined.precision
    at_minimum = method.dense and not method.early
    eigenvalue = precision.smallest_eigenvalue() if at_minimum else np.nan
    missing = np.full(len(hyper.alpha), np.nan), np.full(len(hyper.beta), np.nan)
    return Minimum(
        network=posterior.network,
        groups=groups,
        likelihood=likelihood,
        theta=theta,
        hyper=hyper,
        precision=usable and usable.condensed(),
        terms=terms,
        data_errors=energies.errors,
        gamma=missing[0] if determined is None else determined.gamma,
        noise_gamma=missing[1] if determined is None else determined.noise_gamma,
        noise_counts=posterior.level_counts,
        gradient_norm=float(np.linalg.norm(gradient)),
        smallest_eigenvalue=eigenvalue,
        pruned=pruned,
        n_iter=1,
        converged=bool(settled and search.converged),
        exact=method.exact,
        trouble=_trouble(method, search, terms, determined),
    )


def _trouble(method, search, terms, determined):
    if np.isnan(terms.symmetry):
        return Trouble.ROTATION
    if not method.has_evidence:
        return Trouble.EARLY if method.early else Trouble.STRUCTURED
    if np.isnan(terms.log_det):
        return Trouble.INDEFINITE
    if not search.converged:
        return Trouble.NOT_REACHED
    return Trouble.SINGULAR if determined is None else None


def total_log_evidence(minima):
    """Log of the summed evidence of minima; ``nan`` if none has an evidence."""
    evidences = np.array([m.log_evidence for m in minima])
    known = ~np.isnan(evidences)
    return float(logsumexp(evidences[known])) if known.any() else np.nan


def gaussian_around(posterior, minimum, settings):
    """Recompute the precision of the weights at a minimum that its evidence was evaluated with.

    It is the exact Hessian if formed and positive definite, else its Gauss-Newton approximation
    (MacKay 1992, section 3.A; Bishop 2006, equation 5.167). Fits do not store these matrices: there
    is one per minimum, and most of them are never used.

    The posterior has the network, likelihood and noise of the minimum, see `own_posterior`. Returns
    the `Precision`, ``None`` if the curvature is numerically singular, and whether it is the exact
    Hessian.
    """
    method, at = Method.choose(posterior, settings), (minimum.theta, minimum.hyper)
    with method.threads():
        if method.exact:
            precision = method.point(posterior, *at, exact=True).precision
            if precision.definite:
                return precision, True
        precision = method.gauss_newton(posterior, *at).precision
    return (precision if precision.definite else None), False
