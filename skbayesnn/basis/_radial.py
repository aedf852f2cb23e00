"""Radial basis functions."""

from __future__ import annotations

import numbers
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from skbayesnn.basis._base import BasisFeatures
from skbayesnn.estimators.inputs._parameters import check

KERNELS = {
    "gaussian": lambda square: np.exp(-0.5 * square),
    "cauchy": lambda square: 1.0 / (1.0 + square),
}


@dataclass(eq=False, repr=False)
class RadialBasisFeatures(BasisFeatures):
    """Gaussian or Cauchy radial basis functions ``g(|x - x_h| / r) / r``.

    With one input the centres ``x_h`` are equally spaced over the range of the training data. With
    several they are training rows: first the one nearest the middle of the ranges, then always the
    row farthest from the centres so far (Gonzalez 1985), so that they cover the data evenly and no
    random numbers are needed. Distances are Euclidean; inputs in different units should be scaled
    beforehand.

    Parameters
    ----------
    n_centers : int, default=60
        Number of centres. With several inputs there are never more than distinct training rows.
    kernel : {"gaussian", "cauchy"}, default="gaussian"
        ``g(u)``: ``exp(-u^2 / 2)`` or ``1 / (1 + u^2)``.
    width : float or "auto", default="auto"
        The width ``r``, in units of the inputs. ``"auto"`` is half the root mean square distance of
        the centres from their mean, about a seventh of the range of a single input; much is gained
        by comparing the evidence of several widths.
    centers : array-like of shape (n_centers, n_features), optional
        The centres, instead of those chosen from the data; ``n_centers`` is then ignored.

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers, n_features)
    width_ : float

    Notes
    -----
    Far from all centres the functions vanish, and a model returns to its intercept.

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology, chapter 2; "Bayesian interpolation", Neural Computation 4.

    T. F. Gonzalez (1985), "Clustering to minimize the maximum intercluster distance", Theoretical
    Computer Science 38.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.basis import RadialBasisFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = make_pipeline(
    ...     RadialBasisFeatures(60, width=1.0), EvidenceMLPRegressor((), standardize=False)
    ... ).fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(0.5)) < 0.1)
    True
    """

    n_centers: int = 60
    _: KW_ONLY
    kernel: str = "gaussian"
    width: float | str = "auto"
    centers: ArrayLike | None = None

    def _check_parameters(self):
        check(self, n_centers=1, kernel=tuple(KERNELS))
        if not (isinstance(self.width, str) and self.width == "auto"):
            check(self, width=float)

    def _learn(self, X):
        if self.centers is not None:
            self.centers_ = self._given_centers(X.shape[1])
        elif X.shape[1] == 1:
            self.centers_ = _equally_spaced(X, self.n_centers)
        else:
            self.centers_ = _farthest_rows(X, self.n_centers)
        self.width_ = float(self.width) if isinstance(self.width, numbers.Real) else self._width()

    def _given_centers(self, n_features):
        centers = np.array(self.centers, dtype=float)
        if centers.ndim != 2 or centers.shape[1] != n_features or not len(centers):
            raise ValueError(
                f"centers must have shape (n_centers, {n_features}), one column per input; got "
                f"{centers.shape}."
            )
        if not np.all(np.isfinite(centers)):
            raise ValueError("centers must be finite.")
        return centers

    def _width(self):
        spread = np.sqrt(np.sum(np.var(self.centers_, axis=0)))
        return 0.5 * float(spread) if spread > 0 else 1.0

    def _values(self, X):
        values = cdist(X / self.width_, self.centers_ / self.width_, "sqeuclidean")
        return KERNELS[self.kernel](values) / self.width_

    def _names(self, inputs):
        return [f"radial{h}" for h in range(len(self.centers_))]


def _equally_spaced(X, n_centers):
    """Centres equally spaced over the range of a single input, both ends included."""
    low, high = X.min(), X.max()
    ends = [low, high] if n_centers > 1 else [0.5 * low + 0.5 * high]
    return np.linspace(ends[0], ends[-1], n_centers)[:, None]


def _farthest_rows(X, n_centers):
    """Choose rows far from each other, independently of the order and repetitions of rows."""
    rows = np.unique(X, axis=0)
    middle = 0.5 * rows.min(axis=0) + 0.5 * rows.max(axis=0)
    chosen = [int(np.argmin(cdist(rows, middle[None], "sqeuclidean")))]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < min(n_centers, len(rows)):
        distances = cdist(rows, rows[chosen[-1:]], "sqeuclidean")[:, 0]
        nearest = np.minimum(nearest, distances)
        chosen.append(int(np.argmax(nearest)))
    return rows[chosen]
