"""Leave-one-out predictions of the training rows."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from skbayesnn.network import row_blocks
from skbayesnn.posterior import symmetric_root
from skbayesnn.predictive._members import class_probabilities, log_probability
from skbayesnn.predictive._moderation import (
    MANY_CLASSES,
    activation_moments,
    class_moments,
    independent_softmax,
)

MIN_REST = 1e-9  # of a row's own information; guards against negative values by rounding


class LeftOut(NamedTuple):
    """Predictions of training rows without one unit of their weight, in standardised units.

    Besides log densities ``(n,)`` these are, not defined for classes, the mean and the standard
    deviation of targets, and the probability of a target no larger than the observed one, all of
    shape ``(n, n_outputs)``.
    """

    log_density: np.ndarray
    mean: np.ndarray
    cdf: np.ndarray
    std: np.ndarray

    @classmethod
    def mixed(cls, parts, shares):
        """Mix several leave-one-out predictions."""
        logs, means, cdfs, stds = map(np.stack, zip(*parts, strict=True))
        mean = np.tensordot(shares, means, 1)
        return cls(
            logsumexp(logs + np.log(shares)[:, None], axis=0),
            mean,
            np.tensordot(shares, cdfs, 1),
            np.sqrt(np.tensordot(shares, stds**2 + (means - mean) ** 2, 1)),
        )

    @classmethod
    def of_draws(cls, draws, X, y, known=None, given_hidden=None):
        """Predict left-out rows from drawn networks by importance sampling.

        The posterior without a row is proportional to the posterior over the row's likelihood
        (Gelfand, Dey & Chang 1992). Truncated weights would be more stable, but predict rows that
        shape their own fit far too well.

        Classes ``y`` are one-hot (one column of 0 and 1 for two classes), as everywhere here.
        ``given_hidden`` are the means and variances of `JointPosterior.left_out_outputs`, with
        which the output layer is integrated out of the row's likelihood (Vehtari et al. 2016,
        "Bayesian leave-one-out cross-validation approximations for Gaussian latent variable
        models", Journal of Machine Learning Research 17). The weights then vary less: the output
        layer follows the other rows.
        """
        blocks = []
        for rows in row_blocks(len(X), draws.doubles_per_row):
            some = None if known is None else known[rows]
            if given_hidden is None:
                each = draws.pointwise(X[rows], y[rows], some)
            else:
                mean, variances = (values[:, rows] for values in given_hidden)
                each = draws.noise.pointwise(y[rows], mean, variances, X[rows], some)
            logs, f, cdf, variances = each
            # average over networks, with the inverse likelihoods as weights
            weights = softmax(-logs, axis=0)[..., None]
            mean = np.sum(weights * f, axis=0)
            variance = np.sum(weights * (variances + (f - mean) ** 2), axis=0)
            log_density = np.log(len(logs)) - logsumexp(-logs, axis=0)
            blocks.append((log_density, mean, np.sum(weights * cdf, axis=0), np.sqrt(variance)))
        return cls(*map(np.concatenate, zip(*blocks, strict=True)))


def left_out(member, posterior, beta):
    """Predictions without one unit of weight of each row, in closed form.

    In the linearised posterior, taking one observation with residual ``r`` and curvature ``L`` away
    changes mean and covariance ``V`` of its own activations to::

        f + V (1 - L V)^-1 r,     V (1 - L V)^-1

    which is exact for linear models with Gaussian noise (Cook 1977; Rasmussen & Williams 2006,
    5.12). The `Member` has a Gauss-Newton posterior, in which ``1 - L V`` is positive definite; the
    `Posterior` has its training rows and likelihood; ``beta`` are noise precisions ``(n_levels,)``.
    """
    if member.noise is None and member.network.n_outputs > MANY_CLASSES:
        return _left_out_of_many_classes(member, posterior)
    X, y = posterior.X, posterior.y
    n_outputs, blocks = member.network.n_outputs, []
    width = n_outputs * (member.network.n_weights + 4 * member.doubles_per_row)
    for rows in row_blocks(len(X), width):
        (f,), (V,) = member.moments(X[rows])
        if member.shift is None:
            targets = posterior.targets(rows)._replace(weight=np.ones(len(f)))
            r, L = posterior.likelihood.derivatives(f, targets, beta, exact=False)
        else:  # contribution of this row to the closest Gaussian
            probability, L = activation_moments(f, V)
            r = probability - y[rows]
        if L.ndim == 2:
            L = L[..., None] * np.eye(n_outputs)
        # V (1 - L V)^-1 - V = V R (1 - R V R)^-1 R V with R R = L
        root = symmetric_root(L)
        leverage, directions = np.linalg.eigh(root @ V @ root)
        reach = V @ root @ directions
        rest = np.maximum(1.0 - leverage, MIN_REST)
        inflated = V + (reach / rest[:, None, :]) @ np.swapaxes(reach, 1, 2)
        mean = f + (inflated @ r[..., None])[..., 0]
        if member.noise is None:
            logs = log_probability(class_moments(mean, inflated)[0], y[rows])
            below = variance = mean = np.zeros_like(f)
        else:
            known = None if posterior.known is None else posterior.known[rows]
            of_member = mean[None], inflated[None], X[rows], known
            predictions = member.noise.pointwise(y[rows], *of_member)
            logs, mean, below, variance = (some[0] for some in predictions)
        blocks.append((logs, mean, below, np.sqrt(variance)))
    return LeftOut(*map(np.concatenate, zip(*blocks, strict=True)))


def _left_out_of_many_classes(member, posterior):
    """Predictions as by `left_out` for more than `MANY_CLASSES` classes.

    Activations relative to their mean over classes are taken to be independent.
    """
    y, (f, variance) = posterior.y, member.relative_variances(posterior.X)
    p, sd = class_probabilities(f), 0.0
    if member.shift is not None:  # contribution of this row to the closest Gaussian
        p, sd = independent_softmax(f, variance)
    information = p - p**2 - sd**2
    inflated = variance / np.maximum(1.0 - variance * information, MIN_REST)
    probability = independent_softmax(f + inflated * (p - y), inflated)[0]
    return LeftOut(log_probability(probability, y), *np.zeros((3, *f.shape)))
