"""Derivatives of the fitted function by the inputs, and its novelty at a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, is_classifier

from skbayesnn._docs import LinkToSite, documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import generator
from skbayesnn.network import of_networks, row_blocks
from skbayesnn.predictive import class_probabilities

# networks drawn from the prior: standard error of variances about 5 %; least number of those whose
# output layer is integrated out
PRIOR_DRAWS, HIDDEN_DRAWS = 1000, 64


@documented()
class FittedFunction(LinkToSite, BaseEstimator):
    """Base class of all estimators with the derivatives and the novelty of the function."""

    def predict_gradient(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict the derivatives of the function by the inputs.

        The function is the mean of the target; for counts the log of the rate; for classes the
        log odds, which each network has as its activations. For two classes these are ``ln(p_1 /
        p_0)``; for more ``ln p_c`` less its mean over the classes, since a constant that all
        activations share has no effect (Aitchison 1982). Log odds are averaged, not moderated.

        With the most probable weights ``w``, the Gaussian of precision ``A`` around them and
        the network linearised in its weights, the derivative has the variance ``g^T A^-1 g`` with
        ``g = d2 f / dx dw``. Drawn networks have the moments of their derivatives, and mixtures the
        sum of both parts (law of total variance).

        Parameters
        ----------
        return_std : bool, default=False
            Also return the posterior standard deviations of the derivatives.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features)
            Derivatives in units of y per unit of X; of log odds in nats, with an axis of classes
            if there are more than two.
        std : ndarray of the same shape
            Standard deviations, of the weights alone; only with ``return_std``.

        Notes
        -----
        In a pipeline these are derivatives by the inputs of its last step. At the kinks of
        ``activation="relu"`` a unit counts as inactive.
        """
        X = self._check_X(X)
        if not return_std:
            return self._by_input(self._ensemble.gradient(X))
        mean, variance = self._ensemble.gradient_moments(X)
        return self._by_input(mean), self._by_input(np.sqrt(variance))

    def sample_gradient(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> Array:
        """Draw derivatives of functions from the posterior.

        With equal seeds they belong to the functions that ``sample_y`` draws.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples_X, n_features, n_samples)
            Derivatives in the units of `predict_gradient`; of several outputs of shape
            (n_samples_X, n_outputs, n_features, n_samples).
        """
        X, n_samples = self._check_X(X), count(n_samples, "n_samples")
        draws = self._ensemble.draw_gradients(X, generator(random_state), n_samples)
        return np.moveaxis(self._by_input(draws), 0, -1)

    def novelty(self, X: ArrayLike, return_distance: bool = False) -> Any:
        """Share of the prior variance of the function that the data have not removed.

        It is the posterior variance of the function, without noise, over its variance under the
        prior at the inferred precisions, both summed over standardised outputs or, for classifiers,
        over the class probabilities, and at most 1. The prior variance is estimated from drawn
        hidden weights, with an error of some 3 % (none for linear regression); that of classes, and
        under a prior with a mean, from 1000 drawn functions, with 5 %.

        Parameters
        ----------
        return_distance : bool, default=False
            Also return the distance from the training rows.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Between 0 (known) and 1 (nothing but the prior).
        distance : ndarray of shape (n_samples,)
            Distance from the nearest training row: the root mean square over the inputs, in
            standard deviations of each input; only with ``return_distance``.

        Notes
        -----
        Bounded activations such as ``"tanh"`` saturate far outside the data, where the function is
        constant. Novelty then tends to the novelty of this constant, which may be well below 1. Far
        away, the novelty of linear models tends to the remaining variance of the slope over its
        prior variance, which is small if the data determine the slope. Use the distance as well.
        After ``partial_fit`` both belong to the last batch: its prior is the posterior of the
        earlier ones, and its rows alone count.
        """
        X, classes = self._check_X(X), is_classifier(self)
        if classes:
            posterior = np.sum(self._ensemble.probability_std(X) ** 2, axis=1)
        else:
            posterior = np.trace(self._ensemble.moments(X, "epistemic")[1], axis1=1, axis2=2)
        blocks = row_blocks(len(X), PRIOR_DRAWS * self.n_outputs_)
        prior = np.sum(np.concatenate([self._prior_variance(X[rows]) for rows in blocks]), axis=1)
        novelty = np.clip(posterior / np.maximum(prior, np.finfo(float).tiny), 0.0, 1.0)
        if not return_distance:
            return novelty
        return novelty, self._distance(X)

    def _prior_variance(self, X):
        """Prior variance of the function, ``(n, n_outputs)``, or of class probabilities."""
        rng = generator(0)
        if is_classifier(self):
            draws = class_probabilities(self._draw_prior(X, PRIOR_DRAWS, rng))
            return np.var(draws, axis=0)
        network, groups, alpha = self._result.typical_prior
        if not groups.centred:
            return np.var(self._draw_prior(X, PRIOR_DRAWS, rng), axis=0)
        alpha = np.tile(alpha, (-(-HIDDEN_DRAWS // len(alpha)), 1))
        variances = network.layers(1.0 / groups.diagonal(alpha))[-1]

        def given_hidden_units(trace, variances):
            return trace.inputs[-1] ** 2 @ variances

        theta = groups.draw(alpha, rng)
        every = of_networks(given_hidden_units, network, theta, X, others=(variances,))
        return every.mean(axis=0)

    def _distance(self, X):
        return cKDTree(self._result.problem.X).query(X)[0] / np.sqrt(X.shape[1])

    def _by_input(self, values):
        """Convert ``(..., n_outputs, n_features)`` to user units; drop a single output's axis."""
        values = values * (self._y_scaling.scale[:, None] / self._X_scaling.scale)
        one = values.shape[-2] == 1 if is_classifier(self) else self._y_is_1d
        return values[..., 0, :] if one else values
