"""Ensembles of networks: the predictive distribution of targets at any input."""

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from scipy.special import logsumexp

from skbayesnn._data import Scaling
from skbayesnn._threads import blas_threads
from skbayesnn.network import row_blocks
from skbayesnn.predictive._members import Part
from skbayesnn.predictive._mixture import Mixture, mixture_moments

MIN_WITH_MOMENTS = 0.2  # least share of networks whose noise has moments that stand for all


@dataclass(frozen=True)
class Ensemble:
    """Mixture of the predictive distributions of parts."""

    parts: tuple
    weights: tuple  # of the networks of every part, (m,); all sum to 1

    mixture_width = 1  # relative memory of the mixture at a row

    @property
    def member_weights(self):
        """Weights of all networks, ``(m,)``."""
        return np.concatenate(self.weights)

    @property
    def shares(self):
        """Weights of the parts, ``(n_parts,)``."""
        return np.array([weights.sum() for weights in self.weights])

    @property
    def n_outputs(self):
        """Number of outputs, equal for all parts."""
        return self.parts[0].network.n_outputs

    @property
    def doubles_per_row(self):
        """Memory per row to predict, in doubles."""
        return sum(part.doubles_per_row for part in self.parts)

    @property
    def typical_noise_variances(self):
        """Noise variances of every network, ``(m, n_outputs)``."""
        return np.concatenate([part.noise.typical_variances for part in self.parts])

    def outputs(self, X):
        """Mean outputs of every network, ``(m, n, n_outputs)``."""
        return np.concatenate([part.outputs(X) for part in self.parts])

    def member_moments(self, X, kind="total"):
        """Means ``(m, n, p)`` and covariances ``(m, n, p, p)`` of targets under every network."""
        means, covariances = [], []
        for part in self.parts:
            mean, covariance = part.moments(X)
            if kind == "aleatoric":
                mean, covariance = 0.0 * mean, 0.0 * covariance
            if kind != "epistemic":
                covariance = covariance + part.noise_covariances(X)
            means.append(mean)
            covariances.append(covariance)
        return np.concatenate(means), np.concatenate(covariances)

    def mean(self, X, errors=None):
        """Mean of targets, ``(n, p)``; ``errors`` as in `moments`, which do not change it."""
        return self._by_rows(lambda X: self._mixed(self.outputs(X)), X)

    def moments(self, X, kind="total", errors=None):
        """Mean ``(n, p)`` and covariance ``(n, p, p)`` of the outputs of every row.

        The ``kind`` is "total", "epistemic" (of the weights) or "aleatoric" (of the noise).
        ``errors`` ``(n, p)`` are variances of known errors, which belong to the noise.
        """

        def moments(X, errors):
            mean, covariance = mixture_moments(self.member_weights, *self.member_moments(X, kind))
            if errors is not None and kind != "epistemic":
                covariance = covariance + errors[..., None] * np.eye(mean.shape[-1])
            return mean, covariance

        return self._by_rows(moments, X, errors)

    def joint_moments(self, X):
        """Mean ``(n, p)`` and covariance between rows ``(n, n, p)``, noise on its diagonal."""
        means, covariances = [], []
        for part in self.parts:
            noise = np.diagonal(part.noise_covariances(X), axis1=2, axis2=3)  # (m, n or 1, p)
            covariance = part.joint_covariances(X)
            noise = np.swapaxes(noise, 1, 2)[..., None]
            covariances.append(covariance + noise * np.eye(len(X)))
            means.append(np.moveaxis(part.outputs(X), -1, 1))
        means, covariances = np.concatenate(means), np.concatenate(covariances)
        mean, covariance = mixture_moments(self.member_weights, means, covariances)
        return mean.T, np.moveaxis(covariance, 0, -1)

    def quantiles(self, X, probabilities, errors=None):
        """Quantiles of targets, an array ``(n, p)`` per probability; ``errors`` as in `moments`."""
        return self._over_mixtures(lambda mixture: mixture.quantiles(probabilities), X, errors)

    def entropy(self, X, errors=None):
        """Differential entropies of targets ``(n, p)``; ``errors`` as in `moments`."""
        return self._over_mixtures(lambda mixture: mixture.entropy(), X, errors)

    @property
    def with_moments(self):
        """Select the networks whose noise has all moments; ``None`` if they have a small share.

        Under Student-t noise the mean of a function of the target need not exist.
        """
        kept = [not part.noise.heavy_tails for part in self.parts]
        weights = tuple(shares for shares, keep in zip(self.weights, kept, strict=True) if keep)
        total = sum(shares.sum() for shares in weights)
        if all(kept) or total < MIN_WITH_MOMENTS:
            return self if all(kept) else None
        parts = tuple(part for part, keep in zip(self.parts, kept, strict=True) if keep)
        return replace(self, parts=parts, weights=tuple(shares / total for shares in weights))

    def function_moments(self, X, function, errors=None):
        """Mean and variance of a function of each target, ``(n, p)``, by Gauss-Hermite quadrature.

        The function maps targets ``(m, n, p)`` one by one. Its moments must exist, see
        `with_moments`.
        """
        return self._over_mixtures(lambda mixture: mixture.moments_of(function), X, errors)

    def cdf(self, X, y, errors=None):
        """Probability of targets no larger than ``y``, ``(n, p)``; ``errors`` as for `moments`."""
        return self._over_mixtures(lambda mixture, y: mixture.cdf(y)[0], X, errors, y)

    def log_density(self, X, y, errors=None):
        """Log density of targets, jointly over outputs, ``(n,)``; ``errors`` as in `moments`."""

        def log_density(X, y, errors):
            densities = np.concatenate([part.log_densities(X, y, errors) for part in self.parts])
            return logsumexp(densities + np.log(self.member_weights)[:, None], axis=0)

        return self._by_rows(log_density, X, y, errors)

    def log_probability(self, X, y, sides, errors=None):
        """Log density of targets as by `log_density`, of which some are limits: ``(n,)``.

        ``sides`` ``(n, p)`` are those of `CensoredGaussian`. A limit has the log probability of the
        values that it allows; outputs of its row are independent, given the network.
        """
        exact = self.log_density(X, y, errors)
        if not np.any(sides):
            return exact
        limited = self._over_mixtures(Mixture.log_density, X, errors, y, sides)
        return np.where(np.any(sides, axis=1), limited, exact)

    def marginal_log_density(self, X, y, errors=None):
        """Log density of each target by itself, ``(n, p)``; ``errors`` as in `moments`."""
        if self.n_outputs == 1:
            return self.log_density(X, y, errors)[:, None]
        return self._over_mixtures(Mixture.log_density, X, errors, y)

    def draw(self, X, rng, size, noisy=False):
        """Draw functions from the posterior, or targets if ``noisy``: ``(size, n, p)``."""
        return self._drawn(lambda part, count: part.draw(X, rng, count, noisy), rng, size)

    def targets(self, X, rng, size, errors=None):
        """Draw targets, ``(size, n, p)``; ``errors`` as in `moments`."""
        drawn = self.draw(X, rng, size, noisy=True)
        if errors is not None:
            drawn = drawn + np.sqrt(errors) * rng.standard_normal(drawn.shape)
        return drawn

    def draw_gradients(self, X, rng, size):
        """Derivatives by the inputs of the functions that `draw` gives, ``(size, n, p, d)``."""
        return self._drawn(lambda part, count: part.draw_gradients(X, rng, count), rng, size)

    def _drawn(self, draw, rng, size):
        """Draw from parts that are chosen by their weights."""
        chosen = rng.choice(len(self.parts), size=size, p=self.shares / self.shares.sum())
        counts = np.bincount(chosen, minlength=len(self.parts))
        pairs = zip(self.parts, counts, strict=True)
        draws = np.concatenate([draw(part, count) for part, count in pairs if count])
        return draws[np.argsort(np.argsort(chosen, kind="stable"))]

    def gradient(self, X):
        """Mean of the derivatives of the outputs by the inputs, ``(n, p, d)``."""

        def gradient(X):
            return self._mixed(np.concatenate([part.gradients(X) for part in self.parts]))

        return self._by_rows(gradient, X, width=X.shape[1])

    def gradient_moments(self, X):
        """Mean and variance of the derivatives of the outputs by the inputs, ``(n, p, d)`` each."""

        def moments(X):
            parts = [part.gradient_moments(X) for part in self.parts]
            means, variances = (np.concatenate(blocks) for blocks in zip(*parts, strict=True))
            mean = self._mixed(means)
            return mean, self._mixed((means - mean) ** 2 + variances)

        return self._by_rows(moments, X, width=X.shape[1])

    def probabilities(self, X, moderated=True):
        """Class probabilities ``(n, n_classes)``."""
        return self._class_moments(X, moderated)[0]

    def probability_std(self, X):
        """Posterior standard deviation of each class probability, ``(n, n_classes)``."""
        return np.sqrt(self._class_moments(X, True)[1])

    def _class_moments(self, X, moderated):
        with self.threads():
            moments = [part.probabilities(X, moderated) for part in self.parts]
        means, variances = (np.stack(arrays) for arrays in zip(*moments, strict=True))
        mean = np.tensordot(self.shares, means, 1)
        return mean, np.tensordot(self.shares, variances + (means - mean) ** 2, 1)

    def _mixed(self, values):
        return np.tensordot(self.member_weights, values, 1)

    def mixture(self, X, errors=None):
        """Make the `Mixture` of rows; known ``errors``, as in `moments`, require Gaussian laws."""
        pairs = zip(self.parts, self.weights, strict=True)
        components = [some for part, weights in pairs for some in part.marginals(X, weights)]
        if errors is not None:
            components = [
                some._replace(scales=np.sqrt(some.scales**2 + errors)) for some in components
            ]
        return Mixture(components)

    def _over_mixtures(self, function, X, errors, *arrays):
        """Apply a function of the `mixture`, and of further arrays, to blocks of rows."""

        def of_rows(X, errors, *arrays):
            return function(self.mixture(X, errors), *arrays)

        return self._by_rows(of_rows, X, errors, *arrays, width=self.mixture_width)

    def threads(self):
        """Return a context manager that limits threads where networks are small."""
        return blas_threads(max(part.network.n_weights for part in self.parts))

    def _by_rows(self, function, *arrays, width=1):
        """Apply a function to blocks of rows of arrays or ``None``, so that all networks fit.

        An output of a row has ``width`` values.
        """
        blocks = row_blocks(len(arrays[0]), width * self.doubles_per_row)
        with self.threads():
            parts = [
                function(*(None if array is None else array[rows] for array in arrays))
                for rows in blocks
            ]
        if isinstance(parts[0], tuple):
            return [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Rescaled(Part):
    """Part that uses some columns of the inputs, in the units of a `Scaling` of its outputs."""

    part: Part
    columns: slice
    scaling: Scaling
    inputs: Scaling | None = None  # of the columns; ``None`` in a pipeline

    network = property(attrgetter("part.network"), doc="Network of the part.")
    noise = property(attrgetter("part.noise"), doc="Noise of the part, in its own units.")
    doubles_per_row = property(attrgetter("part.doubles_per_row"), doc="Memory per row in doubles.")

    def noise_covariances(self, X):
        return self._rescaled(self.part.noise_covariances(X[:, self.columns]))

    def outputs(self, X):
        return self.scaling.inverse(self.part.outputs(X[:, self.columns]))

    def moments(self, X):
        means, covariances = self.part.moments(X[:, self.columns])
        return self.scaling.inverse(means), self._rescaled(covariances)

    def _rescaled(self, covariances):
        return covariances * self.scaling.scale[:, None] * self.scaling.scale

    def joint_covariances(self, X):
        scale = self.scaling.scale[:, None, None]
        return self.part.joint_covariances(X[:, self.columns]) * scale**2

    def marginals(self, X, weights):
        inverse, scale = self.scaling.inverse, self.scaling.scale
        return [
            some._replace(means=inverse(some.means), scales=some.scales * scale)
            for some in self.part.marginals(X[:, self.columns], weights)
        ]

    def log_densities(self, X, y, errors=None):
        if errors is not None:
            errors = errors / self.scaling.scale**2
        y = self.scaling.transform(y)
        densities = self.part.log_densities(X[:, self.columns], y, errors)
        return densities - np.sum(np.log(self.scaling.scale))

    def draw(self, X, rng, size, noisy=False):
        return self.scaling.inverse(self.part.draw(X[:, self.columns], rng, size, noisy))

    def probabilities(self, X, moderated):
        return self.part.probabilities(X[:, self.columns], moderated)

    @property
    def _slope(self):
        if self.inputs is None:
            raise ValueError("Models in pipelines have no average of their derivatives.")
        return self.scaling.scale[:, None] / self.inputs.scale

    def gradients(self, X):
        return self.part.gradients(X[:, self.columns]) * self._slope

    def gradient_moments(self, X):
        mean, variance = self.part.gradient_moments(X[:, self.columns])
        return mean * self._slope, variance * self._slope**2

    def draw_gradients(self, X, rng, size):
        return self.part.draw_gradients(X[:, self.columns], rng, size) * self._slope
