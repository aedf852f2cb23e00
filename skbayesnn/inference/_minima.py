"""From data to the distinct minima of a model, each with its evidence."""

from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from skbayesnn._threads import blas_threads, one_blas_thread
from skbayesnn.inference._degrees_of_freedom import best_degrees_of_freedom
from skbayesnn.inference._descent import by_descent, train_by_descent
from skbayesnn.inference._evidence import (
    EvidenceTerms,
    alpha_occam,
    log_symmetry,
    noise_occam,
    well_determined,
)
from skbayesnn.inference._gauss_newton import DENSE_LIMIT
from skbayesnn.inference._linear import linear_start, scannable
from skbayesnn.inference._newton import find_large_mode, find_mode
from skbayesnn.inference._noise_network import Pair, settle, train_with_noise, with_rows
from skbayesnn.inference._polish import Settled, maximise_evidence, reestimate_to_convergence
from skbayesnn.inference._redundancy import layers_switched_off, prune, same_minimum
from skbayesnn.inference._training import random_starts, train
from skbayesnn.inference._widening import widened
from skbayesnn.network import outputs

BATCH_DOUBLES = 2**22  # numbers that the Hessians of networks trained together may hold
CHEAP_HESSIAN = 2e9  # rows times squared weights up to which Hessians may be had by the hundred
NOISE_MINIMA = 2  # pairs of means and noise that are taken to their minima
IMPROBABLE = 10.0  # nats below the best at which minima of other than plain noise are dropped
POLISH_SIZE = 5000  # weights times precisions up to which these are refined after training
UNDER_CONSTANT_NOISE = 300.0  # tolerance of that training, over the usual one


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


def find_minima(posterior, settings, seeds, previous=(), narrower=None, n_jobs=None, progress=None):
    """Train from several starts and return the distinct minima, best evidence first.

    Parameters
    ----------
    posterior : Posterior
    settings : Settings
    seeds : list of numpy.random.SeedSequence
        One per random start.
    previous : sequence of Minimum
        Minima of an earlier fit to continue from, besides the random starts.
    narrower : Minimum, optional
        Of a network of the same depth, no layer of which is wider: the start from the last seed is
        this network with random units added.
    n_jobs : int, optional
        Processes of joblib.
    progress : callable, optional
        Called with lines of text.

    Returns
    -------
    list of Minimum
    """
    tasks = [delayed(_continued)(posterior, old, settings, progress) for old in previous]
    if seeds:
        rngs = [np.random.default_rng(seed) for seed in seeds]
        theta, hyper = random_starts(posterior, rngs)
        if narrower is not None:
            theta[-1] = widened(narrower, posterior.network, rngs[-1])
            hyper.alpha[-1], hyper.beta[-1] = narrower.hyper
        together = max(1, BATCH_DOUBLES // posterior.network.n_weights**2)
        together = min(together, -(-len(seeds) // effective_n_jobs(n_jobs)))
        slices = [slice(i, i + together) for i in range(0, len(seeds), together)]
        chunks = [(posterior, theta[s], hyper.select(s), settings, progress) for s in slices]
        if settings.noise_plan is None:
            tasks += [delayed(_trained)(*chunk) for chunk in chunks]
        else:
            chunks = [(*chunk, seeds[s]) for chunk, s in zip(chunks, slices, strict=True)]
            several = Parallel(n_jobs=n_jobs)(delayed(_with_noise)(*chunk) for chunk in chunks)
            pairs = sorted((p for some in several for p in some), key=Pair.rough_evidence)
            best = pairs[: -NOISE_MINIMA - 1 : -1]
            tasks += [delayed(_settled)(posterior, pair, progress) for pair in best]
    found = Parallel(n_jobs=n_jobs)(tasks)
    minima = distinct([minimum for some in found for minimum in some])
    if settings.noise_plan is not None or not posterior.likelihood.linear:
        # in a mixture for the sake of its wide tails it would spoil means and noise levels
        minima = [m for m in minima if not m.log_evidence < minima[0].log_evidence - IMPROBABLE]
    if not posterior.likelihood.linear:
        tasks = [delayed(_over_degrees_of_freedom)(posterior, m, settings) for m in minima]
        minima = distinct(Parallel(n_jobs=n_jobs)(tasks))
    return minima


def distinct(minima):
    """Drop minima that repeat a better one up to symmetry; best evidence first, ``nan`` last."""
    ranked = sorted(
        minima, key=lambda m: (np.isnan(m.log_evidence), -np.nan_to_num(m.log_evidence))
    )
    kept = []
    for minimum in ranked:
        if not any(
            np.isnan(minimum.log_evidence) == np.isnan(other.log_evidence) and _same(minimum, other)
            for other in kept
        ):
            kept.append(minimum)
    return kept


def _same(minimum, other):
    """Whether two minima are one up to symmetry, those of their noise networks included."""
    if minimum is None or other is None:
        return minimum is other
    same = minimum.network == other.network
    same = same and same_minimum(minimum.network, minimum.theta, other.theta)
    return same and _same(minimum.noise, other.noise)


def _trained(posterior, theta, hyper, settings, progress):
    """Train some networks together, then complete each."""
    with one_blas_thread() if by_descent(posterior) else blas_threads(theta.shape[1]):
        minima = []
        if scannable(posterior):
            hyper = linear_start(posterior, settings).repeated(len(theta))
            theta = np.zeros_like(theta)  # no random numbers: the weights' minimum is unique
        for trained in _training(posterior, theta, settings.with_fixed(hyper), settings, progress):
            minimum = complete(posterior, trained.theta, trained.hyper, settings)
            minima.append(replace(minimum, n_iter=int(trained.n_iter)))
            _tell(progress, minima[-1])
    return minima


def _with_noise(posterior, theta, hyper, settings, progress, seeds):
    """Train some networks roughly under constant noise, then each with a noise network."""
    hyper = settings.with_fixed(hyper)
    rough = settings._replace(tol=UNDER_CONSTANT_NOISE * settings.tol)
    with blas_threads(theta.shape[1]):
        several = _training(posterior, theta, hyper, rough, progress)
        return [
            train_with_noise(Pair.start(posterior, trained, settings, seed))
            for trained, seed in zip(several, seeds, strict=True)
        ]


def _settled(posterior, pair, progress):
    """Complete both networks of a pair."""
    with blas_threads(posterior.network.n_weights):
        minimum = settle(pair, complete, polish)
    _tell(progress, minimum)
    return [minimum]


def _training(posterior, theta, hyper, settings, progress):
    """Networks one by one after training, by the method that suits their size."""
    if by_descent(posterior):
        for i in range(len(theta)):
            yield train_by_descent(posterior, theta[i], hyper.select(i), settings, progress)
    else:
        yield from train(posterior, theta, hyper, settings, progress).networks()


def _over_degrees_of_freedom(posterior, minimum, settings):
    """The minimum of Student-t noise at the best degrees of freedom."""

    def at(degrees_of_freedom, start):
        likelihood = replace(posterior.likelihood, degrees_of_freedom=degrees_of_freedom)
        own = replace(own_posterior(posterior, start), likelihood=likelihood)
        # user's noise levels are standard deviations, their precisions those of the scale
        ratio = likelihood.variance_factor / posterior.likelihood.variance_factor
        fixed = settings.fixed._replace(beta=settings.fixed.beta * ratio)
        there = settings._replace(fixed=fixed)
        found = complete(own, start.theta, there.with_fixed(start.hyper), there)
        return replace(found, pruned=start.pruned + found.pruned)

    with blas_threads(minimum.network.n_weights):
        return best_degrees_of_freedom(minimum, at)


def _continued(posterior, old, settings, progress):
    """Take the minimum of an earlier fit to the nearest one for the present data.

    The old precisions are kept if their evidence is higher than that of the re-estimated ones.
    """
    if settings.noise_plan is not None:
        pair = Pair.resume(own_posterior(posterior, old), old, settings)
        return _settled(posterior, pair, progress)
    posterior = posterior.with_network(old.network, old.groups.labels)
    hyper = settings.with_fixed(old.hyper)
    with blas_threads(old.network.n_weights):
        moved = complete(posterior, old.theta, hyper, settings)
        mode = find_mode(posterior, old.theta, hyper, exact=settings.exact)
        stayed = _evaluate(posterior, Settled(hyper, mode, mode.converged), settings, ())
    best = distinct([moved, stayed])[:1]
    _tell(progress, best[0])
    return best


def own_posterior(posterior, minimum):
    """The posterior with the layout, the degrees of freedom and the noise of a minimum."""
    own = posterior.with_network(minimum.network, minimum.groups.labels)
    if minimum.noise is None:
        return replace(own, likelihood=minimum.likelihood)
    log_precision = outputs(minimum.noise.network, minimum.noise.theta, posterior.X)
    return with_rows(own, log_precision)[0]


def _tell(progress, minimum):
    if progress is not None:
        progress(
            f"start completed: log evidence {minimum.log_evidence:.2f} (standardised targets), "
            f"{minimum.n_iter} iterations, {len(minimum.pruned)} units pruned"
        )


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
    if posterior.network.n_weights > DENSE_LIMIT:
        mode = find_large_mode(posterior, theta, hyper)
        return _evaluate(posterior, Settled(hyper, mode, mode.converged), settings, ())
    exact, free = settings.exact, settings.free
    tol = 100.0 * settings.tol if posterior.network.hidden_layer_sizes else 1e-9
    pruned, settled = [], None
    to_ascend = np.any(free.mask)
    while True:
        posterior, theta, units = prune(posterior, theta, _noise_sd(posterior, hyper))
        pruned += units
        k = posterior.network.n_weights
        cheap = len(posterior.X) * k**2 <= CHEAP_HESSIAN and not by_descent(posterior)
        small = cheap and k * np.sum(free.mask) <= POLISH_SIZE
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
    return _evaluate(posterior, settled, settings, tuple(pruned))


def polish(posterior, theta, hyper, settings, refine):
    """Follow a minimum to where a small change of the problem has moved it.

    As `complete`, but nothing is deleted, and precisions stay unless ``refine``.
    """
    if posterior.network.n_weights > DENSE_LIMIT:
        return complete(posterior, theta, hyper, settings)
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
    return _evaluate(posterior, settled, settings, ())


def _small(posterior, free):
    """Whether precisions are worth refining by evidence gradients."""
    k = posterior.network.n_weights
    cheap = len(posterior.X) * k**2 <= CHEAP_HESSIAN and not by_descent(posterior)
    return cheap and k * np.sum(free.mask) <= POLISH_SIZE


def _noise_sd(posterior, hyper):
    if not posterior.likelihood.has_noise:
        return 1.0
    return posterior.likelihood.precisions(hyper.beta) ** -0.5


def _evaluate(posterior, settled, settings, pruned):
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
