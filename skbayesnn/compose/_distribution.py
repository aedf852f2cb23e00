"""Predictive distribution of targets from that of transformed targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import probabilities
from skbayesnn.estimators.predictions._distribution import NUMBERS, Distribution


@documented(NUMBERS)
@dataclass(frozen=True, repr=False, eq=False)
class TransformedDistribution(Distribution):
    """Predictive distribution of targets ``y = g(t)``, from that of ``t = T(y)``.

    Quantiles are ``g`` of those of ``t``; the density has the factor ``|dT/dy|`` (Bishop 2006,
    equation 1.27). Moments are computed by Gauss-Hermite quadrature; networks with Student-t noise
    are left out of them as long as they have less than half of the weight.

    Parameters
    ----------
    inner : PredictiveDistribution
        Distribution of ``t``.
    map : MonotoneMap
        Transformation ``T`` with its inverse ``g``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.compose import TransformedTargetRegressor
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> functions = {"func": np.log, "inverse_func": np.exp}
    >>> model = TransformedTargetRegressor(EvidenceMLPRegressor(()), **functions)
    >>> at = model.fit(X, np.exp(X[:, 0])).predict_distribution(X)
    >>> bool(np.allclose(at.cdf(at.ppf(0.2)), 0.2))
    True
    """

    inner: Any
    map: Any

    def mean(self) -> Array:
        """Compute the mean, in units of y."""
        return self.expect(lambda y: y)[0]

    def std(self, kind: str = "total") -> Array:
        """Compute the standard deviation about the mean, of weights and noise together.

        Raises
        ------
        ValueError
            If another ``kind`` is asked for, as the parts do not add up after a transformation; or
            if most networks have Student-t noise, under which it need not exist.
        """
        if kind != "total":
            raise ValueError(f"kind must be 'total' for transformed targets; got {kind!r}.")
        return self.expect(lambda y: y)[1]

    def expect(self, function: Callable[..., Any]) -> tuple[Array, Array]:
        """Compute mean and standard deviation of a function; see `PredictiveDistribution`."""
        return self.inner.expect(lambda t: function(self.map.back(t)))

    def ppf(self, q: ArrayLike) -> Array:
        """Compute quantiles, in units of y; see `PredictiveDistribution`."""
        q = probabilities(q, "q")
        t = self.inner.ppf(q)
        if not self.map.increasing.all():
            increasing = self.map.increasing.reshape(-1, *(1,) * q.ndim)
            increasing = increasing[0] if self.map.one_dimensional else increasing
            t = np.where(increasing, t, self.inner.ppf(1.0 - q))
        return self.map.back(t, axis=1)

    def logpdf(self, y: ArrayLike) -> Array:
        """Compute the log density at targets, for each output by itself, in nats.

        Raises
        ------
        ValueError
            If the transformation is not finite or has no finite slope at some target.
        """
        t, slopes = self._transformed(y)
        return self.inner.logpdf(self.map.shaped(t)) + self.map.shaped(slopes)

    def joint_logpdf(self, y: ArrayLike) -> Array:
        """Compute the log density at targets, joint over the outputs, as `logpdf`."""
        t, slopes = self._transformed(y)
        return self.inner.joint_logpdf(self.map.shaped(t)) + slopes.sum(axis=1)

    def cdf(self, y: ArrayLike) -> Array:
        """Compute the probability of a target no larger than ``y``, which may be any numbers."""
        y = self._checked(y)

        def of_transformed(t):
            return self.inner.cdf(self.map.shaped(t)).reshape(t.shape)

        return self.map.shaped(self.map.cdf(y, of_transformed))

    def rvs(self, size: int | None = None, random_state: RandomState = 0) -> Array:
        """Draw targets, noise included; see `PredictiveDistribution`."""
        return self.map.back(self.inner.rvs(size, random_state))

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by a slice, an index array or a mask."""
        return replace(self, inner=self.inner[rows])

    def __len__(self):
        return len(self.inner)

    def _transformed(self, y):
        """Transform targets; return ``t`` and log slopes, both ``(n, n_outputs)``."""
        t = self.map.forward(self._checked(y))
        slopes = self.map.log_slope(t)
        wrong = ~np.isfinite(slopes).all(axis=1)
        if np.any(wrong):
            raise ValueError(
                f"The transformation has no finite slope at y = {self.map.inverse(t)[wrong][0]}, "
                "so there is no density."
            )
        return t, slopes

    def _checked(self, y):
        """Check targets: return ``(n, n_outputs)`` with the number of outputs of the model."""
        n_outputs = len(self.map.spread)
        y = np.full((len(self), n_outputs), y) if np.ndim(y) == 0 else as_targets(y)[0]
        if y.shape[1] != n_outputs:
            raise ValueError(f"y has {y.shape[1]} outputs, the model was fitted with {n_outputs}.")
        return y


def as_targets(y):
    """Convert targets to numbers of shape (n, n_outputs), with a flag for shape (n,)."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return (y[:, None], True) if y.ndim == 1 else (y, False)
