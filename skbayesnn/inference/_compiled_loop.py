"""The loop of damped steps in the compiled core, where it can do what is asked for.

`_loops` is made from ``_loops.pyx``. It knows the two rules that re-estimate precisions or leave
them, for priors of mean zero and matrices that the core makes. A step that needs more, such as the
way out of a saddle point or eigenvalues in place of a Cholesky factor, is made in NumPy, after
which the compiled loop goes on.
"""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from skbayesnn.inference._method import Point
from skbayesnn.inference._precision import DensePrecision
from skbayesnn.inference._reestimation import Calm
from skbayesnn.posterior import Energies, Hyperparameters, instructions

try:
    from skbayesnn.inference import _loops
except ImportError:  # installed without a compiler
    _loops = None

AT_ONCE = 20  # steps between looks at the clock


class Plan(NamedTuple):
    """What stays the same in a loop: see `Posterior`, and the rule's ``terms``.

    Attributes
    ----------
    labels : ndarray of shape (k,)
    sizes : ndarray of shape (n_groups,)
    counts : ndarray of shape (n_levels,)
    bends : bool
        Whether steps are bent.
    solves_outputs : bool
        Whether the output layer is put at its best.
    is_quadratic : bool
    by_rounding : bool
        Whether matrices that are not definite can only be so by rounding.
    exact, reestimates, confined : bool
    tol : float
    free : ndarray of shape (n_groups + n_levels,)
    low, high, more, rate : ndarray of the same shape
        Bounds of the precisions, and the counts and rates of their `Hyperpriors`.
    """

    labels: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    bends: bool
    solves_outputs: bool
    is_quadratic: bool
    by_rounding: bool
    exact: bool
    reestimates: bool
    confined: bool
    tol: float
    free: np.ndarray
    low: np.ndarray
    high: np.ndarray
    more: np.ndarray
    rate: np.ndarray


def compiled_loop(posterior, rule):
    """The loop of a posterior and a rule, or ``None``.

    Parameters
    ----------
    posterior : Posterior
    rule : FixedPrecisions or Reestimation
    """
    model, terms, method = posterior.compiled, rule.terms, rule.method
    if (
        _loops is None
        or instructions() is None
        or not (model and model.is_small and posterior.groups.centred)
        or not method.forms(terms.exact)
    ):
        return None
    hidden, n_levels = bool(posterior.network.hidden_layer_sizes), posterior.likelihood.n_levels
    size = len(posterior.groups.names) + n_levels
    free, bounds, more, rate = np.zeros(size, dtype=bool), np.ones((2, size)), *np.zeros((2, size))
    if terms.free is not None:
        free, prior = terms.free.mask, terms.free.prior
        bounds, more, rate = np.exp(prior.log_range), prior.counts, prior.rate
    return Loop(
        Plan(
            labels=posterior.groups.labels,
            sizes=posterior.groups.sizes,
            counts=posterior.level_counts,
            bends=hidden,
            solves_outputs=hidden and n_levels > 0,
            is_quadratic=posterior.is_quadratic,
            by_rounding=method.loses_definiteness(posterior, terms.exact),
            exact=terms.exact,
            reestimates=terms.free is not None,
            confined=terms.confined,
            tol=terms.tol,
            free=free,
            low=bounds[0],
            high=bounds[1],
            more=more,
            rate=rate,
        ),
        model,
    )


class Loop:
    """Runs searches in the compiled core.

    Parameters
    ----------
    plan : Plan
    model : Model
        Of the compiled core.
    """

    def __init__(self, plan, model):
        self._plan, self._loop = plan, _loops.Loop(model, plan)

    def takes(self, search):
        """Whether a search can go on here."""
        precision = search.point.precision
        matrix = isinstance(precision, DensePrecision)
        return matrix and (precision.definite or not self._plan.by_rounding)

    def run(self, search, until):
        """Go on with a search.

        Parameters
        ----------
        search : Search
        until : int
            Steps in all.

        Returns
        -------
        search : Search
        left : bool
            Whether the next step is to be made in NumPy.
        """
        state = self._state(search)
        at, left = self._loop.run(state, until)
        if state.n_iter == search.n_iter:
            return search, left
        precision = DensePrecision(state.matrix[at].copy())
        if state.definite:
            precision.factor = np.triu(state.factor[at]).T
        precisions = np.split(state.precisions[at].copy(), [len(self._plan.sizes)])
        energies = Energies(
            state.weights[at].copy(), np.asarray(state.misfit[at]), state.errors[at].copy()
        )
        hyper = Hyperparameters(*precisions)
        theta, gradient = state.theta[at].copy(), state.gradient[at].copy()
        point = Point(theta, hyper, energies, gradient, precision)
        memory = search.memory
        if memory is not None:
            memory = Calm(state.small, state.accepted, state.tau_factor)
        there = state.damping, state.growth, state.n_iter, state.done, state.converged, memory
        return type(search)(point, *there), left

    def _state(self, search):
        """A search in arrays, with room for a second point."""
        point, calm = search.point, search.memory
        k, G, L = len(self._plan.labels), len(self._plan.sizes), len(self._plan.counts)
        calm = Calm(0, 0, np.ones(G)) if calm is None else calm
        state = SimpleNamespace(**search._asdict(), small=calm.small, accepted=calm.accepted)
        state.tau_factor = np.append(calm.tau_factor, 1.0)[:G]
        widths = {"theta": k, "precisions": G + L, "weights": G, "errors": L, "gradient": k}
        for name, width in widths.items():
            setattr(state, name, np.empty((2, width)))
        state.matrix, state.factor = np.empty((2, k, k)), np.empty((2, k, k))
        state.misfit = np.full(2, point.energies.misfit)
        state.theta[0], state.gradient[0] = point.theta, point.gradient
        state.precisions[0] = np.concatenate(point.hyper)
        state.weights[0], state.errors[0] = point.energies.weights, point.energies.errors
        state.matrix[0], state.energy = point.precision.matrix, point.energy
        state.definite = point.precision.definite
        if state.definite:
            state.factor[0] = point.precision.factor.T
        return state
