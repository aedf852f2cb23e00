"""Gauss-Newton curvature of the energy in several forms, and steps that follow bent valleys."""

from dataclasses import replace

import numpy as np

from skbayesnn.inference._gaussian import DenseGaussian, DualGaussian, KroneckerGaussian

DENSE_LIMIT = 3000  # weights up to which matrices of that size are formed and factored throughout
DUAL_FROM = 2.0  # weights over targets from which the dual form is faster
MOST_ROOTS = 4000  # targets of which the dual form takes account
ROOT_DOUBLES = 2**27  # numbers that the matrix of their weighted derivatives may hold
OVERFULL = 0.5  # well-determined weights over targets from which these cannot stand for more
MOST_BENT = 0.75  # twice the acceleration over the step at which more damping is needed


def gauss_newton_forms(posterior, theta, hyper):
    """Gradient of the energy and Gauss-Newton posteriors, for a batch of networks.

    The dual form serves where there are more than `DUAL_FROM` weights for each target; and for
    networks so large that it would serve with `MOST_ROOTS` targets, although there are more. The
    curvature is then that of some of the rows (Byrd et al. 2011), see `rows_of_curvature`; where
    these are too few for what they determine, it is that of all rows in Kronecker factors. The
    gradient is always that of all.

    Returns
    -------
    gradient : ndarray of shape (n_networks, k)
    curvature : list of DenseCurvature, DualCurvature or KroneckerCurvature
        One per network.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import gauss_newton_forms
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, Posterior, weight_groups
    >>> network = Network((1, 1))
    >>> X, y = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]])
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(2))
    >>> hyper = Hyperparameters(alpha=np.array([[0.1]]), beta=np.array([[4.0]]))
    >>> gradient, (curvature,) = gauss_newton_forms(posterior, np.array([[2.0, 1.0]]), hyper)
    >>> gradient
    array([[0.2, 0.1]])
    >>> curvature.gaussian().variances().round(2)
    array([0.47, 0.24])
    """
    if _form(posterior) is DualCurvature:
        gradient = posterior.gradient(theta, hyper)
        alphas = posterior.groups.expand(hyper.alpha)
        roots = rows_of_curvature(posterior).weighted_jacobian(theta, hyper)
        forms = [DualCurvature(a, S) for a, S in zip(alphas, roots, strict=True)]
        if is_of_some_rows(posterior):
            forms = [
                KroneckerCurvature(posterior.kronecker_factors(theta[i], hyper.select(i)))
                if form.determined() > OVERFULL * len(form.S)
                else form
                for i, form in enumerate(forms)
            ]
        return gradient, forms
    pairs = [  # one by one: the arrays of one network fit into the processor's cache
        posterior.gradient_and_hessian(theta[i], hyper.select(i)) for i in range(len(theta))
    ]
    return np.stack([g for g, _ in pairs]), [DenseCurvature(A) for _, A in pairs]


def serves_dual(posterior):
    """Whether the dual form of the curvature is the faster one."""
    network = posterior.network
    n_roots = min(len(posterior.X) * network.n_outputs, MOST_ROOTS)
    return DUAL_FROM * n_roots < network.n_weights


def n_rows_of_curvature(posterior):
    """How many of the rows the dual form of the curvature takes account of."""
    network = posterior.network
    n_roots = min(MOST_ROOTS, ROOT_DOUBLES // network.n_weights)
    return min(len(posterior.X), max(1, n_roots // network.n_outputs))


def is_of_some_rows(posterior):
    """Whether the curvature takes account of some of the rows alone."""
    return serves_dual(posterior) and n_rows_of_curvature(posterior) < len(posterior.X)


def rows_of_curvature(posterior):
    """Evenly spaced rows that stand for all where these are too many for the dual form.

    Every one counts as many times as there are rows in its place. The curvature is right on
    average; directions that fewer than all rows do not determine keep the width of the prior, and
    so ``gamma`` and ``log det A`` are too small rather than too large. That is little as long as
    the weights determined are few beside the rows taken (`OVERFULL`).

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    Posterior
        The same if it has few rows.
    """
    n_rows = n_rows_of_curvature(posterior)
    if n_rows == len(posterior.X):
        return posterior
    rows = np.linspace(0, len(posterior.X) - 1, n_rows).round().astype(int)
    counts = posterior.sample_weight[rows]
    return replace(
        posterior,
        X=posterior.X[rows],
        y=posterior.y[rows],
        sample_weight=counts * (posterior.sample_weight.sum() / counts.sum()),
    )


def _form(posterior):
    """The faster form of the curvature."""
    return DualCurvature if serves_dual(posterior) else DenseCurvature


class DenseCurvature:
    """Gauss-Newton ``A`` as a matrix of shape (k, k)."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.diagonal = np.diag(matrix)

    def gaussian(self, damping=0.0):
        """Gaussian with precision ``A + damping diag(A)``; ``None`` if numerically singular."""
        matrix = self.matrix
        if damping:
            matrix = matrix.copy()
            matrix[np.diag_indices(len(matrix))] *= 1.0 + damping
        return DenseGaussian.from_precision(matrix)

    def quadratic(self, step):
        """``step^T A step``."""
        return step @ self.matrix @ step

    @staticmethod
    def traces(forms, gaussian):
        """``Tr(C A)`` of several such curvatures with the covariance ``C`` of a Gaussian."""
        covariance = gaussian.covariance()
        return np.array([np.sum(form.matrix * covariance) for form in forms])


class DualCurvature:
    """Gauss-Newton ``A = diag(alpha) + S^T S`` with few rows in ``S``."""

    def __init__(self, alpha, S):
        self.alpha, self.S = alpha, S
        self.diagonal = alpha + np.sum(S**2, axis=0)

    def gaussian(self, damping=0.0):
        """Gaussian with precision ``A + damping diag(A)``; ``None`` if numerically singular."""
        return DualGaussian(self.alpha + damping * self.diagonal, self.S)

    def determined(self):
        """How many weights the targets in ``S`` determine well: ``Tr(A^-1 S^T S)``."""
        return self.gaussian().determined

    def quadratic(self, step):
        """``step^T A step``."""
        return self.alpha @ step**2 + np.sum((self.S @ step) ** 2)

    @staticmethod
    def traces(forms, gaussian):
        """``Tr(C A)`` of several such curvatures with the covariance ``C`` of a Gaussian."""
        variances = gaussian.variances()
        return np.array(
            [form.alpha @ variances + np.sum(gaussian.project(form.S[:, None])) for form in forms]
        )


class KroneckerCurvature:
    """Gauss-Newton ``A`` of all rows with every layer's block as a Kronecker product.

    Layers are independent of each other, and in a layer its inputs of the derivatives by its summed
    inputs. Unlike fewer rows that hardly changes what is well determined; log determinants are too
    large, so that there is no evidence.
    """

    def __init__(self, factors):
        self.factors = factors
        diagonals = [D[:, None] + np.outer(np.diag(F), np.diag(G)) for D, F, G in factors]
        self._ends = np.cumsum([part.size for part in diagonals])[:-1]
        self.diagonal = np.concatenate([part.ravel() for part in diagonals])

    def gaussian(self, damping=0.0):
        """Gaussian with precision ``(1 + damping) A``."""
        scale = 1.0 + damping
        return KroneckerGaussian([(scale * D, scale * F, G) for D, F, G in self.factors])

    def quadratic(self, step):
        """``step^T A step``."""
        total = 0.0
        for part, (D, F, G) in zip(np.split(step, self._ends), self.factors, strict=True):
            B = part.reshape(len(D), len(G))
            total += np.sum(B * (D[:, None] * B + F @ B @ G))
        return total


def third_order(posterior, theta, hyper, gaussian, moves, one_sided=False):
    """``-1/2 Tr(A^-1 dA/dw . move)`` with the Gauss-Newton ``A``, by differences.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    gaussian : DenseGaussian or DualGaussian
        With precision ``A`` at ``theta``.
    moves : ndarray of shape (h, k)
    one_sided : bool
        Half the work, for some four digits: ``Tr(A^-1 A)`` is known.

    Returns
    -------
    ndarray of shape (h,)
    """
    if not posterior.network.hidden_layer_sizes and posterior.likelihood.quadratic:
        return np.zeros(len(moves))
    eps = difference_step(theta, moves)
    points = theta + eps * moves
    if not one_sided:
        points = np.concatenate([points, theta - eps * moves])
    forms = (  # one at a time: the curvature of a large network fills the memory
        gauss_newton_forms(posterior, point[None], hyper.repeated(1))[1][0] for point in points
    )
    traces = _form(posterior).traces(forms, gaussian)
    if one_sided:
        return -0.5 * (traces - len(theta)) / eps[:, 0]
    plus, minus = np.split(traces, 2)
    return -0.5 * (plus - minus) / (2.0 * eps[:, 0])


def difference_step(theta, moves):
    """Lengths ``(h, 1)`` that make ``moves`` small against the weights."""
    size = (1.0 + np.linalg.norm(theta)) / np.sqrt(len(theta))
    lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-300)
    return np.minimum(1e-4 * size / lengths, 1e8)


def accelerated(gaussian, diagonal, step, force):
    """A step bent along the valley: geodesic acceleration (Transtrum & Sethna 2012).

    Parameters
    ----------
    gaussian : DenseGaussian or DualGaussian
        Damped curvature that gave ``step``.
    diagonal : ndarray of shape (k,)
        Diagonal of ``A``, the metric in which lengths are compared.
    step : ndarray of shape (k,)
    force : ndarray of shape (k,)
        See `Posterior.bending_force`.

    Returns
    -------
    ndarray of shape (k,) or None
        ``None`` if the valley bends too much for a step of this length.
    """
    acceleration = -0.5 * gaussian.solve(force)
    if 4.0 * diagonal @ acceleration**2 > MOST_BENT**2 * (diagonal @ step**2):
        return None
    return step + acceleration
