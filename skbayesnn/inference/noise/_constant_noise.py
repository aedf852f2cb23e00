"""Noise of constant level, and the interface of all noise models."""

import numpy as np

from skbayesnn.inference.minima._search import ALONE, find_minima, fits
from skbayesnn.network import forward, jacobian, row_blocks
from skbayesnn.posterior import Hyperparameters, JointPosterior, MeasuredGaussian, MeasuredJoint

NOISE_MINIMA = 3  # modes under constant noise that start searches under other noise models


class ConstantNoise:
    """Gaussian noise with a level per output or shared by outputs; or classes, without noise."""

    plain = True  # whether modes under constant noise are modes of this model
    sampled = True  # whether the posterior under this noise can be sampled
    heavy_tails = False  # whether the noise allows for outliers
    has_minima = True  # whether there is a Laplace approximation around minima

    def pose(self, posed):
        """Convert posterior and settings under constant noise to those under this noise."""
        return posed

    def search(self, problem, posed, previous, workers=ALONE):
        """Find minima from given ones.

        There are no random starts, as the misfit of an untrained network of the means would be
        attributed to noise.

        ``posed`` is the result of `pose`. ``previous`` are minima under this noise from an earlier
        fit, then minima under constant noise, best first.
        """
        return find_minima(*posed, (), previous, workers=workers)

    def for_outliers(self, posed):
        """Pose the model so that outliers have little influence; ``None`` if it cannot be."""
        return None

    def continues(self, problem, posed, old):
        """Return True if a minimum of an earlier fit has this noise and a compatible network."""
        same = type(old.likelihood) is type(posed.posterior.likelihood) and old.noise is None
        return same and fits(old, posed.posterior.network, posed.posterior.groups)

    def joint(self, problem, posed, integrate_outputs):
        """Joint posterior that is sampled, in non-centred coordinates.

        ``integrate_outputs`` is false for the classic samplers, which move all weights.
        """
        posterior, settings = posed
        information = np.zeros(len(posterior.groups.names))
        measured = isinstance(posterior.likelihood, MeasuredGaussian)
        kind = MeasuredJoint if measured else JointPosterior
        return kind(posterior, settings.free, settings.fixed, information, integrate_outputs)

    def starts(self, problem, posed, joint, starts, minima, seeds):
        """Weights and `Hyperparameters` of the joint posterior at which chains start.

        ``posed`` is the result of `pose`, ``joint`` that of `joint`. ``starts`` hold a `Trained`
        network of the means for every chain, the first of which are at ``minima``; ``seeds`` hold a
        seed for each.
        """
        return stacked(starts)

    def information(self, problem, posed, joint, q):
        """Information ``h_c`` of the data about a weight of each group at positions.

        ``posed`` and ``joint`` are results of `pose` and `joint`; positions ``q`` of shape (n, d +
        n_conditions) give information of shape (n, n_groups).
        """
        theta, hyper = joint.mean_weights(q), joint.place(q).hyper
        return information_of_data(posed.posterior, posed.settings, joint.n_mean, theta, hyper)


def derived_generator(seed, key=0):
    """Random generator of a key, independent of those of the seed and of other keys."""
    spawn_key = *seed.spawn_key, key
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=spawn_key))


def stacked(starts):
    """Stack weights and hyperparameters of several networks along a leading axis."""
    hyper = zip(*(start.hyper for start in starts), strict=True)
    return np.stack([start.theta for start in starts]), Hyperparameters(*map(np.stack, hyper))


def residuals_and_covariances(posterior, theta, precision):
    """Residuals ``(n, n_outputs)``, and covariances of the outputs of rows under a `Precision`."""
    parts, width = [], posterior.network.n_outputs * posterior.network.n_weights
    for rows in row_blocks(len(posterior.X), width):
        trace = forward(posterior.network, theta, posterior.X[rows], order=1)
        parts.append((trace.outputs - posterior.y[rows], precision.project(jacobian(trace))))
    return tuple(np.concatenate(some) for some in zip(*parts, strict=True))


def information_of_data(posterior, settings, n_sampled, theta, hyper):
    """Information ``h_c`` of the data, by ``Tr_c(A^-1) = k_c / (alpha_c + h_c)``, at every start.

    It is zero for groups beyond those of the posterior.
    """
    if n_sampled == 0 or posterior.network.n_weights > settings.limits.dense:
        return np.zeros_like(hyper.alpha)
    matrix = posterior.expansion(theta, hyper)[2]
    for _ in range(0 if posterior.groups.centred else 2):  # rows, then columns
        matrix = posterior.groups.white_gradient(np.swapaxes(matrix, -1, -2))
    variances = np.diagonal(np.linalg.inv(matrix), axis1=-2, axis2=-1)[:, :n_sampled]
    member, known = posterior.groups.membership[:n_sampled], np.zeros_like(hyper.alpha)
    sizes = member.sum(axis=0)
    own = sizes / np.maximum(variances @ member, 1e-300) - hyper.alpha[:, : len(sizes)]
    known[:, : len(sizes)] = np.maximum(own, 0.0) * (sizes > 0)
    return known
