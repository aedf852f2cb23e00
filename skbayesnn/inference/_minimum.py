"""One minimum of the energy: the way to it from trained weights, and its evidence."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from skbayesnn.inference._descent import by_descent
from skbayesnn.inference._evidence import (
    EvidenceTerms,
    alpha_occam,
    log_symmetry,
    noise_occam,
    well_determined,
)
from skbayesnn.inference._gauss_newton import DENSE_LIMIT, is_of_some_rows, n_rows_of_curvature
from skbayesnn.inference._newton import find_large_mode, find_mode
from skbayesnn.inference._polish import Settled, maximise_evidence, reestimate_to_convergence
from skbayesnn.inference._redundancy import layers_switched_off, prune

CHEAP_HESSIAN = 2e9  # rows times squared weights up to which Hessians may be had by the hundred
ASCENT = 20.0  # that of the ascent, which ends with the exact Hessian
FULL = 0.2  # well-determined weights over targets of the curvature, if there are more targets
POLISH_SIZE = 5000  # weights times precisions up to which these are refined after training


@dataclass(frozen=True)
class Minimum:
    """One minimum of ``M(w)`` with its own hyperparameters and its Gaussian approximation.

    Everything is in standardised units.

    Attributes
    ----------
    network : Network
        After pruning.
    groups : WeightGroups
    likelihood : Gaussian, StudentT, Bernoulli or Categorical
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    gaussian : DenseGaussian or None
        Posterior of the weights; ``None`` where there is none.
    terms : EvidenceTerms
    data_errors : ndarray of shape (n_levels,)
        ``E_D`` of every noise level, or ``-G``.
    gamma : ndarray of shape (n_groups,)
    noise_gamma : ndarray of shape (n_levels,)
    noise_counts : ndarray of shape (n_levels,)
        Targets of every noise level; infinite for classifiers.
    gradient_norm : float
    smallest_eigenvalue : float
        Of the exact Hessian.
    pruned : tuple of Pruned
    n_iter : int
    converged : bool
    exact : bool
        Whether the log determinant is that of the exact Hessian.
    problem : str
        Why the evidence is ``nan``; empty otherwise.
    noise : Minimum or None
        Of the noise network, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Settings, find_minima
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> minimum = find_minima(posterior, settings, np.random.SeedSequence(0).spawn(1))[0]
    >>> minimum.log_evidence == minimum.terms.total
    True
    >>> bool(0 < minimum.gamma[0] < 10)
    True
    """

    network: object
    groups: object
    likelihood: object
    theta: np.ndarray
    hyper: object
    gaussian: object
    terms: EvidenceTerms
    data_errors: np.ndarray
    gamma: np.ndarray
    noise_gamma: np.ndarray
    noise_counts: np.ndarray
    gradient_norm: float
    smallest_eigenvalue: float
    pruned: tuple
    n_iter: int
    converged: bool
    exact: bool
    problem: str
    noise: object = None

    @property
    def fits_everything(self):
        """Whether hardly any degree of freedom is left to tell the noise level from."""
        return bool(np.any(self.noise_gamma > 0.9 * self.noise_counts))

    @property
    def log_evidence(self):
        """``log P(D | H)`` of this minimum, all its symmetric copies included; or ``nan``."""
        return np.nan if self.problem else self.terms.total


def complete(posterior, theta, hyper, settings):
    """Take trained weights to a minimum without redundant units, and evaluate its evidence.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    settings : Settings

    Returns
    -------
    Minimum
    """
    pruned, settled = [], None
    while posterior.network.n_weights > DENSE_LIMIT:
        posterior, theta, units = prune(posterior, theta, _noise_sd(posterior, hyper))
        pruned += units
        if settled is not None and not units:
            return evaluate(posterior, settled, settings, tuple(pruned))
        mode = find_large_mode(posterior, theta, hyper)
        theta, settled = mode.theta, Settled(hyper, mode, mode.converged)
    exact, free = settings.exact, settings.free
    tol = ASCENT * settings.tol if posterior.network.hidden_layer_sizes else 1e-9
    settled, to_ascend = None, np.any(free.mask)
    while True:
        posterior, theta, units = prune(posterior, theta, _noise_sd(posterior, hyper))
        pruned += units
        cheap, small = _cheap(posterior), _small(posterior, free)
        max_iter = 100 if cheap else 20
        if units or settled is None:
            mode = find_mode(posterior, theta, hyper, max_iter, tol=1e-6, exact=exact)
            settled = Settled(hyper, mode, mode.converged)
        elif to_ascend and small:
            settled = reestimate_to_convergence(posterior, settled, free, tol=tol)
            to_ascend = False
        else:
            break
        theta, hyper = settled.mode.theta, settled.hyper
    tol = 1e-12 if exact else 1e-8
    mode = find_mode(posterior, theta, hyper, max_iter, tol=tol, exact=exact)
    settled = settled._replace(mode=mode, converged=settled.converged and mode.converged)
    if np.any(free.mask) and small and exact and mode.gaussian is not None:
        settled = maximise_evidence(posterior, settled, free)
    return evaluate(posterior, settled, settings, tuple(pruned))


def polish(posterior, theta, hyper, settings, refine):
    """Follow a minimum to where a small change of the problem has moved it.

    As `complete`, but nothing is deleted, and precisions stay unless ``refine``.
    """
    if posterior.network.n_weights > DENSE_LIMIT:
        mode = find_large_mode(posterior, theta, hyper)
        return evaluate(posterior, Settled(hyper, mode, mode.converged), settings, ())
    exact, free = settings.exact, settings.free
    tol = 1e-12 if exact else 1e-8
    mode = find_mode(posterior, theta, hyper, 30, tol=tol, exact=exact)
    settled = Settled(hyper, mode, mode.converged)
    if (
        refine
        and np.any(free.mask)
        and _small(posterior, free)
        and exact
        and mode.gaussian is not None
    ):
        settled = maximise_evidence(posterior, settled, free)
    return evaluate(posterior, settled, settings, ())


def _cheap(posterior):
    """Whether Hessians may be had by the hundred."""
    work = len(posterior.X) * posterior.network.n_weights**2
    return work <= CHEAP_HESSIAN and not by_descent(posterior)


def _small(posterior, free):
    """Whether precisions are worth refining by evidence gradients."""
    size = posterior.network.n_weights * np.sum(free.mask)
    return _cheap(posterior) and size <= POLISH_SIZE


def _noise_sd(posterior, hyper):
    if not posterior.likelihood.has_noise:
        return 1.0
    return posterior.likelihood.precisions(hyper.beta) ** -0.5


def evaluate(posterior, settled, settings, pruned):
    """Every term of the evidence at a minimum."""
    hyper, mode = settled.hyper, settled.mode
    theta, energies, free = mode.theta, mode.energies, settings.free
    groups, likelihood = posterior.groups, posterior.likelihood
    determined = well_determined(posterior, theta, hyper)
    off = layers_switched_off(posterior, theta, _noise_sd(posterior, hyper))
    symmetry = log_symmetry(posterior.network, groups.labels, off)
    gaussian = mode.gaussian
    log_det = np.nan if gaussian is None else gaussian.log_det
    unknown = determined is None
    counts = posterior.n_rows * likelihood.level_sizes()
    n_groups, n_levels = len(hyper.alpha), likelihood.n_levels
    terms = EvidenceTerms(
        misfit=float(-hyper.beta @ energies.data - energies.excess),
        noise_normaliser=float(likelihood.log_normaliser(hyper.beta, posterior.n_rows)),
        weight_prior=float(
            -hyper.alpha @ energies.weights + 0.5 * groups.sizes @ np.log(hyper.alpha)
        ),
        log_det=-0.5 * log_det,
        symmetry=symmetry,
        weight_precision_occam=np.nan
        if unknown
        else alpha_occam(posterior, theta, hyper, energies, free, determined),
        noise_occam=np.nan
        if unknown
        else noise_occam(posterior, theta, hyper, energies, free, determined),
    )
    problem = ""
    if np.isnan(symmetry):
        problem = "hidden units can be rotated into each other: the minimum is not a point"
    elif gaussian is None:
        problem = "the Hessian is not positive definite"
    elif not mode.converged:
        problem = "the minimum was not reached"
    elif unknown:
        problem = "the curvature is numerically singular"
    elif _exceeds_the_rows(posterior, determined.gamma):
        problem = "the rows of which the curvature takes account are too few for so many weights"
    return Minimum(
        network=posterior.network,
        groups=groups,
        likelihood=likelihood,
        theta=theta,
        hyper=hyper,
        gaussian=gaussian or (None if unknown else determined.gaussian),
        terms=terms,
        data_errors=energies.data,
        gamma=np.full(n_groups, np.nan) if unknown else determined.gamma,
        noise_gamma=np.full(n_levels, np.nan) if unknown else determined.noise_gamma,
        noise_counts=counts if likelihood.has_noise else np.full(n_levels, np.inf),
        gradient_norm=mode.gradient_norm,
        smallest_eigenvalue=_smallest_eigenvalue(mode),
        pruned=pruned,
        n_iter=1,
        converged=settled.converged,
        exact=settings.exact and mode.hessian is not None,
        problem=problem,
    )


def _exceeds_the_rows(posterior, gamma):
    """Whether a curvature of some rows would miss much of what all rows determine."""
    n_targets = n_rows_of_curvature(posterior) * posterior.network.n_outputs
    return is_of_some_rows(posterior) and np.sum(gamma) > FULL * n_targets


def _smallest_eigenvalue(mode):
    """Smallest eigenvalue of ``A``, by inverse Lanczos iterations where that is cheaper."""
    if mode.hessian is None:
        return np.nan
    size = len(mode.theta)
    if mode.gaussian is None or size < 300:
        return float(eigvalsh(mode.hessian, subset_by_index=[0, 0])[0])
    inverse = LinearOperator((size, size), matvec=mode.gaussian.solve, dtype=float)
    start = np.ones(size)
    return float(1.0 / eigsh(inverse, k=1, v0=start, tol=1e-6, return_eigenvectors=False)[0])
