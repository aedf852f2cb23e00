"""Choice of the numerical method of a search, from problem size and settings, and its memory."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse.linalg import LinearOperator, cg

from skbayesnn._progress import NEVER, Deadline
from skbayesnn._threads import blas_threads, one_blas_thread
from skbayesnn.inference.curvature._precision import DensePrecision, Precision
from skbayesnn.inference.curvature._precision_dual import DualPrecision
from skbayesnn.inference.curvature._precision_kronecker import KroneckerPrecision
from skbayesnn.network import (
    BLOCK_DOUBLES,
    curvature_product,
    forward,
    hessian_width,
    jacobian_vector,
    vector_jacobian,
)
from skbayesnn.posterior import Energies, Hyperparameters

MAX_PROBES, ENOUGH_SIGNS = 8, 8000  # random signs; the error of a trace is about sqrt(2 / signs)
MIN_ROWS, MAX_ROWS = 1024, 4096  # rows of the sample that is used
ROWS_PER_WEIGHT = 4  # rows of the sample for every weight, within these bounds
DOUBLES = 2e5  # largest number of doubles of the outputs on the sample
TOLERANCE, MAX_ITERATIONS = 1e-2, 80  # of conjugate gradients, relative to the right-hand side
# weights up to which a dense matrix of the sample is faster (.06 s, iterations .8 s for 499 weights
# and three classes; .4 and 2.8 s for 1,002 weights and ten classes)
MAX_OF_SAMPLE = 1000
NOTHING_PER_ROW = 1e-4  # difference of M per row (nats) without effect on predictions
FIXED = 2**20  # bytes of small arrays and objects
ROW_COPIES = 6  # copies of X and y: given, sorted, distinct, standardised, temporary
PER_UNIT = 5  # doubles per row and unit: activations, their derivatives, back-propagated ones
JACOBIANS = 2  # Jacobians of a block of training rows, for predictions at the end
MAX_OF_ROOT = 3000  # weights up to which a factor replaces a dual form that is lost in rounding
MATRICES = 6  # matrices of the size of a Hessian during its assembly, factorisation, inverse


class Curvature(Enum):
    """Representation of the curvature matrix in training steps and error bars."""

    DENSE = "Gauss-Newton curvature"
    DUAL = "Gauss-Newton curvature in dual form, as weights outnumber the targets"
    KRONECKER = "Gauss-Newton curvature of every layer in Kronecker factors"


class Point(NamedTuple):
    """Current point of a search, with energies and derivatives."""

    theta: np.ndarray  # (k,)
    hyper: Hyperparameters
    energies: Energies
    gradient: np.ndarray  # (k,)
    precision: Precision  # A at theta, exact or Gauss-Newton

    @property
    def energy(self):
        """Energy ``M(w)``, minus the log posterior density up to a constant."""
        return float(self.energies.total(self.hyper))


@dataclass(frozen=True)
class Method:
    """Numerical method of a search: curvature, training algorithm, exactness of the evidence."""

    curvature: Curvature  # form of the curvature in training steps
    dense: bool  # whether the exact Hessian is formed at the minimum
    exact: bool  # whether the log determinant in the evidence uses the exact Hessian
    by_gradients: bool  # whether training uses gradients, with one curvature for each re-estimation
    by_batches: bool  # whether these are gradients of batches of rows
    # whether training of a large network on many rows uses early stopping: its weights are not at a
    # minimum, and have no evidence
    early: bool
    cheap: bool  # whether a fit can use hundreds of Hessians
    profiled: bool  # whether the evidence can be evaluated along a precision
    refines: bool  # whether precisions are refined by the gradient of the evidence
    n_rows: int
    n_weights: int
    deadline: Deadline = NEVER  # deadline of the search

    @classmethod
    def choose(cls, posterior, settings):
        """Choose the method for the network and rows of a posterior by the `Limits` of settings."""
        network, limits = posterior.network, settings.limits
        n, k, n_outputs = len(posterior.X), network.n_weights, network.n_outputs
        hidden, targets, work = bool(network.hidden_layer_sizes), n * n_outputs, n * k**2
        likelihood, n_features = posterior.likelihood, network.layer_sizes[0]
        softmax = n_outputs > 1 and likelihood.classes
        many_rows = hidden and limits.many_rows(likelihood, n, n_features, n_outputs)
        dense = k <= limits.dense and work <= limits.dense_work
        # rows from which Laplace's approximation is accurate; more of them if Hessians take long
        enough_rows = limits.batch_rows_per_weight * k
        accurate = n >= enough_rows and n * limits.cheap_work >= enough_rows * work
        early = many_rows and not (dense and accurate)
        # for a close fit of classes Levenberg-Marquardt steps become very small
        small_steps = hidden and softmax and work > limits.softmax_work
        on_batches = small_steps and n >= limits.softmax_rows_per_weight * k
        batches_fit_noise = small_steps and not on_batches and n < limits.batch_rows
        dense &= not early or (work <= limits.early_work and not on_batches)
        faster_from = limits.dual * max(targets, limits.dual_targets)
        dual_is_faster = k > (faster_from if dense else min(limits.dual, 1.0) * targets)
        dual = dual_is_faster and not early and targets**2 * k <= limits.dual_work
        # without hidden layers the Hessian is the Gauss-Newton matrix, but for Student-t noise
        dense &= hidden or not dual or k <= limits.dense_linear
        curvature = Curvature.DUAL if dual else Curvature.DENSE
        if not (dense or dual):
            curvature = Curvature.KRONECKER
        by_gradients = curvature is Curvature.KRONECKER or (dense and small_steps)
        if posterior.groups.coupled:  # no other form holds a matrix of the prior
            dense, curvature, by_gradients, early = True, Curvature.DENSE, False, False
        exact = dense and settings.exact and not early
        cheap = dense and not early and work <= limits.cheap_work and not by_gradients
        n_free = int(np.sum(settings.free.mask))
        return cls(
            curvature=curvature,
            dense=dense,
            exact=exact,
            by_gradients=by_gradients,
            by_batches=many_rows and curvature is Curvature.KRONECKER and not batches_fit_noise,
            early=early,
            cheap=cheap,
            profiled=cheap and exact and work * n_free <= limits.profile_work,
            refines=cheap and k * n_free <= limits.refined,
            n_rows=n,
            n_weights=k,
            deadline=settings.deadline,
        )

    def __str__(self):
        training = "gradients of batches" if self.by_batches else "gradients"
        training = training if self.by_gradients else f"steps with {self.curvature.value}"
        minima = "exact Hessian" if self.exact else Curvature.DENSE.value
        if not self.dense:
            minima = self.curvature.value
        none = "" if self.has_evidence else ", no evidence"
        return (
            f"{self.n_rows} rows, {self.n_weights} weights: training by {training}, "
            f"{minima} at the minima{none}"
        )

    @property
    def resolution(self):
        """Differences of ``M`` (nats) that are negligible: zero if there is an evidence."""
        return 0.0 if self.has_evidence else NOTHING_PER_ROW * self.n_rows

    @property
    def has_evidence(self):
        """True if log determinants are accurate enough for an evidence."""
        return not (self.early or self.curvature is Curvature.KRONECKER)

    def threads(self):
        """Context manager that sets the efficient number of BLAS threads."""
        return one_blas_thread() if self.by_gradients else blas_threads(self.n_weights)

    def point(self, posterior, theta, hyper, exact=False):
        """Evaluate a `Point` with the curvature of training steps or the ``exact`` Hessian.

        The weights ``theta`` (k,) and precisions ``hyper`` are those of one network.
        """
        if exact or self.curvature is Curvature.DENSE:
            energies, gradient, hessian = posterior.expansion(theta, hyper, exact)
            precision = DensePrecision(hessian)
            by_rounding = self.loses_definiteness(posterior, exact) and not posterior.groups.coupled
        else:
            energies, gradient = posterior.energies_and_gradient(theta, hyper)
            if self.curvature is Curvature.KRONECKER:
                precision = KroneckerPrecision(posterior.kronecker_factors(theta, hyper))
            else:
                S = np.concatenate(list(posterior.weighted_jacobians(theta, hyper)))
                precision = DualPrecision(posterior.groups.diagonal(hyper.alpha), S)
            by_rounding = self.n_weights <= MAX_OF_ROOT
        if not precision.definite and by_rounding:
            roots = posterior.weighted_jacobians(theta, hyper)
            precision = DensePrecision.of_roots(posterior.groups.diagonal(hyper.alpha), roots)
        return Point(theta, hyper, energies, gradient, precision)

    def gauss_newton(self, posterior, theta, hyper):
        """Evaluate a `Point` with the Gauss-Newton ``A``, dense where such matrices are formed."""
        method = replace(self, curvature=Curvature.DENSE) if self.dense else self
        return method.point(posterior, theta, hyper)

    def determined(self, posterior, point):
        """Effective number of parameters of every group (MacKay 1992, equation 2.23).

        The point has the Gauss-Newton ``A``; the result has shape (n_groups,). Kronecker factors
        overestimate it. Small networks form a dense ``A`` instead, on a sample of the rows, for
        larger ones it is scaled to the sum `total_determined`.
        """
        groups, (theta, hyper) = posterior.groups, point[:2]
        gamma = point.precision.determined(groups, hyper.alpha)
        if self.curvature is not Curvature.KRONECKER:
            return gamma
        sample = sampled(posterior)
        if self.n_weights <= MAX_OF_SAMPLE:
            matrix = sample.hessian(theta, hyper, exact=False)
            return DensePrecision(matrix).determined(groups, hyper.alpha)
        return gamma * (total_determined(sample, point, self.deadline) / gamma.sum())

    def traces(self, posterior, ends, hyper, precision, exact=False):
        """Traces ``Tr(B^-1 A)`` with the ``exact`` or Gauss-Newton ``A`` at ``ends``, (h,).

        ``B`` is the ``precision``.
        """
        if exact or self.curvature is Curvature.DENSE:
            return posterior.traces(ends, hyper, precision.covariance(), exact)
        points = (self.point(posterior, end, hyper) for end in ends)
        return np.array([point.precision.trace_under(precision) for point in points])

    @staticmethod
    def loses_definiteness(posterior, exact):
        """Return True if an indefinite matrix can only be due to rounding."""
        linear = not posterior.network.hidden_layer_sizes
        return not exact or (linear and posterior.likelihood.one_curvature)


def sampled(posterior):
    """Posterior of a sample of the rows that counts as much as all of them."""
    n, k = len(posterior.X), posterior.network.n_weights
    rows = min(MAX_ROWS, max(MIN_ROWS, ROWS_PER_WEIGHT * k))
    rows = min(n, rows, int(np.ceil(DOUBLES / posterior.network.n_outputs)))
    sample = posterior.of_rows(np.random.default_rng(0).choice(n, rows, replace=False))
    return sample.scaled(posterior.n_rows / sample.n_rows)


def total_determined(posterior, point, deadline=NEVER):
    """Effective number of parameters ``gamma`` of one network (MacKay 1992, equation 2.23).

    In ``gamma = k - Tr(diag(alpha) A^-1)`` the trace is the mean of ``b^T A^-1 b``, ``b =
    diag(alpha)^(1/2) z``, over random signs ``z`` (Hutchinson 1990). ``A^-1 b`` is found by
    conjugate gradients, preconditioned by the Kronecker-factored curvature. That curvature on its
    own assumes inputs and derivatives to be independent, and overestimates ``gamma`` by half.

    The posterior has a sample of the rows, the point a `KroneckerPrecision`. After the deadline one
    vector ``z`` has to do.
    """
    k, rng, likelihood = len(point.theta), np.random.default_rng(0), posterior.likelihood
    trace = forward(posterior.network, point.theta, posterior.X, order=1)
    beta, alpha = point.hyper.beta, posterior.groups.diagonal(point.hyper.alpha)
    _, curvature = likelihood.derivatives(trace.outputs, posterior.targets(), beta, exact=False)

    def times_matrix(vector):
        moved = jacobian_vector(trace, vector)[..., None]
        moved = curvature_product(curvature, moved)[..., 0]
        return vector_jacobian(trace, moved) + alpha * vector

    A = LinearOperator((k, k), matvec=times_matrix, dtype=float)
    near = LinearOperator((k, k), matvec=point.precision.solve, dtype=float)
    n_probes, found = min(MAX_PROBES, -(-ENOUGH_SIGNS // k)), []
    while len(found) < n_probes and not (found and deadline.passed):
        b = np.sqrt(alpha) * rng.choice([-1.0, 1.0], k)
        found.append(b @ cg(A, b, rtol=TOLERANCE, maxiter=MAX_ITERATIONS, M=near)[0])
    return k - np.mean(found)


def memory_of_search(posterior, settings, n_starts, n_jobs=None):
    """Estimate the peak memory of `find_minima` in bytes, summed over all processes.

    The estimate is within a factor of two if no units are pruned. A noise network is not counted.
    """
    method, network = Method.choose(posterior, settings), posterior.network
    n, k, roots = len(posterior.X), network.n_weights, len(posterior.X) * network.n_outputs
    n_processes = min(effective_n_jobs(n_jobs), max(n_starts, 1))
    sizes, width = network.layer_sizes, hessian_width(network)
    factors = sum(rows**2 + columns**2 for rows, columns in network.shapes)
    jacobians = JACOBIANS * min(roots * k, BLOCK_DOUBLES)
    form = {  # doubles of one curvature, further doubles of a step, and doubles of predictions
        Curvature.DENSE: (k**2, MATRICES * k**2, jacobians),
        Curvature.DUAL: (roots * k, 4 * roots * k + MATRICES * roots**2, jacobians),
        Curvature.KRONECKER: (factors, MATRICES * factors + 50 * k, 0),
    }
    one, besides, predicted = form[method.curvature]
    traces = PER_UNIT * sum(sizes) * min(n, BLOCK_DOUBLES // max(sizes) + 1)
    minimum = 0.0
    if method.dense:
        minimum = (PER_UNIT * sum(sizes) + width) * min(n, BLOCK_DOUBLES // width + 1)
        minimum += MATRICES * k**2
    kept = 2 * n_starts * (k**2 if method.dense else one)
    rows = ROW_COPIES * n * (posterior.X.shape[1] + posterior.y.shape[1])
    doubles = (rows + max(traces + one + besides, minimum, predicted)) * n_processes + kept
    return FIXED * n_processes + 8.0 * doubles
