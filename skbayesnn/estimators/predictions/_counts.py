"""Predictive distributions of counts, with the methods of SciPy's."""

from dataclasses import dataclass

import numpy as np

from skbayesnn._typing import Array
from skbayesnn.estimators.predictions._distribution import PredictiveDistribution
from skbayesnn.predictive import CountEnsemble


@dataclass(frozen=True, init=False, repr=False, eq=False)
class CountDistribution(PredictiveDistribution):
    """Predictive distribution of counts at given rows: a mixture over networks.

    ``pmf`` and ``logpmf`` are other names of ``pdf`` and ``logpdf``: here these are probabilities,
    zero where ``y`` is no count.

    Parameters
    ----------
    ensemble : CountEnsemble
        Networks that predict.
    X : ndarray of shape (n_samples, n_features)
        Inputs, standardised.
    scaling : Scaling
        Identity.
    one_dimensional : bool
        Whether arrays have no axis of outputs.
    errors : ndarray of shape (n_samples, 1)
        Exposures times the rate at which the outputs of the networks are zero.
    needs_errors : bool, default=False
        Not used.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> y = np.random.default_rng(0).poisson(3.0 * np.exp(X[:, 0]))
    >>> model = EvidenceMLPRegressor((), noise="poisson", measure_evidence=False).fit(X, y)
    >>> at = model.predict_distribution([[0.0]], exposure=[10.0])
    >>> at.mean().round(-1), at.ppf([0.05, 0.95]).shape
    (array([30.]), (1, 2))
    >>> round(float(sum(at.pmf(k) for k in range(100))[0]), 6)
    1.0
    """

    ensemble: CountEnsemble

    pmf = PredictiveDistribution.pdf
    logpmf = PredictiveDistribution.logpdf

    def entropy(self) -> Array:
        """Compute the entropy ``-sum_t P(t) ln P(t)``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Entropy, in nats.
        """
        terms = self.ensemble.summed(self.X, lambda t, logs: -logs * np.exp(logs), self.errors)
        return self._shaped(terms)
