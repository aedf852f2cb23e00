"""Fit of regressors: targets, their noise, and known measurement errors."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._data import standardised, standardised_variances
from skbayesnn.estimators.inputs._combinations import (
    FIXED_NOISE,
    GAMMA_NOISE,
    MEASUREMENTS,
    check_combinations,
)
from skbayesnn.estimators.inputs._hyperpriors import hyperpriors_of_noise
from skbayesnn.estimators.inputs._outliers import outliers_of
from skbayesnn.estimators.inputs._parameters import fixed_values, layer_sizes, one_of
from skbayesnn.estimators.inputs._rows import checked_errors, numeric
from skbayesnn.estimators.inputs._settings import Noise
from skbayesnn.estimators.inputs._spikes import spikes_of
from skbayesnn.estimators.tasks._regression import Regression, without_noise
from skbayesnn.inference import FOR_OUTLIERS, NOISE_MODELS
from skbayesnn.posterior import Gaussian, LogUniform, MeasuredGaussian, StudentT

MOST_APART = 1e8  # largest ratio of a given noise level to the spread of the targets
PLAIN_LAWS = ("constant",)  # noise models that are tried where targets have a spike


class RegressionFit(Regression):
    """Mixin of the fit of `EvidenceMLPRegressor` and `HMCMLPRegressor`."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        measurement_std: ArrayLike | None = None,
    ) -> Self:
        """Infer the weights with all precisions and noise levels from training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row: 2 equals repeating the row, 0 leaving it out.
        measurement_std : float or array-like of shape (n_samples,), optional
            Known standard deviations of the measurement errors of ``y``, in its units; of shape
            (n_samples, n_outputs) if outputs differ. The variance of a target is then
            ``measurement_std**2`` plus that of the noise level, which is inferred
            (``noise="auto"``) or given; with ``noise=0`` there is no other noise.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid.
        """
        return self._learn(X, y, sample_weight, measurement_std)

    def _check_rows(self, X, y, sample_weight, measurement_std=None):
        """Check the rows, and known errors if they are given."""
        X, y, sample_weight = super()._check_rows(X, y, sample_weight)
        if measurement_std is None:
            return X, y, sample_weight
        check_combinations(self, MEASUREMENTS)
        return X, y, sample_weight, checked_errors(measurement_std, y.shape)

    def _encode(self, y):
        self._y_is_1d = y.ndim == 1
        return numeric(y)

    def _targets(self, rows, scaling=None):
        n_outputs = rows.y.shape[1]
        kind = self._noise.kind
        if kind == "correlated" and n_outputs == 1:
            raise ValueError(
                "noise='correlated' is for several outputs; y has one. Use noise='constant'."
            )
        asked = scaling is None and rows.errors is None and self._may_have_outliers
        self._outliers = outliers_of(rows) if asked else np.zeros(len(rows.y), dtype=bool)
        given = rows.weight * ~self._outliers, self.standardize, scaling, self.fit_intercept
        scaling, y = standardised(rows.y, *given)
        likelihood = Gaussian.per_output(n_outputs)
        if self._outliers.any():
            likelihood = StudentT(likelihood.levels, likelihood.relative, FOR_OUTLIERS)
        if kind == "shared":
            typical = np.exp(np.mean(np.log(scaling.scale)))
            likelihood = Gaussian(np.zeros(n_outputs, dtype=int), (scaling.scale / typical) ** 2)
        if rows.errors is not None:
            mean = np.average(rows.errors / scaling.scale, axis=0, weights=rows.weight)
            likelihood = MeasuredGaussian(likelihood.levels, likelihood.relative, mean**2)
        return y, scaling, likelihood

    @property
    def _noise(self):
        """Parameters of the noise."""
        return Noise.of(self.noise)

    @property
    def _may_have_outliers(self):
        """True if Student-t noise is possible, and nothing about its level is given."""
        known = any(choice.made(self) for choice in (FIXED_NOISE, GAMMA_NOISE))
        return self._noise.kind in ("auto", "student_t") and not known

    def _noise_options(self, y_scaling, likelihood, rows):
        """Options of the problem: given noise levels, the noise network, and the units of y."""
        names = list(range(likelihood.n_levels))
        measured = rows.errors is not None
        free, values = fixed_values(self._noise.std, names, "noise.std", may_be_zero=measured)
        first = [int(np.flatnonzero(likelihood.levels == level)[0]) for level in names]
        scale = y_scaling.scale[first] / np.sqrt(likelihood.relative[first])
        ratio = np.where(free, 1.0, values / scale)
        ratio[~free & (values == 0)] = 1.0 / MOST_APART  # practically zero
        if np.any((ratio < 1.0 / MOST_APART) | (ratio > MOST_APART)):
            raise ValueError(
                f"noise.std={self._noise.std} and the standard deviation of the targets ({scale}) "
                "differ by too many orders of magnitude. Give it in the units of y."
            )
        variances = _variances(rows.errors, y_scaling, likelihood, free, values)
        return {
            "noise_precision": (free, ratio**-2.0),
            "noise_hyperprior": self._noise_hyperpriors(rows, likelihood, free),
            "variances": variances,
            "noise_hidden_layer_sizes": layer_sizes(self._noise),
            "laws": PLAIN_LAWS if any(spikes_of(rows)) else None,
            "log_scale": -float(np.sum(rows.weight) * np.sum(np.log(y_scaling.scale))),
        }

    def _noise_hyperpriors(self, rows, likelihood, free):
        """Hyperpriors of the noise levels, with larger lower bounds where targets have spikes."""
        priors = list(hyperpriors_of_noise(self._noise, free))
        for level, spike in zip(likelihood.levels, spikes_of(rows), strict=True):
            if spike is not None and self.standardize and priors[level] == LogUniform():
                priors[level] = LogUniform(max(LogUniform().lower, spike.least_noise))
        return tuple(priors)

    def _trouble_with_targets(self, rows):
        spikes = filter(None, spikes_of(rows))
        return next(((str(spike), UserWarning) for spike in spikes), None)

    def _noise_model(self, problem):
        """Noise model to fit; known errors or gross outliers leave a single choice."""
        if isinstance(problem.likelihood, StudentT):
            return "student_t"
        kind = self._noise.kind
        return "constant" if kind == "auto" and problem.variances is not None else kind

    def _check_noise(self):
        """Raise ``ValueError`` if a parameter of the noise is invalid."""
        one_of(self._noise, "kind", (*NOISE_MODELS, "auto"))
        layer_sizes(self._noise)

    def _as_levels(self, noise):
        """Noise levels of all outputs, exactly 0 where there is no noise but known errors."""
        return np.where(without_noise(self._result.problem), 0.0, noise)

    def _keep_noise(self, result):
        """Set the attributes that describe the noise model."""
        kind = self._noise.kind
        self.noise_ = "shared" if kind == "shared" else result.noise
        found = result.noise_log_evidences
        if self._outliers.any() and result.noise == "student_t":  # not chosen by evidence
            found = {result.noise: result.log_evidence}
        if kind == "auto" and found:
            self.noise_log_evidences_ = found


def _variances(errors, y_scaling, likelihood, free, values):
    """Variances of known errors in standardised units; ``None`` if there are none."""
    if errors is None:
        return None
    ratio = errors / y_scaling.scale
    exact = ~free & (values == 0)
    needed = ratio[:, exact[likelihood.levels]]
    if np.any(needed == 0):
        raise ValueError(
            "measurement_std must be positive where noise.std is 0: without any noise a target "
            "would have to be met exactly. Leave noise.std at 'auto', or leave these rows out."
        )
    if np.any(ratio > MOST_APART) or np.any(needed < 1.0 / MOST_APART):
        raise ValueError(
            f"measurement_std (from {np.min(errors):g} to {np.max(errors):g}) and the standard "
            f"deviation of the targets ({y_scaling.scale}) differ by too many orders of magnitude. "
            "Give measurement_std in the units of y."
        )
    return standardised_variances(errors, y_scaling)
