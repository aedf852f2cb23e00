"""Adapters of displays to estimators: those of this package, and any others."""

from inspect import signature

import numpy as np
from scipy.stats import norm
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from skbayesnn.displays._inputs import NETWORKS, fitted_network
from skbayesnn.estimators import final_step


def predictor(estimator, only_regressors=False):
    """Wrap an estimator in one protocol for networks of this package and for others.

    Parameters
    ----------
    estimator : fitted estimator, Pipeline or search
        Regressor whose ``predict`` has ``return_std``, or a classifier with
        ``predict_proba``.
    only_regressors : bool, default=False

    Returns
    -------
    NetworkRegressor, NetworkClassifier, OtherRegressor or OtherClassifier

    Raises
    ------
    TypeError
        If it is another object, or predicts without probabilities.
    NotFittedError
    """
    if only_regressors and not is_regressor(getattr(estimator, "predictor_", estimator)):
        raise TypeError(f"This display needs a regressor; got {estimator!r}.")
    if isinstance(final_step(getattr(estimator, "predictor_", estimator)), NETWORKS):
        network, transform = fitted_network(estimator)
        kind = NetworkClassifier if is_classifier(network) else NetworkRegressor
        return kind(network, transform)
    if is_classifier(estimator) and hasattr(estimator, "predict_proba"):
        kind = OtherClassifier
    elif is_regressor(estimator) and _knows_std(estimator):
        kind = OtherRegressor
    else:
        raise TypeError(
            "This display needs a regressor with predict(X, return_std=True), or a classifier with "
            f"predict_proba; got {estimator!r}."
        )
    check_is_fitted(final_step(estimator))
    return kind(getattr(estimator, "best_estimator_", estimator))


def _knows_std(estimator):
    inner = final_step(getattr(estimator, "best_estimator_", estimator))
    return "return_std" in signature(getattr(inner, "estimator", inner).predict).parameters


def _by_output(values, n):
    """Reshape values to a column per output."""
    return np.reshape(values, (n, -1))


class NetworkRegressor:
    """Adapter of a regressor of this package.

    Parameters
    ----------
    network : BayesianMLP or an average of several
    transform : callable
        Map from the user's X to the network's.
    """

    name = "intervals"

    def __init__(self, network, transform):
        self._network, self._transform = network, transform
        self.n_outputs = network.n_outputs_

    def moments(self, X):
        """Means and standard deviations, ``(n, n_outputs)`` each, in units of y."""
        X = self._transform(X)
        mean, std = self._network.predict(X), self._network.predict_std(X)
        return _by_output(mean, len(mean)), _by_output(std, len(mean))

    def epistemic_std(self, X):
        """Standard deviations due to the weights, or ``None``."""
        std = self._network.predict_std(self._transform(X), kind="epistemic")
        return _by_output(std, len(std))

    def functions(self, X, n, random_state):
        """Draw functions from the posterior, ``(n_samples, n_outputs, n)``, or return ``None``."""
        draws = self._network.sample_y(self._transform(X), n, random_state)
        return draws.reshape(len(draws), -1, n)

    def cdf(self, X, y):
        """Predictive probability of targets no larger than y."""
        return self._network.predictive_cdf(self._transform(X), y)


class OtherRegressor:
    """Adapter of any regressor that predicts a Gaussian.

    Parameters
    ----------
    estimator : fitted estimator
    """

    def __init__(self, estimator):
        self._estimator = estimator
        self.name = type(final_step(estimator)).__name__
        self.n_outputs = None

    def moments(self, X):
        """Means and standard deviations, ``(n, n_outputs)`` each, in units of y."""
        mean, std = self._estimator.predict(X, return_std=True)
        mean = _by_output(mean, len(mean))
        self.n_outputs = mean.shape[1]
        return mean, np.broadcast_to(_by_output(std, len(mean)), mean.shape)

    def epistemic_std(self, X):
        """Return ``None``: the parts of the standard deviation are unknown."""
        return

    def functions(self, X, n, random_state):
        """Return ``None``: draws of other regressors may include the noise."""
        return

    def cdf(self, X, y):
        """Gaussian predictive probability of targets no larger than y."""
        mean, std = self.moments(X)
        y = _by_output(np.asarray(y, dtype=float), len(mean))
        if y.shape != mean.shape:
            raise ValueError(f"y has {y.shape[1]} outputs, the predictions {mean.shape[1]}.")
        return norm.cdf(y, mean, std)


class NetworkClassifier:
    """Adapter of a classifier of this package.

    Parameters
    ----------
    network : BayesianMLP or an average of several
    transform : callable
        Map from the user's X to the network's.
    """

    def __init__(self, network, transform):
        self._network, self._transform = network, transform
        self.classes = network.classes_

    def probabilities(self, X):
        """Class probabilities ``(n, n_classes)`` by the name of the method."""
        X = self._transform(X)
        return {
            name: self._network.predict_proba(X, moderated=moderated)
            for name, moderated in (("moderated", True), ("most probable", False))
        }


class OtherClassifier:
    """Adapter of any classifier with ``predict_proba``.

    Parameters
    ----------
    estimator : fitted estimator
    """

    def __init__(self, estimator):
        self._estimator = estimator
        self.name = type(final_step(estimator)).__name__
        self.classes = estimator.classes_

    def probabilities(self, X):
        """Class probabilities ``(n, n_classes)`` under the name of the estimator."""
        return {self.name: self._estimator.predict_proba(X)}
