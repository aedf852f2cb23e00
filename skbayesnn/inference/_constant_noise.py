"""Noise of constant level, and what every noise model is asked: see `ConstantNoise`."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._method import Method
from skbayesnn.inference._search import ALONE, find_minima, fits
from skbayesnn.posterior import (
    Hyperparameters,
    JointPosterior,
    MeasuredGaussian,
    MeasuredJoint,
)

NOISE_MINIMA = 3  # under constant noise, from which searches under other noise begin
NOISE_NETWORKS = 5  # the same where training ends early, and minima do not differ in evidence


def noise_minima(posed):
    """From how many minima under constant noise searches under other noise begin."""
    return NOISE_NETWORKS if Method.choose(*posed).early else NOISE_MINIMA


class ConstantNoise:
    """Gaussian noise of one level for each output, or shared by some; or classes, without noise."""

    tried_below = 0.0  # the p value of its test below which it is tried
    plain = True  # whether minima under constant noise are its own
    hides = False  # whether under constant noise it hides what larger networks could learn
    sampled = True  # whether networks are drawn under it by default

    def p_value(self, X, residuals, sample_weight):
        """Of a test for this noise; ``None`` where there is none.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        residuals : ndarray of shape (n, n_outputs)
            Under constant noise, each divided by its expected standard deviation.
        sample_weight : ndarray of shape (n,)
            Repetitions of the rows.
        """
        return None

    def hidden_layer_sizes(self, problem):
        """Of a network of its own: there is none."""
        return ()

    def pose(self, posed):
        """Posterior and settings of a search under this noise, from those under constant noise."""
        return posed

    def search(self, problem, posed, previous, workers=ALONE):
        """Minima that are reached from others.

        What the network of the means has not learnt yet would be taken for noise; so there are no
        random starts.

        Parameters
        ----------
        problem : Problem
        posed : Posed
            As `pose` makes it.
        previous : list of Minimum
            Best first: some under this noise, from an earlier fit, then some under constant noise.
        workers : Workers
        """
        return find_minima(*posed, (), previous, workers=workers)

    def continues(self, problem, posed, old):
        """Whether a minimum of an earlier fit is one under this noise, of a network that fits."""
        same = type(old.likelihood) is type(posed.posterior.likelihood) and old.noise is None
        return same and fits(old, posed.posterior.network, posed.posterior.groups)

    def joint(self, posed, tuned):
        """The posterior that samplers move in, in non-centred coordinates."""
        posterior, search = posed
        information = np.zeros(len(posterior.groups.names))
        measured = isinstance(posterior.likelihood, MeasuredGaussian)
        kind = MeasuredJoint if measured else JointPosterior
        return kind(posterior, search.free, search.fixed, information, tuned)

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """Where chains start under this noise.

        Parameters
        ----------
        problem : Problem
        posed : Posed
            As `pose` makes it.
        tuned : bool
            See `SamplingSettings`.
        starts : list of Trained
            A network of the means for each chain.
        minima : sequence of Minimum
            Those at which the first of them are.
        seeds : list of numpy.random.SeedSequence
            One per chain.
        from_prior : bool
            Whether the weights will be drawn from the prior.
        """
        joint, (theta, hyper) = self.joint(posed, tuned), stacked(starts)
        known = what_data_tell(posed.posterior, posed.settings, joint.n_mean, theta, hyper)
        return Positions(joint, theta, hyper, known)


class Positions(NamedTuple):
    """Where chains start.

    Attributes
    ----------
    joint : JointPosterior
    theta : ndarray of shape (n_chains, m)
        Weights of all its networks.
    hyper : Hyperparameters
        Precisions of all its groups.
    known : ndarray of shape (n_chains, n_groups)
        What the data alone tell about a weight of every group, ``h_c``.
    """

    joint: JointPosterior
    theta: np.ndarray
    hyper: Hyperparameters
    known: np.ndarray


def stacked(starts):
    """Weights and hyperparameters of several networks, with a leading axis."""
    hyper = zip(*(start.hyper for start in starts), strict=True)
    return np.stack([start.theta for start in starts]), Hyperparameters(*map(np.stack, hyper))


def what_data_tell(posterior, settings, n_sampled, theta, hyper):
    """``h_c`` of ``Tr_c(A^-1) = k_c / (alpha_c + h_c)`` at every starting point."""
    if n_sampled == 0 or posterior.network.n_weights > settings.limits.dense:
        return np.zeros_like(hyper.alpha)
    matrix = posterior.groups.white_matrix(posterior.hessian(theta, hyper, exact=False))
    variances = np.diagonal(np.linalg.inv(matrix), axis1=-2, axis2=-1)[:, :n_sampled]
    member = posterior.groups.membership[:n_sampled]
    sizes = member.sum(axis=0)
    return np.maximum(sizes / np.maximum(variances @ member, 1e-300) - hyper.alpha, 0.0) * (
        sizes > 0
    )
