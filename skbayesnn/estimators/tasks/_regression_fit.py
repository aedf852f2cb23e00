"""Fit of regressors: targets, their noise, and known measurement errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from skbayesnn._data import RESOLUTION, Scaling, standardised
from skbayesnn._docs import FITTED, documented
from skbayesnn.estimators.inputs._parameters import (
    CENSORED,
    FIXED_NOISE,
    GAMMA_NOISE,
    MEASUREMENTS,
    check_combinations,
    choices_of,
    fixed_values,
)
from skbayesnn.estimators.inputs._prior import hyperpriors_of_noise
from skbayesnn.estimators.inputs._rows import (
    StandardTargets,
    check_counts,
    checked_errors,
    checked_exposure,
    checked_sides,
    numeric,
)
from skbayesnn.estimators.inputs._settings import Noise
from skbayesnn.estimators.inputs._target_summary import TargetSummary
from skbayesnn.estimators.tasks._regression import NO_NOISE, Regression, without_noise
from skbayesnn.inference import FLEXIBLE, FOR_OUTLIERS
from skbayesnn.posterior import (
    CensoredGaussian,
    Gaussian,
    LogUniform,
    MeasuredGaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)

MAX_APART = 1e8  # largest ratio of a given noise level to the spread of the targets
TOO_FAR_APART = (
    "{} ({}) and the standard deviation of the targets ({}) differ by too many orders of "
    "magnitude. Give it in the units of y."
)
# errors of left-out rows, relative to those of rounding, below which targets were not rounded
CLEARLY_BELOW = 0.9
MIN_COUNTS = 0.5  # sum of counts that replaces 0 where the mean rate is taken


@documented(FITTED)
class RegressionFit(Regression):
    """Mixin of the fit of `EvidenceMLPRegressor` and `HMCMLPRegressor`."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        measurement_std: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        censored: ArrayLike | None = None,
    ) -> Self:
        """Infer the weights with all precisions and noise levels from training data.

        Parameters
        ----------
        measurement_std : float or array-like of shape (n_samples,), optional
            Known standard deviations of the measurement errors of ``y``, in its units; of shape
            (n_samples, n_outputs) if outputs differ. The variance of a target is then
            ``measurement_std**2`` plus that of the noise level, which is inferred
            (``noise="auto"``) or given; with ``noise=0`` there is no other noise.
        exposure : float or array-like of shape (n_samples,), optional
            For counts: the time, area or population in which each was counted. The mean of a count
            is its exposure times the rate, whose logarithm is the output of the network.
        censored : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets of which only a limit is known: -1 if the value lies below ``y``, 1 if it lies
            above, 0 where it was measured. For Gaussian or Student-t noise of constant level.
        """
        return self._fit(X, y, sample_weight, measurement_std, exposure, censored)

    def _check_rows(self, X, y, sample_weight, measurement_std=None, exposure=None, censored=None):
        """Check the rows, and known errors, exposures or sides of limits if they are given."""
        X, y, sample_weight = super()._check_rows(X, y, sample_weight)
        n_outputs, earlier = y.shape[1], getattr(self, "n_outputs_", y.shape[1])
        if n_outputs != earlier:
            raise ValueError(f"y has {n_outputs} outputs, the earlier data had {earlier}.")
        self.n_outputs_ = n_outputs
        self._has_limits, self._has_exposures = censored is not None, exposure is not None
        if exposure is not None and not self._noise._is_of_counts:
            raise ValueError("exposure is for counts: set noise='poisson' or leave exposure out.")
        if censored is not None:
            check_combinations(self, CENSORED)
            if measurement_std is not None:
                raise ValueError("Give either measurement_std or censored, not both.")
            if self._noise.kind == "student_t" and y.shape[1] > 1:
                raise ValueError(
                    "Limits with Student-t noise are for one output. Fit one model for each."
                )
            sides = checked_sides(censored, y.shape)
            if np.any(np.all(sides != 0, axis=0)):
                raise ValueError("Every target is a limit; at least some must be measured.")
            return X, y, sample_weight, sides
        if self._noise._is_of_counts and measurement_std is None:
            check_counts(y)
            return X, y, sample_weight, checked_exposure(exposure, len(X))
        if measurement_std is None:
            return X, y, sample_weight
        check_combinations(self, MEASUREMENTS)
        return X, y, sample_weight, checked_errors(measurement_std, y.shape)

    def _encode(self, y):
        self._y_is_1d = y.ndim == 1
        return numeric(y)

    def _summary(self, rows):
        """Summary of the targets, and a warning of what is unusual about them, or ``None``."""
        summary = TargetSummary.of(rows, self._has_limits or self._noise._is_of_counts)
        return summary, summary.warning(rows.y)

    def _targets(self, rows, summary, scaling=None):
        """Standardise the targets, unless an earlier fit gives the ``scaling``."""
        if self._noise._is_of_counts:
            return self._counts_of(rows, scaling)
        if self._noise.kind == "correlated" and rows.y.shape[1] == 1:
            raise ValueError(
                "noise='correlated' is for several outputs; y has one. Use noise='constant'."
            )
        outliers = np.zeros(len(rows.y), dtype=bool)
        level_is_open = choices_of(self).isdisjoint(FIXED_NOISE | GAMMA_NOISE)
        may_be_robust = self._noise.kind in ("auto", "student_t") and level_is_open
        if may_be_robust and scaling is None and rows.known is None:
            outliers = summary.outliers.any(axis=1)
        weight = rows.weight * ~outliers  # outliers do not affect the scaling
        scaling, y = standardised(rows.y, weight, self.standardize, scaling, self.fit_intercept)
        likelihood = self._likelihood(rows, scaling, outliers.any())
        free, precision = self._noise_levels(rows, scaling, likelihood)
        known = rows.known
        if known is not None and not self._has_limits:
            known = _variances(known, scaling, likelihood, free, precision)
        return StandardTargets(
            y,
            scaling,
            likelihood,
            outliers,
            known=known,
            noise_precision=(free, precision),
            noise_hyperprior=self._noise_priors(rows, summary, scaling, likelihood, free),
            laws=summary.laws,
            log_scale=float(rows.weight @ self._log_scales(rows, scaling)),
        )

    def _likelihood(self, rows, scaling, has_outliers):
        """Likelihood under the noise model of the first search."""
        n_outputs = rows.y.shape[1]
        likelihood = Gaussian.per_output(n_outputs)
        if has_outliers:
            likelihood = StudentT(likelihood.levels, likelihood.relative, FOR_OUTLIERS)
        if self._noise.kind == "shared":  # in units of y, so that standardised noise differs
            typical = np.exp(np.mean(np.log(scaling.scale)))
            likelihood = Gaussian(np.zeros(n_outputs, dtype=int), (scaling.scale / typical) ** 2)
        if self._has_limits:
            return CensoredGaussian(likelihood.levels, likelihood.relative)
        if rows.known is not None:
            mean = np.average(rows.known / scaling.scale, axis=0, weights=rows.weight)
            return MeasuredGaussian(likelihood.levels, likelihood.relative, mean**2)
        return likelihood

    def _noise_levels(self, rows, scaling, likelihood):
        """Mask of the noise levels that are inferred, and the precisions of the others."""
        names = list(range(likelihood.n_levels))
        has_errors = rows.known is not None and not self._has_limits
        free, values = fixed_values(self._noise.std, names, "noise.std", may_be_zero=has_errors)
        first = np.unique(likelihood.levels, return_index=True)[1]
        scale = scaling.scale[first] / np.sqrt(likelihood.relative[first])
        ratio = np.where(free, 1.0, values / scale)
        ratio[~free & (values == 0)] = 1.0 / MAX_APART  # practically zero; precisions are finite
        if np.any((ratio < 1.0 / MAX_APART) | (ratio > MAX_APART)):
            raise ValueError(TOO_FAR_APART.format("noise.std", self._noise.std, scale))
        return free, ratio**-2.0

    def _noise_priors(self, rows, summary, scaling, likelihood, free):
        """Prior of every noise level, within bounds that the targets set to flat ones."""
        priors = hyperpriors_of_noise(self._noise, free)
        if not self.standardize:
            return priors
        least, most = summary.noise_bounds(rows.y, scaling.scale) * np.sqrt(likelihood.relative)
        bounded = []
        for level, prior in enumerate(priors):
            if prior == LogUniform():
                # outputs that share a level need the loosest bounds
                own = likelihood.levels == level
                lower = max(prior.lower, np.min(least[own]))
                prior = LogUniform(float(lower), float(min(prior.upper, np.max(most[own]))))
            bounded.append(prior)
        return tuple(bounded)

    def _counts_of(self, rows, scaling):
        """Counts, and as the shift of their log rates the logarithm of the mean rate."""
        if scaling is None:
            scaling = Scaling.none(1)
            if self.standardize and self.fit_intercept:
                total = max(float(rows.weight @ rows.y[:, 0]), MIN_COUNTS)
                scaling.shift[:] = np.log(total / (rows.weight @ rows.known[:, 0]))
        known, left_out = rows.known * np.exp(scaling.shift), 0.0
        likelihood = NegativeBinomial.per_output(1)
        if self._noise.kind == "poisson":  # terms of the log density that its misfit leaves out
            left_out = rows.weight @ (rows.y * np.log(known) - gammaln(rows.y + 1.0))
            likelihood = Poisson()
        all_free = np.ones(likelihood.n_levels, dtype=bool)
        return StandardTargets(
            rows.y,
            scaling,
            likelihood,
            known=known,
            noise_hyperprior=hyperpriors_of_noise(self._noise, all_free),
            log_scale=float(np.sum(left_out)),
        )

    @property
    def _noise(self):
        return Noise._of(self.noise)

    def _infer_and_keep(self, prepared, previous, in_batches=False):
        """Run the inference, and again if targets of few values prove not to be rounded.

        Networks that predict left-out rows clearly better than rounding would allow show that the
        values were chosen, on a grid: the errors bound the noise then.
        """
        super()._infer_and_keep(prepared, previous, in_batches)
        rows, problem, scale = prepared.rows, prepared.problem, prepared.y_scaling.scale
        summary = prepared.summary
        if not summary.rounding.any() or problem.deadline.passed:
            return
        left_out = self._left_out
        # rows that are predicted badly without themselves hardly count
        weight = problem.sample_weight[:, None] / left_out.std**2
        squared = np.average((problem.y - left_out.mean) ** 2, axis=0, weights=weight)
        least = CLEARLY_BELOW * np.sqrt(squared) * scale
        is_grid = least < CLEARLY_BELOW**2 * summary.rounding
        if np.any(is_grid):
            summary = summary._replace(rounding=np.where(is_grid, least, summary.rounding))
            of_levels = prepared.y_scaling, problem.likelihood, problem.noise_precision[0]
            priors = self._noise_priors(rows, summary, *of_levels)
            problem = replace(problem, noise_hyperprior=priors)
            super()._infer_and_keep(prepared._replace(problem=problem), previous, in_batches)

    def _log_scales(self, rows, scaling):
        """Log of the standardised over the given density of every row; limits have none."""
        measured = rows.known == 0.0 if self._has_limits else np.ones_like(rows.y)
        return -(measured @ np.log(scaling.scale))

    def _noise_model(self, problem):
        """Noise model to fit; known errors or gross outliers leave a single choice."""
        if isinstance(problem.likelihood, StudentT):
            return "student_t"
        kind = self._noise.kind
        return "constant" if kind == "auto" and problem.known is not None else kind

    @property
    def noise_std_(self):
        """Noise standard deviation in units of y: typical of networks, or at the best minimum."""
        check_is_fitted(self)
        if self._counts:
            raise AttributeError("Counts have no noise_std_: use predict_std(X, 'aleatoric').")
        noise = self._levels_in_units_of_y(self._noise_of_networks)
        return float(noise[0]) if self._y_is_1d else noise

    @property
    def degrees_of_freedom_(self):
        """Degrees of freedom of Student-t noise: geometric mean, or at the best minimum."""
        self._check_noise_model("student_t", "degrees_of_freedom_", FLEXIBLE)
        nu = self._noise_of_networks.degrees_of_freedom
        return float(nu[0] * np.exp(np.mean(np.log(nu / nu[0]))))  # exact where all are equal

    @property
    def dispersion_(self):
        """Dispersion ``a`` of negative binomial counts: mean, or at the best minimum."""
        self._check_noise_model("negative_binomial", "dispersion_")
        return float(np.mean(self._noise_of_networks.squared_scales))

    def _check_noise_model(self, kind, attribute, *others):
        """Raise unless the estimator is fitted, with a noise model that has the attribute."""
        check_is_fitted(self)
        if self.noise_model_ not in (kind, *others):
            raise AttributeError(f"{attribute} exists only with noise={kind!r}.")

    def _levels_in_units_of_y(self, noise):
        """Typical noise of all outputs, exactly 0 where there is no noise but known errors."""
        typical = self._typical_noise(np.sqrt(noise.typical_variances), axis=0)
        nothing = without_noise(self._result.problem)
        return np.where(nothing, 0.0, typical * self._y_scaling.scale)

    def _keep_common(self, result):
        super()._keep_common(result)
        kind = self._noise.kind
        self.noise_model_ = "shared" if kind == "shared" else result.noise
        log_evidences = result.noise_log_evidences
        if result.noise == "student_t" and self._outliers.any():  # not chosen by evidence
            log_evidences = {result.noise: result.log_evidence}
        if kind == "auto" and log_evidences:
            self.noise_log_evidences_ = log_evidences


def _variances(errors, scaling, likelihood, free, precision):
    """Variances of known errors in standardised units."""
    ratio = errors / scaling.scale
    exact = ~free & (precision >= NO_NOISE)
    needed = ratio[:, exact[likelihood.levels]]
    if np.any(needed == 0):
        raise ValueError(
            "measurement_std must be positive where noise.std is 0: without any noise a target "
            "would have to be met exactly. Leave noise.std at 'auto', or leave these rows out."
        )
    if np.any(ratio > MAX_APART) or np.any(needed < 1.0 / MAX_APART):
        given = f"from {np.min(errors):g} to {np.max(errors):g}"
        raise ValueError(TOO_FAR_APART.format("measurement_std", given, scaling.scale))
    mantissa, exponent = np.frexp(ratio)  # rounded like the targets, see `standardised`
    return np.ldexp(np.round(mantissa / RESOLUTION) * RESOLUTION, exponent) ** 2
