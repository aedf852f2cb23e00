"""Acquisition functions of Bayesian optimisation, from the mean and sd of the function."""

import numpy as np
from scipy.special import erfcx, ndtr

from skbayesnn._typing import Array

LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)
FAR = -1.0  # standardised improvement below which another form of the logarithm is used
FARTHEST = -1e3  # standardised improvement below which the asymptotic form is more accurate


def log_expected_improvement(mean: Array, std: Array, best: float) -> Array:
    """Logarithm of the expected improvement over the best value.

    With ``z = (mean - best) / std`` it is ``ln std + ln(phi(z) + z Phi(z))`` (Jones, Schonlau &
    Welch 1998, equation 15). Far below the best value the sum cancels; ``ln phi(z) + ln(1 + z
    Phi(z)/phi(z))`` is accurate there (Ament et al. 2023, section 4.1).

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Mean and standard deviation of the function, which is to be large.
    best : float
        Largest mean of the function at the training rows.

    Returns
    -------
    ndarray of shape (n,)
        Logarithms of improvements in the units of the function.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.active_learning import log_expected_improvement
    >>> log_expected_improvement(np.array([0.0, -50.0]), np.ones(2), 0.0).round(2)
    array([-9.20000e-01, -1.25874e+03])
    """
    with np.errstate(divide="ignore", over="ignore"):
        z = (mean - best) / np.maximum(std, np.finfo(float).tiny)
        near, far = np.maximum(z, FAR), np.minimum(z, FAR)
        close = np.log(np.exp(-0.5 * near**2 - LOG_SQRT_2_PI) + near * ndtr(near))
        mills = np.sqrt(np.pi / 2.0) * erfcx(-far / np.sqrt(2.0))  # Phi(z) / phi(z)
        rest = np.where(far < FARTHEST, far**-2.0, 1.0 + far * mills)  # 1 + z Phi/phi ~ 1 / z^2
        distant = -0.5 * far**2 - LOG_SQRT_2_PI + np.log(rest)
        return np.log(std) + np.where(z > FAR, close, distant)


def upper_confidence_bound(mean: Array, std: Array, best: float) -> Array:
    """Upper end ``mean + 2 std`` of an interval of the function (Srinivas et al. 2010).

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Mean and standard deviation of the function, which is to be large.
    best : float
        Not used.

    Returns
    -------
    ndarray of shape (n,)
        Bounds, in the units of the function.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.active_learning import upper_confidence_bound
    >>> upper_confidence_bound(np.zeros(2), np.array([1.0, 2.0]), 0.0)
    array([2., 4.])
    """
    return mean + 2.0 * std


ACQUISITIONS = {
    "log_expected_improvement": log_expected_improvement,
    "upper_confidence_bound": upper_confidence_bound,
}


class Straddle:
    """Acquisition ``1.96 std - |mean - threshold|`` of rows near a contour of the function.

    It is large where the function may lie on either side of the threshold (Bryan et al. 2005).

    Parameters
    ----------
    threshold : float
        Value whose contour is wanted, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.active_learning import Straddle
    >>> Straddle(1.0)(np.array([1.0, 3.0]), np.ones(2), 0.0)
    array([ 1.96, -0.04])
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def __call__(self, mean: Array, std: Array, best: float) -> Array:
        """Evaluate at means and standard deviations ``(n,)``."""
        return 1.96 * std - np.abs(mean - self.threshold)
