"""The Gaussian around a minimum, made again when it is asked for.

Fits do not keep these matrices: there are as many as minima, and most are never looked at.
"""

from dataclasses import replace

from skbayesnn.inference._method import Method
from skbayesnn.inference._noise_network import expected_noise_posterior, squared_residuals


def gaussian_around(posterior, minimum, settings):
    """Precision of the weights at a minimum, as it was when its evidence was evaluated.

    The exact Hessian where it is formed and positive definite, else the Gauss-Newton one
    (MacKay 1992, section 3.2; Bishop 2006, equation 5.167).

    Parameters
    ----------
    posterior : Posterior
        With the layout, the likelihood and the noise of the minimum, see `own_posterior`.
    minimum : Minimum
    settings : Settings

    Returns
    -------
    precision : Precision or None
        ``None`` where the curvature is numerically singular.
    exact : bool
        Whether it is the exact Hessian.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, find_minima, gaussian_around
    >>> from skbayesnn.inference import own_posterior, seeds_of
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> posed = Problem(X, y, np.ones(20), Gaussian.per_output(1)).posed((2,))
    >>> best = find_minima(*posed, seeds_of(0, (2,), 2))[0]
    >>> own = own_posterior(posed.posterior, best)
    >>> precision, exact = gaussian_around(own, best, posed.settings)
    >>> bool(np.isclose(precision.log_det, -2.0 * best.terms.log_det)), exact
    (True, True)
    """
    method, at = Method.choose(posterior, settings), (minimum.theta, minimum.hyper)
    with method.threads():
        if method.exact:
            precision = method.point(posterior, *at, exact=True).precision
            if precision.definite:
                return precision, True
        precision = method.gauss_newton(posterior, *at).precision
    return (precision if precision.definite else None), False


def noise_posterior(posterior, minimum, settings):
    """The posterior of a minimum's noise network, given what its means leave (`Pair.round`).

    Parameters
    ----------
    posterior : Posterior
        As of `gaussian_around`.
    minimum : Minimum
        With a noise network.
    settings : Settings
    """
    noise = minimum.noise
    with Method.choose(posterior, settings).threads():
        y, factors = squared_residuals(posterior, minimum.theta, minimum.hyper, settings)
    expected = expected_noise_posterior(posterior, noise.network, noise.groups)
    return replace(expected, y=y, factors=factors)
