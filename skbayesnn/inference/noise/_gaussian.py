"""Gaussian (Laplace) approximation around a minimum, recomputed on demand.

Fits do not store these matrices: there is one per minimum, and most of them are never used.
"""

from dataclasses import replace

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.noise._noise_network import expected_noise_posterior, squared_residuals


def gaussian_around(posterior, minimum, settings):
    """Recompute the precision of the weights at a minimum that its evidence was evaluated with.

    It is the exact Hessian if formed and positive definite, else its Gauss-Newton approximation
    (MacKay 1992, section 3.2; Bishop 2006, equation 5.167).

    Parameters
    ----------
    posterior : Posterior
        Posterior with the network, likelihood and noise of the minimum, see `own_posterior`.
    minimum : Minimum
    settings : Settings

    Returns
    -------
    precision : Precision or None
        ``None`` if the curvature is numerically singular.
    exact : bool
        Whether the precision is the exact Hessian.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, gaussian_around
    >>> from skbayesnn.inference.minima._search import find_minima
    >>> from skbayesnn.inference import own_posterior
    >>> from skbayesnn.inference._evidence_fit import seeds_of
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
    """Posterior of the noise network of a minimum, given the residuals of its means (`Pair.round`).

    Parameters
    ----------
    posterior : Posterior
        Posterior of the means, see `gaussian_around`.
    minimum : Minimum
        Minimum that has a noise network.
    settings : Settings
    """
    noise = minimum.noise
    with Method.choose(posterior, settings).threads():
        y, factors = squared_residuals(posterior, minimum.theta, minimum.hyper, settings)
    expected = expected_noise_posterior(posterior, noise.network, noise.groups)
    return replace(expected, y=y, factors=factors)
