"""Mixtures of several fitted models of the same targets."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

from skbayesnn._data import Scaling
from skbayesnn._docs import documented
from skbayesnn.estimators._pipeline import final_step, predictor
from skbayesnn.estimators.predictions._function import FittedFunction
from skbayesnn.estimators.tasks._classification import Classification
from skbayesnn.estimators.tasks._regression import Regression
from skbayesnn.predictive import Ensemble, Rescaled

MODELS = """Averages.

Parameters
----------
models : list
    Fitted estimators of this package, or pipelines that end in one.
weights : ndarray of shape (n_models,)
    Mixture weights, positive and summing to 1.
"""


def _of_any(name):
    """Property that is true if it is true of any model."""
    return property(lambda average: any(getattr(model, name) for model in average._last))


@dataclass(eq=False, repr=False)
class _Average(FittedFunction):
    """Base class of both averages: the ensemble of all networks of all models."""

    models: list
    weights: np.ndarray

    @property
    def n_outputs_(self):
        """Number of outputs, equal for all models."""
        return self._last[0].n_outputs_

    @property
    def _y_scaling(self):
        return self._last[0]._y_scaling

    def _scaling_of(self, model):
        """Scaling of the outputs of a model, in units of `_y_scaling`."""
        own, (shift, scale) = model._y_scaling, self._y_scaling
        return Scaling((own.shift - shift) / scale, own.scale / scale)

    @property
    def _X_scaling(self):
        return Scaling.none(self._last[0].n_features_in_)

    @property
    def _last(self):
        return [final_step(model) for model in self.models]

    def _check_X(self, X):
        """Standardised inputs of all models side by side."""
        pairs = [predictor(model, X) for model in self.models]
        return np.hstack([model._check_X(rows) for model, rows in pairs])

    @property
    def _columns(self):
        """Columns of the result of `_check_X` that belong to each model, as slices."""
        ends = np.cumsum([model.n_features_in_ for model in self._last])
        return [slice(end - m.n_features_in_, end) for end, m in zip(ends, self._last, strict=True)]

    @property
    def _ensemble(self):
        """Ensemble of the networks of all models, in units of `_y_scaling`."""
        return self._joined([model._ensemble for model in self._last])

    @property
    def _gaussians(self):
        """Gaussian approximations of all models, as in `BayesianMLP`, in units of `_y_scaling`."""
        return self._joined([model._gaussians for model in self._last])

    def _joined(self, ensembles):
        """Combine the ensembles of all models into one."""
        parts, weights = [], []
        for model, own, columns, share in zip(
            self._last, ensembles, self._columns, self.weights, strict=True
        ):
            scalings = self._scaling_of(model), model._X_scaling if model in self.models else None
            parts += [Rescaled(part, columns, *scalings) for part in own.parts]
            weights += [share * some for some in own.weights]
        return Ensemble(tuple(parts), tuple(weights))

    def _draw_prior(self, X, n_samples, rng):
        """Draw prior functions of randomly chosen models, ``(n_samples, n, n_outputs)``."""
        counts = rng.multinomial(n_samples, self.weights)
        draws = [
            self._scaling_of(model).inverse(model._draw_prior(X[:, columns], count, rng))
            for model, columns, count in zip(self._last, self._columns, counts, strict=True)
            if count
        ]
        return rng.permutation(np.concatenate(draws))

    def _prior_variance(self, X):
        if is_classifier(self):
            return super()._prior_variance(X)
        pairs = zip(self._last, self._columns, strict=True)
        variances = [
            self._scaling_of(model).scale ** 2 * model._prior_variance(X[:, columns])
            for model, columns in pairs
        ]
        return np.tensordot(self.weights, variances, 1)

    def _distance(self, X):
        """Distance in the inputs of the model of largest weight."""
        best = np.argmax(self.weights)
        return self._last[best]._distance(X[:, self._columns[best]])


@documented(MODELS)
class AveragedRegressor(Regression, _Average):
    """Mixture of the predictive distributions of several regressors.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.estimators import AveragedRegressor
    >>> X, y = np.arange(30.0)[:, None], np.arange(30.0) % 7
    >>> models = [EvidenceMLPRegressor((), prior=p).fit(X, y) for p in ("single", "layer")]
    >>> both = AveragedRegressor(models, weights=np.array([0.5, 0.5]))
    >>> np.allclose(both.predict(X), np.mean([model.predict(X) for model in models], axis=0))
    True
    """

    _has_exposures = _of_any("_has_exposures")
    _has_limits = _of_any("_has_limits")
    _noise_is_measured = _of_any("_noise_is_measured")

    @property
    def _y_is_1d(self):
        return self._last[0]._y_is_1d

    @property
    def _noise_models(self):
        return set().union(*(model._noise_models for model in self._last))


@documented(MODELS)
class AveragedClassifier(Classification, _Average):
    """Average of the class probabilities of several classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPClassifier
    >>> from skbayesnn.estimators import AveragedClassifier
    >>> X = np.linspace(-2, 2, 30)[:, None]
    >>> y = np.where(X[:, 0] > 1, "far", "near")
    >>> models = [EvidenceMLPClassifier((), prior=p).fit(X, y) for p in ("single", "layer")]
    >>> both = AveragedClassifier(models, weights=np.array([0.5, 0.5]))
    >>> both.predict([[0.0], [2.0]])
    array(['near', 'far'], dtype='<U4')
    """

    @property
    def classes_(self):
        """Class labels, equal for all models."""
        return self._last[0].classes_
