"""Damped steps, bent along their valleys: one trial of a search for a minimum."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._method import Point

SLACK = 1e-11  # of M: a rise that is none
ROUNDING = 1e-14  # of M: a decrement that is none
NO_WAY_DOWN = 1e-9  # nats that the best of steps promises at a minimum, to rounding
LEAST_KEPT = 1e-4  # of the promised decrease that a step must bring
MOST_DAMPING = 1e12  # damping at which steps are lost in rounding
LEAST_DAMPING, FIRST_DAMPING = 1e-10, 1e-5  # where there is any; of the first repetition
LEAST_CUT = 0.05  # factor of the damping after a step that kept its promise
CUT_OUTSIDE = 1.0 / 3.0  # the same where the matrix is not definite, and damping must remain
MOST_BENT = 0.75  # twice the acceleration over the step at which more damping is needed
TINY = np.finfo(float).tiny


class Trial(NamedTuple):
    """Where a step leads.

    Attributes
    ----------
    theta : ndarray of shape (k,)
    energies : Energies
    promise : float
        Decrease of ``M`` that the quadratic approximation promises; ``nan`` without a step.
    gain : float
        The true decrease.
    """

    theta: np.ndarray
    energies: object
    promise: float
    gain: float


class Search(NamedTuple):
    """How far a search has come.

    Attributes
    ----------
    point : Point
    damping, growth : float
        Of the next damped step, and by what factor it grows if that leads no lower (Nielsen 1999).
    n_iter : int
        Trials so far.
    done, converged : bool
    memory : object
        What the rule keeps from one step to the next.
    """

    point: Point
    damping: float = 0.0
    growth: float = 2.0
    n_iter: int = 0
    done: bool = False
    converged: bool = False
    memory: object = None

    def accepts(self, trial):
        """Whether a step leads lower, by a fair share of what was promised."""
        slack = SLACK * abs(self.point.energy)
        return bool(trial.gain > LEAST_KEPT * trial.promise - slack)

    def accepted(self, trial, point):
        """At the new point; the better the promise was kept, the less damping follows."""
        search = self._replace(point=point, growth=2.0, n_iter=self.n_iter + 1)
        if not self.damping:
            return search
        kept = trial.gain >= trial.promise  # which may be lost in rounding
        ratio = 1.0 if kept else max(trial.gain, 0.0) / max(trial.promise, TINY)
        least = LEAST_CUT if point.precision.definite else CUT_OUTSIDE
        damping = self.damping * max(least, 1.0 - (2.0 * ratio - 1.0) ** 3)
        return search._replace(damping=max(damping, LEAST_DAMPING))

    def rejected(self, trial):
        """With more damping; done where no step leads lower."""
        search = self._replace(
            damping=self.damping * self.growth or FIRST_DAMPING,
            growth=2.0 * self.growth,
            n_iter=self.n_iter + 1,
        )
        if 0 <= trial.promise < NO_WAY_DOWN or search.damping > MOST_DAMPING:
            return search._replace(done=True, converged=bool(trial.promise < NO_WAY_DOWN))
        return search


class DampedSteps:
    """Steps of Levenberg and Marquardt, bent along their valleys.

    The output layer is put at its best after each, where that has a closed form.
    """

    compiled = True  # see `compiled_loop`

    def trial(self, posterior, search):
        """Try a damped step (Marquardt 1963)."""
        theta, hyper, energies, gradient, precision = point = search.point
        metric = np.maximum(np.abs(precision.diagonal), posterior.groups.diagonal(hyper.alpha))
        damped = precision.damped(search.damping, metric)
        if not damped.definite:
            return Trial(theta, energies, np.nan, -np.inf)
        step = -damped.solve(gradient)
        promise = -gradient @ step - 0.5 * precision.quadratic(step)
        if posterior.network.hidden_layer_sizes:
            force = posterior.bending_force(theta, hyper, step)
            step = _accelerated(damped, metric, step, force)
        theta = posterior.with_best_outputs(theta + step, hyper)
        energies = posterior.energies(theta, hyper.beta)
        gain = point.energy - float(energies.total(hyper))
        return Trial(theta, energies, promise, gain if np.isfinite(gain) else -np.inf)


def _accelerated(damped, metric, step, force):
    """A step bent along the valley: geodesic acceleration (Transtrum & Sethna 2012).

    Straight if the valley bends too much for a step of this length.
    """
    acceleration = -0.5 * damped.solve(force)
    if 4.0 * metric @ acceleration**2 > MOST_BENT**2 * (metric @ step**2):
        return step
    return step + acceleration


class RuleTerms(NamedTuple):
    """A rule of searches in numbers, for the compiled loop.

    Attributes
    ----------
    exact : bool
        Whether steps are made with the exact Hessian.
    tol : float
    confined : bool
        See `FixedPrecisions`.
    free : FreeHyperparameters or None
        What is re-estimated.
    """

    exact: bool
    tol: float
    confined: bool = False
    free: object = None
