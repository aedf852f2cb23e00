"""Several fitted models of the same targets that predict together."""

import numpy as np
from sklearn.base import BaseEstimator

from skbayesnn._data import Scaling
from skbayesnn.estimators._classification import Classification
from skbayesnn.estimators._pipeline import before_final_step, final_step
from skbayesnn.estimators._regression import Regression
from skbayesnn.predictive import mixture_moments, one_table


class _Average(BaseEstimator):
    """Common part of both averages: inputs, and functions of models drawn at random."""

    def __init__(self, models, weights):
        self.models = models
        self.weights = weights

    @property
    def _last(self):
        return [final_step(model) for model in self.models]

    def _check_X(self, X):
        """Standardised inputs of all models side by side."""
        return np.hstack(
            [final_step(model)._check_X(before_final_step(model, X)) for model in self.models]
        )

    def _each(self, X):
        """Pairs of a model and its columns of what `_check_X` returned."""
        ends = np.cumsum([model.n_features_in_ for model in self._last])
        return zip(self._last, np.split(X, ends[:-1], axis=1), strict=True)

    def _draw(self, X, n_samples, rng, draw):
        """Functions of models chosen at random, ``(n_samples, n, n_outputs)``."""
        counts = rng.multinomial(n_samples, self.weights)
        draws = [
            draw(model, columns, count, rng)
            for (model, columns), count in zip(self._each(X), counts, strict=True)
            if count
        ]
        return rng.permutation(np.concatenate(draws))

    def _draw_prior(self, X, n_samples, rng):
        return self._draw(X, n_samples, rng, _prior_functions)


class AveragedRegressor(Regression, _Average):
    """Mixture of the predictive distributions of several regressors.

    Parameters
    ----------
    models : list
        Fitted estimators of this package, or pipelines that end in one.
    weights : ndarray of shape (n_models,)
        Positive, summing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.estimators import AveragedRegressor
    >>> X = np.linspace(-2, 2, 30)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> models = [
    ...     EvidenceMLPRegressor(units, n_restarts=1, random_state=0).fit(X, y)
    ...     for units in [(2,), (4,)]
    ... ]
    >>> both = AveragedRegressor(models, weights=np.array([0.5, 0.5]))
    >>> means = [model.predict(X) for model in models]
    >>> np.allclose(both.predict(X), np.mean(means, axis=0))
    True
    """

    @property
    def n_outputs_(self):
        """Number of outputs, the same for all."""
        return self._last[0].n_outputs_

    @property
    def _y_is_1d(self):
        return self._last[0]._y_is_1d

    @property
    def _y_scaling(self):
        return Scaling.none(self.n_outputs_)

    @property
    def _member_weights(self):
        pairs = zip(self.weights, self._last, strict=True)
        return np.concatenate([weight * model._member_weights for weight, model in pairs])

    def _doubles_per_row(self):
        return sum(model._doubles_per_mixed_row() for model in self._last)

    def _activations(self, X, need_covariance=True):
        """Outputs of the members of all models, in units of y."""
        means, covariances = [], []
        for model, columns in self._each(X):
            mean, covariance = model._activations(columns, need_covariance)
            means.append(model._y_scaling.inverse(mean))
            if need_covariance:
                scale = model._y_scaling.scale
                covariances.append(covariance * scale[:, None] * scale)
        return np.concatenate(means), np.concatenate(covariances) if need_covariance else None

    def _noise_at(self, X):
        """Noise variance of every member, output and row, in units of y."""
        shape = len(X), self.n_outputs_
        parts = []
        for model, columns in self._each(X):
            noise = model._noise_at(columns) * model._y_scaling.scale**2
            parts.append(np.broadcast_to(noise, (len(noise), *shape)))
        return np.concatenate(parts)

    def _noise_mixture(self, X):
        """Noise of every member as Gaussians."""
        shape = len(X), self.n_outputs_
        mixtures = []
        for model, columns in self._each(X):
            shares, noise = model._noise_mixture(columns)
            noise = np.broadcast_to(noise * model._y_scaling.scale**2, (*shares.shape, *shape))
            mixtures.append((shares, noise))
        return one_table(mixtures)

    def _member_log_densities(self, X, y):
        """Of the members of all models, in units of y."""
        return np.concatenate(
            [
                model._member_log_densities(columns, model._y_scaling.transform(y))
                - np.sum(np.log(model._y_scaling.scale))
                for model, columns in self._each(X)
            ]
        )

    def _mean_and_joint_covariance(self, X):
        moments = [model._mean_and_joint_covariance(columns) for model, columns in self._each(X)]
        means, covariances = (np.stack(some) for some in zip(*moments, strict=True))
        n = len(X)
        by_output = np.moveaxis(means.reshape(len(moments), n, -1), -1, 1)
        covariances = np.moveaxis(covariances.reshape(len(moments), n, n, -1), -1, 1)
        mean, covariance = mixture_moments(self.weights, by_output, covariances)
        covariance = np.moveaxis(covariance, 0, -1)
        return self._shaped(mean.T), covariance[..., 0] if self._y_is_1d else covariance

    def _draw_functions(self, X, n_samples, rng):
        return self._draw(X, n_samples, rng, _posterior_functions)


class AveragedClassifier(Classification, _Average):
    """Average of the class probabilities of several classifiers.

    Parameters
    ----------
    models : list
        Fitted estimators of this package, or pipelines that end in one.
    weights : ndarray of shape (n_models,)
        Positive, summing to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPClassifier
    >>> from skbayesnn.estimators import AveragedClassifier
    >>> X = np.linspace(-2, 2, 30)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) > 1, "far", "near")
    >>> models = [
    ...     EvidenceMLPClassifier(units, n_restarts=1, random_state=0).fit(X, y)
    ...     for units in [(2,), (3,)]
    ... ]
    >>> both = AveragedClassifier(models, weights=np.array([0.5, 0.5]))
    >>> both.predict([[0.0], [2.0]])
    array(['near', 'far'], dtype='<U4')
    """

    @property
    def classes_(self):
        """Class labels, the same for all."""
        return self._last[0].classes_

    def _probabilities(self, X, moderated):
        parts = [model._probabilities(columns, moderated) for model, columns in self._each(X)]
        return np.tensordot(self.weights, np.stack(parts), 1)

    def _probability_std(self, X):
        pairs = list(self._each(X))
        means = np.stack([model._probabilities(columns, True) for model, columns in pairs])
        variances = np.stack([model._probability_std(columns) for model, columns in pairs]) ** 2
        _, covariance = mixture_moments(self.weights, means[..., None], variances[..., None, None])
        return np.sqrt(covariance[..., 0, 0])


def _posterior_functions(model, X, n_samples, rng):
    return model._y_scaling.inverse(model._draw_functions(X, n_samples, rng))


def _prior_functions(model, X, n_samples, rng):
    return model._y_scaling.inverse(model._draw_prior(X, n_samples, rng))
