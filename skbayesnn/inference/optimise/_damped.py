"""Levenberg-Marquardt steps: one trial of a search for a minimum."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._method import Point
from skbayesnn.posterior import Energies

SLACK = 1e-11  # relative increase of M that counts as rounding
ROUNDING = 1e-14  # Newton decrement relative to M that counts as rounding
NO_WAY_DOWN = 1e-9  # predicted decrease (nats) of a step at a minimum, up to rounding
MIN_KEPT = 1e-4  # fraction of the predicted decrease that a step must achieve
MAX_DAMPING = 1e12  # damping at which steps vanish by rounding
MIN_DAMPING, FIRST_DAMPING = 1e-10, 1e-5  # if positive; after the first rejected step
MIN_CUT = 0.05  # least factor of the damping after a successful step
CUT_OUTSIDE = 1.0 / 3.0  # its value where the matrix is not definite and needs damping
TINY = np.finfo(float).tiny


class Step(NamedTuple):
    """Result of a trial step, with the predicted and the actual decrease of ``M``."""

    theta: np.ndarray
    energies: Energies
    promise: float  # by the quadratic approximation; nan without a step
    gain: float


class Search(NamedTuple):
    """State of a search for a minimum."""

    point: Point
    damping: float = 0.0  # of the next step
    growth: float = 2.0  # factor of the damping if that step is rejected (Nielsen 1999)
    n_iter: int = 0  # trials so far
    done: bool = False
    converged: bool = False
    memory: object = None  # state that the rule keeps between steps

    def accepts(self, trial):
        """Return True if a step achieves a sufficient share of the predicted decrease."""
        slack = SLACK * abs(self.point.energy)
        return bool(trial.gain > MIN_KEPT * trial.promise - slack)

    def accepted(self, trial, point):
        """Move to the new point and update the damping by the gain ratio (Nielsen 1999)."""
        search = self._replace(point=point, growth=2.0, n_iter=self.n_iter + 1)
        if not self.damping:
            return search
        kept = trial.gain >= trial.promise  # also where both vanish by rounding
        ratio = 1.0 if kept else max(trial.gain, 0.0) / max(trial.promise, TINY)
        least = MIN_CUT if point.precision.definite else CUT_OUTSIDE
        damping = self.damping * max(least, 1.0 - (2.0 * ratio - 1.0) ** 3)
        return search._replace(damping=max(damping, MIN_DAMPING))

    def rejected(self, trial):
        """Increase the damping; the search is done if no step can lower the energy."""
        search = self._replace(
            damping=self.damping * self.growth or FIRST_DAMPING,
            growth=2.0 * self.growth,
            n_iter=self.n_iter + 1,
        )
        if 0 <= trial.promise < NO_WAY_DOWN or search.damping > MAX_DAMPING:
            return search._replace(done=True, converged=bool(trial.promise < NO_WAY_DOWN))
        return search


class DampedSteps:
    """Levenberg-Marquardt steps.

    After each step the output layer is solved for, where its optimum has a closed form.
    """

    def trial(self, posterior, search):
        """Try a Levenberg-Marquardt step (Marquardt 1963)."""
        theta, hyper, energies, gradient, precision = point = search.point
        metric = np.maximum(np.abs(precision.diagonal), posterior.groups.diagonal(hyper.alpha))
        damped = precision.damped(search.damping, metric)
        if not damped.definite:
            return Step(theta, energies, np.nan, -np.inf)
        step = -damped.solve(gradient)
        promise = 0.5 * (search.damping * metric @ step**2 - gradient @ step)  # Nielsen 1999
        theta = posterior.with_best_outputs(theta + step, hyper)
        energies = posterior.energies(theta, hyper.beta)
        gain = point.energy - float(energies.total(hyper))
        return Step(theta, energies, promise, gain if np.isfinite(gain) else -np.inf)
