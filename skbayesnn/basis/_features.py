"""Basis functions, and the base class that holds the scikit-learn contract."""

from __future__ import annotations

import numbers
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayesnn._docs import FITTED, LinkToSite, documented
from skbayesnn._typing import Array
from skbayesnn.estimators.inputs._parameters import check

KERNELS = {
    "gaussian": lambda square: np.exp(-0.5 * square),
    "cauchy": lambda square: 1.0 / (1.0 + square),
}
COLUMNS = """Transformers.

Attributes
----------
n_features_in_ : int
feature_names_in_ : ndarray of str

References
----------
D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute of
Technology, chapter 2; "Bayesian interpolation", Neural Computation 4.
"""


@documented(FITTED)
class BasisFeatures(LinkToSite, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer from inputs to values of basis functions.

    A subclass provides ``_check_parameters()`` and functions of one input, which are applied to
    every input, side by side, so that a linear model on them is additive in the
    inputs: ``_functions(X)`` of shape (n_samples, n_features, n_functions) and their ``_labels()``.
    Other functions have ``_values(X)`` of shape (n_samples, n_features_out) and
    ``_names(input_names)``.
    """

    def __init_subclass__(cls):
        documented(COLUMNS)(cls)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Place the basis functions over the training inputs, in any order or repetition.

        Parameters
        ----------
        y : None
            Ignored.
        """
        self._check_parameters()
        self._learn(validate_data(self, X, dtype=np.float64))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Evaluate the basis functions.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Values, one column per basis function.
        """
        check_is_fitted(self)
        return self._values(validate_data(self, X, dtype=np.float64, reset=False))

    @documented(OneToOneFeatureMixin.get_feature_names_out.__doc__ or "")
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the basis functions.

        Returns
        -------
        ndarray of str objects
            Names, one per column of `transform`.
        """
        inputs = super().get_feature_names_out(input_features)  # as checked by scikit-learn
        return np.array(self._names(inputs), dtype=object)

    def _learn(self, X):
        """Place the functions, unless they have fixed places."""

    def _values(self, X):
        return self._functions(X).reshape(len(X), -1)

    def _names(self, inputs):
        return [f"{name}_{label}" for name in inputs for label in self._labels()]


@dataclass(eq=False, repr=False)
class LegendreFeatures(BasisFeatures):
    """Legendre polynomials on the interval of the training data.

    Every input is mapped to [-1, 1] by its smallest and largest training value. The polynomials are
    ``P_1`` to ``P_degree``; ``P_0`` is the intercept of the model. Several inputs have their
    polynomials side by side.

    Parameters
    ----------
    degree : int, default=10
        Highest degree.
    orthonormal : bool, default=False
        Multiply ``P_h`` by ``(2 h + 1)^(1/2)``, so that its mean square over the interval is 1, as
        that of the intercept. ``False``: all polynomials are 1 at the right end.

    Attributes
    ----------
    middle_, reach_ : ndarray of shape (n_features,)
        Middle and half width of the training interval of each input (width 2 for a constant one).

    Notes
    -----
    The scale is part of the prior. With one precision for all weights the part of degree ``h`` of a
    function has a prior mean square that falls as ``1 / (2 h + 1)``, so that smooth functions are
    more probable; orthonormal polynomials give all degrees equal shares. On nine sets of 40 points
    of three curves (one of them with kinks) orthonormal polynomials of the best degree had 1 to 8
    nats less evidence.

    Outside the interval the polynomials grow as the power of their degree, and so do the error bars
    of a model.

    Examples
    --------
    >>> from skbayesnn.basis import LegendreFeatures
    >>> LegendreFeatures(degree=2).fit_transform([[0.0], [5.0], [10.0]])
    array([[-1. ,  1. ],
           [ 0. , -0.5],
           [ 1. ,  1. ]])
    """

    degree: int = 10
    _: KW_ONLY
    orthonormal: bool = False

    def _check_parameters(self):
        check(self, degree=1, orthonormal=bool)

    def _learn(self, X):
        low, high = X.min(axis=0), X.max(axis=0)
        reach = 0.5 * high - 0.5 * low
        self.middle_, self.reach_ = 0.5 * low + 0.5 * high, np.where(reach > 0, reach, 1.0)

    def _functions(self, X):
        values = legvander((X - self.middle_) / self.reach_, self.degree)[..., 1:]
        degrees = np.arange(1, self.degree + 1)
        return values * np.sqrt(2.0 * degrees + 1.0) ** self.orthonormal

    def _labels(self):
        return [f"legendre{i}" for i in range(1, self.degree + 1)]


@dataclass(eq=False, repr=False)
class HermiteFunctionFeatures(BasisFeatures):
    """Hermite functions: Hermite polynomials times a Gaussian, orthonormal on the line.

    With the physicists' polynomials ``H_i`` they are ``H_i(x) exp(-x^2/2) / sqrt(2^i i! sqrt(pi))``
    for ``i = 0, 1, ...``. The first three describe MacKay's demonstration ``1.1 (1 - x + 2 x^2)
    exp(-x^2/2)`` exactly. Several inputs have their functions side by side. Other centres and
    widths follow from a scaler before this step. The last function decays beyond its turning points
    at ``sqrt(2 n_functions - 1)``.

    Parameters
    ----------
    n_functions : int, default=3
        Number of functions, at most 500 (more extend beyond 38.6, where the first one underflows);
        the first is the Gaussian itself.

    Notes
    -----
    Far from zero all functions vanish, and a model returns to its intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.basis import HermiteFunctionFeatures
    >>> x = np.linspace(-10, 10, 2001)
    >>> values = HermiteFunctionFeatures(3).fit_transform(x[:, None])
    >>> products = values.T @ values * 0.01  # the integrals of the products
    >>> bool(np.allclose(products, np.eye(3)))
    True
    """

    n_functions: int = 3

    def _check_parameters(self):
        check(self, n_functions=1)

    def _functions(self, X):
        z = np.clip(X, -40.0, 40.0)  # all functions vanish beyond
        functions, before, now = [], np.zeros_like(z), np.pi**-0.25 * np.exp(-0.5 * z * z)
        for i in range(self.n_functions):
            functions.append(now)
            before, now = now, (np.sqrt(2.0) * z * now - np.sqrt(i) * before) / np.sqrt(i + 1.0)
        return np.stack(functions, axis=-1)

    def _labels(self):
        return [f"hermite{i}" for i in range(self.n_functions)]


@dataclass(eq=False, repr=False)
class RadialBasisFeatures(BasisFeatures):
    """Gaussian or Cauchy radial basis functions ``g(|x - x_h| / r) / r``.

    With one input the centres ``x_h`` are equally spaced over the range of the training data. With
    several they are training rows: first the row nearest the middle of the ranges, then always the
    row farthest from the centres so far (Gonzalez 1985, "Clustering to minimize the maximum
    intercluster distance", Theoretical Computer Science 38), so that they cover the data evenly and
    no random numbers are needed. Distances are Euclidean; inputs in different units should be
    scaled beforehand.

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
        The centres, if not chosen from the data; ``n_centers`` is then ignored.

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers, n_features)
    width_ : float

    Notes
    -----
    Far from all centres the functions vanish, and a model returns to its intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.basis import RadialBasisFeatures
    >>> features = RadialBasisFeatures(3, width=2.0).fit(np.arange(5.0)[:, None])
    >>> features.centers_.ravel(), features.transform([[2.0]]).round(2)
    (array([0., 2., 4.]), array([[0.3, 0.5, 0.3]]))
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
            self.centers_ = check_array(self.centers, dtype=np.float64, input_name="centers")
            if self.centers_.shape[1] != X.shape[1]:
                raise ValueError(
                    f"centers must have {X.shape[1]} columns; got {self.centers_.shape[1]}."
                )
        elif X.shape[1] == 1:
            low, high = X.min(), X.max()  # both are centres, or their middle is the only one
            ends = [low, high] if self.n_centers > 1 else [0.5 * low + 0.5 * high]
            self.centers_ = np.linspace(ends[0], ends[-1], self.n_centers)[:, None]
        else:
            self.centers_ = _farthest_rows(X, self.n_centers)
        spread = np.sqrt(np.sum(np.var(self.centers_, axis=0)))
        automatic = 0.5 * spread if spread > 0 else 1.0
        self.width_ = float(self.width if isinstance(self.width, numbers.Real) else automatic)

    def _values(self, X):
        values = cdist(X / self.width_, self.centers_ / self.width_, "sqeuclidean")
        return KERNELS[self.kernel](values) / self.width_

    def _names(self, inputs):
        return [f"radial{h}" for h in range(len(self.centers_))]


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
