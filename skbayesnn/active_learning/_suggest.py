"""Suggestion of the next experiments: acquisition functions and their maxima."""

from operator import itemgetter
from typing import Any

import numpy as np
from scipy.optimize import Bounds
from scipy.spatial import cKDTree
from scipy.special import erfcx, logsumexp, ndtr
from scipy.stats import qmc
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array, Estimator, RandomState
from skbayesnn.active_learning._gain import resolve
from skbayesnn.estimators import PredictiveDistribution
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import generator, named
from skbayesnn.estimators.tasks._regression_fit import RegressionFit
from skbayesnn.network import row_blocks
from skbayesnn.predictive import normal_points

LOG_CANDIDATES, ENOUGH = 10, 256  # 2^10 quasi-random candidates; fewer possible ones make a walk
N_WALKERS, N_STEPS, MAX_TRIALS = 512, 10, 20  # of the walk; trials per step
THIN = 1e-3  # largest step of a walk, relative to the bounds, that shows a region without room
N_BEST, N_CHILDREN, N_ROUNDS = 8, 32, 24  # rows kept and tried in each round of a local search
SCALES = (-2.0, -0.5)  # of its steps, powers of ten relative to the bounds
N_VALUES = 16  # half the number of sets of values at pending rows
NO_NOISE, SOME = 0.01, 0.1  # sd of noise, in that of y, that is nearly none; share of networks
# distances of rows next to measured and to chosen ones, in sd of the inputs over the number of rows
NEAR, NEAR_CHOSEN = 0.1, 0.5
MIN_SIZE = 1e-9  # singular values, relative to the largest, that count as zero
ADVICE = "Give an array of possible rows in place of the bounds, or a constraint with more room."
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

    The acquisition function is evaluated at all candidates. Within bounds these are 1,024
    quasi-random rows, and a local search improves the best of them, and the one of largest mean. If
    a constraint allows few of these rows, candidates are found by a random walk through the region
    that it allows, from training rows and other possible rows.

    If several experiments are to run together, each is chosen given the values that the function
    may have at the earlier ones, whatever the noise there: the expected improvement is that of the
    whole batch (Ginsbourger, Le Riche & Carraro 2010), other acquisition functions are averaged
    over these values. So a batch spreads, and has no repeats; add those that you want because of
    the noise. For counts the function is the log rate. Without noise, rows next to measured or
    chosen ones are suggested only if no others are left.

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
          array, such as `Straddle`. In batches it is called for several values of earlier rows.
    maximize : bool, default=True
        Whether to look for large values of the function. If False, ``mean`` and ``best`` have the
        opposite sign, except for a callable ``acquisition``.
    cost : callable, optional
        Function from rows ``(m, n_features)`` to positive costs ``(m,)``, by which the expected
        improvement is divided.
    constraint : callable, optional
        Function from rows ``(m, n_features)`` to booleans ``(m,)``, True if a row is possible, such
        as ``lambda X: X.sum(axis=1) <= 1``. Within bounds it must leave some room: where inputs
        fulfil an equation, give an array of possible rows.
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
        If there are several outputs, if no candidate is possible, or hardly any room is left, if
        costs are not positive, or if a parameter is invalid.

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
    with search.model._ensemble.threads():
        if bounds is None:
            return _from_rows(search, candidates, n, rng)
        pool, chosen = _candidates_within(search, bounds, rng), np.empty((0, len(bounds)))
        for _ in range(n):
            chosen = np.vstack([chosen, _best_within(search, bounds, pool, chosen, rng)])
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
        self.acquisition = acquisition if callable(acquisition) else ACQUISITIONS.get(acquisition)
        of_logs = self.acquisition is log_expected_improvement
        self.average = _log_mean if of_logs else lambda scores: scores.mean(axis=0)
        self.sign = 1.0 if maximize or callable(acquisition) else -1.0
        self.cost, self.constraint = cost, constraint
        self.best = np.max(self.sign * self._at(self.model._result.problem.X).mean())

    def possible(self, X):
        """Mask of the rows that the constraint allows."""
        if self.constraint is None:
            return np.ones(len(X), dtype=bool)
        return _per_row("constraint", "booleans", np.asarray(self.constraint(X), dtype=bool), X)

    def repeats(self, X, chosen):
        """Mask of the rows next to a measured or chosen one; none if there is surely noise."""
        ensemble, measured_rows = self.model._ensemble, self.model._result.problem.X
        exact = np.max(ensemble.typical_noise_variances, axis=1) < NO_NOISE**2
        if not len(X) or self.model._counts or ensemble.member_weights @ exact < SOME:
            return np.zeros(len(X), dtype=bool)
        Z = self.prepare(X)
        near = cKDTree(measured_rows).query(Z, p=np.inf)[0] < NEAR / len(measured_rows)
        if len(chosen):
            distances = cKDTree(self.prepare(chosen)).query(Z, p=np.inf)[0]
            near |= distances < NEAR_CHOSEN / len(measured_rows)
        return near

    def training_rows(self, low, high):
        """Training rows within bounds; none if steps of a pipeline change them."""
        Z = self.model._result.problem.X
        X = self.model._X_scaling.inverse(Z)
        if X.shape[1] != len(low) or not np.allclose(self.prepare(X), Z):
            return np.empty((0, len(low)))
        inside = np.clip(X, low, high)  # rounding may have moved rows at the bounds
        return inside[np.all(np.isclose(inside, X), axis=1)]

    def function(self, Z):
        """The function at standardised rows, to be large: ``mean + V z``, ``z`` standard normal.

        This Gaussian has the moments of the mixture of networks or minima.
        """
        ensemble = self.model._ensemble
        shares = ensemble.shares
        means, vectors = zip(*(part.whitened(Z) for part in ensemble.parts), strict=True)
        means = np.hstack(means)
        mean = means @ shares
        vectors = [np.sqrt(w) * V[:, 0] for w, V in zip(shares, vectors, strict=True)]
        V = np.hstack([*vectors, np.sqrt(shares) * (means - mean[:, None])])
        scaling = self.model._y_scaling
        return self.sign * scaling.inverse(mean), self.sign * scaling.scale * V

    def score(self, chosen, rng):
        """Function of rows that returns the mean and the acquisition, given the chosen rows.

        The acquisition is averaged over values of the function at these rows: of expected
        improvements, over the best of them, that is the improvement by the whole batch.
        """
        if self.thompson:
            seed = int(rng.integers(2**32))

            def drawn(X):  # the same function at every call
                draw = np.random.default_rng(seed)
                f = self.model._ensemble.draw(self.prepare(X), draw, 1)
                f = self.sign * self.model._y_scaling.inverse(f)[0, :, 0]
                return f, f

            return drawn
        basis, values, best = self._given(chosen)

        def moments(Z):
            if not len(basis):
                mean, std = self._at(Z)._mean_and_std("epistemic")
                return np.column_stack([self.sign * mean, std])
            mean, V = self.function(Z)
            along = V @ basis.T
            rest = np.sum(V**2, axis=1) - np.sum(along**2, axis=1)
            return np.column_stack([mean, np.sqrt(np.maximum(rest, 0.0)), along])

        def score(X):
            Z = self.prepare(X)
            blocks = [moments(Z[rows]) for rows in row_blocks(len(Z), basis.shape[1])]
            mean, std, *along = np.concatenate(blocks).T
            given = mean + values @ np.array(along).reshape(-1, len(X))
            pairs = zip(given, best, strict=True)
            scores = [np.asarray(self.acquisition(some, std, most)) for some, most in pairs]
            for some in scores:
                _per_row("acquisition", "numbers", some, X, ~np.isnan(some))
            return mean, self.average(np.array(scores)) - self._log_cost(X)

        return score

    def _given(self, chosen):
        """Directions ``(q, r)`` of the values at chosen rows, sets of values, and the best of each.

        The sets ``(m, q)`` are in standard units of the directions.
        """
        if not len(chosen):
            parts = self.model._ensemble.parts
            width = len(parts) + sum(part.n_unknowns for part in parts)
            return np.empty((0, width)), np.empty((1, 0)), np.array([self.best])
        mean, V = self.function(self.prepare(chosen))
        _, sizes, basis = np.linalg.svd(V, full_matrices=False)
        basis = basis[sizes > MIN_SIZE * sizes[0]]
        q = len(basis)  # zero if the function is surely constant
        half = normal_points(max(q, 1))[:N_VALUES, :q]
        values = np.concatenate([half, -half])
        return basis, values, np.max(mean + values @ (basis @ V.T), axis=1, initial=self.best)

    def _at(self, Z):
        """Predictive distribution at standardised rows, in units of y."""
        return PredictiveDistribution(self.model._ensemble, Z, self.model._y_scaling, True)

    def _log_cost(self, X):
        if self.cost is None:
            return 0.0
        cost = np.asarray(self.cost(X), dtype=float)
        return np.log(_per_row("cost", "positive numbers", cost, X, (cost > 0) & np.isfinite(cost)))


def _from_rows(search, candidates, n, rng):
    """Choose among rows; those next to measured or chosen ones only if all others are taken."""
    rows = candidates
    if not hasattr(candidates, "iloc"):
        rows = check_array(candidates, dtype=np.float64, input_name="candidates")
    rows = rows[search.possible(rows)]
    if len(rows) < n:
        raise ValueError(
            f"Only {len(rows)} candidates are possible, {n} are wanted. Give more candidates, or a "
            "constraint that allows more of them."
        )
    taken = []
    for _ in range(n):
        chosen = rows.iloc[taken] if hasattr(rows, "iloc") else rows[taken]
        values, repeats = search.score(chosen, rng)(rows)[1], search.repeats(rows, chosen)
        left = np.setdiff1d(np.arange(len(rows)), taken)
        left = left[~repeats[left]] if not repeats[left].all() else left
        taken.append(int(left[np.argmax(values[left])]))
    return rows.iloc[taken] if hasattr(rows, "iloc") else rows[taken]


def _candidates_within(search, bounds, rng):
    """Possible rows within bounds: quasi-random ones, or those of a walk if few are possible."""
    low, high = bounds.T
    unit = qmc.Sobol(len(bounds), scramble=False).random_base2(LOG_CANDIDATES)
    unit = (unit + rng.random(len(bounds))) % 1.0  # a random shift leaves it balanced
    rows = low + unit * (high - low)
    possible = rows[search.possible(rows)]
    if len(possible) >= ENOUGH:
        return possible
    share = rng.random((len(rows), 1))  # of the way from corners and from the middle
    starts = [end + share * (rows - end) for end in (low, high, 0.5 * (low + high))]
    starts = np.vstack([search.training_rows(low, high), *starts])
    starts = np.vstack([possible, starts[search.possible(starts)]])
    if not len(starts):
        raise ValueError(f"No row within the bounds was found that the constraint allows. {ADVICE}")
    return _walk(search.possible, bounds, starts[rng.integers(len(starts), size=N_WALKERS)], rng)


def _walk(possible, bounds, rows, rng):
    """Spread possible rows evenly over the region that they are in, by hit and run.

    A step goes to a random place on a line through the row. The range of places shrinks to the row
    until one is possible (Neal 2003, section 3.3). Differences between rows give directions within
    narrow regions.
    """
    (low, high), largest = bounds.T, 0.0
    for _ in range(N_STEPS):
        steps, left = _directions(rows, len(rows), high - low, rng), np.arange(len(rows))
        reach = np.tile([-1.0, 1.0], (len(rows), 1))
        for _ in range(MAX_TRIALS):
            t = rng.uniform(*reach[left].T)
            trial = np.clip(rows[left] + t[:, None] * steps[left], low, high)
            reach[left, (t > 0).astype(int)] = t
            good = possible(trial)
            moves = np.abs(trial - rows[left])[good] / (high - low)
            largest = max(largest, np.max(moves, initial=0.0))
            rows[left[good]], left = trial[good], left[~good]
            if not len(left):
                break
    if largest < THIN:
        raise ValueError(
            "The constraint leaves hardly any room: rows that it allows cannot be moved by a "
            f"thousandth of the bounds. {ADVICE}"
        )
    return rows


def _directions(rows, size, width, rng):
    """Random steps ``(size, n_features)``: to any side, and differences between rows."""
    first, second = rows[rng.integers(len(rows), size=(2, size))]
    to_any = width * rng.standard_normal(first.shape)
    return np.where(rng.random((size, 1)) < 0.5, to_any, first - second)


def _best_within(search, bounds, pool, chosen, rng):
    """Find the best row within bounds, which is possible and no repeat.

    The acquisition function often has a narrow maximum near that of the mean, so one search starts
    at the row of largest mean, another at the best rows.
    """
    score = search.score(chosen, rng)
    fresh = pool[~search.repeats(pool, chosen)]
    pool = fresh if len(fresh) else pool
    means, values = score(pool)
    ends = []
    for start in (np.argmax(means)[None], np.argsort(-values)[:N_BEST]):
        rows, best = pool[start], values[start]
        for _ in range(N_ROUNDS):
            children = _children(rows, bounds, rng)
            children = children[search.possible(children)]
            children = children[~search.repeats(children, chosen)]
            if len(children):
                rows, best = np.vstack([rows, children]), np.append(best, score(children)[1])
                kept = np.argsort(-best, kind="stable")[:N_BEST]
                rows, best = rows[kept], best[kept]
        ends.append((best[0], rows[0]))
    return max(ends, key=itemgetter(0))[1]


def _children(rows, bounds, rng):
    """Rows within bounds at steps of many sizes from the given ones."""
    low, high = bounds.T
    scales = 10.0 ** rng.uniform(*SCALES, (N_CHILDREN, 1))
    steps = scales * _directions(rows, N_CHILDREN, high - low, rng)
    return np.clip(rows[rng.integers(len(rows), size=N_CHILDREN)] + steps, low, high)


def _log_mean(logs):
    """Logarithm of the mean over the first axis."""
    return logsumexp(logs, axis=0) - np.log(len(logs))


def _per_row(name, what, values, X, valid=True):
    """Return what a user's function gives for rows; raise unless it has the right form."""
    if values.shape != (len(X),) or not np.all(valid):
        raise ValueError(
            f"{name} must return {len(X)} {what}, one per row; it returned {values!r}."
        )
    return values


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
