"""Levenberg-Marquardt loop of the compiled core, for the cases that it supports.

`_loops` is built from ``_loops.pyx``. It supports fixed and re-estimated precisions, priors of mean
zero and matrices that the core forms. Other steps, such as leaving a saddle point or using
eigenvalues in place of a Cholesky factor, are taken in NumPy, after which the compiled loop
continues.
"""

from types import SimpleNamespace

import numpy as np

from skbayesnn.inference.curvature._method import Method, Point
from skbayesnn.inference.curvature._precision import DensePrecision
from skbayesnn.inference.optimise._damped import Search
from skbayesnn.inference.optimise._reestimation import Calm
from skbayesnn.posterior import Energies, Hyperparameters, instructions

try:
    from skbayesnn.inference.optimise import _loops
except ImportError:  # installed without a compiler
    _loops = None

AT_ONCE = 20  # steps between checks of the deadline


def compiled_loop(posterior, rule):
    """Build the compiled loop of a posterior and a rule, or return ``None`` if unsupported."""
    terms, kept = rule.terms, posterior.kept
    name = "loop", terms.exact  # at fixed precisions
    fixed, known = terms.free is None, name in kept
    if not (rule.method.forms(terms.exact) and (known or is_served(posterior))):
        return None
    if fixed and known:
        return Loop(kept[name], terms)
    loop = _loops.Loop(posterior.compiled, _plan(posterior, terms))
    if fixed:
        kept[name] = loop
    return Loop(loop, terms)


def is_served(posterior):
    """Return True if the compiled core supports a posterior."""
    able = _loops is not None and instructions() is not None
    return able and posterior.is_compiled and posterior.groups.centred


def _plan(posterior, terms):
    """Constants of the loop under a rule with these terms, read by ``_loops.Loop``.

    ``free``, the bounds, and the counts and rates of the `Hyperpriors` cover groups, then levels.
    """
    hidden, n_levels = bool(posterior.network.hidden_layer_sizes), posterior.likelihood.n_levels
    size = len(posterior.groups.names) + n_levels
    free, bounds, more, rate = np.zeros(size, dtype=bool), np.ones((2, size)), *np.zeros((2, size))
    if terms.free is not None:
        free, prior = terms.free.mask, terms.free.prior
        bounds, more, rate = np.exp(prior.log_range), prior.counts, prior.rate
    return SimpleNamespace(
        labels=posterior.groups.labels,
        sizes=posterior.groups.sizes,
        counts=posterior.level_counts,
        bends=hidden,  # whether steps have geodesic acceleration
        solves_outputs=hidden and n_levels > 0,  # in closed form
        is_quadratic=posterior.is_quadratic,
        by_rounding=Method.loses_definiteness(posterior, terms.exact),
        exact=terms.exact,
        reestimates=terms.free is not None,
        free=free,
        low=bounds[0],
        high=bounds[1],
        more=more,
        rate=rate,
    )


class Loop:
    """Runner of searches by a ``_loops.Loop`` of the compiled core."""

    def __init__(self, loop, terms):
        self._loop, self._terms = loop, terms

    def takes(self, search):
        """Return True if a search can continue in the compiled core."""
        precision = search.point.precision
        matrix = isinstance(precision, DensePrecision)
        return matrix and (precision.definite or not self._loop.by_rounding)

    def begun(self, theta, hyper, until, towards=None):
        """Run a search for ``until`` steps from weights ``theta``, or ``towards`` if lower.

        Returns ``None`` if the search has to start in NumPy.
        """
        state = _room(len(theta), len(hyper.alpha), len(hyper.beta))
        vars(state).update(vars(BEGINNING), tau_factor=np.ones(len(hyper.alpha) + 1))
        state.theta[0], state.precisions[0] = theta, np.concatenate(hyper)
        at, _ = self._loop.run(state, until, self._terms.tol, self._terms.confined, towards)
        return _search_of(state, at, hyper, None) if state.begun else None

    def run(self, search, until):
        """Continue a search up to a total number of steps.

        Also returns whether the next step has to be taken in NumPy.
        """
        state = _state(search)
        at, left = self._loop.run(state, until, self._terms.tol, self._terms.confined)
        if state.n_iter == search.n_iter:
            return search, left
        memory = search.memory
        if memory is not None:
            memory = Calm(state.small, state.accepted, state.tau_factor)
        return _search_of(state, at, search.point.hyper, memory), left


BEGINNING = SimpleNamespace(
    damping=0.0,
    growth=2.0,
    n_iter=0,
    small=0,
    accepted=0,
    done=False,
    converged=False,
    energy=np.nan,
    definite=False,
    begun=False,
)


def _room(k, n_groups, n_levels):
    """Allocate the arrays of two points."""
    state = SimpleNamespace(matrix=np.empty((2, k, k)), factor=np.empty((2, k, k)))
    state.theta, state.gradient = np.empty((2, k)), np.empty((2, k))
    state.precisions, state.misfit = np.empty((2, n_groups + n_levels)), np.empty(2)
    state.weights, state.errors = np.empty((2, n_groups)), np.empty((2, n_levels))
    return state


def _state(search):
    """Arrays that represent a search, with space for a second point."""
    point, calm = search.point, search.memory
    n_groups = len(point.hyper.alpha)
    calm = Calm(0, 0, np.ones(n_groups)) if calm is None else calm
    state = _room(len(point.theta), n_groups, len(point.hyper.beta))
    vars(state).update(search._asdict(), small=calm.small, accepted=calm.accepted, begun=True)
    state.tau_factor = np.append(calm.tau_factor, 1.0)[:n_groups]
    state.misfit[:] = point.energies.misfit
    state.theta[0], state.gradient[0] = point.theta, point.gradient
    state.precisions[0] = np.concatenate(point.hyper)
    state.weights[0], state.errors[0] = point.energies.weights, point.energies.errors
    state.matrix[0], state.energy = point.precision.matrix, point.energy
    state.definite = point.precision.definite
    if state.definite:
        state.factor[0] = point.precision.factor.T
    return state


def _search_of(state, at, hyper, memory):
    """Search represented by arrays."""
    n_groups = len(hyper.alpha)
    precision = DensePrecision(state.matrix[at].copy())
    if state.definite:
        precision.factor = state.factor[at].copy().T
    precisions = state.precisions[at].copy()
    hyper = Hyperparameters(precisions[:n_groups], precisions[n_groups:])
    energies = state.weights[at].copy(), np.asarray(state.misfit[at]), state.errors[at].copy()
    theta, gradient = state.theta[at].copy(), state.gradient[at].copy()
    point = Point(theta, hyper, Energies(*energies), gradient, precision)
    there = state.damping, state.growth, state.n_iter, state.done, state.converged, memory
    return Search(point, *there)
