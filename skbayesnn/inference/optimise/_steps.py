"""Minimisation loop of the energy ``M(w)``: trial steps, acceptance, and rules after them.

Training, convergence to a minimum and its polish are this loop with different steps, rules and
tolerances.
"""

from typing import NamedTuple

from scipy.optimize import minimize

from skbayesnn._progress import NEVER, Deadline
from skbayesnn.inference.curvature._method import Method, Point
from skbayesnn.inference.optimise._damped import ROUNDING, SLACK, DampedSteps, Search, Step
from skbayesnn.posterior import Posterior

CORRECTIONS = 20  # correction pairs of steps and gradients in L-BFGS
DESCENT_STEPS = 1000  # quasi-Newton steps of one descent


class Descents(NamedTuple):
    """Gradient-based descents by L-BFGS (Byrd et al. 1995) at fixed precisions.

    ``tol`` is the decrease (nats) by one quasi-Newton step at which the next descent ends; the
    deadline interrupts a descent.
    """

    tol: float
    deadline: Deadline = NEVER

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
            "ftol": self.tol / max(1.0, abs(start)),
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
        if not found.fun <= start:  # higher or nan: a trial that gains nothing is rejected
            return Step(theta, posterior.energies(theta, hyper.beta), 0.0, 0.0)
        gain = start - float(found.fun)
        return Step(found.x, posterior.energies(found.x, hyper.beta), gain, gain)


def lower(posterior, steps, rule, search, max_iter, deadline=NEVER):
    """Run the loop of trial steps and rules."""
    while not search.done and search.n_iter < max_iter and not deadline.passed:
        trial = steps.trial(posterior, search)
        if search.accepts(trial):
            search = rule.after(search, trial)
        else:
            search = rule.stuck(search.rejected(trial))
    return search


class FixedPrecisions(NamedTuple):
    """Rule of a search at fixed precisions that ends at the minimum."""

    posterior: Posterior
    method: Method
    tol: float  # bound on the Newton decrement (nats)
    exact: bool = True  # Hessian
    confined: bool = False  # give up outside the basin of the minimum, where A is not definite

    def begun(self, theta, hyper):
        """Begin a `Search` at given weights."""
        return self._assessed(Search(self.method.point(self.posterior, theta, hyper, self.exact)))

    def after(self, search, trial):
        """Expand ``M`` at the new weights, and assess convergence."""
        hyper = search.point.hyper
        point = self.method.point(self.posterior, trial.theta, hyper, self.exact)
        search = self._assessed(search.accepted(trial, point))
        rounding = SLACK * abs(point.energy)
        # Gauss-Newton steps converge slowly where residuals are not small, Newton steps to rounding
        ended = trial.promise < (rounding if self.exact else self.tol)
        if not ended:
            return search
        return search._replace(done=True, converged=point.precision.definite)

    def stuck(self, search):
        """Handle a search without a downhill step: at a minimum to rounding, or at a saddle."""
        return search._replace(converged=search.converged and search.point.precision.definite)

    def _assessed(self, search):
        """Mark the search as done if the Newton decrement is small."""
        if not search.point.precision.definite:
            return search._replace(done=self.confined)
        point = search.point
        # Newton decrement: the height of M above the minimum of its expansion (nats)
        decrement = 0.5 * point.gradient @ point.precision.solve(point.gradient)
        small = decrement < max(self.tol, ROUNDING * abs(point.energy))
        return search._replace(done=bool(small), converged=bool(small))


NEAR = 1e-2  # decrease of M (nats) by one descent below which Newton steps take over
LOW = 1e-4  # the same threshold where no Newton steps follow
STEP_SHARE = 1e-3  # of these decreases, by one quasi-Newton step, that ends a descent
MAX_DESCENTS = 10


def find_mode(posterior, method, theta, hyper, max_iter=200, tol=1e-12, confined=False):
    """Find a mode of the posterior: minimise ``M(w)`` at fixed precisions.

    Levenberg-Marquardt steps use the exact Hessian where it is formed: the Gauss-Newton
    approximation needs several times as many steps if residuals are not small. Large networks use
    L-BFGS descents.

    ``tol`` bounds the Newton decrement (nats), and is at least `LOW` without exact Hessian. The
    last point has the exact Hessian where such matrices are formed.
    """
    deadline = Deadline(method.deadline.at + method.deadline.grace)
    if method.early:
        return Search(method.point(posterior, theta, hyper), done=True, converged=True)
    if method.by_gradients:
        energies = posterior.energies(theta, hyper.beta)
        search = Search(Point(theta, hyper, energies, None, None))
        little = NEAR if method.dense else max(LOW, method.resolution)
        steps = Descents(STEP_SHARE * little, deadline)
        while not (search.done or deadline.passed) and search.n_iter < MAX_DESCENTS:
            trial = steps.trial(posterior, search)
            point, ended = search.point, bool(trial.gain < little)
            point = point._replace(theta=trial.theta, energies=trial.energies)
            search = search.accepted(trial, point)._replace(done=ended, converged=ended)
        theta = search.point.theta
        if not method.dense:
            return search._replace(point=method.point(posterior, theta, hyper))
    tol = tol if method.dense else max(tol, LOW)
    rule = FixedPrecisions(posterior, method, tol, method.dense, confined)
    search = rule.begun(theta, hyper)
    return lower(posterior, DampedSteps(), rule, search, max_iter, deadline)
