"""Greedy selection of measurements, and of training rows to keep."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn._threads import blas_threads
from skbayesnn._typing import Estimator
from skbayesnn.active_learning._gain import linear_models, log_rate
from skbayesnn.active_learning._inputs import EVIDENCE, QUESTION, Question, pose, resolve
from skbayesnn.active_learning._linear import Candidates, prior_model
from skbayesnn.estimators.inputs._parameters import count

KEPT_DOUBLES = 2**26  # largest size at which vectors of all candidates are kept (512 MiB)


@documented(QUESTION)
def select(
    estimator: Estimator,
    X_candidates: ArrayLike,
    n: int,
    X_interest: ArrayLike | None = None,
    *,
    kind: str | None = None,
    interest_weight: ArrayLike | None = None,
    method: str = "approximation",
    price: float | None = None,
    return_gains: bool = False,
) -> Any:
    """Choose several measurements that are informative together.

    The choice is greedy: take the candidate of largest gain, update the inverse Hessian as if it
    had been measured, and repeat. The update has rank one for every output and needs no target,
    because variances do not depend on the measured values. Ten points chosen in this way spread
    out, while the ten largest gains of `information_gain` may lie next to each other. For the total
    gain in regression the gain of the whole set is at least ``1 - 1/e`` of the largest possible
    (Nemhauser, Wolsey & Fisher 1978).

    Parameters
    ----------
    X_candidates : array-like of shape (n_candidates, n_features)
        Inputs at which a measurement is possible. Each row can be chosen once. To allow repeated
        measurements, repeat the row.
    n : int
        Number of candidates to choose, at most ``n_candidates``.
    kind : str, optional
        Kind of `information_gain`, except ``"marginal"``, which has several numbers per candidate.

    Returns
    -------
    indices : ndarray of int, shape (n_chosen,)
        Rows of ``X_candidates``, in the order chosen; fewer than ``n`` if the gains fall below
        ``price``.
    gains : ndarray of shape (n_chosen,)
        Gain of each row, given those before it. Only with ``return_gains``.

    Notes
    -----
    For samplers, outputs of drawn networks (activations of classifiers) are represented by their
    means and covariances, so that gains differ from those of `information_gain` where drawn outputs
    are far from normally distributed. A measured class updates the Hessian by the curvature of its
    log likelihood at the most probable activations, which does not depend on the label. Precisions
    and noise levels are not re-estimated before the next fit, so choose no more candidates at once
    than necessary.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.active_learning import select
    >>> X = np.array([[-2.0], [-1.8], [-1.5], [1.5], [1.9], [2.0]])
    >>> model = EvidenceMLPRegressor((), random_state=0).fit(X, [0.1, 0.2, 0.1, 0.8, 1.2, 1.1])
    >>> candidates = np.linspace(-3, 3, 61)[:, None]
    >>> np.sort(candidates[select(model, candidates, 2), 0]).tolist()
    [-3.0, 3.0]
    """
    model, prepare = resolve(estimator)
    X = prepare(X_candidates)
    question = pose(model, prepare, X_interest, interest_weight, kind, method)
    if question.kind == "marginal":
        raise ValueError(
            "kind='marginal' gives several gains per candidate, so candidates cannot be ranked. "
            "Use 'mean_marginal' or 'joint'."
        )
    _check_choice(n, len(X), price)
    models, weights = linear_models(model)
    return _greedy(models, weights, question, X, n, price, return_gains)


@documented(QUESTION)
def thin_training_set(
    estimator: Estimator,
    X: ArrayLike,
    n: int,
    *,
    price: float | None = None,
    return_gains: bool = False,
) -> Any:
    """Choose the most informative rows of a large training set.

    The choice is greedy and starts from the prior. Each step takes the row with the largest
    information gain about the weights given the rows before, that is the row that increases
    ``1/2 log det A`` most (MacKay 1992, equation 4.9). The network is linearised at its most
    probable weights, with the precisions and the noise of the fit. A fit to a subset of the rows
    suffices. Targets are not needed.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted evidence estimator, or a pipeline that ends with one.
    X : array-like of shape (n_samples, n_features)
        Inputs of the set.
    n : int
        Number of rows to keep, at most ``n_samples``.

    Returns
    -------
    indices : ndarray of int, shape (n_kept,)
        Rows to keep, most informative first.
    gains : ndarray of shape (n_kept,)
        Gain of each row, in nats, given those before it. Only with ``return_gains``.

    Notes
    -----
    The rows that are kept determine the weights best. They lie towards the borders of the data and
    at bends of the function. They are not a random sample, and are informative only if the model is
    right.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.active_learning import thin_training_set
    >>> X = np.linspace(-1, 1, 41)[:, None]
    >>> y = X[:, 0] + 0.1 * np.cos(7 * X[:, 0])
    >>> model = EvidenceMLPRegressor((), random_state=0).fit(X, y)
    >>> kept = thin_training_set(model, X, 4)
    >>> np.sort(kept).tolist()
    [0, 1, 39, 40]
    """
    model, prepare = resolve(estimator, EVIDENCE)
    X = prepare(X)
    _check_choice(n, len(X), price)
    ensemble, fit = model._gaussians, model._laplace.fit
    pool = fit.pool[: len(model._shares)]
    used = [m for (_, m), share in zip(pool, model._shares, strict=True) if share > 0]
    models = [
        prior_model(member, minimum.groups, minimum.hyper.alpha, log_rate(model))
        for member, minimum in zip(ensemble.parts, used, strict=True)
    ]
    question = Question("total", "exact", model._y_scaling.scale)
    return _greedy(models, ensemble.member_weights, question, X, n, price, return_gains)


def _check_choice(n, n_rows, price):
    if count(n, "n") > n_rows:
        raise ValueError(f"n={n} is larger than the number of rows to choose from, {n_rows}.")
    if price is None:
        return
    if not isinstance(price, numbers.Real) or isinstance(price, bool):
        raise TypeError(f"price must be a number in the units of the gain, got {price!r}.")
    if not price >= 0:
        raise ValueError(f"price must not be negative or nan, got {price!r}.")


def _greedy(models, weights, question, X, n, price, return_gains):
    """Choose rows greedily, with an update of all models after each."""
    keep = len(X) * sum(one.n_outputs * one.n_unknowns for one in models) <= KEPT_DOUBLES
    chosen, gains = [], []
    with blas_threads(max(linear.n_unknowns for linear in models)):
        candidates = [Candidates(question, linear, X, keep) for linear in models]
        while len(chosen) < n:
            own = [weight * some.gains() for weight, some in zip(weights, candidates, strict=True)]
            current = sum(own)
            current[chosen] = -np.inf
            best = int(np.argmax(current))
            if price is not None and current[best] < price:
                break
            chosen.append(best)
            gains.append(current[best])
            for some in candidates:
                some.observe(best)
    indices = np.array(chosen, dtype=int)
    return (indices, np.array(gains)) if return_gains else indices
