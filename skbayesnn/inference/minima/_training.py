"""Training of networks from random starts by evidence maximisation."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._method import Method, Point
from skbayesnn.inference.evidence._evidence import log_evidence_fixed
from skbayesnn.inference.evidence._layer_search import LayerSearch
from skbayesnn.inference.optimise._batches import (
    FURTHER,
    SHORTER,
    STAGES,
    BatchSteps,
    SampledReestimation,
    steps_per_stage,
)
from skbayesnn.inference.optimise._damped import DampedSteps, Search
from skbayesnn.inference.optimise._reestimation import Reestimation
from skbayesnn.inference.optimise._steps import Descents, lower
from skbayesnn.network import forward
from skbayesnn.posterior import Hyperparameters

LOW_NOISE = 100.0  # noise precision of every other start: noise sd a tenth of the targets' sd
STRONG_PRIOR = 10.0  # weight precision of the starts in between
STEEPER = 4.0, 16.0  # factors of hidden weights of starts for targets that vary quickly
STEEPLY = 10.0  # nats by which features with such weights must fit better
UNEXPLAINED = 0.5  # least share of the squared targets unexplained by features of usual weights
COMPARED_ROWS = 500  # rows on which features are compared
# priors from which linear models start, as shares of the range of ln alpha. The first one counts
# after the deadline
PRIORS_OF_LINEAR = 0.5, 0.8, 0.2
FIRST_DAMPING = 1e-2
EARLY, FURTHER_STEPS = 60, 10  # most steps or descents of early stopping, at first and resumed
LEAST = 16  # steps before training ends if held-out rows are predicted worse: it fits noise
BRIEF = 60  # training steps of starts that are compared, and before a chain starts
FAINT = 0.01  # size of weights from new units to old units, relative to those of a random start


class Trained(NamedTuple):
    """State of a network before or after training."""

    theta: np.ndarray  # (k,)
    hyper: Hyperparameters
    n_iter: int = 0


def random_starts(posterior, rngs, low_noise=None):
    """Draw random weights, with hyperparameters of a strong prior (MacKay 1992, section 3.A).

    Weights into hidden units get standard deviation ``fan_in^(-1/2)`` (LeCun et al. 1998).
    Low-noise starts, with a noise sd of a tenth of the targets' sd and weight precision 1,
    alternate with high-noise starts, with a noise sd equal to that of the targets and a stronger
    prior. Low-noise starts may overfit; high-noise starts may end in a minimum that treats all
    variation as noise. High-noise starts come first if weights outnumber the data. With more than
    two hidden layers only every third start is such a one, as a strong prior of every layer
    switches such a network off. Without an evidence to choose between them, all starts are of one
    kind. If weights outnumber the data, these starts have the prior of the random weights: under a
    weaker one the first steps fit the noise, and re-estimation lowers the noise level further.
    Without noise levels all start with weight precision 1. Low-noise starts have larger weights
    into the first hidden layer if that fits clearly better (`steepness`). Under a prior with a mean
    the weights start near the mean.

    There is one generator per start, so that a start does not depend on how many others there are.
    With ``low_noise`` given, all starts are of that kind.
    """
    network, n_levels = posterior.network, posterior.likelihood.n_levels
    fan_in, fan_out = np.transpose(network.shapes)
    sd = np.repeat(fan_in**-0.5, fan_in * fan_out)
    few_targets = len(posterior.X) * network.n_outputs <= network.n_weights
    deep = len(network.hidden_layer_sizes) > 2
    starts = []
    for i, rng in enumerate(rngs):
        alpha, beta = np.ones(len(posterior.groups.names)), np.ones(n_levels)
        low = low_noise
        if low is None:
            low = i % 3 < 2 if deep else i % 2 == few_targets
        if n_levels and low:
            beta[:] = LOW_NOISE
        elif n_levels:
            alpha[:] = STRONG_PRIOR
            if few_targets and low_noise is False:
                of_weights = posterior.groups.sums(sd**-2.0) / np.maximum(posterior.groups.sizes, 1)
                alpha = np.maximum(alpha, of_weights)
        theta = posterior.groups.start(rng, sd)
        if low or not n_levels:
            first = slice(0, network.shapes[0][0] * network.shapes[0][1])
            factor = steepness(posterior, theta)
            theta[first] *= factor
            alpha[posterior.groups.labels[first]] *= factor**-2.0
        starts.append(Trained(theta, Hyperparameters(alpha, beta)))
    return starts


def steepness(posterior, theta):
    """Factor of the initial weights into the first hidden layer for targets that vary quickly.

    Random hidden units are features of a linear model. If features with larger weights fit the
    targets clearly better by least squares, as for several periods, training from usual weights
    would end in a flat function. Otherwise the factor is 1.
    """
    network, groups = posterior.network, posterior.groups
    rows = np.unique(np.linspace(0, len(posterior.X) - 1, COMPARED_ROWS).round().astype(int))
    if not network.hidden_layer_sizes or not groups.centred:
        return 1.0
    if len(rows) <= 2 * (network.hidden_layer_sizes[-1] + 1):
        return 1.0
    X, y, first = posterior.X[rows], posterior.y[rows], network.shapes[0][0] * network.shapes[0][1]
    weight = np.sqrt(posterior.sample_weight[rows])[:, None]
    misfits = []
    for factor in (1.0, *STEEPER):
        steep = theta.copy()
        steep[:first] *= factor
        features = weight * forward(network, steep, X).inputs[-1]
        basis = np.linalg.qr(features)[0]
        target = weight * y
        residual = np.sum(target**2) - np.sum((basis.T @ target) ** 2)
        misfits.append(max(residual, np.finfo(float).tiny))
    gains = 0.5 * len(rows) * np.log(misfits[0] / np.array(misfits))  # nats at the best noise level
    best, total = int(np.argmax(gains)), np.sum(target**2)
    missed = misfits[0] > UNEXPLAINED * total  # otherwise training from usual weights succeeds
    return (1.0, *STEEPER)[best] if missed and gains[best] > STEEPLY else 1.0


def linear_starts(posterior, settings):
    """Starts of a linear model with Gaussian noise from a moderate, a strong and a weak prior.

    Their minima are unique, but the evidence may have several maxima: from a strong prior
    re-estimation may attribute all variation of the targets to noise, from a weak one it may fit
    noise.
    """
    theta, prior = np.zeros(posterior.network.n_weights), settings.free.alpha_prior
    beta = np.ones(posterior.likelihood.n_levels)
    alphas = [np.exp(prior.low + share * (prior.high - prior.low)) for share in PRIORS_OF_LINEAR]
    return [Trained(theta, Hyperparameters(alpha, beta)) for alpha in alphas]


def train(posterior, start, settings):
    """Minimise ``M(w)``, re-estimating the precisions during training."""
    method = Method.choose(posterior, settings)
    theta, hyper = start.theta, settings.with_fixed(start.hyper)
    tol = max(settings.tol * max(1.0, len(theta) / 100.0), method.resolution)
    max_iter = settings.max_iter
    if method.early:
        max_iter = min(max_iter, FURTHER_STEPS if start.n_iter else EARLY)
    if method.by_gradients:
        energies = posterior.energies(theta, hyper.beta)
        search = Search(Point(theta, hyper, energies, None, None))
        if method.by_batches:
            stages, shorter = (FURTHER, SHORTER) if start.n_iter else (STAGES, 1.0)
            n_stages = min(stages, max_iter)
            rule = SampledReestimation(posterior, method, hyper, settings.free, n_stages)
            per_stage = steps_per_stage(posterior, settings.limits.batch_steps)
            steps = BatchSteps(posterior, n_stages, per_stage, shorter, settings.deadline)
        else:
            rule = LayerSearch(posterior, method, settings.free, tol)
            steps = Descents(rule.descent_tol, settings.deadline)
        search = lower(posterior, steps, rule, search, max_iter, settings.deadline)
    else:
        rule = Reestimation(posterior, method, settings.free, tol)
        search = Search(method.point(posterior, theta, hyper), damping=FIRST_DAMPING)
        if settings.held_out is None:
            search = lower(posterior, DampedSteps(), rule, search, max_iter, settings.deadline)
        else:
            search = lower_until_worse(posterior, rule, search, max_iter, settings)
    return Trained(search.point.theta, search.point.hyper, search.n_iter)


def lower_until_worse(posterior, rule, search, max_iter, settings):
    """Run `lower` to twice the step that fits held-out rows best, and return that step.

    Its noise precisions are those that fit the held-out rows best (`log_density_of`): re-estimated
    from the training rows they would be too high, and training would end too early.
    """
    deadline, most = settings.deadline, LEAST
    best, highest = search, -np.inf
    while not (search.done or deadline.passed) and search.n_iter < min(most, max_iter):
        search = lower(posterior, DampedSteps(), rule, search, search.n_iter + 1, deadline)
        point = search.point
        log_density, beta = log_density_of(settings.held_out, point.theta, point.hyper.beta)
        if log_density > highest:
            hyper, highest = point.hyper._replace(beta=beta), log_density
            best, most = search._replace(point=point._replace(hyper=hyper)), 2 * search.n_iter
            most = max(LEAST, most)
    return best


def log_density_of(rows, theta, beta):
    """Log density of the ``rows`` of a posterior at their best noise level; and that level.

    All noise precisions ``beta`` are multiplied by the factor that maximises the density of
    Gaussian noise. Without noise levels the factor is 1.
    """
    misfit = float(rows.energies(theta, beta).misfit)
    if len(beta):
        n_targets = rows.n_rows * rows.network.n_outputs
        factor = n_targets / (2.0 * max(misfit, np.finfo(float).tiny))
        beta, misfit = beta * factor, misfit * factor
    return rows.likelihood.log_normaliser(beta, rows.n_rows) - misfit, beta


def briefly_trained(posterior, settings, starts, n_steps):
    """Train starts briefly; return them with their log evidences (`laplace`), ``(m,)``."""
    brief = settings._replace(max_iter=n_steps)
    starts = [train(posterior, start, brief) for start in starts]
    return starts, np.array([laplace(posterior, start, brief) for start in starts])


def laplace(posterior, start, settings):
    """Log evidence by Laplace's approximation at the precisions of a start.

    The value is rough, as symmetric copies do not count, and minus infinity without a positive
    definite Hessian.
    """
    method = Method.choose(posterior, settings)
    if method.by_gradients:
        return -np.inf
    point = method.point(posterior, start.theta, start.hyper)
    value = log_evidence_fixed(posterior, point) if point.precision.definite else -np.inf
    return value if np.isfinite(value) else -np.inf


def widened(minimum, network, rng):
    """Weights of a wider network that computes nearly the function of the narrower one.

    New hidden units get random incoming weights, of standard deviation ``fan_in^(-1/2)``, and small
    outgoing weights to old units, to be adjusted by training.

    The narrower network has the same depth, with no layer wider.
    """
    layers, narrow = [], minimum.network.layer_sizes
    for layer, shape in enumerate(network.shapes):
        layers.append(rng.standard_normal(shape) * shape[0] ** -0.5)
        layers[-1][narrow[layer] : network.layer_sizes[layer], : narrow[layer + 1]] *= FAINT
    return embedded(minimum, network, layers)


def embedded(minimum, network, layers=None):
    """Weights of a minimum in a wider layout; the weights of further units are those of ``layers``.

    By default these are zero, so that the units are switched off.
    """
    layers = network.layers(np.zeros(network.n_weights)) if layers is None else layers
    for i, old in enumerate(minimum.network.layers(minimum.theta)):
        n_in, width, n_out = minimum.network.layer_sizes[i], network.layer_sizes[i], old.shape[1]
        layers[i][:n_in, :n_out], layers[i][width:, :n_out] = old[:n_in], old[n_in:]
    return network.pack(layers)
