"""Regression by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._descriptions import ESTIMATORS, SAMPLERS
from skbayesnn.estimators._hmc import HMCMLP, by_chain
from skbayesnn.estimators.inputs._settings import Noise, Prior, Sampler
from skbayesnn.estimators.reports._comparison import compare_regressors
from skbayesnn.estimators.tasks._regression_fit import RegressionFit


@documented(SAMPLERS, ESTIMATORS)
@dataclass(eq=False, repr=False)
class HMCMLPRegressor(RegressionFit, HMCMLP):
    """Regression that averages over networks drawn from the posterior.

    Weights, prior precisions and noise levels are sampled by Hamiltonian Monte Carlo (Neal 1992,
    1996). Use it to check the Gaussian approximation of `EvidenceMLPRegressor`. The linear output
    layer is integrated out during sampling and drawn exactly afterwards.

    Most fits need no more than the first six parameters:
    ``HMCMLPRegressor((8, 4), prior="ard", noise="student_t", activation="silu",
    random_state=0, max_time=60)``.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian linear regression. ``"auto"`` takes those of
        the estimator given as ``init`` of the `Sampler`. Without one it chooses them as
        `EvidenceMLPRegressor` does. With ``warm_start`` the choice of the last fit is kept.

    Attributes
    ----------
    weight_group_names_ : list of str
        Groups of a noise network come last, or ``"noise_correlation"``, the standard normal
        coordinates of correlations, whose precision is 1.
    noise_std_ : float or ndarray of shape (n_outputs,)
        Posterior mean of the noise standard deviation, in units of y. For input-dependent noise: of
        its geometric mean over the training rows; ``predict_std(X, kind="aleatoric")`` gives it for
        each row.
    noise_model_ : str
        Noise model: the ``kind`` of `Noise`, or the model that ``"auto"`` has chosen.
    noise_log_evidences_ : dict
        Log evidence of a Gaussian approximation for each noise model that was fitted; only with
        ``noise="auto"``.
    noise_correlation_ : ndarray of shape (n_outputs, n_outputs)
        Posterior mean of the correlation of the noise between outputs; with correlated noise.
    dispersion_ : float
        Posterior mean of the dispersion of negative binomial counts.
    degrees_of_freedom_ : float
        Geometric posterior mean of the degrees of freedom of Student-t noise.

    References
    ----------
    R. M. Neal (1992), "Bayesian learning via stochastic dynamics", Advances in Neural Information
    Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import HMCMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (40, 1))
    >>> y = np.tanh(X[:, 0]) + 0.1 * rng.standard_normal(40)
    >>> few = {"n_chains": 2, "n_warmup": 100, "n_draws": 100, "measure_evidence": False}
    >>> model = HMCMLPRegressor((1,), random_state=0, **few).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> print(f"{mean[0]:.1f} +- {std[0]:.1f}, truly {np.tanh(0.5):.1f}")
    0.5 +- 0.1, truly 0.5
    """

    hidden_layer_sizes: LayerSizes = "auto"
    _: KW_ONLY
    prior: str | ArrayLike | Estimator | Prior = "layer"
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

    def _pose(self, rows, hidden_layer_sizes, earlier=None):
        problem = super()._pose(rows, hidden_layer_sizes, earlier)
        labels = not isinstance(self._prior.kind, str)
        if self._noise.kind == "correlated" and labels:
            posterior = problem.posed(hidden_layer_sizes).posterior
            last = posterior.network.layers(posterior.groups.labels)[-1]
            if np.any(last != last[:, :1]):
                raise ValueError(
                    "noise='correlated' can be sampled only if the weights from a unit to all "
                    "outputs are in one group; prior has several. Use EvidenceMLPRegressor, or "
                    "another prior."
                )
        return problem

    @property
    def _noise_of_networks(self):
        return self._draws.noise

    def _is_same_model(self, fitted):
        models = [(m.noise_model_, m._result.noise) for m in (fitted, self)]
        return models[0] == models[1]

    def _compare(self, fitted, X):
        return compare_regressors(fitted, self, X)

    def _target_names(self, n_outputs):
        return ["y"] if n_outputs == 1 else [f"y{i}" for i in range(n_outputs)]

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
        elif self.noise_model_ == "correlated":
            named["noise_correlation"] = draws.noise
        return named

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihood, drawn targets and targets of some rows; all in units of y."""
        noise, scaling, names = self._draws.noise, self._y_scaling, self._target_names(y.shape[1])
        log_likelihood = noise.log_density(y - f, None, X) - np.sum(np.log(scaling.scale))
        drawn = np.moveaxis(scaling.inverse(f + noise.draw(X, f.shape, rng)), -1, 0)
        return (
            {"y": log_likelihood},
            dict(zip(names, drawn, strict=True)),
            dict(zip(names, scaling.inverse(y).T, strict=True)),
        )
