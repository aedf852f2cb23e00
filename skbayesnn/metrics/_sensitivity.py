"""Sensitivity of a fitted function to its inputs, with posterior error bars."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array, Estimator, RandomState
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.inputs._rows import named


class SobolIndices(NamedTuple):
    """Sobol indices of every input, ``(n_features,)`` or ``(n_outputs, n_features)``.

    Parameters
    ----------
    first : ndarray
        Shares of the variance of the function that inputs cause by themselves.
    first_std : ndarray
        Standard deviations of ``first``.
    total : ndarray
        Shares that inputs cause by themselves and with their interactions.
    total_std : ndarray
        Standard deviations of ``total``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import sobol_indices
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> model = EvidenceMLPRegressor(()).fit(X, X @ [2.0, 1.0])
    >>> first, first_std, total, total_std = sobol_indices(model, X)
    >>> bool(np.allclose(first, total, atol=0.1))  # no interactions
    True
    """

    first: Array
    first_std: Array
    total: Array
    total_std: Array


@documented()
def sobol_indices(
    estimator: Estimator,
    X: ArrayLike,
    *,
    n_points: int = 1024,
    n_draws: int = 100,
    random_state: RandomState = 0,
) -> SobolIndices:
    """First-order and total Sobol indices of the mean, with errors by drawn functions.

    Inputs are independent, each distributed as in its column of ``X``. With two sets of points
    ``A`` and ``B``, and ``C_j`` equal to ``A`` but for column ``j`` of ``B`` (Saltelli et al. 2010,
    "Variance based sensitivity analysis of model output", table 2)::

        S_j = mean f(B) (f(C_j) - f(A)) / var f,    T_j = mean (f(A) - f(C_j))^2 / (2 var f)

    Parameters
    ----------
    estimator : fitted regressor of this package, or Pipeline that ends in one
        Model of the function.
    X : array-like of shape (n_samples, n_features)
        Rows, such as the training rows, whose columns are the distributions of the inputs. For a
        pipeline, the inputs of its first step, also a data frame with categories.
    n_points : int, default=1024
        Number of points of a Sobol sequence, best a power of 2. The function is evaluated at
        ``n_points (n_features + 2)`` rows.
    n_draws : int, default=100
        Number of functions drawn from the posterior.

    Returns
    -------
    SobolIndices
        Named tuple of ``first``, ``first_std``, ``total`` and ``total_std``. Indices describe the
        posterior mean; standard deviations are over the drawn functions.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import sobol_indices
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2))
    >>> y = X @ [2.0, 1.0] + 0.1 * rng.standard_normal(100)
    >>> model = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    >>> sobol_indices(model, X).first.round(1)  # 4 and 1 of 5
    array([0.8, 0.2])
    """
    if not hasattr(X, "iloc"):
        X = check_array(X, dtype=np.float64)
    n, d = X.shape
    unit = qmc.Sobol(2 * d, scramble=False).fast_forward(n_points).random(n_points)
    A, B = np.split(np.ceil(n * unit).astype(int) - 1, 2, axis=1)  # ranks in the columns
    mixed = [np.where(np.arange(d) == j, B, A) for j in range(d)]
    rows = _with_ranks(X, np.concatenate([A, B, *mixed]))
    model, rows = predictor(estimator, named(estimator, rows))
    if not hasattr(model, "sample_y"):
        raise TypeError(
            "Sobol indices need a regressor of this package, from which functions can be drawn; "
            f"got {type(model).__name__}. For classifiers use derivative_indices."
        )
    draws = model.sample_y(rows, n_draws, random_state)
    f = np.concatenate([model.predict(rows)[..., None], draws], axis=-1)
    f = f.reshape(d + 2, n_points, *f.shape[1:])
    f = f - f[:2].mean(axis=(0, 1))
    variance = np.maximum(f[:2].var(axis=(0, 1)), np.finfo(float).tiny)
    first = np.mean(f[1] * (f[2:] - f[0]), axis=1) / variance
    total = np.mean((f[0] - f[2:]) ** 2, axis=1) / (2.0 * variance)
    return SobolIndices(*_mean_and_std(first), *_mean_and_std(total))


@documented(sobol_indices.__doc__ or "")
def derivative_indices(
    estimator: Estimator, X: ArrayLike, *, n_draws: int = 100, random_state: RandomState = 0
) -> tuple[Array, Array]:
    """Mean squared derivatives by the inputs, times the variances of these.

    The index ``var(x_j) mean (df / dx_j)^2`` (Sobol & Kucherenko 2009, "Derivative based global
    sensitivity measures", Mathematics and Computers in Simulation 79) is the variance that an
    input causes in a linear function. For independent normal inputs it is an upper bound of the
    total Sobol index times ``var f``.

    Parameters
    ----------
    estimator : fitted estimator of this package, or Pipeline that ends in one
        For a pipeline, the inputs of its last step count.
    X : array-like of shape (n_samples, n_features)
        Rows over which the mean is taken.

    Returns
    -------
    index, std : ndarray of shape (n_features,) or (n_outputs, n_features)
        Indices of the posterior mean, and their standard deviations over the drawn functions. In
        squared units of y; for classifiers in squared nats, of the log odds.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import derivative_indices
    >>> X = np.random.default_rng(0).standard_normal((100, 2)) * [1.0, 10.0]
    >>> model = EvidenceMLPRegressor((), noise="constant").fit(X, X @ [2.0, 0.1])
    >>> index, std = derivative_indices(model, X)
    >>> bool(np.all(abs(index - [4.0, 0.01] * np.var(X, axis=0)) < 3 * std))
    True
    """
    model, X = predictor(estimator, X)
    draws = model.sample_gradient(X, n_draws, random_state)
    slopes = np.concatenate([model.predict_gradient(X)[..., None], draws], axis=-1)
    variances = np.var(check_array(X, dtype=np.float64), axis=0)
    index = np.mean(slopes**2, axis=0) * variances[:, None]
    return _mean_and_std(np.moveaxis(index, -2, 0))


def _with_ranks(X, ranks):
    """Rows made of the values of these ranks, from 0, in the columns of an array or data frame."""
    if hasattr(X, "iloc"):  # columns may hold categories, which a pipeline encodes
        pairs = zip(X.columns, ranks.T, strict=True)
        return type(X)({name: X[name].sort_values().array[rank] for name, rank in pairs})
    return np.take_along_axis(np.sort(X, axis=0), ranks, axis=0)


def _mean_and_std(values):
    """Value of the mean, first on the last axis, and standard deviation over the draws."""
    return np.moveaxis(values[..., 0], 0, -1), np.moveaxis(values[..., 1:].std(axis=-1), 0, -1)
