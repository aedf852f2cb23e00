"""Predictive distributions of the targets of given rows, with the methods of SciPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._data import Scaling
from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import count, one_of, probabilities, tails
from skbayesnn.estimators.inputs._rows import generator, scored_sides, targets_of_rows
from skbayesnn.predictive import CountEnsemble, Ensemble

KINDS = ("total", "epistemic", "aleatoric")

PARTS = """Parts of predictive distributions.

Parameters
----------
kind : {"total", "epistemic", "aleatoric"}, default="total"
    The total; the part of the weights; the part of the noise. Their variances add up.
coverage : float or array-like of shape (n_coverages,), default=0.95
    Probability inside, between 0 and 1.
q : float or array-like, default=0.5
    Lower-tail probabilities, from 0 to 1; 0.5 is the median, 0 and 1 are the ends of the support.

Returns
-------
ndarray of shape (n_samples,) or (n_samples, n_outputs)
    Values of all targets.
"""
NUMBERS = """Distributions of numbers, at rows.

Parameters
----------
y : float or array-like of shape (n_samples,) or (n_samples, n_outputs)
    Targets. At one row they may have any shape (...) or (..., n_outputs), which the result has, as
    with SciPy's frozen distributions: a density is drawn over a grid of targets.
ensemble : Ensemble
    Networks that predict, in standardised units.
X : ndarray of shape (n_samples, n_features)
    Inputs, standardised.
one_dimensional : bool
    Whether arrays have no axis of outputs.
has_limits : bool, default=False
    Whether the model was fitted with limits, so that a score has to say which targets are some.
"""


def at_targets(method: Callable[..., Any]) -> Callable[..., Any]:
    """Evaluate a method at targets; at one row at those of any shape, as SciPy's distributions.

    Further arguments, such as the sides of limits, belong to rows: with them ``y`` does, too.
    """

    @wraps(method)
    def evaluate(self, y, *of_rows, **named):
        y, outputs = np.asarray(y), self._outputs
        fits = y.ndim > 0 and (not outputs or y.shape[-1] in (1, *outputs))
        if len(self) != 1 or not fits or of_rows or named:
            return method(self, y, *of_rows, **named)
        shape = np.broadcast_shapes(y.shape, (1, *outputs))
        rows = np.broadcast_to(y, shape).reshape(-1, *outputs)
        values = method(self[np.zeros(len(rows), dtype=int)], rows)
        return values.reshape(*shape[: len(shape) - len(outputs)], *values.shape[1:])

    return evaluate


def told(values: Array) -> Array:
    """Return moments; warn if some are ``nan``."""
    missing = np.isnan(values)
    if np.any(missing):
        warnings.warn(
            f"{np.sum(missing)} of {missing.size} moments are nan: these do not exist, or they "
            "depend on targets that are all but impossible. Use quantiles or intervals.",
            UserWarning,
            stacklevel=3,
        )
    return values


@documented(PARTS, NUMBERS)
class Distribution:
    """Methods that follow from others of a predictive distribution of numbers.

    The names are those of SciPy's frozen distributions. Arrays have the shape of the targets,
    ``(n_samples,)`` or ``(n_samples, n_outputs)``; with several outputs each one is described by
    itself, unless a method says "joint".
    """

    mean: Callable[..., Any]
    std: Callable[..., Any]
    logpdf: Callable[..., Any]
    cdf: Callable[..., Any]
    entropy: Callable[..., Any]
    joint_logpdf: Callable[..., Any]
    _quantiles: Callable[..., Any]
    _support: Any  # least and largest target
    _outputs: Any  # shape of the targets of a row

    def var(self, kind: str = "total") -> Array:
        """Compute the variance, or one of its parts, in squared units of y."""
        return self.std(kind) ** 2

    def pdf(self, y: ArrayLike) -> Array:
        """Compute the density at targets, the exponential of `logpdf`."""
        return np.exp(self.logpdf(y))

    def ppf(self, q: ArrayLike) -> Array:
        """Compute quantiles, the inverse of `cdf`, in units of y.

        Several outputs have separate quantiles. The axes of ``q`` come last.

        Parameters
        ----------
        q : float or array-like
            Lower-tail probabilities, from 0 to 1, which give the ends of the support.
        """
        q = probabilities(q, "q", ends=True)
        values = self._quantiles(np.where((q > 0.0) & (q < 1.0), q, 0.5))
        least, largest = (
            np.reshape(end, (*np.shape(end), *(1,) * q.ndim)) for end in self._support
        )
        return np.where(q == 0.0, least, np.where(q == 1.0, largest, values))

    def interval(self, coverage: ArrayLike = 0.95) -> Array:
        """Compute central intervals.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper end, in units of y; of several coverages of shape (..., n_coverages, 2).
        """
        return self.ppf(tails(coverage))

    def median(self) -> Array:
        """Compute the median, in units of y."""
        return self.ppf(0.5)

    def sf(self, y: ArrayLike) -> Array:
        """Compute the probability of a target above ``y``."""
        return 1.0 - self.cdf(y)


@documented(PARTS, NUMBERS)
@dataclass(frozen=True, repr=False, eq=False)
class PredictiveDistribution(Distribution):
    """Predictive distribution of the targets of given rows: a mixture over networks.

    ``p(t|x, D) = sum_i w_i p(t|x, i)`` with the networks ``i`` of an ensemble: Gaussians around
    minima, linearised in the weights (Bishop 2006, equations 5.168-5.173), or networks drawn from
    the posterior. The noise of each is part of it. Nothing is stored for the rows: every method
    evaluates the ensemble, in blocks of rows.

    Parameters
    ----------
    scaling : Scaling
        Scaling of the targets.
    errors : ndarray of shape (n_samples, n_outputs), optional
        Variances of known errors of measurement, in standardised units.
    needs_errors : bool, default=False
        Whether there is no other noise, and so no density without ``errors``.

    See Also
    --------
    predictive_distribution : For a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> X = np.linspace(0, 10, 30)[:, None]
    >>> y = 2.0 * X[:, 0] + np.random.default_rng(0).standard_normal(30)
    >>> at = EvidenceMLPRegressor((), random_state=0).fit(X, y).predict_distribution([[5.0]])
    >>> at.mean().round(), at.interval(0.5).shape, at.rvs(4).shape
    (array([10.]), (1, 2), (4, 1))
    >>> bool(np.isclose(at.cdf(at.ppf(0.2)), 0.2)[0])
    True
    """

    ensemble: Ensemble
    X: Array
    scaling: Scaling
    one_dimensional: bool
    errors: Array | None = None
    needs_errors: bool = False
    has_limits: bool = False

    _support = -np.inf, np.inf

    def mean(self) -> Array:
        """Compute the mean, in units of y."""
        return self._shaped(self.scaling.inverse(self.ensemble.mean(self.X, self.errors)))

    def std(self, kind: str = "total") -> Array:
        """Compute the standard deviation, or one of its parts, in units of y."""
        return self._mean_and_std(kind)[1]

    def _mean_and_std(self, kind: str = "total") -> tuple[Array, Array]:
        """Compute the mean and the standard deviation together, in the time of the latter."""
        mean, covariance = self._moments(kind)
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        return self._shaped(self.scaling.inverse(mean)), self._shaped(sd * self.scaling.scale)

    def cov(self, kind: str = "total") -> Array:
        """Compute the covariance between the outputs of each row.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs, n_outputs)
            Covariance, in units of y.
        """
        return self._moments(kind)[1] * self.scaling.scale[:, None] * self.scaling.scale

    @at_targets
    def logpdf(self, y: ArrayLike) -> Array:
        """Compute the log density at targets in nats, for each output by itself."""
        y, log_scale = self._targets(y), np.log(self.scaling.scale)
        return self._shaped(self.ensemble.marginal_log_density(self.X, y, self.errors) - log_scale)

    @at_targets
    def joint_logpdf(self, y: ArrayLike, censored: ArrayLike | None = None) -> Array:
        """Compute the log density at targets, joint over the outputs.

        Outputs of a row with a limit are independent, given the network.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats, y in its own units.
        """
        y = self._targets(y)
        sides = self._sides(censored, y.shape)
        density = self.ensemble.log_probability(self.X, y, sides, self.errors)
        return density - (sides == 0.0) @ np.log(self.scaling.scale)

    def _sides(self, censored, shape):
        """Check the sides of limits of targets to be scored, see `scored_sides`."""
        return scored_sides(censored, shape, self.has_limits)

    @at_targets
    def cdf(self, y: ArrayLike) -> Array:
        """Compute the probability of a target no larger than ``y``, for each output by itself.

        At the true targets of a calibrated model these values, the probability integral transform,
        are uniform (Dawid 1984).
        """
        return self._shaped(self.ensemble.cdf(self.X, self._targets(y), self.errors))

    def _quantiles(self, q):
        """Quantiles of probabilities of any shape, strictly between 0 and 1."""
        quantiles = np.asarray(self.ensemble.quantiles(self.X, q.ravel(), self.errors))
        quantiles = np.moveaxis(self._shaped(self.scaling.inverse(quantiles)), 0, -1)
        return quantiles.reshape(*quantiles.shape[:-1], *q.shape)

    def entropy(self) -> Array:
        """Compute the differential entropy in nats, y in its own units.

        It is accurate to some 0.003 nats, inside the data and outside, for any mixture of networks
        and any noise. The time grows with the number of separate peaks: draws of little noise take
        a hundred times longer far outside the data.
        """
        entropy = self.ensemble.entropy(self.X, self.errors)
        return self._shaped(entropy + np.log(self.scaling.scale))

    def expect(self, function: Callable[..., Any]) -> tuple[Array, Array]:
        """Compute mean and standard deviation of a function of the target, such as a cost.

        They are computed by Gauss-Hermite quadrature with 40 nodes for each Gaussian of the
        mixture: exact for polynomials of degree 79. They are ``nan``, with a warning, where more
        than a tenth of them would come from beyond 7 standard deviations of its Gaussians, of a
        probability of 1e-12. Networks with Student-t noise, under which such means need not exist,
        are left out if all others have at least a fifth of the weight.

        Parameters
        ----------
        function : callable
            Function from targets in units of y, of shape (m,) or (m, n_outputs), to an array of
            that shape; it treats every target by itself, and is smooth.

        Returns
        -------
        mean, std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In units of the function.

        Raises
        ------
        ValueError
            If more than 80 % of the networks have Student-t noise; or if ``function`` does not
            return finite numbers of the shape that it was given.
        """
        mean, std = self._expect(function)
        told(mean + std)
        return mean, std

    def _expect(self, function):
        """Compute as `expect`, without a warning."""
        ensemble = self.ensemble.with_moments
        if ensemble is None:
            raise ValueError(
                "Most of the networks that predict have Student-t noise, under which the mean of a "
                "function of the target need not exist. Use predict_quantiles, or fit with "
                "noise='constant'."
            )

        def of_standardised(targets):
            given = self._shaped(self.scaling.inverse(targets).reshape(-1, targets.shape[-1]))
            values = np.asarray(function(given), dtype=float)
            if values.shape != given.shape or not np.all(np.isfinite(values)):
                raise ValueError(
                    "function must return finite numbers, an array of the shape that it is given; "
                    f"given {given.shape}, it returned {values.shape}."
                )
            return values.reshape(targets.shape)

        mean, variance = ensemble.function_moments(self.X, of_standardised, self.errors)
        return self._shaped(mean), self._shaped(np.sqrt(variance))

    def rvs(self, size: int | None = None, random_state: RandomState = 0) -> Array:
        """Draw targets, noise included.

        Parameters
        ----------
        size : int, optional
            Number of draws, each by one network for all rows and outputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In units of y; with ``size`` of shape (size, n_samples) or (size, n_samples, n_outputs).
        """
        rng, number = generator(random_state), 1 if size is None else count(size, "size")
        drawn = self.ensemble.targets(self.X, rng, number, self.errors)
        drawn = self._shaped(self.scaling.inverse(drawn))
        return drawn[0] if size is None else drawn

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by a slice, an index array or a mask."""
        errors = None if self.errors is None else self.errors[rows]
        return replace(self, X=self.X[rows], errors=errors)

    def __len__(self):
        return len(self.X)

    def __repr__(self):
        n = len(self.ensemble.member_weights)
        return f"<{type(self).__name__}: {len(self)} rows, {n} networks>"

    def _moments(self, kind):
        one_of(kind, "kind", KINDS)
        return self.ensemble.moments(self.X, kind, self.errors)

    def _targets(self, y):
        """Check targets and standardise them: ``(n_samples, n_outputs)``."""
        if self.needs_errors and self.errors is None:
            raise ValueError(
                "This model was fitted with noise.std=0: all noise is that of measurements. Give "
                "measurement_std of these rows, too."
            )
        return self.scaling.transform(targets_of_rows(y, len(self), self.ensemble.n_outputs))

    @property
    def _outputs(self):
        return () if self.one_dimensional else (self.ensemble.n_outputs,)

    def _shaped(self, values):
        """Drop the last axis, that of outputs, if y had none."""
        return values[..., 0] if self.one_dimensional else values


@documented(PARTS, NUMBERS)
@dataclass(frozen=True, init=False, repr=False, eq=False)
class CountDistribution(PredictiveDistribution):
    """Predictive distribution of counts at given rows: a mixture over networks.

    ``pmf`` and ``logpmf`` are other names of ``pdf`` and ``logpdf``: here these are probabilities,
    zero where ``y`` is no count. The entropy is ``-sum_t P(t) ln P(t)``, accurate to some 0.01
    nats. For means above 64 quantiles are accurate to 0.04 standard deviations (0.15 at 0.999).

    Parameters
    ----------
    scaling : Scaling
        Identity.
    errors : ndarray of shape (n_samples, 1)
        Exposures times the rate at which the outputs of the networks are zero.
    needs_errors : bool, default=False
        Whether the model was fitted with exposures, and is asked without.
    has_limits : bool, default=False
        False: counts have no limits.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> y = np.random.default_rng(0).poisson(3.0 * np.exp(X[:, 0]))
    >>> model = EvidenceMLPRegressor((), noise="poisson", method="laplace").fit(X, y)
    >>> at = model.predict_distribution([[0.0]], exposure=[10.0])
    >>> at.mean().round(-1), at.ppf([0.05, 0.95]).shape
    (array([30.]), (1, 2))
    >>> round(float(sum(at.pmf(k) for k in range(100))[0]), 6)
    1.0
    """

    ensemble: CountEnsemble

    _support = 0.0, np.inf
    pmf = PredictiveDistribution.pdf
    logpmf = PredictiveDistribution.logpdf

    def _targets(self, y):
        if self.needs_errors and np.ndim(y) > 0:
            warnings.warn(
                "The model was fitted with exposures, but every count is taken here as one of "
                "exposure 1. Pass exposure; in cross-validation by metadata routing: "
                "set_fit_request(exposure=True).set_score_request(exposure=True).",
                stacklevel=4,
            )
        return super()._targets(y)

    def _sides(self, censored, shape):
        """Refuse limits, which no count may be."""
        if censored is not None:
            raise ValueError("censored is not for counts. Leave it out.")
        return np.zeros(shape)
