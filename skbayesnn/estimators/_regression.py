"""What regressors share: targets with noise, and predictions from mixtures of Gaussians."""

import numbers
from functools import partial

import numpy as np
from scipy.special import logsumexp, ndtr
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from skbayesnn._data import Scaling
from skbayesnn.estimators._base import generator
from skbayesnn.estimators._parameters import fixed_values
from skbayesnn.network import row_blocks
from skbayesnn.posterior import Gaussian
from skbayesnn.predictive import log_normal_density, mixture_moments, mixture_quantile

KINDS = ("total", "epistemic", "aleatoric")


class Regression(RegressorMixin):
    """Predictions of regressors, whatever the engine.

    An engine provides members with weights ``_member_weights`` ``(m,)``, ``_activations``,
    ``_noise_variances``, ``_joint_covariances`` and ``_draw_functions``; for other than constant
    Gaussian noise also ``_noise_at`` and ``_noise_mixture``.
    """

    _noises = ("constant", "shared")

    def __sklearn_tags__(self):
        """Several outputs are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def predict(self, X, return_std=False, return_cov=False):
        """Predictive mean, with its standard deviation or covariance if wanted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Also return the total standard deviation, of weights and noise (Bishop 5.172-5.173).
        return_cov : bool, default=False
            Also return the covariance between rows, noise included on its diagonal.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean, in units of y.
        y_std : ndarray of the same shape
            Only with ``return_std``.
        y_cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_outputs)
            Only with ``return_cov``.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std and return_cov can be requested.")
        X = self._check_X(X)
        if return_cov:
            return self._mean_and_joint_covariance(X)
        if not return_std:
            return self._shaped(self._y_scaling.inverse(self._by_rows(self._mean, X)))
        mean, covariance = self._by_rows(self._moments, X)
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)) * self._y_scaling.scale
        return self._shaped(self._y_scaling.inverse(mean)), self._shaped(sd)

    def predict_std(self, X, kind="total"):
        """Predictive standard deviation, or one of its parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        kind : {"total", "epistemic", "aleatoric"}, default="total"
            Everything; what comes from the weights; what comes from the noise.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In units of y; the squares of the parts add up to that of the total.
        """
        covariance = self.predict_output_cov(X, kind)
        return self._shaped(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)))

    def predict_output_cov(self, X, kind="total"):
        """Covariance between the outputs of each row: error ellipses (MacKay 1992, figure 3.1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        kind : {"total", "epistemic", "aleatoric"}, default="total"
            As in `predict_std`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs, n_outputs)
            In units of y.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        _, covariance = self._by_rows(partial(self._moments, kind=kind), self._check_X(X))
        scale = self._y_scaling.scale
        return covariance * scale[:, None] * scale

    def predict_interval(self, X, coverage=0.95):
        """Central interval of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        coverage : float, default=0.95
            Probability inside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper end, in units of y.
        """
        if not (isinstance(coverage, numbers.Real) and 0 < coverage < 1):
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}.")
        tails = 0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)
        ends = self._by_rows(partial(self._quantiles, probabilities=tails), self._check_X(X))
        return np.stack([self._shaped(self._y_scaling.inverse(end)) for end in ends], axis=-1)

    def log_predictive_density(self, X, y):
        """Log density of targets under their predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats, y in its own units; joint over the outputs.
        """
        density = self._by_rows(self._log_density, *self._check_pairs(X, y))
        return density - np.sum(np.log(self._y_scaling.scale))

    def predictive_cdf(self, X, y):
        """Predictive probability of a target no larger than ``y``.

        At the true targets of a calibrated model these values, the probability integral transform,
        are uniform (Dawid 1984).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Between 0 and 1, for each output by itself.
        """
        return self._shaped(self._by_rows(self._cdf, *self._check_pairs(X, y)))

    def sample_y(self, X, n_samples=1, random_state=0):
        """Functions drawn from the posterior, without noise.

        By the evidence estimators linearised in the weights; by the samplers drawn networks.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions; each is drawn jointly over all rows.
        random_state : int, RandomState instance or None, default=0
            Seeds the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            In units of y.
        """
        X = self._check_X(X)
        return self._functions(self._draw_functions(X, n_samples, generator(random_state)))

    def sample_prior(self, X, n_samples=1, random_state=0):
        """Functions drawn from the prior at the inferred precisions.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seeds the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            In units of y.
        """
        X = self._check_X(X)
        return self._functions(self._draw_prior(X, n_samples, generator(random_state)))

    def _encode(self, y):
        self._y_is_1d = y.ndim == 1
        return _numeric(y)

    def _targets(self, rows):
        n_outputs = rows.y.shape[1]
        scaling = Scaling.none(n_outputs)
        if self.standardize:
            scaling = Scaling.standard(rows.y, rows.weight)
        likelihood = Gaussian.per_output(n_outputs)
        if self.noise == "shared":
            typical = np.exp(np.mean(np.log(scaling.scale)))
            likelihood = Gaussian(np.zeros(n_outputs, dtype=int), (scaling.scale / typical) ** 2)
        return scaling.transform(rows.y), scaling, likelihood

    def _noise_precisions(self, y_scaling, likelihood):
        """Free noise levels, and the precisions (standardised units) of the others."""
        names = list(range(likelihood.n_levels))
        free, values = fixed_values(self.noise_std, names, "noise_std")
        first = [int(np.flatnonzero(likelihood.levels == level)[0]) for level in names]
        scale = y_scaling.scale[first] / np.sqrt(likelihood.relative[first])
        return free, np.where(free, 1.0, (scale / values) ** 2)

    def _scale_term(self, problem):
        return -problem.posterior.n_rows * float(np.sum(np.log(problem.y_scaling.scale)))

    def _check_pairs(self, X, y):
        """Rows with their targets, standardised."""
        X = self._check_X(X)
        y = _numeric(np.asarray(y))
        check_consistent_length(X, y)
        if y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {y.shape[1]} outputs, the model was fitted with {self.n_outputs_}."
            )
        return X, self._y_scaling.transform(y)

    def _by_rows(self, function, *arrays):
        """Apply a function to blocks of rows, so that all members fit in memory."""
        blocks = row_blocks(len(arrays[0]), self._doubles_per_row())
        parts = [function(*(array[rows] for array in arrays)) for rows in blocks]
        if isinstance(parts[0], tuple):
            return [np.concatenate(some) for some in zip(*parts, strict=True)]
        return np.concatenate(parts)

    def _mean(self, X):
        means, _ = self._activations(X, need_covariance=False)
        return np.tensordot(self._member_weights, means, 1)

    def _moments(self, X, kind="total"):
        """Mean and covariance of the outputs of every row."""
        means, covariances = self._activations(X)
        if kind == "aleatoric":
            means, covariances = 0.0 * means, self._noisy(0.0 * covariances, X)
        elif kind == "total":
            covariances = self._noisy(covariances, X)
        return mixture_moments(self._member_weights, means, covariances)

    def _marginals(self, X):
        """The mixture's Gaussians: weights, means and standard deviations, ``(m, n, n_outputs)``.

        A member with other than Gaussian noise has several.
        """
        means, covariances = self._activations(X)
        variances = np.diagonal(covariances, axis1=2, axis2=3)
        shares, noise = self._noise_mixture(X)
        sds = np.sqrt(variances[:, None] + noise)
        means = np.broadcast_to(means[:, None], sds.shape)
        weights = (self._member_weights[:, None] * shares).ravel()
        return weights, *(values.reshape(-1, *values.shape[2:]) for values in (means, sds))

    def _quantiles(self, X, probabilities):
        """Of the mixture, one array ``(n, n_outputs)`` per probability."""
        mixture = self._marginals(X)
        return tuple(mixture_quantile(*mixture, p) for p in probabilities)

    def _cdf(self, X, y):
        """Of the mixture at targets in standardised units, ``(n, n_outputs)``."""
        weights, means, sds = self._marginals(X)
        return np.tensordot(weights, ndtr((y - means) / sds), 1)

    def _log_density(self, X, y):
        """Of targets in standardised units, ``(n,)``."""
        density = self._member_log_densities(X, y)
        return logsumexp(density + np.log(self._member_weights)[:, None], axis=0)

    def _member_log_densities(self, X, y):
        """Of every member by itself, ``(m, n)``."""
        means, covariances = self._activations(X)
        return log_normal_density(y - means, self._noisy(covariances, X))

    def _noise_at(self, X):
        """Noise variance of every member, output and row, ``(m, n or 1, n_outputs)``."""
        return self._noise_variances[:, None]

    def _doubles_per_mixed_row(self):
        """As `_doubles_per_row`, for `_noise_mixture`."""
        return self._doubles_per_row()

    def _noise_mixture(self, X):
        """Noise as Gaussians: shares ``(m, s)``, variances ``(m, s, n or 1, n_outputs)``."""
        noise = self._noise_at(X)[:, None]
        return np.ones((len(noise), 1)), noise

    def _noisy(self, covariances, X):
        """Add every member's noise to covariances ``(m, n, n_outputs, n_outputs)``."""
        return covariances + self._noise_at(X)[..., None] * np.eye(self.n_outputs_)

    def _mean_and_joint_covariance(self, X):
        means, _ = self._activations(X, need_covariance=False)
        covariances = self._joint_covariances(X)
        noise = np.swapaxes(self._noise_at(X), 1, 2)  # (m, n_outputs, n or 1)
        covariances = covariances + noise[..., None] * np.eye(len(X))
        by_output = np.moveaxis(means, -1, 1)  # (m, n_outputs, n)
        mean, covariance = mixture_moments(self._member_weights, by_output, covariances)
        covariance = np.moveaxis(covariance, 0, -1) * self._y_scaling.scale**2
        if self._y_is_1d:
            covariance = covariance[..., 0]
        return self._shaped(self._y_scaling.inverse(mean.T)), covariance

    def _functions(self, draws):
        """From ``(size, n, n_outputs)`` in standardised units to the shape of `sample_y`."""
        values = np.moveaxis(self._y_scaling.inverse(draws), 0, -1)
        return values[:, 0] if self._y_is_1d else values

    def _shaped(self, values):
        """Drop the axis of outputs if y had none."""
        return values[:, 0] if self._y_is_1d else values


def _numeric(y):
    """Targets as finite numbers of shape (n, n_outputs)."""
    try:
        y = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must hold numbers; for class labels use a classifier, such as EvidenceMLPClassifier."
        ) from error
    if not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity.")
    return y[:, None] if y.ndim == 1 else y
