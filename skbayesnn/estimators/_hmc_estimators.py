"""Regression and classification by networks drawn from their posterior."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._descriptions import ESTIMATORS, REGRESSORS, SAMPLERS
from skbayesnn.estimators._hmc import HMCMLP, by_chain
from skbayesnn.estimators.inputs._settings import Noise, Prior, Sampler
from skbayesnn.estimators.predictions._categorical import TINY
from skbayesnn.estimators.tasks._classification import Classification
from skbayesnn.estimators.tasks._regression_fit import RegressionFit
from skbayesnn.predictive import class_probabilities


@documented(SAMPLERS, REGRESSORS, ESTIMATORS)
@dataclass(eq=False, repr=False)
class HMCMLPRegressor(RegressionFit, HMCMLP):
    """Regression that averages over networks drawn from the posterior.

    Weights, prior precisions and noise levels are sampled by Hamiltonian Monte Carlo (Neal 1992,
    1996). Use it to check the Gaussian approximation of `EvidenceMLPRegressor`. The linear output
    layer is integrated out during sampling and drawn exactly afterwards. Most fits
    need no more than the first six parameters.

    Attributes
    ----------
    weight_group_names_ : list of str
        Groups of a noise network come last.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import HMCMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (40, 1))
    >>> y = np.tanh(X[:, 0]) + 0.1 * rng.standard_normal(40)
    >>> few = {"n_chains": 2, "n_warmup": 100, "n_draws": 100, "measure_evidence": False}
    >>> model = HMCMLPRegressor((1,), random_state=1, **few).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> print(f"{mean[0]:.1f} +- {std[0]:.1f}, truly {np.tanh(0.5):.1f}")
    0.5 +- 0.1, truly 0.5
    """

    hidden_layer_sizes: LayerSizes = "auto"
    _: KW_ONLY
    prior: str | ArrayLike | Estimator | Prior = "auto"
    noise: str | ArrayLike | dict[Any, float] | Noise = "auto"
    activation: str = "tanh"
    random_state: RandomState = None
    max_time: float | None = None
    fit_intercept: bool = True
    standardize: bool = True
    n_chains: int = 4
    n_warmup: int = 150
    n_draws: int = 500
    measure_evidence: bool = True
    sampler: str | Sampler = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False

    @property
    def _noise_of_networks(self):
        return self._draws.noise

    def _noise_to_inference_data(self):
        draws, shape = self._result.draws, self._result.draws.energy.shape
        if self._counts:
            dispersion = by_chain(self._ensemble.typical_noise_variances, shape)[..., 0]
            return {} if self.noise_model_ == "poisson" else {"dispersion": dispersion}
        sds = np.sqrt(self._ensemble.typical_noise_variances) * self._y_scaling.scale
        named = {"noise_sd": by_chain(sds, shape)}
        if self.noise_model_ == "student_t":
            named["degrees_of_freedom"] = draws.noise[..., 0]
        elif self.noise_model_ == "input_dependent":
            named["noise_weights"] = draws.noise
        return named

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihoods, drawn targets and targets of some rows, all in units of y.

        Their shapes are (n_draws, n), (n_draws, n, n_outputs) and (1, n, n_outputs).
        """
        noise, scaling = self._draws.noise, self._y_scaling
        log_likelihood = noise.log_density(y - f, None, X) - np.sum(np.log(scaling.scale))
        drawn = scaling.inverse(f + noise.draw(X, f.shape, rng))
        return log_likelihood, drawn, scaling.inverse(y)[None]


@documented(SAMPLERS, ESTIMATORS)
@dataclass(eq=False, repr=False)
class HMCMLPClassifier(Classification, HMCMLP):
    """Classification that averages over networks drawn from the posterior.

    Weights and prior precisions are sampled by Hamiltonian Monte Carlo (Neal 1992, 1996). Use it to
    check the Gaussian approximation of `EvidenceMLPClassifier`. Class probabilities are averages
    over the sampled networks. Most fits need no more than the first six parameters.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayesnn import HMCMLPClassifier
    >>> X, y = (part[50:] for part in load_iris(return_X_y=True))  # two of the species
    >>> few = {"n_chains": 2, "n_draws": 200, "measure_evidence": False}
    >>> model = HMCMLPClassifier((), random_state=1, **few).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0.]])
    >>> print(f"{model.score(X, y):.0%} right")
    9...% right
    """

    hidden_layer_sizes: LayerSizes = (16,)
    _: KW_ONLY
    prior: str | ArrayLike | Estimator | Prior = "auto"
    class_weight: Any = None
    activation: str = "tanh"
    random_state: RandomState = None
    max_time: float | None = None
    fit_intercept: bool = True
    standardize: bool = True
    n_chains: int = 4
    n_warmup: int = 150
    n_draws: int = 500
    measure_evidence: bool = True
    sampler: str | Sampler = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihood, drawn classes and classes of some rows, by their numbers."""
        p = class_probabilities(f)
        observed = (y[:, 0] if y.shape[1] == 1 else np.argmax(y, axis=1)).astype(int)
        of_class = np.take_along_axis(p, observed[None, :, None], axis=-1)[..., 0]
        below = np.cumsum(p[..., :-1], axis=-1)
        drawn = np.sum(rng.uniform(size=(*p.shape[:-1], 1)) > below, axis=-1)
        return np.log(np.maximum(of_class, TINY)), drawn[..., None], observed[None, :, None]
