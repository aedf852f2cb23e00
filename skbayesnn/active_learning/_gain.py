"""Expected information gain of measurements, and greedy selection by it."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skbayesnn._docs import documented
from skbayesnn._typing import Array, Estimator
from skbayesnn.active_learning._candidates import (
    Candidates,
    DrawnCandidates,
    LinearModel,
    prior_model,
)
from skbayesnn.estimators import BayesianMLP
from skbayesnn.estimators._evidence import EvidenceMLP
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.inputs._parameters import count, one_of
from skbayesnn.estimators.inputs._rows import checked_weights
from skbayesnn.predictive import Draws

KEPT_DOUBLES = 2**26  # largest size at which vectors of all candidates are kept (512 MiB)
QUANTITIES = ("total", "marginal", "joint", "mean_marginal", "predicted_target", "q_optimal")
REGRESSION_ONLY = ("joint", "q_optimal")
METHODS = ("approximation", "exact")
DRAWS_PER_TARGET = 10  # least number of draws per output of a joint gain
QUESTION = """Active learning.

Parameters
----------
estimator : estimator or Pipeline
    Fitted estimator of this package, or a pipeline or search that ends with one.
X_candidates : array-like of shape (n_candidates, n_features)
    Inputs at which a measurement is possible.
X_interest : array-like of shape (n_points, n_features), optional
    Inputs at which predictions are wanted. Every kind except ``"total"`` needs them.
interest_weight : array-like of shape (n_points,), optional
    Relative importance ``P_u`` of the points of interest; by default equal.
method : {"approximation", "exact"}, default="approximation"
    Method of `information_gain`.
price : float, optional
    Price of a measurement, in the units of the gain. The selection stops when the gain of the best
    candidate is lower (MacKay 1992, section 4.7).
return_gains : bool, default=False
    Also return the gains.

Raises
------
TypeError
    If an estimator is not one of this package, or has not what is asked for.
ValueError
    If inputs have other features than in `fit`, or arguments do not fit the estimator.
sklearn.exceptions.NotFittedError
    If an estimator is not fitted.
"""


class Question(NamedTuple):
    """Quantities that measurements are to determine, about standardised points of interest."""

    kind: str
    method: str
    y_scale: np.ndarray  # units of y per standardised unit, (n_outputs,)
    X_interest: np.ndarray | None = None  # (n_points, n_features)
    weight: np.ndarray | None = None  # importance P_u of the points, summing to 1: (n_points,)


def resolve(estimator, kind=BayesianMLP, name="estimator of this package"):
    """Return the fitted estimator of this package, and the map from user's to standardised rows."""
    model, _ = predictor(estimator, None)
    if not isinstance(model, kind):
        raise TypeError(
            f"The estimator must be a fitted {name}, a pipeline or search of one; got {model!r}. "
            "Of an averaging search pass best_estimator_, of a transformed target regressor_."
        )
    check_is_fitted(model)
    return model, lambda X: model._check_X(predictor(estimator, X)[1])


def pose(estimator, X_candidates, X_interest, interest_weight, kind, method):
    """Check the requested kind of gain and its arguments: the model, its rows, and a `Question`."""
    model, prepare = resolve(estimator)
    X = prepare(X_candidates)
    if kind is None:
        kind = "total" if X_interest is None else "mean_marginal"
    one_of(kind, "kind", QUANTITIES)
    one_of(method, "method", METHODS)
    if X_interest is None and interest_weight is not None:
        raise ValueError("interest_weight can be used only with X_interest.")
    if is_classifier(model) and kind in REGRESSION_ONLY:
        raise ValueError(
            f"kind={kind!r} exists for regression only; for a classifier choose 'total', "
            "'marginal' or 'mean_marginal'."
        )
    if kind == "total":
        return model, X, Question(kind, method, model._y_scaling.scale)
    if X_interest is None:
        raise ValueError(
            f"kind={kind!r} needs X_interest, the points at which predictions are wanted."
        )
    X_interest = prepare(X_interest)
    weight = checked_weights(interest_weight, len(X_interest), "interest_weight")
    if kind == "joint" and isinstance(model, HMCMLP):
        n_draws, wanted = len(model.networks_), X_interest.shape[0] * model.n_outputs_
        if n_draws < DRAWS_PER_TARGET * wanted:
            raise ValueError(
                f"The joint gain about {wanted} outputs cannot be estimated from {n_draws} draws. "
                f"Use at least {DRAWS_PER_TARGET * wanted} draws, fewer points of interest, or "
                "kind='mean_marginal'."
            )
    weight = weight / weight.sum()
    return model, X, Question(kind, method, model._y_scaling.scale, X_interest, weight)


@documented(QUESTION)
def information_gain(
    estimator: Estimator,
    X_candidates: ArrayLike,
    X_interest: ArrayLike | None = None,
    *,
    kind: str | None = None,
    interest_weight: ArrayLike | None = None,
    method: str = "approximation",
) -> Array:
    """Expected information gain of a measurement at every candidate.

    The gain is the mutual information between the target that would be measured at a candidate and
    the quantity of interest (MacKay 1992, chapters 4 and 5). With the sensitivity ``g`` of the
    output at the candidate, ``g_u`` at a point of interest ``u``, the Hessian ``A``, ``s^2 = g^T
    A^-1 g``, ``c_u = g^T A^-1 g_u`` and noise variance ``nu^2`` the kinds for one output are:

    - ``"total"``: about all weights, ``1/2 log(1 + s^2/nu^2)`` (4.9);
    - ``"marginal"``: about the output at every point of interest by itself,
      ``-1/2 log(1 - c_u^2 / (s_u^2 (nu^2 + s^2)))`` (4.10);
    - ``"joint"``: about the outputs at all points of interest together (4.12);
    - ``"mean_marginal"``: the average of the marginal gains (4.13);
    - ``"predicted_target"``: the average of the gains about noisy targets at the points of
      interest, with ``s_u^2 + nu^2`` in place of ``s_u^2``;
    - ``"q_optimal"``: the average reduction of the variance of the outputs,
      ``c_u^2 / (nu^2 + s^2)``; summed over outputs.

    If there are several outputs, they are measured and predicted together, and scalars become
    matrices, ``nu^2`` the covariance of the noise between them (MacKay 1992, section 4.3). For
    input-dependent noise the variance is that at each input. Student-t noise counts
    as Gaussian noise of the same variance. For counts outputs are log rates, and a count of
    exposure 1 and mean ``mu`` has the noise variance ``1/mu``, plus the dispersion.

    Parameters
    ----------
    kind : str, optional
        One of the above. Default: ``"mean_marginal"`` with points of interest, else ``"total"``.
        Classifiers have ``"total"``, ``"marginal"`` and ``"mean_marginal"``. These are about the
        *classes* at the points of interest, so ``"predicted_target"`` would equal
        ``"mean_marginal"``.
    method : {"approximation", "exact"}, default="approximation"
        For classes that Gaussians around minima predict, as of large training sets.
        ``"approximation"`` expands the mutual information for weak correlation: ``1/2 kappa^2
        kappa_u^2 f'(kappa a) f'(kappa_u a_u) c_u^2`` for two classes (5.22); with more classes,
        averages over quasi-random activations take the place of ``kappa f'``. It is too small where
        activations are uncertain and strongly correlated. ``"exact"`` is the mutual information of
        classes under jointly Gaussian activations (5.15-5.17), by 1024 quasi-random points for
        every pair of candidate and point (some 0.1 to 0.2 ms each, errors up to 0.001 nats at
        standard deviations of 2, 0.005 at 5: smaller gains are not ranked).

    Returns
    -------
    ndarray of shape (n_candidates,) or (n_candidates, n_points)
        Gains in nats, whatever the units of y (``"q_optimal"``: in squared units of y). The second
        shape for ``kind="marginal"``.

    Notes
    -----
    *Several minima.* Gains are averaged over the minima with their shares in the predictions. This
    is the gain about the weights given which minimum is right. The gain about the choice of the
    minimum is not included.

    *Drawn networks.* Where drawn networks predict classes, gains are the mutual information of
    these classes, or between them and the networks, from joint probabilities over the draws. In
    regression, outputs of samplers are represented by their means and covariances. With ``m``
    independent draws chance correlation adds some ``1/(2m)`` to each marginal gain.

    *Assumptions.* The model is right, precisions and noise level are fixed, and outputs are linear
    in the weights. Far outside the data the error bars, and therefore the total gains, are largest.
    Give points of interest, and only candidates at which a measurement is of interest.

    References
    ----------
    D. J. C. MacKay (1992), "Information-based objective functions for active data selection",
    Neural Computation 4; N. Houlsby et al. (2011), "Bayesian active learning for classification
    and preference learning", arXiv:1112.5745.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.active_learning import information_gain
    >>> X = np.array([[-2.0], [-1.8], [-1.5], [1.5], [1.9], [2.0]])
    >>> model = EvidenceMLPRegressor((), random_state=0).fit(X, [0.1, 0.2, 0.1, 0.8, 1.2, 1.1])
    >>> candidates = [[-3.0], [0.0], [3.0]]
    >>> gains = information_gain(model, candidates, [[3.5]])
    >>> int(np.argmax(gains))
    2
    """
    model, X, question = pose(estimator, X_candidates, X_interest, interest_weight, kind, method)
    with model._ensemble.threads():
        candidates, weights = _candidates_of(model, question, X)
        return np.tensordot(weights, [some.gains() for some in candidates], 1)


def _candidates_of(model, question, X, keep=0):
    """Candidates under every Gaussian, or under the drawn networks of a classifier; and shares."""
    if is_classifier(model) and isinstance(model._ensemble.parts[0], Draws):
        return [DrawnCandidates(question, model._ensemble, X, keep)], np.ones(1)
    parts, keep = model._gaussians.parts, keep // len(model._gaussians.parts)
    models = [LinearModel(part, log_rate=log_rate(model)) for part in parts]
    return [Candidates(question, some, X, keep) for some in models], model._gaussians.shares


def log_rate(model):
    """Logarithm of the rate of counts at which outputs are zero; ``None`` for other targets."""
    return model._y_scaling.shift[0] if getattr(model, "_counts", False) else None


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
    because variances do not depend on the measured values. Where drawn networks predict classes,
    the gains are averages over the possible classes of the rows before, given which the networks
    have other weights (Kirsch, van Amersfoort & Gal 2019); 128 outcomes stand for more. Ten points
    chosen in this way spread out, while the ten largest gains of `information_gain` may lie next to
    each other. For the total gain the gain of the whole set is at least ``1 - 1/e`` of the largest
    possible (Nemhauser, Wolsey & Fisher 1978), except with classes that Gaussians predict.

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
        Gain of each row, given the earlier rows. Only with ``return_gains``.

    Notes
    -----
    Where Gaussians predict classes, a measured class updates the Hessian by the curvature of its
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
    model, X, question = pose(estimator, X_candidates, X_interest, interest_weight, kind, method)
    if question.kind == "marginal":
        raise ValueError(
            "kind='marginal' gives several gains per candidate, so candidates cannot be ranked. "
            "Use 'mean_marginal' or 'joint'."
        )
    _check_choice(n, len(X), price)
    with model._ensemble.threads():
        candidates, weights = _candidates_of(model, question, X, KEPT_DOUBLES)
        return _greedy(candidates, weights, n, price, return_gains)


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
        Fitted evidence estimator, or a pipeline or search that ends with one.
    X : array-like of shape (n_samples, n_features)
        Inputs of the set.
    n : int
        Number of rows to keep, at most ``n_samples``.

    Returns
    -------
    indices : ndarray of int, shape (n_kept,)
        Rows to keep, most informative first.
    gains : ndarray of shape (n_kept,)
        Gain of each row, in nats, given the earlier rows. Only with ``return_gains``.

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
    model, prepare = resolve(estimator, EvidenceMLP, "evidence estimator")
    X = prepare(X)
    _check_choice(n, len(X), price)
    ensemble, fit = model._gaussians, model._laplace.fit
    pool = fit.pool[: len(model._laplace.shares)]
    used = [m for (_, m), share in zip(pool, model._laplace.shares, strict=True) if share > 0]
    models = [
        prior_model(member, minimum.groups, minimum.hyper.alpha, log_rate(model))
        for member, minimum in zip(ensemble.parts, used, strict=True)
    ]
    question = Question("total", "exact", model._y_scaling.scale)
    keep = KEPT_DOUBLES // len(models)
    with ensemble.threads():
        candidates = [Candidates(question, linear, X, keep) for linear in models]
        return _greedy(candidates, ensemble.member_weights, n, price, return_gains)


def _check_choice(n, n_rows, price):
    if count(n, "n") > n_rows:
        raise ValueError(f"n={n} is larger than the number of rows to choose from, {n_rows}.")
    if not (price is None or (isinstance(price, numbers.Real) and price >= 0)):
        raise ValueError(f"price must be a number in the units of the gain, got {price!r}.")


def _greedy(candidates, weights, n, price, return_gains):
    """Choose rows greedily, with an update of all models after each."""
    chosen, gains = [], []
    while len(chosen) < n:
        current = np.tensordot(weights, [some.gains() for some in candidates], 1)
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
