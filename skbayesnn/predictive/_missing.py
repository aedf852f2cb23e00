"""Inputs of which some are missing: a Gaussian of the inputs, and predictions averaged over it."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._members import Adapted
from skbayesnn.predictive._moderation import covariance_root, normal_points

MAX_ITER, TOL = 500, 1e-7  # of expectation maximisation; change in standard deviations
LEAST_SHARE = 1e-8  # of the variance of a column, which is added to it: columns may be collinear
POINTS = 64  # values that each missing input is given in predictions
EXACT = 8  # missing inputs of a row up to which these points have the right covariance


@dataclass(frozen=True)
class InputGaussian:
    """A normal distribution of the inputs, which says what missing ones may be.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    shape : ndarray of shape (d, d)
        Covariance of the inputs divided by ``scale``, whose squares may underflow.
    scale : ndarray of shape (d,), optional
        By default 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.predictive import InputGaussian
    >>> inputs = InputGaussian(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> inputs.filled(np.array([[2.0, np.nan]]), np.zeros((1, 2)))  # the mean, given the first
    array([[2. , 1.2]])
    """

    mean: np.ndarray
    shape: np.ndarray
    scale: np.ndarray | None = None

    @property
    def covariance(self):
        """Of the inputs in their own units."""
        return self.shape * self._scale[:, None] * self._scale

    @property
    def _scale(self):
        return np.ones(len(self.mean)) if self.scale is None else self.scale

    @classmethod
    def fitted(cls, Z, weight):
        """Most likely one, by expectation maximisation (Dempster, Laird & Rubin 1977; section 4.1).

        Parameters
        ----------
        Z : ndarray of shape (n, d)
            ``nan`` where a value is missing; each column has at least one value.
        weight : ndarray of shape (n,)
        """
        known = ~np.isnan(Z)
        counts = weight @ known
        origin = np.nanmin(Z, axis=0)  # large offsets cancel before anything is squared
        shift = origin + weight @ np.where(known, Z - origin, 0.0) / counts
        spread = np.sqrt(weight @ np.where(known, Z - shift, 0.0) ** 2 / counts)
        scale = np.where(spread > 0, spread, 1.0)
        white, share = (Z - shift) / scale, weight / weight.sum()
        gaussian = cls(np.zeros(len(scale)), np.eye(len(scale)))
        for _ in range(MAX_ITER):
            previous, gaussian = gaussian, gaussian._updated(white, share)
            change = np.abs(gaussian.shape - previous.shape).max()
            if max(change, np.abs(gaussian.mean - previous.mean).max()) < TOL:
                break
        return cls(shift + scale * gaussian.mean, gaussian.shape, scale)

    def _updated(self, Z, share):
        """One step of expectation maximisation."""
        filled, scatter = self.filled(Z, np.zeros((1, Z.shape[1]))), 0.0
        for rows, missing in _patterns(Z):
            left = np.zeros_like(self.shape)
            left[np.ix_(missing, missing)] = self._conditional(missing)[1]
            scatter = scatter + share[rows].sum() * left
        mean = share @ filled
        apart = filled - mean
        covariance = scatter + (share[:, None] * apart).T @ apart
        return InputGaussian(mean, covariance + LEAST_SHARE * np.eye(len(mean)))

    def _conditional(self, missing):
        """Slopes on the known inputs, and covariance, of those of a mask that are missing."""
        across = self.shape[np.ix_(~missing, missing)]
        slopes = np.linalg.lstsq(self.shape[np.ix_(~missing, ~missing)], across)[0].T
        return slopes, self.shape[np.ix_(missing, missing)] - slopes @ across

    def filled(self, Z, normal):
        """Rows with draws from the conditional distributions in place of what is missing.

        Parameters
        ----------
        Z : ndarray of shape (n, d)
            ``nan`` where a value is missing.
        normal : ndarray of shape (n, d) or (1, d)
            Standard normal; zeros give the conditional means.
        """
        filled, normal, scale = Z.copy(), np.broadcast_to(normal, Z.shape), self._scale
        for rows, missing in _patterns(Z):
            if not missing.any():
                continue
            slopes, covariance = self._conditional(missing)
            known = (Z[rows][:, ~missing] - self.mean[~missing]) / scale[~missing]
            drawn = normal[rows][:, : missing.sum()] @ covariance_root(covariance)
            deviations = known @ slopes.T + drawn
            filled[np.ix_(rows, missing)] = self.mean[missing] + scale[missing] * deviations
        return filled

    def marginal(self, n):
        """That of the first ``n`` inputs."""
        return InputGaussian(self.mean[:n], self.shape[:n, :n], self._scale[:n])

    def scaled(self, scaling):
        """In standardised units."""
        scale = self._scale / scaling.scale
        return InputGaussian(scaling.transform(self.mean), self.shape, scale)

    def points(self):
        """Quasi-random normal points, symmetric about 0: ``(POINTS, d)``.

        The covariance of the first columns is 1.
        """
        half = normal_points(len(self.mean))[: POINTS // 2].copy()
        n = min(half.shape[1], EXACT)
        factor = np.linalg.cholesky(half[:, :n].T @ half[:, :n] / len(half))
        half[:, :n] = np.linalg.solve(factor, half[:, :n].T).T
        return np.concatenate([half, -half])


def _patterns(Z):
    """Indices of the rows in which the same inputs are missing, with the mask of these."""
    masks, index = np.unique(np.isnan(Z), axis=0, return_inverse=True)
    index = index.ravel()
    return [(np.flatnonzero(index == i), mask) for i, mask in enumerate(masks)]


def _some(*arrays):
    """Those that are given."""
    return tuple(array for array in arrays if array is not None)


@dataclass(frozen=True)
class _Filled(Adapted):
    """A part whose missing inputs are at one point of their conditional distributions."""

    inputs: InputGaussian
    normal: np.ndarray

    @property
    def noise(self):
        return _FilledNoise(self.part.noise, self.fill)

    def fill(self, X):
        """Rows in which nothing is missing."""
        return self.inputs.filled(X, self.normal[None])

    def outputs(self, X):
        return self.part.outputs(self.fill(X))

    def moments(self, X):
        return self.part.moments(self.fill(X))

    def marginals(self, X, weights):
        return self.part.marginals(self.fill(X), weights)

    def log_densities(self, X, y, errors=None):
        return self.part.log_densities(self.fill(X), y, errors)

    def probabilities(self, X, moderated):
        return self.part.probabilities(self.fill(X), moderated)


@dataclass(frozen=True)
class _FilledNoise:
    """Variances of a noise at inputs that are filled in first."""

    noise: object
    fill: object

    @property
    def heavy_tails(self):
        return self.noise.heavy_tails

    def variances(self, X):
        return self.noise.variances(self.fill(X))

    def covariances(self, X):
        return self.noise.covariances(self.fill(X))


@dataclass(frozen=True)
class FillingEnsemble(Ensemble):
    """An ensemble that averages over what is missing (``nan``) in its inputs.

    Its predictions of a row are the mixture of those with the missing inputs at `POINTS` points of
    their distribution given the known ones. Rows in which nothing is missing are predicted as they
    are.

    Parameters
    ----------
    inputs : InputGaussian
        In standardised units.
    """

    inputs: InputGaussian | None = None

    def __post_init__(self):
        points = self.inputs.points()
        parts = [_Filled(part, self.inputs, z) for z in points for part in self.parts]
        weights = [some / len(points) for some in self.weights] * len(points)
        object.__setattr__(self, "_whole", Ensemble(self.parts, self.weights))
        object.__setattr__(self, "_averaged", Ensemble(tuple(parts), tuple(weights)))

    def _split(self, method, X, *args, rows=()):
        """Complete rows by the ensemble itself, the others averaged; results in their order."""
        missing = np.isnan(X).any(axis=1)
        if not missing.any():
            return method(self._whole, X, *rows, *args)
        if missing.all():
            return method(self._averaged, X, *rows, *args)
        results = [
            method(ensemble, X[some], *(array[some] for array in rows), *args)
            for ensemble, some in ((self._whole, ~missing), (self._averaged, missing))
        ]
        order = np.argsort(np.r_[np.flatnonzero(~missing), np.flatnonzero(missing)])
        if isinstance(results[0], np.ndarray):
            return np.concatenate(results)[order]
        return [np.concatenate(pair)[order] for pair in zip(*results, strict=True)]

    def mean(self, X):
        return self._split(Ensemble.mean, X)

    def moments(self, X, kind="total", errors=None):
        def moments(ensemble, X, errors=None):
            return ensemble.moments(X, kind, errors)

        return self._split(moments, X, rows=_some(errors))

    def quantiles(self, X, probabilities, errors=None):
        def quantiles(ensemble, X, errors=None):
            return ensemble.quantiles(X, probabilities, errors)

        return self._split(quantiles, X, rows=_some(errors))

    def function_moments(self, X, function):
        return self._split(Ensemble.function_moments, X, function)

    def cdf(self, X, y, errors=None):
        return self._split(Ensemble.cdf, X, rows=_some(y, errors))

    def log_density(self, X, y, errors=None):
        return self._split(Ensemble.log_density, X, rows=_some(y, errors))

    def probabilities(self, X, moderated=True):
        return self._split(Ensemble.probabilities, X, moderated)

    def probability_std(self, X):
        return self._split(Ensemble.probability_std, X)

    def draw(self, X, rng, size):
        """Functions drawn from the posterior, each at inputs drawn anew: ``(size, n, p)``."""
        if not np.isnan(X).any():
            return self._whole.draw(X, rng, size)
        filled = (self.inputs.filled(X, rng.standard_normal(X.shape)) for _ in range(size))
        return np.concatenate([self._whole.draw(rows, rng, 1) for rows in filled])
