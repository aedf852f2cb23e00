"""Gaussian priors of weights in groups with a common precision, and hyperpriors of precisions."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln

INTERCEPT = "+intercept"  # ends the names of groupings in which output biases are by themselves
LEAST_SHARE = 1e-9  # of a Gamma distribution that must lie between its bounds
LARGEST = 1e50  # upper bound of a standard deviation; its inverse is the least lower one


def sums_by(membership, values):
    """Sums ``(..., n_groups)`` of values ``(..., k)`` by an indicator matrix ``(k, n_groups)``.

    Their rounding does not depend on the number of networks, the leading axes.
    """
    return (values[..., None, :] @ membership)[..., 0, :]


@dataclass(frozen=True)
class WeightGroups:
    """Independent Gaussian prior of mean zero; the weights of a group share a precision.

    The prior of the weights is ``N(m, P^-1)``, where ``P`` has a block ``alpha_c R_c`` for every
    group ``c``. The methods are common to all priors. Here ``m`` is zero and ``R_c`` is 1;
    `GaussianPrior` generalises both.

    Parameters
    ----------
    labels : ndarray of int, shape (k,)
        Group of every weight.
    names : list of str
    """

    labels: np.ndarray
    names: list

    coupled = False  # True if R has elements off its diagonal
    one_size = False  # True for networks of one layout: no unit can be deleted or added
    centred = True  # True if m is zero and R is 1

    @cached_property
    def sizes(self):
        """Number ``k_c`` of weights of every group."""
        return np.bincount(self.labels, minlength=len(self.names))

    @cached_property
    def membership(self):
        """Indicator matrix of shape (k, n_groups)."""
        return (self.labels[:, None] == np.arange(len(self.names))).astype(float)

    def expand(self, alpha):
        """Precision of every weight, ``(..., k)``, from one per group, ``(..., n_groups)``."""
        return alpha[..., self.labels]

    def sums(self, values):
        """Sum per group: ``(..., k)`` to ``(..., n_groups)``."""
        return sums_by(self.membership, values)

    def relabelled(self, labels):
        """Prior of weights with other labels."""
        return replace(self, labels=labels)

    def deviation(self, theta):
        """Deviation ``w - m`` from the mean."""
        return theta

    def applied(self, vectors):
        """Product ``R v`` for ``v`` of shape (..., k)."""
        return vectors

    def diagonal(self, alpha):
        """Diagonal of the precision, ``(..., k)``."""
        return self.expand(alpha)

    def add_to(self, matrices, alpha):
        """Add the precision to matrices ``(..., k, k)``, in place."""
        each = np.arange(len(self.labels))
        matrices[..., each, each] += self.expand(alpha)

    def least(self, alpha):
        """Smallest eigenvalue of the precision, at precisions ``(n_groups,)``."""
        return np.min(alpha)

    def energies(self, theta):
        """Energy ``E_W^c = 1/2 (w - m)^T R_c (w - m)`` of every group, ``(..., n_groups)``."""
        return 0.5 * self.sums(theta * theta)

    def pull(self, theta, alpha):
        """Gradient ``P (w - m)`` of minus the log density, ``(..., k)`` (Bishop 2006, 4.141)."""
        return self.expand(alpha) * theta

    def product(self, vectors, alpha):
        """Product ``P v`` for ``v`` of shape (..., k)."""
        return self.expand(alpha) * vectors

    def pulls(self, theta, alpha):
        """Contribution of every group to `pull`, ``(n_groups, k)``."""
        return (self.pull(theta, alpha)[:, None] * self.membership).T

    def traces(self, precision):
        """Trace ``Tr(R_c A^-1)`` of every group, for a `Precision` ``A``."""
        return self.sums(precision.variances())

    def log_normaliser(self, alpha):
        """Log normaliser ``1/2 log det P``; the factor of ``2 pi`` cancels in evidences."""
        return 0.5 * self.sizes @ np.log(alpha)

    def draw(self, alpha, rng):
        """Draw weights from the prior, ``(..., k)``, at precisions ``(..., n_groups)``."""
        sd = self.expand(alpha) ** -0.5
        return rng.standard_normal(sd.shape) * sd

    def start(self, rng, sd):
        """Draw starting weights of given standard deviations, ``(k,)``."""
        return rng.standard_normal(len(sd)) * sd

    def within(self, group, covariance, theta):
        """Covariance and deviation of the weights of a group, in units in which ``R_c`` is 1."""
        members = np.flatnonzero(self.labels == group)
        return covariance[np.ix_(members, members)], theta[members]

    def white(self, theta):
        """Weights ``u`` in units in which ``m`` is zero and ``R`` is 1, ``(..., k)``."""
        return theta

    def coloured(self, white):
        """Inverse of `white`."""
        return white

    def white_gradient(self, gradient):
        """Gradient with respect to ``u``, ``(..., k)``, from the gradient in the weights."""
        return gradient

    def white_matrix(self, matrix):
        """Hessian with respect to ``u``, ``(..., k, k)``, from the Hessian in the weights."""
        return matrix

    def conditional(self, part, theta):
        """Conditional prior of a slice of the weights given all others."""
        return replace(self, labels=self.labels[part])

    def is_invariant(self, images, signs):
        """Return True if the density is invariant under a signed permutation of the weights.

        ``images`` ``(k,)`` are the indices of the weights that move to each place.
        """
        return bool(np.all(self.labels == self.labels[images]))


def weight_groups(network, prior, feature_names=None):
    """Group the weights of a network (MacKay 1992, section 3.4; Neal 1996, section 1.2.3).

    Parameters
    ----------
    network : Network
    prior : str or array-like of shape (k,)
        ``"single"``: one group. ``"layer"``: per hidden layer its weights and its biases, and the
        output layer with its biases. ``"ard"``: as ``"layer"``, with the first layer's weights
        split by input. Without a hidden layer the output layer is the first layer. An array gives
        the label of every weight, in the order of ``theta``. With ``"+intercept"`` after a name,
        the biases of the outputs form a separate group ``"intercept"``.
    feature_names : list of str, optional
        Names of the inputs, for the groups of ``"ard"``.

    Examples
    --------
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import weight_groups
    >>> groups = weight_groups(Network((2, 3, 1)), "ard", ["age", "dose"])
    >>> groups.names
    ['input_age', 'input_dose', 'hidden1_biases', 'output']
    >>> groups.sizes
    array([3, 3, 3, 4])
    """
    if not isinstance(prior, str):
        names, labels = np.unique(np.asarray(prior), return_inverse=True)
        return WeightGroups(labels.ravel(), [str(name) for name in names])
    if prior.endswith(INTERCEPT):
        if not network.output_bias:
            raise ValueError(f"prior={prior!r} needs output biases, which the network has not.")
        groups = weight_groups(network, prior.removesuffix(INTERCEPT), feature_names)
        labels = groups.labels.copy()
        labels[-network.n_outputs :] = len(groups.names)
        used, labels = np.unique(labels, return_inverse=True)
        names = [*groups.names, INTERCEPT.removeprefix("+")]
        return WeightGroups(labels.ravel(), [names[group] for group in used])
    if prior == "single":
        return WeightGroups(np.zeros(network.n_weights, dtype=int), ["weights"])
    parts, names = [], []
    for layer, (rows, columns) in enumerate(network.shapes):
        hidden, width = layer < len(network.shapes) - 1, network.layer_sizes[layer]
        labels = np.empty((rows, columns), dtype=int)
        if layer == 0 and prior == "ard":
            inputs = feature_names or [f"x{i}" for i in range(width)]
            labels[:width] = len(names) + np.arange(width)[:, None]
            names += [f"input_{name}" for name in inputs]
        elif hidden:
            labels[:width] = len(names)
            names.append(f"hidden{layer + 1}_weights")
        else:
            labels[:width] = len(names)
        labels[width:] = len(names)
        if np.any(labels == len(names)):
            names.append(f"hidden{layer + 1}_biases" if hidden else "output")
        parts.append(labels.ravel())
    return WeightGroups(np.concatenate(parts), names)


class Hyperprior:
    """Prior density ``exp(a x - b e^x)`` of ``x = ln lambda``, a log precision, on an interval.

    This is a truncated Gamma distribution of ``lambda`` with shape ``a`` and rate ``b``. It is
    equivalent to ``2 a`` well-determined weights or targets whose energies sum to ``b``. With ``a =
    b = 0`` it is uniform in ``x``. All methods accept scalars and, element by element, arrays.

    Attributes
    ----------
    shape, rate : float or ndarray of shape (n,)
        Parameters ``a`` and ``b``.
    low, high : float or ndarray of shape (n,)
        Ends of the interval of ``ln lambda``.
    log_normaliser : float or ndarray of shape (n,)
        Log normaliser ``ln int exp(a x - b e^x) dx`` over the interval.

    Examples
    --------
    >>> from skbayesnn.posterior import Gamma, Hyperprior, LogUniform
    >>> issubclass(Gamma, Hyperprior) and issubclass(LogUniform, Hyperprior)
    True
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
        if share < LEAST_SHARE:
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
        return Hyperpriors(
            self.shape[index],
            self.rate[index],
            self.low[index],
            self.high[index],
            self.log_normaliser[index],
        )

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
