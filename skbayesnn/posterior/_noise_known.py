"""What earlier data tell about noise levels."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln


class KnownNoise(NamedTuple):
    """A Gamma prior of every noise precision: as much as some earlier targets tell.

    ``p(beta) ~ beta^(n/2 - 1) exp(-beta E)`` is what ``n`` targets with ``E_D = E`` leave of a flat
    prior of ``ln beta`` (Bishop 2006, exercise 2.43 and equation 2.146, with ``a = n/2`` and ``b =
    E``). Its mean is ``n / 2E``.

    Attributes
    ----------
    counts : ndarray of shape (n_levels,)
        ``n``: targets less the weights that they determine. Zero: nothing is known.
    errors : ndarray of shape (n_levels,)
        ``E``, in standardised units.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import KnownNoise
    >>> known = KnownNoise(counts=np.array([10.0]), errors=np.array([0.05]))
    >>> known.counts / (2 * known.errors)  # mean of beta: the noise is about 0.1
    array([100.])
    """

    counts: np.ndarray
    errors: np.ndarray

    def log_normaliser(self, beta, flat):
        """``ln p(ln beta)`` less its part ``-beta E``, relative to a density of ``ln beta``.

        Parameters
        ----------
        beta : ndarray of shape (n_levels,)
        flat : float
            Logarithm of that density.
        """
        some = self.counts > 0
        half = 0.5 * self.counts[some]
        logs = half * np.log(beta[some] * self.errors[some])
        return float(np.sum(logs - gammaln(half) - flat))
