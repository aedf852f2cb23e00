"""Legendre polynomials and Hermite functions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import ArrayLike

from skbayesnn.basis._base import ColumnFeatures, middle_and_reach
from skbayesnn.estimators.inputs._parameters import check

MOST_HERMITE = 500  # more extend beyond 38.6, where the first function underflows


@dataclass(eq=False, repr=False)
class LegendreFeatures(ColumnFeatures):
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

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology, chapter 2; "Bayesian interpolation", Neural Computation 4.

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
        self.middle_, self.reach_ = middle_and_reach(X)

    def _functions(self, X):
        with np.errstate(over="ignore", invalid="ignore"):
            values = legvander((X - self.middle_) / self.reach_, self.degree)[..., 1:]
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"X lies so far outside the training data that polynomials of degree {self.degree} "
                "overflow. Check its units, or use a basis that vanishes far away."
            )
        degrees = np.arange(1, self.degree + 1)
        return values * np.sqrt(2.0 * degrees + 1.0) ** self.orthonormal

    def _labels(self):
        return [f"legendre{i}" for i in range(1, self.degree + 1)]


@dataclass(eq=False, repr=False)
class HermiteFunctionFeatures(ColumnFeatures):
    """Hermite functions: Hermite polynomials times a Gaussian, orthonormal on the line.

    With the physicists' polynomials ``H_i`` and ``z = (x - center) / scale`` they are
    ``H_i(z) exp(-z^2/2) / sqrt(2^i i! sqrt(pi) scale)`` for ``i = 0, 1, ...``. The first three
    describe MacKay's demonstration ``1.1 (1 - x + 2 x^2) exp(-x^2/2)`` exactly. Several inputs have
    their functions side by side.

    Parameters
    ----------
    n_functions : int, default=3
        Number of functions, at most 500; the first is the Gaussian itself.
    center : float, array-like of shape (n_features,) or "auto", default=0.0
        Centre of the functions, in units of the inputs. ``"auto"`` is the middle of the training
        data.
    scale : float, array-like of shape (n_features,) or "auto", default=1.0
        Unit of length of the functions. With ``"auto"`` the turning points of the last function,
        beyond which it decays, at ``sqrt(2 n_functions - 1)`` units from the centre, lie half the
        width of the training data away.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        Centre and scale of each input.

    Notes
    -----
    Far from the centre all functions vanish, and a model returns to its intercept.

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology, chapter 2; "Bayesian interpolation", Neural Computation 4.

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
    _: KW_ONLY
    center: ArrayLike | str = 0.0
    scale: ArrayLike | str = 1.0

    def _check_parameters(self):
        check(self, n_functions=1)
        if self.n_functions > MOST_HERMITE:
            raise ValueError(
                f"n_functions must be at most {MOST_HERMITE}, got {self.n_functions}; use another "
                "basis for so many functions."
            )

    def _learn(self, X):
        middle, reach = middle_and_reach(X)
        self.center_ = self._per_input("center", middle)
        self.scale_ = self._per_input("scale", reach / np.sqrt(2.0 * self.n_functions - 1.0))
        if np.any(self.scale_ <= 0):
            raise ValueError(f"scale must be positive, got {self.scale!r}.")

    def _per_input(self, name, automatic):
        """Expand a parameter to one value per input."""
        asked = getattr(self, name)
        if isinstance(asked, str) and asked == "auto":
            return automatic
        try:
            values = np.broadcast_to(np.asarray(asked, dtype=float), automatic.shape).copy()
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} must be 'auto', a number, or one number for each of the {len(automatic)} "
                f"inputs; got {asked!r}."
            ) from error
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name} must be finite, got {asked!r}.")
        return values

    def _functions(self, X):
        z = (X - self.center_) / self.scale_
        z = np.clip(z, -40.0, 40.0)  # all functions vanish beyond
        first = np.pi**-0.25 * np.exp(-0.5 * z * z)
        values = np.stack(list(hermite(first, np.sqrt(2.0) * z, self.n_functions)), axis=-1)
        return values / np.sqrt(self.scale_)[:, None]

    def _labels(self):
        return [f"hermite{i}" for i in range(self.n_functions)]


def hermite(first, z, n):
    """Yield ``first h_i(z)``, ``i < n``, with polynomials orthonormal under a standard normal."""
    before, now = np.zeros_like(z), first
    for i in range(n):
        yield now
        before, now = now, (z * now - np.sqrt(i) * before) / np.sqrt(i + 1.0)
