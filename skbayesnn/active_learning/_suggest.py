"""Suggestion of the next experiments: acquisition functions and their maxima."""

from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.spatial import cKDTree
from scipy.special import erfcx, ndtr
from scipy.stats import qmc
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array, Estimator, RandomState
from skbayesnn.active_learning._candidates import measured, observed
from skbayesnn.active_learning._gain import linear_models, resolve
from skbayesnn.estimators import PredictiveDistribution
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import generator, named
from skbayesnn.estimators.tasks._regression_fit import RegressionFit
from skbayesnn.network import row_blocks

LOG_CANDIDATES = 10  # 2^10 quasi-random candidates
N_STARTS, MOST_ITERATIONS = 2, 30  # of the local optimiser, besides the row of largest mean
STEP = 1e-5  # of differences, relative to the bounds
NO_NOISE, SOME = 0.01, 0.1  # sd of noise, in that of y, that is nearly none; share of networks
# distances of rows next to measured and to chosen ones, in sd of the inputs over the number of rows
NEAR, NEAR_CHOSEN = 0.1, 0.5
LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)
FAR = -1.0  # standardised improvement below which another form of the logarithm is used
FARTHEST = -1e3  # standardised improvement below which the asymptotic form is more accurate


def suggest(
    estimator: Estimator,
    candidates: Any,
    n: int = 1,
    *,
    acquisition: Any = "log_expected_improvement",
    maximize: bool = True,
    cost: Any = None,
    constraint: Any = None,
    random_state: RandomState = None,
) -> Any:
    """Suggest the inputs of the next experiments, to find the best value of a function.

    The acquisition function is evaluated at all candidates. Within bounds, a local optimiser
    improves the best of 1,024 quasi-random candidates, and the candidate of largest mean. If
    several experiments are to run together, each is chosen as if the earlier ones had given their
    expected values, which keep the mean, and reduce the standard deviations of correlated rows
    ("Kriging believer", Ginsbourger, Le Riche & Carraro 2010). For counts the
    function is the log rate. Without noise, rows next to measured or chosen ones are suggested only
    if no others are left.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted regressor of this package with one output, or a pipeline or search that ends in one.
    candidates : array-like of shape (n_candidates, n_features), list of pairs or Bounds
        Inputs of possible experiments, also a data frame; or, if all inputs are numbers, their
        limits: a list of pairs ``(low, high)``, or `scipy.optimize.Bounds`. A list of
        ``n_features`` pairs always means limits; give rows as an array.
    n : int, default=1
        Number of experiments.
    acquisition : str or callable, default="log_expected_improvement"
        * ``"log_expected_improvement"``: log of the expected improvement of the function without
          noise over its largest mean at a training row (Ament et al. 2023).
        * ``"upper_confidence_bound"``: ``mean + 2 std`` (Srinivas et al. 2010).
        * ``"thompson"``: a function drawn from the posterior for each experiment (Thompson 1933).
        * A callable of ``mean``, ``std`` (arrays, in units of y) and ``best``, which returns an
          array, such as `Straddle`.
    maximize : bool, default=True
        Whether to look for large values of the function. If False, ``mean`` and ``best`` have the
        opposite sign, except for a callable ``acquisition``.
    cost : callable, optional
        Function from rows ``(m, n_features)`` to positive costs ``(m,)``, by which the expected
        improvement is divided.
    constraint : callable, optional
        Function from rows ``(m, n_features)`` to booleans ``(m,)``, True if a row is possible.
    random_state : int, RandomState instance or None, default=None
        Seed of quasi-random candidates and drawn functions.

    Returns
    -------
    ndarray or data frame of shape (n, n_features)
        Inputs, in the order in which they were chosen; rows of a data frame if that was given.

    Raises
    ------
    TypeError
        If the estimator is not a fitted regressor of this package.
    ValueError
        If there are several outputs, if no candidate is possible, if costs are not positive, or if
        a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.active_learning import suggest
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> model = EvidenceMLPRegressor((2,), noise="constant", random_state=0)
    >>> model = model.fit(X, -((X[:, 0] - 0.4) ** 2))
    >>> suggest(model, [(0.0, 1.0)], random_state=0).round(2)
    array([[0.4]])
    """
    count(n, "n")
    search = _Search(estimator, acquisition, maximize, cost, constraint)
    n_features = getattr(estimator, "n_features_in_", None)  # unknown to some transformers
    bounds, rng = _bounds(candidates, n_features), generator(random_state)
    if bounds is not None:
        unit = qmc.Sobol(len(bounds), scramble=False).random_base2(LOG_CANDIDATES)
        unit = (unit + rng.random(len(bounds))) % 1.0  # a random shift leaves it balanced
        pool = bounds[:, 0] + unit * (bounds[:, 1] - bounds[:, 0])
    elif hasattr(candidates, "iloc"):
        pool = candidates
    else:
        pool = check_array(candidates, dtype=np.float64, input_name="candidates")
    pool = pool[search.possible(pool)]
    if (bounds is None and len(pool) < n) or len(pool) == 0:
        raise ValueError(
            f"Only {len(pool)} candidates are possible, {n} are wanted. Give more candidates, or a "
            "constraint that allows more of them."
        )
    chosen: Any = np.empty((0, pool.shape[1]))
    taken: list[int] = []
    for _ in range(n):
        score = search.score(chosen, rng)
        if bounds is not None:
            chosen = np.vstack([chosen, search.within(bounds, pool, score, chosen)])
            continue
        values = search.without_repeats(score(pool)[1], pool, chosen)
        values[taken] = -np.inf
        taken.append(int(np.argmax(values)))
        chosen = pool.iloc[taken] if hasattr(pool, "iloc") else pool[taken]
    return chosen


def log_expected_improvement(mean: Array, std: Array, best: float) -> Array:
    """Logarithm of the expected improvement over the best value.

    With ``z = (mean - best) / std`` it is ``ln std + ln(phi(z) + z Phi(z))`` (Jones, Schonlau &
    Welch 1998, equation 15). Far below the best value the sum cancels; ``ln phi(z) + ln(1 + z
    Phi(z)/phi(z))`` is accurate there (Ament et al. 2023, section 4.1).

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Mean and standard deviation of the function, which is to be large.
    best : float
        Largest mean of the function at the training rows.

    Returns
    -------
    ndarray of shape (n,)
        Logarithms of improvements in the units of the function.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.active_learning import log_expected_improvement
    >>> log_expected_improvement(np.array([0.0, -50.0]), np.ones(2), 0.0).round(2)
    array([-9.20000e-01, -1.25874e+03])
    """
    with np.errstate(divide="ignore", over="ignore"):
        z = (mean - best) / np.maximum(std, np.finfo(float).tiny)
        near, far = np.maximum(z, FAR), np.minimum(z, FAR)
        close = np.log(np.exp(-0.5 * near**2 - LOG_SQRT_2_PI) + near * ndtr(near))
        mills = np.sqrt(np.pi / 2.0) * erfcx(-far / np.sqrt(2.0))  # Phi(z) / phi(z)
        rest = np.where(far < FARTHEST, far**-2.0, 1.0 + far * mills)  # 1 + z Phi/phi ~ 1 / z^2
        distant = -0.5 * far**2 - LOG_SQRT_2_PI + np.log(rest)
        return np.log(std) + np.where(z > FAR, close, distant)


@documented(log_expected_improvement.__doc__ or "")
def upper_confidence_bound(mean: Array, std: Array, best: float) -> Array:
    """Upper end ``mean + 2 std`` of an interval of the function (Srinivas et al. 2010).

    Parameters
    ----------
    best : float
        Not used.

    Returns
    -------
    ndarray of shape (n,)
        Bounds, in the units of the function.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.active_learning import upper_confidence_bound
    >>> upper_confidence_bound(np.zeros(2), np.array([1.0, 2.0]), 0.0)
    array([2., 4.])
    """
    return mean + 2.0 * std


class Straddle:
    """Acquisition ``1.96 std - |mean - threshold|`` of rows near a contour of the function.

    It is large where the function may lie on either side of the threshold (Bryan et al. 2005).

    Parameters
    ----------
    threshold : float
        Value whose contour is wanted, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.active_learning import Straddle
    >>> Straddle(1.0)(np.array([1.0, 3.0]), np.ones(2), 0.0)
    array([ 1.96, -0.04])
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def __call__(self, mean: Array, std: Array, best: float) -> Array:
        """Evaluate at means and standard deviations ``(n,)``."""
        return 1.96 * std - np.abs(mean - self.threshold)


ACQUISITIONS = {
    "log_expected_improvement": log_expected_improvement,
    "upper_confidence_bound": upper_confidence_bound,
}


class _Search:
    """Acquisition function of a fitted model at rows in the units of the user."""

    def __init__(self, estimator, acquisition, maximize, cost, constraint):
        self.model, prepare = resolve(estimator, RegressionFit, "regressor of this package")
        self.prepare = lambda X: prepare(named(estimator, X))
        if self.model.n_outputs_ > 1:
            raise ValueError(
                f"The estimator has {self.model.n_outputs_} outputs. Fit one estimator for the "
                "output, or the combination of outputs, that is to be optimised."
            )
        self.thompson = isinstance(acquisition, str) and acquisition == "thompson"
        if not (callable(acquisition) or self.thompson or acquisition in ACQUISITIONS):
            names = ", ".join(map(repr, [*ACQUISITIONS, "thompson"]))
            raise ValueError(f"acquisition must be {names} or a callable, got {acquisition!r}.")
        if cost is not None and acquisition != "log_expected_improvement":
            raise ValueError(
                "cost divides the expected improvement; with another acquisition, let a callable "
                "account for it."
            )
        self.function = acquisition if callable(acquisition) else ACQUISITIONS.get(acquisition)
        self.sign = 1.0 if maximize or callable(acquisition) else -1.0
        self.cost, self.constraint = cost, constraint
        self.best = np.max(self.sign * self._at(self.model._result.problem.X).mean())

    def possible(self, X):
        """Mask of the rows that the constraint allows."""
        if self.constraint is None:
            return np.ones(len(X), dtype=bool)
        return _per_row("constraint", "booleans", np.asarray(self.constraint(X), dtype=bool), X)

    def without_repeats(self, values, X, chosen):
        """Set values of rows next to a measured or chosen one to ``-inf``, unless all are.

        Values stay if there is surely noise.
        """
        ensemble, measured_rows = self.model._ensemble, self.model._result.problem.X
        exact = np.max(ensemble.typical_noise_variances, axis=1) < NO_NOISE**2
        if self.model._counts or ensemble.member_weights @ exact < SOME:
            return values
        Z = self.prepare(X)
        near = cKDTree(measured_rows).query(Z, p=np.inf)[0] < NEAR / len(measured_rows)
        if len(chosen):
            distances = cKDTree(self.prepare(chosen)).query(Z, p=np.inf)[0]
            near |= distances < NEAR_CHOSEN / len(measured_rows)
        return values if near.all() else np.where(near, -np.inf, values)

    def score(self, chosen, rng):
        """Mean of the function, which is to be large, and acquisition function of rows.

        The latter is given the rows that were chosen before.
        """
        if self.thompson:
            seed = int(rng.integers(2**32))

            def drawn(X):  # the same function at every call
                draw = np.random.default_rng(seed)
                f = self.model._ensemble.draw(self.prepare(X), draw, 1)
                f = self.sign * self.model._y_scaling.inverse(f)[0, :, 0]
                return f, f

            return drawn
        pending, best = None, self.best
        if len(chosen):
            pending = self.prepare(chosen)
            best = max(best, np.max(self.sign * self._at(pending).mean()))

        def score(X):
            Z = self.prepare(X)
            mean, std = self._at(Z)._mean_and_std("epistemic")
            mean = self.sign * mean
            if pending is not None:
                std = std * np.sqrt(self.left(Z, pending))
            values = np.asarray(self.function(mean, std, best))
            _per_row("acquisition", "numbers", values, X, ~np.isnan(values))
            if self.cost is None:
                return mean, values
            cost = np.asarray(self.cost(X), dtype=float)
            _per_row("cost", "positive numbers", cost, X, (cost > 0) & np.isfinite(cost))
            return mean, values - np.log(cost)

        return score

    def left(self, Z, pending):
        """Share of the variance of the function that is left after measurements elsewhere."""
        models, weights = linear_models(self.model, self.model._ensemble)
        targets = [measured(linear.expand(pending)[1][:, 0]) for linear in models]
        share = np.empty(len(Z))
        for rows in row_blocks(len(Z), sum(linear.part.n_unknowns for linear in models)):
            moments = [linear.part.whitened(Z[rows]) for linear in models]
            mean = np.stack([mean[:, 0] for mean, _ in moments])
            before = np.stack([np.sum(V**2, axis=(1, 2)) for _, V in moments])
            after = [observed(V, own) for (_, V), own in zip(moments, targets, strict=True)]
            fall = before - np.stack([np.sum(V**2, axis=(1, 2)) for V in after])
            total = weights @ (before + mean**2) - (weights @ mean) ** 2
            share[rows] = 1.0 - weights @ fall / np.maximum(total, np.finfo(float).tiny)
        return np.clip(share, 0.0, 1.0)

    def within(self, bounds, pool, score, chosen):
        """Find the best row within bounds, which is possible and no repeat.

        A local optimiser starts at the best rows of the pool. The acquisition function often has a
        narrow maximum near that of the mean, so the row of largest mean is a start, too.
        """
        low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
        means, values = score(pool)
        order = np.argsort(-self.without_repeats(values, pool, chosen))[:N_STARTS]
        starts = pool[[*order, np.argmax(means)]]
        improved = [starts[0], *(_improved(score, start, low, width) for start in starts)]
        improved = np.array(improved)
        improved = improved[self.possible(improved)]
        return improved[np.argmax(self.without_repeats(score(improved)[1], improved, chosen))]

    def _at(self, Z):
        """Predictive distribution at standardised rows, in units of y."""
        return PredictiveDistribution(self.model._ensemble, Z, self.model._y_scaling, True)


def _per_row(name, what, values, X, valid=True):
    """Return what a user's function gives for rows; raise unless it has the right form."""
    if values.shape != (len(X),) or not np.all(valid):
        raise ValueError(
            f"{name} must return {len(X)} {what}, one per row; it returned {values!r}."
        )
    return values


def _improved(score, start, low, width):
    """Improve a row locally within bounds."""
    steps = np.vstack([np.zeros(len(low)), STEP * np.eye(len(low))])

    def worse(u):  # value and differences, inwards at upper bounds
        inwards = np.where(u + STEP > 1.0, -1.0, 1.0)
        values = -score(low + width * (u + steps * inwards))[1]
        return values[0], inwards * (values[1:] - values[0]) / STEP

    result = minimize(
        worse,
        (start - low) / width,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 1)] * len(low),
        options={"maxiter": MOST_ITERATIONS},
    )
    return low + width * result.x


def _bounds(candidates, n_features):
    """Limits ``(n_features, 2)`` if they are given instead of candidates, else ``None``."""
    if isinstance(candidates, dict):
        raise ValueError("Give limits as a list of pairs, in the order of the columns of X.")
    if isinstance(candidates, Bounds):
        pairs = np.column_stack(np.broadcast_arrays(candidates.lb, candidates.ub)).astype(float)
    elif isinstance(candidates, list | tuple) and (
        np.shape(candidates) == (n_features, 2)
        or any(isinstance(c, tuple) or np.ndim(c) == 0 for c in candidates)
    ):
        pairs = np.array(candidates, dtype=float)
    else:
        return None
    if pairs.shape != (n_features or len(pairs), 2) or not np.all(np.isfinite(pairs)):
        raise ValueError(
            f"Limits must be finite pairs (low, high), one for each column of X; got {candidates}. "
            "Give candidates as an array with one row each."
        )
    if np.any(pairs[:, 0] >= pairs[:, 1]):
        raise ValueError("Every lower bound must be below its upper bound.")
    return pairs
