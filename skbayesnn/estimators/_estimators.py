"""The four estimators: regression and classification by each of both engines."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from skbayesnn._docs import documented
from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._descriptions import ESTIMATORS, EVIDENCE, REGRESSORS, SAMPLERS
from skbayesnn.estimators._evidence import EvidenceMLP, learns_in_batches
from skbayesnn.estimators._hmc import HMCMLP, by_chain
from skbayesnn.estimators.inputs._settings import Noise, Prior, Sampler, Solver
from skbayesnn.estimators.tasks._classification import Classification
from skbayesnn.estimators.tasks._regression_fit import RegressionFit
from skbayesnn.predictive import class_probabilities, noise_of, noise_of_drawn


@documented(EVIDENCE, REGRESSORS, ESTIMATORS)
@dataclass(eq=False, repr=False)
class EvidenceMLPRegressor(RegressionFit, EvidenceMLP):
    """Bayesian neural network for regression that needs no validation set.

    The weights have Gaussian priors in groups, whose precisions are inferred, as is the noise.
    Networks drawn from their posterior predict; with many rows, networks whose training has ended
    early; with ``method="laplace"`` a Gaussian around each minimum, at the precisions of highest
    evidence, or marginal likelihood (MacKay 1992). Predictions have error bars; compare
    ``log_evidence_`` with other models of equal targets. Most fits need no more than the first six
    parameters.

    Attributes
    ----------
    noise_correlation_ : ndarray of shape (n_outputs, n_outputs)
        Correlation of the noise between outputs at the best minimum; with correlated noise.

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology; "A practical Bayesian framework for backpropagation networks", Neural
    Computation 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = EvidenceMLPRegressor(hidden_layer_sizes=(3,), random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> print(f"{mean[0]:.1f} +- {std[0]:.1f}, truly {np.sin(0.5):.1f}")
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
    n_restarts: int = 5
    combine: str = "posterior"
    method: str = "auto"
    solver: str | Solver = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False

    @available_if(learns_in_batches)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        measurement_std: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Learn from one more batch: the posterior of the earlier ones is its prior.

        The first batch is fitted as by `fit`, and fixes the network and the scaling of X and y.
        After it the weights have the prior ``N(w_MP, A^-1)`` of the best minimum, with the
        precisions that were inferred, and no unit is pruned. For linear models
        (``hidden_layer_sizes=()``) with known precisions and noise and ``standardize=False`` the
        result equals one fit of all rows (Bishop 2006, section 3.3.1). For networks, a Gaussian
        at one minimum replaces the earlier posterior. From the second batch on, an inferred noise
        level has a Gamma prior that counts like the earlier targets. If these have a known
        ``measurement_std``, the prior matches earlier batches in mode and curvature.

        As long as precisions are inferred, up to 200 rows are kept, and fitted again together with
        the next batch, as batches may be in some order. Rows that determine nothing, such as a
        single row or equal targets, give a warning, and are kept, too (up to 500). Later batches
        far from the first ones give a warning.

        Parameters
        ----------
        measurement_std : float or array-like of shape (n_samples,), optional
            Known errors of the targets of this batch, as for `fit`.
        exposure : float or array-like of shape (n_samples,), optional
            Exposures of the counts of this batch, as for `fit`.
        """
        return self._fit_batch(X, y, sample_weight, measurement_std, exposure)

    @property
    def noise_correlation_(self):
        """Correlation of the noise between outputs at the best minimum."""
        self._check_noise_model("correlated", "noise_correlation_")
        return self._best.likelihood.correlation.copy()

    @property
    def _noise_of_networks(self):
        if self._predicts_by_draws:
            return noise_of_drawn(self._result.drawn[0])
        return noise_of(self._best.likelihood, self._best.hyper.beta[None])

    def _noise_std_of(self, minimum):
        if self._counts:
            return None
        return self._levels_in_units_of_y(noise_of(minimum.likelihood, minimum.hyper.beta[None]))


@documented(EVIDENCE, ESTIMATORS)
@dataclass(eq=False, repr=False)
class EvidenceMLPClassifier(Classification, EvidenceMLP):
    """Bayesian neural network for classification that needs no validation set.

    The weights have Gaussian priors in groups, whose precisions are inferred. Predicted
    probabilities are averaged over the posterior of the weights (*moderated*), so they are less
    extreme where there are few data: over drawn networks, or with ``method="laplace"`` over a
    Gaussian around each minimum (MacKay 1992). Most fits need no more than the first six
    parameters.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    References
    ----------
    D. J. C. MacKay (1992), "The evidence framework applied to classification networks", Neural
    Computation 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayesnn import EvidenceMLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EvidenceMLPClassifier(hidden_layer_sizes=(), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    >>> print(f"{model.score(X, y):.0%} right")
    9...% right
    """

    hidden_layer_sizes: LayerSizes = "auto"
    _: KW_ONLY
    prior: str | ArrayLike | Estimator | Prior = "auto"
    class_weight: Any = None
    activation: str = "tanh"
    random_state: RandomState = None
    max_time: float | None = None
    fit_intercept: bool = True
    standardize: bool = True
    n_restarts: int = 5
    combine: str = "posterior"
    method: str = "auto"
    solver: str | Solver = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False

    @available_if(learns_in_batches)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one more batch: the posterior of the earlier ones is its prior.

        The first batch is fitted as by `fit`, and fixes the network and the scaling of X. After it
        the weights have the prior ``N(w_MP, A^-1)`` of the best minimum, with the precisions that
        were inferred, and no unit is pruned (Bishop 2006, sections 3.3.1 and 4.5.1). A Gaussian at
        one minimum replaces the earlier posterior, so that the result depends on the batches.

        Few rows, and rows that determine nothing, such as rows of a single class, are kept and
        fitted again with the next batch, as by `EvidenceMLPRegressor.partial_fit`.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), optional
            All classes that may occur; needed for the first batch.
        """
        known = {}
        if not self.__sklearn_is_fitted__() and not hasattr(self, "_waiting"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            known["classes_"] = np.unique(classes)
            if len(known["classes_"]) < 2:
                raise ValueError(f"classes must hold at least 2 classes, got {classes!r}.")
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"classes={np.unique(classes)!r} is not the same as on the first call to "
                f"partial_fit: {self.classes_!r}."
            )
        return self._fit_batch(X, y, sample_weight, attributes=known)


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
        elif self.noise_model_.startswith("input_dependent"):
            named["noise_weights"] = draws.noise
        return named

    def _rows_to_inference_data(self, f, X, y, rng):
        """Drawn targets ``(n_draws, n, n_outputs)`` and targets of some rows, in units of y."""
        drawn = f + self._draws.noise.draw(X, f.shape, rng)
        return self._y_scaling.inverse(drawn), self._y_scaling.inverse(y)


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
        """Drawn classes ``(n_draws, n, 1)`` and classes of some rows, by their numbers."""
        below = np.cumsum(class_probabilities(f)[..., :-1], axis=-1)
        drawn = np.sum(rng.uniform(size=(*f.shape[:-1], 1)) > below, axis=-1)
        observed = (y[:, 0] if y.shape[1] == 1 else np.argmax(y, axis=1)).astype(int)
        return drawn[..., None], observed[:, None]
