"""Hyperpriors: priors of the precisions of weights and noise."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln

MIN_SHARE = 1e-9  # of a Gamma distribution that must lie between its bounds
LARGEST = 1e50  # upper bound of a standard deviation; its inverse is the least lower one


class Hyperprior:
    """Prior density ``exp(a x - b e^x)`` of ``x = ln lambda``, a log precision, on an interval.

    This is a truncated Gamma distribution of ``lambda`` with shape ``a`` and rate ``b``. It is
    equivalent to ``2 a`` well-determined weights or targets whose energies sum to ``b``. With ``a =
    b = 0`` it is uniform in ``x``. All methods accept scalars and, element by element, arrays.

    Attributes are ``shape`` and ``rate``, ``a`` and ``b``; ``low`` and ``high``, the ends of the
    interval of ``ln lambda``; and ``log_normaliser``, ``ln int exp(a x - b e^x) dx`` over it. They
    are numbers, or arrays (n,).
    """

    @property
    def log_range(self):
        """Lower and upper bound of ``ln lambda``."""
        return self.low, self.high

    @property
    def log_width(self):
        """Logarithm of the length of the interval."""
        return np.log(self.high - self.low)

    @property
    def counts(self):
        """Number ``2 a`` of weights or targets to which the prior is equivalent."""
        return 2.0 * self.shape

    def log_kernel(self, log_precision):
        """Unnormalised log density ``a x - b e^x``, zero for a uniform prior."""
        return self.shape * log_precision - self.rate * np.exp(log_precision)

    def log_density(self, log_precision):
        """Log density ``ln p(ln lambda)`` inside the interval."""
        return self.log_kernel(log_precision) - self.log_normaliser

    def slope(self, log_precision):
        """Derivative of `log_density`."""
        return self.shape - self.rate * np.exp(log_precision)

    def clip(self, precision):
        """Clip precisions to the interval."""
        return np.clip(precision, np.exp(self.low), np.exp(self.high))

    def quantile(self, probability):
        """Quantile of ``ln lambda`` for a probability."""
        low, high, informative = self.low, self.high, np.asarray(self.shape) > 0
        a, b = np.where(informative, (self.shape, self.rate), 1.0)
        ends = gammainc(a, b * np.exp(low)), gammainc(a, b * np.exp(high))
        below = gammaincinv(a, ends[0] + (ends[1] - ends[0]) * probability)
        gamma = np.log(np.maximum(below / b, np.exp(low)))
        uniform = low + (high - low) * probability
        return np.where(informative, np.clip(gamma, low, high), uniform)


def _set_bounds(prior):
    """Derive the interval of ``ln lambda``; raise if a parameter is not positive and finite."""
    for name, value in vars(prior).items():
        if isinstance(value, str | bool | np.bool_) or not np.isscalar(value):
            raise TypeError(f"{name} of {type(prior).__name__} must be a number, got {value!r}.")
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"{name} of {type(prior).__name__} must be positive and finite, got {value!r}."
            )
    if not 1.0 / LARGEST <= prior.lower < prior.upper <= LARGEST:
        raise ValueError(
            f"lower must be less than upper, and both from {1.0 / LARGEST:g} to {LARGEST:g}; got "
            f"lower={prior.lower!r}, upper={prior.upper!r}."
        )
    vars(prior).update(low=-2.0 * np.log(prior.upper), high=-2.0 * np.log(prior.lower))


@dataclass(frozen=True)
class LogUniform(Hyperprior):
    """Log-uniform prior of the standard deviation of weights or of the noise.

    Parameters
    ----------
    lower, upper : float, default=1e-3 and 1e3
        Bounds of the standard deviation ``lambda^(-1/2)``. Estimators take it in standardised
        units, unless ``standardize=False``.

    Examples
    --------
    >>> from skbayesnn.posterior import LogUniform
    >>> prior = LogUniform(lower=0.1, upper=10.0)
    >>> print(prior.clip(1e6).round(6))  # the precision of the least standard deviation
    100.0
    """

    lower: float = 1e-3
    upper: float = 1e3

    shape = rate = 0.0

    def __post_init__(self):
        _set_bounds(self)
        vars(self)["log_normaliser"] = np.log(self.high - self.low)


@dataclass(frozen=True)
class Gamma(Hyperprior):
    """Gamma prior ``p(lambda) ~ lambda^(shape - 1) exp(-rate lambda)`` of a precision.

    Its mean is ``shape / rate``, and it is equivalent to ``2 shape`` weights or targets whose mean
    square is ``rate / shape``. For example, ``n`` earlier targets with the sum of squares ``s``
    correspond to ``Gamma(n / 2, s / 2)`` (Bishop 2006, equation 2.146). Neal (1992) integrates the
    noise out and obtains the likelihood ``(s0 + sum |t - f|^2)^(-(m0 + N)/2)``, which corresponds
    to ``Gamma(m0 / 2, s0 / 2)`` of the noise precision.

    Parameters
    ----------
    shape, rate : float
        Parameters of the density of ``lambda``. Estimators take them in standardised units, unless
        ``standardize=False``.
    lower, upper : float, default=1e-3 and 1e3
        Bounds of the standard deviation ``lambda^(-1/2)``, at which the distribution is truncated.
        Some of its probability must lie between them.

    Examples
    --------
    >>> from skbayesnn.posterior import Gamma
    >>> prior = Gamma(shape=5.0, rate=0.05)  # ten targets of standard deviation 0.1
    >>> print(prior.shape / prior.rate)
    100.0
    """

    shape: float
    rate: float
    lower: float = 1e-3
    upper: float = 1e3

    def __post_init__(self):
        _set_bounds(self)
        ends = self.rate * np.exp([self.low, self.high])
        below, above = gammainc(self.shape, ends), gammaincc(self.shape, ends)
        share = max(below[1] - below[0], above[0] - above[1])  # probability between the bounds
        if share < MIN_SHARE:
            raise ValueError(
                f"{self!r} has its probability beyond its bounds: nearly no standard deviation "
                f"lies between {self.lower:g} and {self.upper:g}. Give other values of lower and "
                "upper."
            )
        whole = gammaln(self.shape) - self.shape * np.log(self.rate)
        vars(self)["log_normaliser"] = whole + np.log(share)


@dataclass(frozen=True)
class Hyperpriors(Hyperprior):
    """Hyperpriors of several precisions, one `Hyperprior` each.

    An index, a slice or a mask selects some of them.
    """

    shape: np.ndarray
    rate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log_normaliser: np.ndarray

    @classmethod
    def of(cls, priors):
        """Combine a sequence of hyperpriors, one for each precision."""
        values = [(p.shape, p.rate, p.low, p.high, p.log_normaliser) for p in priors]
        return cls(*np.reshape(values, (len(values), 5)).T.copy())

    @classmethod
    def joined(cls, parts):
        """Concatenate several `Hyperpriors`."""
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def __getitem__(self, index):
        return Hyperpriors(*(values[index] for values in vars(self).values()))

    @property
    def lower(self):
        """Least standard deviations."""
        return np.exp(-0.5 * self.high)

    @property
    def upper(self):
        """Largest standard deviations."""
        return np.exp(-0.5 * self.low)

    @property
    def informative(self):
        """Mask of the hyperpriors that are not uniform."""
        return self.shape > 0
