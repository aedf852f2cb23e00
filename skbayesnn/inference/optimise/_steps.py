"""Minimisation loop of the energy ``M(w)``: trial steps, acceptance, and rules after them.

The order of calls::

    search = Search(point)                         # a Point: weights, precisions, M to second order
    while not search.done and search.n_iter < max_iter:
        trial = steps.trial(posterior, search)     # DampedSteps or Descents
        if search.accepts(trial):
            search = rule.after(search, trial)     # FixedPrecisions, Reestimation, ...
        else:
            search = rule.stuck(search.rejected(trial))

Training, convergence to a minimum and its polish are this loop with different steps, rules and
tolerances. `_loops`, built from ``_loops.pyx``, is the loop in the compiled core. It supports fixed
and re-estimated precisions, priors of mean zero and matrices that the core forms. Other steps, such
as leaving a saddle point or using eigenvalues in place of a Cholesky factor, are taken in NumPy,
after which the compiled loop continues.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from skbayesnn.inference.curvature._method import Method, Point
from skbayesnn.inference.curvature._precision import DensePrecision
from skbayesnn.inference.optimise._damped import (
    NO_WAY_DOWN,
    ROUNDING,
    SLACK,
    DampedSteps,
    Search,
    Trial,
)
from skbayesnn.inference.optimise._reestimation import Calm
from skbayesnn.inference.task._progress import NEVER, Deadline
from skbayesnn.posterior import Energies, Hyperparameters

try:
    from skbayesnn.inference.optimise import _loops
except ImportError:  # installed without a compiler
    _loops = None

CORRECTIONS = 20  # correction pairs of steps and gradients in L-BFGS
DESCENT_STEPS = 1000  # quasi-Newton steps of one descent
AT_ONCE = 20  # steps of the compiled loop between checks of the deadline


class Descents(NamedTuple):
    """Gradient-based descents by L-BFGS (Byrd et al. 1995) at fixed precisions.

    ``tol()`` is the decrease (nats) by one quasi-Newton step at which the next descent ends; the
    deadline interrupts a descent.
    """

    tol: Callable
    deadline: Deadline = NEVER
    compiled = False

    def trial(self, posterior, search):
        """Try a descent; the arguments are those of `DampedSteps.trial`."""
        theta, hyper = search.point.theta, search.point.hyper

        def energy_and_gradient(w):
            energies, gradient = posterior.energies_and_gradient(w, hyper)
            return float(energies.total(hyper)), gradient

        start = float(posterior.energies(theta, hyper.beta).total(hyper))
        options = {
            "maxcor": CORRECTIONS,
            "maxiter": DESCENT_STEPS,
            "maxfun": 2 * DESCENT_STEPS,
            "ftol": self.tol() / max(1.0, abs(start)),
            "gtol": 1e-9,
        }

        def check(intermediate_result):
            if self.deadline.passed:
                raise StopIteration

        found = minimize(
            energy_and_gradient,
            theta,
            method="L-BFGS-B",
            jac=True,
            options=options,
            callback=check,
        )
        if not found.fun <= start:
            return Trial(theta, posterior.energies(theta, hyper.beta), 0.0, 0.0)
        gain = start - float(found.fun)
        return Trial(found.x, posterior.energies(found.x, hyper.beta), gain, gain)


def lower(posterior, steps, rule, search, max_iter, deadline=NEVER, loop=None):
    """Run the loop of the module's docstring, by the rule's `compiled_loop` if there is one."""
    if loop is None and steps.compiled:
        loop = compiled_loop(posterior, rule)
    while not search.done and search.n_iter < max_iter and not deadline.passed:
        if loop is not None:
            search, left = loop.run(search, min(max_iter, search.n_iter + AT_ONCE))
            if not left:
                continue
        trial = steps.trial(posterior, search)
        if search.accepts(trial):
            search = rule.after(search, trial)
        else:
            search = rule.stuck(search.rejected(trial))
    return search


class FixedPrecisions(NamedTuple):
    """Rule of a search at fixed precisions that ends at the minimum."""

    posterior: object
    method: object
    tol: float  # bound on the Newton decrement (nats)
    exact: bool = True  # Hessian; a saddle is left along the eigenvector of the lowest eigenvalue
    confined: bool = False  # give up outside the basin of the minimum, where A is not definite

    free = None  # no precisions are re-estimated

    def begun(self, theta, hyper):
        """Begin a `Search` at given weights."""
        return self._assessed(Search(self._point(theta, hyper)))

    def after(self, search, trial):
        """Expand ``M`` at the new weights, and assess convergence."""
        point = self._point(trial.theta, search.point.hyper)
        search = self._assessed(search.accepted(trial, point))
        rounding = SLACK * abs(point.energy)
        ended = trial.promise < (rounding if self.exact else self.tol)  # Gauss-Newton steps creep
        if not ended:
            return search
        return self.stuck(search._replace(done=True, converged=point.precision.definite))

    def stuck(self, search):
        """Handle a search without a downhill step: at a minimum to rounding, or at a saddle."""
        if not search.done or search.point.precision.definite or self.confined:
            return search
        theta = _escaped(self.posterior, search.point)
        if theta is None:
            return search._replace(converged=False)
        point = self._point(theta, search.point.hyper)
        return self._assessed(Search(point, n_iter=search.n_iter))

    def _point(self, theta, hyper):
        return self.method.point(self.posterior, theta, hyper, self.exact)

    def _assessed(self, search):
        """Mark the search as done if the Newton decrement is small."""
        if not search.point.precision.definite:
            return search._replace(done=self.confined)
        small = decrement(search.point) < max(self.tol, ROUNDING * abs(search.point.energy))
        return search._replace(done=bool(small), converged=bool(small))


class UntilLittleIsGained(NamedTuple):
    """Rule of descents at fixed precisions that ends when one gains less than ``tol`` nats."""

    tol: float

    def after(self, search, trial):
        """Accept the new weights, and assess the gain."""
        point = search.point._replace(theta=trial.theta, energies=trial.energies)
        small = bool(trial.gain < self.tol)
        return search.accepted(trial, point)._replace(done=small, converged=small)

    def stuck(self, search):
        """End the search: no descent leads lower."""
        return search._replace(done=True, converged=True)


NEAR = 1e-2  # decrease of M (nats) by one descent below which Newton steps take over
LOW = 1e-4  # the same threshold where no Newton steps follow
STEP_SHARE = 1e-3  # of the resolution: the decrease by one step that ends a descent
MOST_DESCENTS = 10
FINE = 1e-7  # decrease of M (nats) by one quasi-Newton step that ends a descent to a minimum
COARSE = 1e-5  # the same decrease where Newton steps follow


def find_mode(
    posterior, method, theta, hyper, max_iter=200, tol=1e-12, confined=False, towards=None
):
    """Find a mode of the posterior: minimise ``M(w)`` at fixed precisions.

    Levenberg-Marquardt steps use the exact Hessian where it is formed: the Gauss-Newton
    approximation needs several times as many steps if residuals are not small. Large networks use
    L-BFGS descents.

    ``tol`` bounds the Newton decrement (nats), and is at least `LOW` without exact Hessian. The
    search starts from the weights ``towards`` if they are given and their energy is lower. Its
    last point has the exact Hessian where such matrices are formed.
    """
    late = method.deadline.with_grace()
    if method.early:
        return Search(method.point(posterior, theta, hyper), done=True, converged=True)
    if method.by_gradients:
        theta, towards = nearer(posterior, theta, towards, hyper), None
        energies = posterior.energies(theta, hyper.beta)
        search = Search(Point(theta, hyper, energies, None, None))
        enough = NEAR if method.dense else max(LOW, method.resolution)
        fine = COARSE if method.dense else max(FINE, STEP_SHARE * method.resolution)
        steps = Descents(lambda: fine, late)
        search = lower(posterior, steps, UntilLittleIsGained(enough), search, MOST_DESCENTS, late)
        theta = search.point.theta
        if not method.dense:
            return search._replace(point=method.point(posterior, theta, hyper))
    tol = tol if method.dense else max(tol, LOW)
    rule = FixedPrecisions(posterior, method, tol, method.dense, confined)
    return _descended(rule, theta, hyper, max_iter, late, towards)


def _descended(rule, theta, hyper, max_iter, deadline, towards):
    """Run `lower` with damped steps at fixed precisions, from the better of two weights."""
    posterior, search = rule.posterior, None
    loop = compiled_loop(posterior, rule)
    if loop is not None:
        until = 0 if deadline.passed else min(max_iter, AT_ONCE)
        search = loop.begun(theta, hyper, until, towards)
    if search is None:
        search = rule.begun(nearer(posterior, theta, towards, hyper), hyper)
    return lower(posterior, DampedSteps(), rule, search, max_iter, deadline, loop)


def nearer(posterior, theta, towards, hyper):
    """Weights of lower energy among ``theta`` and ``towards``, if the latter are given."""
    if towards is None:
        return theta
    both = np.stack([theta, towards])
    energies = posterior.energies(both, hyper.beta).total(hyper)
    return both[int(energies[1] < energies[0])]


def decrement(point):
    """Newton decrement ``1/2 g^T A^-1 g``: height of ``M`` above its expansion's minimum (nats)."""
    return float(0.5 * point.gradient @ point.precision.solve(point.gradient))


def _escaped(posterior, point):
    """Step downhill from a saddle along the eigenvector of ``A``'s lowest eigenvalue, or ``None``.

    A line search halves the step until the energy falls in either direction.
    """
    if not np.all(np.isfinite(point.precision.matrix)):
        return None
    direction = eigh(point.precision.matrix, subset_by_index=[0, 0])[1][:, 0]
    for size in 0.5 ** np.arange(20):
        for signed in (size, -size):
            theta = point.theta + signed * direction
            energies = posterior.energies(theta, point.hyper.beta)
            if energies.total(point.hyper) < point.energy - NO_WAY_DOWN:
                return theta
    return None


def compiled_loop(posterior, rule):
    """Build the compiled loop of a posterior and a rule, or return ``None`` if unsupported."""
    kept, model = posterior.kept, posterior.compiled
    name = "loop", rule.exact  # at fixed precisions
    small = _loops is not None and posterior.is_compiled
    if not (small and posterior.groups.centred and rule.method.forms(rule.exact)):
        return None
    if rule.free is not None:
        return Loop(_loops.Loop(model, _plan(posterior, rule)), rule)
    if name not in kept:
        kept[name] = _loops.Loop(model, _plan(posterior, rule))
    return Loop(kept[name], rule)


def _plan(posterior, rule):
    """Constants of the loop under a rule, read by ``_loops.Loop``.

    ``free``, the bounds, and the counts and rates of the `Hyperpriors` cover groups, then levels.
    """
    hidden, n_levels = bool(posterior.network.hidden_layer_sizes), posterior.likelihood.n_levels
    size = len(posterior.groups.names) + n_levels
    free, bounds, more, rate = np.zeros(size, dtype=bool), np.ones((2, size)), *np.zeros((2, size))
    if rule.free is not None:
        free, prior = rule.free.mask, rule.free.prior
        bounds, more, rate = np.exp(prior.log_range), prior.counts, prior.rate
    return SimpleNamespace(
        labels=posterior.groups.labels,
        sizes=posterior.groups.sizes,
        counts=posterior.level_counts,
        bends=hidden,  # whether steps have geodesic acceleration
        solves_outputs=hidden and n_levels > 0,  # in closed form
        is_quadratic=posterior.is_quadratic,
        by_rounding=Method.loses_definiteness(posterior, rule.exact),
        exact=rule.exact,
        reestimates=rule.free is not None,
        free=free,
        low=bounds[0],
        high=bounds[1],
        more=more,
        rate=rate,
    )


class Loop(NamedTuple):
    """Runner of searches by a ``_loops.Loop`` of the compiled core."""

    compiled: Any
    rule: Any

    def begun(self, theta, hyper, until, towards=None):
        """Run a search for ``until`` steps from weights ``theta``, or ``towards`` if lower.

        Returns ``None`` if the search has to start in NumPy.
        """
        state = _room(len(theta), len(hyper.alpha), len(hyper.beta))
        vars(state).update(vars(BEGINNING), tau_factor=np.ones(len(hyper.alpha) + 1))
        state.theta[0], state.precisions[0] = theta, np.concatenate(hyper)
        at, _ = self.compiled.run(state, until, self.rule.tol, self.rule.confined, towards)
        return _search_of(state, at, hyper, None) if state.begun else None

    def run(self, search, until):
        """Continue a search up to a total number of steps.

        Also returns whether the next step has to be taken in NumPy.
        """
        precision = search.point.precision
        dense = isinstance(precision, DensePrecision)
        if not dense or (self.compiled.by_rounding and not precision.definite):
            return search, True
        state = _state(search)
        at, left = self.compiled.run(state, until, self.rule.tol, self.rule.confined)
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
