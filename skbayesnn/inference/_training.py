"""Training from a random start."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._method import Method, Point
from skbayesnn.inference._reestimation import FairReestimation, Reestimation
from skbayesnn.inference._steps import DampedSteps, Descents, Search, lower
from skbayesnn.posterior import Hyperparameters

LOW_NOISE = 100.0  # noise precision of every other start: a tenth of the targets' spread
STRONG_PRIOR = 10.0  # weight precision of the starts in between
FIRST_DAMPING = 1e-2


class Trained(NamedTuple):
    """A network after training, or before it.

    Attributes
    ----------
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    n_iter : int
    converged : bool
    tau_factor : float or ndarray of shape (n_groups,)
        That of `reestimate`, where the method of training uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Trained
    >>> from skbayesnn.posterior import Hyperparameters
    >>> Trained(np.zeros(2), Hyperparameters(np.ones(1), np.ones(1))).n_iter
    0
    """

    theta: np.ndarray
    hyper: Hyperparameters
    n_iter: int = 0
    converged: bool = True
    tau_factor: object = 1.0


def random_starts(posterior, rngs):
    """Random weights, and hyperparameters of a strong prior (MacKay 1992, section 3.3).

    Weights into hidden units get standard deviation ``fan_in^(-1/2)`` (LeCun et al. 1998). Starts
    with a noise of a tenth of the targets' own spread and weight precision 1 take turns with
    starts with all of that spread and a stronger prior: the former may end where everything is
    fitted, the latter where everything is taken for noise. The latter come first if weights
    outnumber the data. Without noise levels all start with weight precision 1.

    Parameters
    ----------
    posterior : Posterior
    rngs : list of numpy.random.Generator
        One per start, so that a start does not depend on how many others there are.

    Returns
    -------
    list of Trained

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import random_starts
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Posterior, weight_groups
    >>> network, X = Network((1, 2, 1)), np.zeros((50, 1))
    >>> groups, noise = weight_groups(network, "single"), Gaussian.per_output(1)
    >>> posterior = Posterior(network, noise, groups, X, X, np.ones(50))
    >>> starts = random_starts(posterior, [np.random.default_rng(i) for i in range(3)])
    >>> [float(start.hyper.beta[0]) for start in starts]
    [100.0, 1.0, 100.0]
    """
    network, n_levels = posterior.network, posterior.likelihood.n_levels
    sd = np.concatenate([np.full(i * o, i**-0.5) for i, o in network.shapes])
    few = len(posterior.X) * network.n_outputs <= network.n_weights
    starts = []
    for i, rng in enumerate(rngs):
        alpha, beta = np.ones(len(posterior.groups.names)), np.ones(n_levels)
        if n_levels and i % 2 == few:
            beta[:] = LOW_NOISE
        elif n_levels:
            alpha[:] = STRONG_PRIOR
        starts.append(Trained(rng.standard_normal(len(sd)) * sd, Hyperparameters(alpha, beta)))
    return starts


def train(posterior, start, settings):
    """Minimise ``M(w)``, the precisions re-estimated on the way.

    Parameters
    ----------
    posterior : Posterior
    start : Trained
    settings : Settings

    Returns
    -------
    Trained

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Settings, Trained, train
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform, Posterior
    >>> from skbayesnn.posterior import weight_groups
    >>> network, X = Network((1, 1)), np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> groups, y = weight_groups(network, "single"), np.array([[1.0], [3.2], [4.9], [6.9]])
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(4))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> hyper = Hyperparameters(np.ones(1), np.ones(1))
    >>> trained = train(posterior, Trained(np.zeros(2), hyper), Settings(free, hyper))
    >>> trained.theta.round(1)  # slope and intercept
    array([1.9, 1.1])
    """
    method = Method.choose(posterior, settings)
    theta, hyper = start.theta, settings.with_fixed(start.hyper)
    tol = max(settings.tolerance(len(theta)), method.resolution)
    if method.by_gradients:
        energies = posterior.energies(theta, hyper.beta)
        search = Search(Point(theta, hyper, energies, None, None))
        rule = FairReestimation(posterior, method, hyper, settings.free, tol)
        steps = Descents(lambda: rule.descent_tol)
    else:
        rule, steps = Reestimation(posterior, method, settings.free, tol), DampedSteps()
        search = Search(method.point(posterior, theta, hyper), damping=FIRST_DAMPING)
        search = rule.begun(search, start.tau_factor)
    search = lower(posterior, steps, rule, search, settings.max_iter)
    tau_factor = 1.0 if method.by_gradients else search.memory.tau_factor
    point = search.point
    return Trained(point.theta, point.hyper, search.n_iter, search.converged, tau_factor)


def train_on_part_first(posterior, part, start, settings):
    """`train`, begun on some of the rows if there are many.

    Parameters
    ----------
    posterior : Posterior
    part : Posterior or None
        See `subsample`.
    start, settings
        As of `train`.

    Returns
    -------
    Trained
    """
    return train(posterior, start if part is None else train(part, start, settings), settings)
