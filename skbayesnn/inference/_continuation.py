"""A minimum as a function of the precisions: the curve on which it moves with them."""

import numpy as np


def pulls(posterior, theta, hyper):
    """Gradients ``lambda_a g_a`` of the parts of the energy that the precisions multiply.

    Of all weight groups, then of all noise levels, shape ``(h, k)``. Where the misfit is linear in
    the noise precisions, that of the last level follows from ``grad M = 0`` at a minimum.
    """
    likelihood = posterior.likelihood
    found = [*posterior.groups.pulls(theta, hyper.alpha)]
    if likelihood.linear:
        for level in range(likelihood.n_levels - 1):
            alone = hyper.beta * (np.arange(likelihood.n_levels) == level)
            found.append(posterior.misfit_and_gradient(theta, alone)[1])
        if likelihood.n_levels:
            found.append(-np.sum(found, axis=0))
    else:
        for level in range(likelihood.n_levels):
            found.append(posterior.level_derivatives(theta, hyper.beta, level)[0])
    return np.array(found)


def moves(posterior, point):
    """Derivatives ``dw / d ln lambda_a = -A^-1 lambda_a g_a`` of a minimum, shape ``(h, k)``.

    Parameters
    ----------
    posterior : Posterior
    point : Point
        A minimum, with a positive definite ``A``.
    """
    return -point.precision.solve(pulls(posterior, point.theta, point.hyper).T).T
