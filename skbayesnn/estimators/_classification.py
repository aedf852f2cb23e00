"""What classifiers share: classes as targets, and predictions from class probabilities."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn._data import Scaling
from skbayesnn.estimators._base import generator
from skbayesnn.estimators._parameters import count
from skbayesnn.posterior import Bernoulli, Categorical
from skbayesnn.predictive import class_probabilities

TINY = np.finfo(float).tiny


class Classification(ClassifierMixin):
    """Predictions of classifiers, whatever the engine.

    The class probabilities are those of ``_ensemble``, which takes standardised rows.
    """

    def predict(self, X):
        """Most probable class, by the moderated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X, moderated=True):
        """Class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        moderated : bool or "closed_form", default=True
            ``True``: averaged over the posterior. Samplers: the mean over the drawn networks.
            Evidence estimators: over Gaussian activations (MacKay 1992, equation 5.7), by
            quadrature for two classes (exact to 1e-12) and by 1024 fixed quasi-random points for
            more (errors of the order of 0.001); ``"closed_form"`` is the approximation of equation
            5.8, for two classes. ``False``: outputs of the most probable weights, or of the draw of
            highest density.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        X = self._check_X(X)
        averaged = moderated and not isinstance(moderated, str)
        ensemble = self._ensemble if averaged else self._gaussians
        probabilities = ensemble.probabilities(X, moderated)
        return np.minimum(probabilities, 1.0)  # averages may round to more

    def predict_log_proba(self, X):
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Finite: probabilities below the smallest normal number count as that.
        """
        return np.log(np.maximum(self.predict_proba(X), TINY))

    def decision_function(self, X):
        """Logit of the second class's probability; log probabilities for more classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Large where the class is likely.
        """
        probabilities = np.maximum(self.predict_proba(X), TINY)
        if len(self.classes_) == 2:
            return np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])
        return np.log(probabilities)

    def predict_std(self, X):
        """Posterior standard deviation of each class probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        X = self._check_X(X)
        return self._ensemble.probability_std(X)

    def log_predictive_density(self, X, y):
        """Log of the moderated probability of the true class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        log_proba = self.predict_log_proba(X)
        y = column_or_1d(y)
        check_consistent_length(log_proba, y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds classes that were not in the training data: {unknown}.")
        return log_proba[np.arange(len(y)), np.searchsorted(self.classes_, y)]

    def sample_prior(self, X, n_samples=1, random_state=0):
        """Class probabilities of networks drawn from the prior at the inferred precisions.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of networks.
        random_state : int, RandomState instance or None, default=0
            Seeds the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_classes, n_samples)
            Probabilities, summing to 1 over the classes.
        """
        X, n_samples = self._check_X(X), count(n_samples, "n_samples")
        activations = self._draw_prior(X, n_samples, generator(random_state))
        return np.moveaxis(class_probabilities(activations), 0, -1)

    def _encode(self, y):
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if not hasattr(self, "classes_"):
            self.classes_, codes = np.unique(y, return_inverse=True)
            return codes[:, None].astype(float)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y holds classes {unknown.tolist()} that are not among those of the first batch, "
                f"{self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, y)[:, None].astype(float)

    def _check_domain(self, rows, known):
        present = np.unique(rows.y)
        if len(present) < 2 and "classes_" not in known:
            found = self.classes_.tolist()[int(present[0])]
            raise ValueError(
                "This classifier needs samples of at least 2 classes in the data (with positive "
                f"sample_weight), but found only one class: {found!r}."
            )
        super()._check_domain(rows, known)

    def _targets(self, rows, scaling=None):
        codes = rows.y[:, 0].astype(int)
        if len(self.classes_) == 2:
            return rows.y, Scaling.none(1), Bernoulli()
        y = np.eye(len(self.classes_))[codes]
        return y, Scaling.none(len(self.classes_)), Categorical()

    def _noise_options(self, y_scaling, likelihood, rows):
        """Classes have no noise."""
        return {}
