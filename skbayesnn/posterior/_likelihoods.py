"""Noise models: how well outputs explain targets, and derivatives with respect to the outputs.

Sums over rows are taken network by network, never as one product over the leading axes, so that
their last bits do not depend on how many networks are evaluated together.

A likelihood sees outputs ``f`` ``(..., n, n_outputs)``, targets and row weights; it knows no
network. Its misfit is ``sum_l beta_l E_l`` over *noise levels* ``l``; classifiers have one level
whose precision stays 1, so that one formula, ``M = sum_c alpha_c E_W^c + sum_l beta_l E_l``
(MacKay 1992, section 3.2 and chapter 5), serves all.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp


@dataclass(frozen=True)
class Gaussian:
    """Targets ``t = f + noise`` with a Gaussian noise level per output, or shared by some.

    Parameters
    ----------
    levels : ndarray of int, shape (n_outputs,)
        The noise level of every output.
    relative : ndarray of shape (n_outputs,)
        Output ``o`` has noise precision ``relative_o * beta[levels_o]``. Outputs measured in
        different units share a noise level in their own units through this factor.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import Gaussian
    >>> outputs, y = np.array([[1.0], [2.0]]), np.array([[0.0], [4.0]])
    >>> noise = Gaussian.per_output(1)
    >>> noise.errors(outputs, y, np.ones(2))
    array([2.5])
    >>> gradient, curvature = noise.derivatives(outputs, y, np.ones(2), beta=np.array([2.0]))
    >>> gradient
    array([[ 2.],
           [-4.]])
    """

    levels: np.ndarray
    relative: np.ndarray

    has_noise = True
    linear = True  # the misfit, in beta
    quadratic = True  # the misfit, in the outputs
    equal_rows = True  # rows of equal sample weight have the same curvature
    variance_factor = 1.0  # variance of the noise times its precision

    @classmethod
    def per_output(cls, n_outputs):
        """One noise level for each output."""
        return cls(np.arange(n_outputs), np.ones(n_outputs))

    @property
    def n_levels(self):
        """Number of noise levels."""
        return int(self.levels.max()) + 1

    def level_sizes(self):
        """Number of outputs of every noise level."""
        return np.bincount(self.levels)

    @property
    def _membership(self):
        """Indicator matrix of shape (n_outputs, n_levels)."""
        return (self.levels[:, None] == np.arange(self.n_levels)).astype(float)

    def precisions(self, beta):
        """Noise precision of every output, ``(..., n_outputs)``."""
        return beta[..., self.levels] * self.relative

    def errors(self, outputs, y, sample_weight, beta=None):
        """``E_D = 1/2 sum_n s_n (f_n - t_n)^2`` per level, ``(..., n_levels)`` (Bishop 5.14)."""
        squares = 0.5 * (sample_weight @ (outputs - y) ** 2) * self.relative
        return (squares[..., None, :] @ self._membership)[..., 0, :]

    def excess(self, outputs, y, sample_weight, beta):
        """What the misfit has beyond ``sum_l beta_l E_l``: nothing."""
        return 0.0

    def derivatives(self, outputs, y, sample_weight, beta, exact=True):
        """Gradient ``r`` and (diagonal) curvature of the misfit, both ``(..., n, n_outputs)``."""
        curvature = sample_weight[:, None] * self.precisions(beta)[..., None, :]
        return curvature * (outputs - y), np.broadcast_to(curvature, outputs.shape)

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """What `errors` gives, and the gradient ``r`` of the misfit from the same pass."""
        weighted = sample_weight[:, None] * self.precisions(beta)[..., None, :]
        return self.errors(outputs, y, sample_weight), weighted * (outputs - y)

    def level_derivatives(self, outputs, y, sample_weight, beta, level, exact=True):
        """Derivatives of what `derivatives` returns with respect to ``ln beta_l``."""
        alone = beta * (np.arange(self.n_levels) == level)
        return self.derivatives(outputs, y, sample_weight, alone)

    def log_normaliser(self, beta, n_rows):
        """``N/2 log beta - N/2 log 2 pi`` (MacKay 1992, equation 3.8), of shape ``(...)``."""
        precisions = self.precisions(beta)
        return 0.5 * n_rows * np.sum(np.log(precisions / (2.0 * np.pi)), axis=-1)


class _NoNoiseLevel:
    """What classifiers share: one misfit ``-G`` whose factor is 1 (MacKay 1992, equation 5.1)."""

    has_noise = False
    linear = True
    quadratic = False
    n_levels = 1

    def level_sizes(self):
        """The number of misfit terms per row."""
        return np.ones(1, dtype=int)

    def excess(self, outputs, y, sample_weight, beta):
        """What the misfit has beyond ``-G``: nothing."""
        return 0.0

    def log_normaliser(self, beta, n_rows):
        """Zero: probabilities of classes are already normalised."""
        return np.zeros(beta.shape[:-1])


class Bernoulli(_NoNoiseLevel):
    """Two classes: ``P(t = 1) = sigmoid(a)``; ``y`` is ``(n, 1)`` of zeros and ones.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import Bernoulli
    >>> outputs, y = np.array([[0.0], [0.0]]), np.array([[0.0], [1.0]])
    >>> Bernoulli().errors(outputs, y, np.ones(2)).round(3)  # 2 ln 2
    array([1.386])
    """

    def errors(self, outputs, y, sample_weight, beta=None):
        """``-G = sum_n s_n [log(1 + e^a) - t a]``, shape ``(..., 1)`` (MacKay 1992, eq. 5.1)."""
        return sample_weight @ (np.logaddexp(0.0, outputs) - y * outputs)

    def derivatives(self, outputs, y, sample_weight, beta, exact=True):
        """Gradient and (diagonal) curvature, both ``(..., n, 1)``."""
        p = expit(outputs)
        weight = sample_weight[:, None] * beta[..., None, :]
        return weight * (p - y), weight * p * expit(-outputs)

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """What `errors` gives, and the gradient of the misfit from the same exponentials."""
        small = np.exp(-np.abs(outputs))
        likely = 1.0 / (1.0 + small)  # sigmoid(|a|)
        rows = np.maximum(outputs, 0.0) - np.log(likely) - y * outputs
        p = np.where(outputs > 0, likely, small * likely)
        weight = sample_weight[:, None] * beta[..., None, :]
        return sample_weight @ rows, weight * (p - y)


class Categorical(_NoNoiseLevel):
    """Several classes: ``P(t = c) = softmax(a)_c``; ``y`` is ``(n, n_classes)``, one-hot.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import Categorical
    >>> outputs, y = np.zeros((1, 3)), np.array([[0.0, 1.0, 0.0]])
    >>> Categorical().errors(outputs, y, np.ones(1)).round(3)  # ln 3
    array([1.099])
    """

    def errors(self, outputs, y, sample_weight, beta=None):
        """``-G = sum_n s_n [logsumexp(a) - a_t]``, shape ``(..., 1)`` (Bishop 4.108)."""
        rows = logsumexp(outputs, axis=-1) - np.sum(y * outputs, axis=-1)
        return np.sum(rows * sample_weight, axis=-1, keepdims=True)

    def derivatives(self, outputs, y, sample_weight, beta, exact=True):
        """Gradient ``(..., n, n_classes)``, full curvature ``diag(p) - p p^T`` (Bishop 4.110)."""
        p = np.exp(outputs - logsumexp(outputs, axis=-1, keepdims=True))
        weight = sample_weight[:, None] * beta[..., None, :]
        weighted = weight * p
        curvature = -weighted[..., :, None] * p[..., None, :]
        classes = np.arange(p.shape[-1])
        curvature[..., classes, classes] += weighted
        return weight * (p - y), curvature

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """What `errors` gives, and the gradient of the misfit from the same exponentials."""
        shifted = outputs - outputs.max(axis=-1, keepdims=True)
        p = np.exp(shifted)
        total = p.sum(axis=-1, keepdims=True)
        p /= total
        rows = np.log(total[..., 0]) - np.sum(y * shifted, axis=-1)
        errors = np.sum(rows * sample_weight, axis=-1, keepdims=True)
        return errors, sample_weight[:, None] * beta[..., None, :] * (p - y)
