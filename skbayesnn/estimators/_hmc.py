"""Sampling engine of the estimators: networks drawn from the posterior."""

from collections import Counter
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skbayesnn._typing import Estimator, RandomState
from skbayesnn.estimators._base import BayesianMLP
from skbayesnn.estimators._evidence import EvidenceMLP
from skbayesnn.estimators._weights import OnDemand
from skbayesnn.estimators.inputs._parameters import check, check_transitions, classic_plan, thawed
from skbayesnn.estimators.inputs._rows import generator
from skbayesnn.estimators.inputs._settings import Sampler
from skbayesnn.estimators.reports._candidates import tried_candidates
from skbayesnn.estimators.reports._comparison import compare_classifiers, compare_regressors
from skbayesnn.estimators.reports._diagnostics import diagnose, spread_rows
from skbayesnn.inference import Recipe, fit_by_sampling, fits
from skbayesnn.network import row_blocks
from skbayesnn.predictive import LeftOut, ensemble_of_draws

OF_THE_ENGINE = {"measure_evidence", "verbose", "warm_start"}  # not taken from a fit
ASTRAY = 1.5  # R-hat above which the evidence, measured from the draws, is left out
MAX_GROWN = 16, 16  # units assumed for the memory of networks whose size is to be chosen


def by_chain(values, shape):
    """Reshape values of all draws ``(n_chains * n_draws, ...)`` to have an axis for chains."""
    return values.reshape(*shape, *values.shape[1:])


class HMCMLP(BayesianMLP):
    """Base class of `HMCMLPRegressor` and `HMCMLPClassifier`."""

    _typical_noise = staticmethod(np.mean)

    @classmethod
    def from_evidence(cls, fitted: Estimator, **parameters: Any) -> Self:
        """Make a sampler of the same model, whose first chains start at the minima of the fit.

        Parameters
        ----------
        fitted : EvidenceMLPRegressor or EvidenceMLPClassifier
            Fitted evidence estimator.
        **parameters
            Parameters of the sampler that differ from ``fitted``. ``init`` of a `Sampler`
            is ``fitted`` unless another start than ``"modes"`` is given.

        Returns
        -------
        HMCMLPRegressor or HMCMLPClassifier
            Sampler, not fitted yet.
        """
        if not cls()._is_for_this_task(fitted):
            raise TypeError(
                f"from_evidence of {cls.__name__} needs a fitted evidence estimator of the same "
                f"task, got {type(fitted).__name__}. Give the last step of a pipeline, and fit the "
                "sampler to the inputs of that step."
            )
        check_is_fitted(fitted)
        if len(vars(fitted).get("batch_log_evidences_", ())) > 1:
            raise ValueError(
                "The estimator has learnt in batches and keeps only the last one. Use it as prior= "
                "of a sampler, or fit it to all rows."
            )
        given = fitted.get_params(deep=False)
        shared = given.keys() & set(cls._get_param_names()) - OF_THE_ENGINE
        taken = {name: given[name] for name in shared}
        taken["hidden_layer_sizes"] = fitted.hidden_layer_sizes_
        if fitted._result.problem.has_relevances:  # given or chosen
            taken["prior"] = clone(fitted._prior).set_params(kind=fitted._result.problem.prior)
        if "noise" in taken:
            taken["noise"] = clone(fitted._noise).set_params(kind=fitted.noise_model_)
        sampler = cls(**{**taken, **parameters})
        if sampler._sampler.init == "modes":
            sampler.sampler = clone(sampler._sampler).set_params(init=FrozenEstimator(fitted))
        return sampler

    @property
    def _sampler(self):
        return Sampler._of(self.sampler)

    def _check_engine_parameters(self):
        if self._noise.kind == "correlated":
            raise ValueError(
                "noise='correlated' is not sampled. Use EvidenceMLPRegressor, or noise='constant'."
            )
        check_transitions(self._sampler)
        check(self, n_chains=1, n_draws=1, n_warmup=0, measure_evidence=bool)
        init = self._sampler.init
        known = isinstance(init, str) and init in ("modes", "prior")
        fitted = thawed(init)
        if not (known or (self._is_for_this_task(fitted) and hasattr(fitted, "_result"))):
            task = "Classifier" if is_classifier(self) else "Regressor"
            raise ValueError(
                f"sampler.init must be 'modes', 'prior' or a fitted EvidenceMLP{task}; got "
                f"{init!r}."
            )

    def _is_for_this_task(self, init):
        return isinstance(init, EvidenceMLP) and is_classifier(init) == is_classifier(self)

    def _infer(self, problem, hidden_layer_sizes, previous, in_batches=False):
        sizes = MAX_GROWN if hidden_layer_sizes == "auto" else hidden_layer_sizes
        numbers = self.n_chains * self.n_draws * problem.network(sizes).n_weights
        n_bytes = float(np.dtype(self._sampler.dtype).itemsize) * numbers
        remedies = "fewer n_draws, or Sampler(dtype='float32')"
        self._warn_of_memory(n_bytes, "Keeping the draws", remedies)
        recipe = Recipe(
            classic_plan(self._sampler),
            self.n_chains,
            self.n_warmup,
            self.n_draws,
            None if self._sampler.thin == "auto" else self._sampler.thin,
            np.dtype(self._sampler.dtype).name,
            isinstance(self._sampler.init, str) and self._sampler.init == "prior",
            self.measure_evidence,
        )
        return fit_by_sampling(
            problem,
            hidden_layer_sizes,
            recipe,
            self._entropy,
            self._noise_model(problem),
            self._init_fit(problem, hidden_layer_sizes),
            (self._sampler.init, self.random_state),
            previous,
            self._workers(problem),
        )

    def _init_fit(self, problem, hidden_layer_sizes):
        """Fit of the estimator given as ``init``, which must have the same network."""
        init = self._sampler.init
        if isinstance(init, str):
            return None
        fit = thawed(init)._laplace.fit
        if hidden_layer_sizes == "auto":
            hidden_layer_sizes = fit.posed.posterior.network.hidden_layer_sizes
        posterior = problem.posed(hidden_layer_sizes).posterior
        if not all(fits(m, posterior.network, posterior.groups) for m in fit.minima):
            raise ValueError(
                "The estimator given as init was fitted with other inputs, outputs, hidden "
                "layers, activation or prior; its minima are no starting points for this network."
            )
        return fit

    def _keep(self, result, rows):
        self._result, draws = result, result.draws
        per_given = 1 if rows.shares is None else rows.shares.shape[1]
        self._row_index, self._row_numbers = rows.index, np.arange(len(rows.index)) // per_given
        self._keep_common(result)
        if result.growth:
            self.candidates_ = tried_candidates(result, Counter({self.hidden_layer_sizes_: 1.0}))
        self.log_evidence_ = result.log_evidence
        self._ensemble = self._gaussians = ensemble_of_draws(result)
        self.diagnostics_ = diagnose(result)
        if self.diagnostics_.r_hat > ASTRAY:
            self.log_evidence_ = self.log_evidence_std_ = np.nan
        self.weight_group_names_ = list(result.sampled.joint.groups.names)
        self.weight_precisions_ = np.exp(np.mean(np.log(draws.alpha), axis=(0, 1)))
        if result.problem.has_relevances:
            inputs = draws.alpha[..., : self.n_features_in_]
            self._input_prior_std = np.mean(inputs**-0.5, axis=(0, 1))
        self.n_iter_ = self.n_warmup + draws.energy.shape[1] * result.settings.thin
        best = self._draws.theta[self._draws.best].astype(float)
        self.coefs_, self.intercepts_ = self._in_user_units(self._draws.network, best)
        init = thawed(self._sampler.init)
        noise_models = {getattr(model, "noise_model_", None) for model in (init, self)}
        if not isinstance(init, str) and len(noise_models) == 1:
            compare = compare_classifiers if is_classifier(self) else compare_regressors
            same_rows = init._fingerprint == self._fingerprint
            self.comparison_ = compare(init, self, rows.X[spread_rows(len(rows.X))], same_rows)

    @property
    def _draws(self):
        return self._ensemble.parts[0]

    @property
    def _left_out(self):
        """Leave-one-out predictions by importance sampling."""
        problem = self._result.problem
        return LeftOut.of_draws(self._draws, problem.X, problem.y, problem.known)

    @property
    def networks_(self):
        """Drawn networks, in the units of X and y."""
        check_is_fitted(self)
        draws, size = self._draws, self._draws.size

        def network(index):
            theta = draws.theta[index].astype(float)
            return self._as_network(draws.network, theta, 1.0 / size, np.nan)

        return OnDemand(size, network)

    def _was_cut_short(self):
        """True if time ran out, also during the warm-up alone."""
        sampled, settings = self._result.sampled, self._result.settings
        needed = settings.of_parts(settings.n_warmup)
        needed += settings.thin * sampled.draws.energy.shape[1]
        hurried = any(chains.count < needed for chains in sampled.chains)
        return hurried or super()._was_cut_short()

    def _warning(self):
        diagnostics, sampled = self.diagnostics_, self._result.sampled
        comparison = getattr(self, "comparison_", None)
        if comparison is not None and not comparison.same_rows:
            return UserWarning(
                "The sampler was fitted to other rows, targets or weights than the evidence "
                "estimator whose minima its chains start from. Their evidences cannot be compared, "
                "and comparison_ has no verdict. Fit both to the same data, or use "
                "sampler.init='modes'."
            )
        if sampled.interrupted:
            message = f"Interrupted: the {diagnostics.n_draws} draws of each chain so far are kept"
            message += ", and log_evidence_ is nan." if self.measure_evidence else "."
        elif self._sampler.kind == "stochastic_dynamics" and diagnostics.divergences:
            message = (
                f"The dynamics are unstable ({diagnostics.divergences} trajectories diverged). "
                "Reduce sampler.step_size."
            )
        elif not diagnostics.converged or diagnostics.stuck:
            message = f"The chains have {diagnostics.verdict}. {diagnostics.advice}"
            if self.measure_evidence and diagnostics.r_hat > ASTRAY:
                message += " log_evidence_ is nan, because it is estimated from the chains."
        else:
            return None
        return ConvergenceWarning(f"{message} See diagnostics_.")

    def to_inference_data(self, *, rows: bool = True, random_state: RandomState = 0) -> Any:
        """Return the draws for ArviZ, an optional dependency.

        Parameters
        ----------
        rows : bool, default=True
            Whether to add the predictions of every draw at every training row, which takes memory
            for (chains x draws x rows) numbers twice.
        random_state : int, RandomState instance or None, default=0
            Seed of the targets drawn for ``posterior_predictive``.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Type of the installed ArviZ version. ``posterior``: ``weights`` in units of ``X`` and
            ``y``, with names such as ``"hidden1[x0 -> 2]"``; ``prior_sd`` of every group of weights
            in standardised units; of regressors ``noise_sd`` in units of ``y`` (where it depends on
            the inputs, a typical one), ``degrees_of_freedom`` of Student-t noise, and
            ``noise_weights`` of a noise network (standardised units). ``sample_stats``: ``lp``, the
            log posterior density of the sampler's coordinates up to the evidence, ``energy``, which
            is minus that, ``acceptance_rate``, ``n_steps`` (leapfrog steps) and ``diverging``. With
            ``rows`` also ``log_likelihood`` (nats, ``y`` in its own units, joint over outputs),
            ``posterior_predictive`` and ``observed_data`` of ``y`` (of several outputs ``y0``,
            ``y1`` and on; of classifiers numbers of ``classes_``), for every row of positive
            weight; the coordinate ``row`` is its number in ``X``. A row counts once there whatever
            its ``sample_weight``; one with class probabilities, once for each class that has some.

        Raises
        ------
        ImportError
            Without ArviZ.
        """
        check_is_fitted(self)
        try:
            import arviz
        except ImportError as error:
            message = "to_inference_data needs ArviZ: pip install skbayesnn[arviz]."
            raise ImportError(message) from error
        draws = self._result.draws
        shape, network = draws.energy.shape, self._draws.network
        coords = {"weight": list(self._weight_names(network)), "group": self.weight_group_names_}
        dims = {"weights": ["weight"], "prior_sd": ["group"]}
        weights = self._units(network).weights(self._draws.theta.astype(float))
        groups = {
            "posterior": {"weights": by_chain(weights, shape), "prior_sd": draws.alpha**-0.5},
            "sample_stats": {
                "lp": -draws.energy,
                "energy": draws.energy,
                "acceptance_rate": draws.acceptance,
                "n_steps": draws.n_steps,
                "diverging": draws.diverged > 0,
            },
        }
        if not is_classifier(self):
            groups["posterior"] |= self._noise_to_inference_data()
            coords["output"] = self._target_names(network.n_outputs)
            dims["noise_sd"] = ["output"]
        if rows and self._result.problem.known is not None:
            raise ValueError(
                "to_inference_data does not support known measurement errors or exposures of "
                "rows. Use rows=False."
            )
        if rows:
            given = np.flatnonzero(self._row_index >= 0)
            n_bytes = 16.0 * weights.shape[0] * len(given)
            self._warn_of_memory(n_bytes, "Keeping a number for every draw and row", "rows=False")
            groups |= self._row_groups(self._row_index[given], generator(random_state))
            coords["row"] = self._row_numbers[given]
            names = {*groups["log_likelihood"], *groups["observed_data"]}
            dims |= {name: ["row"] for name in names}
        labels = {"coords": coords, "dims": dims}
        if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ before 1.0
            return arviz.from_dict(**groups, **labels)
        return arviz.from_dict(groups, **labels)

    def _row_groups(self, kept, rng):
        """Log likelihoods and predictions of every draw at the training rows, by group.

        ``kept``, of shape (n_rows,), holds the number of the distinct row of each user's row.
        """
        draws, problem = self._draws, self._result.problem
        shape = self._result.draws.energy.shape
        parts = []
        for rows in row_blocks(len(kept), draws.doubles_per_row):
            X, y = problem.X[kept[rows]], problem.y[kept[rows]]
            drawn, observed = self._rows_to_inference_data(draws.outputs(X), X, y, rng)
            logs = draws.pointwise(X, y)[0] - np.sum(np.log(self._y_scaling.scale))
            parts.append((logs, drawn, observed[None]))
        logs, drawn, observed = (np.concatenate(some, axis=1) for some in zip(*parts, strict=True))
        names = list(enumerate(self._target_names(drawn.shape[-1])))
        return {
            "log_likelihood": {"y": by_chain(logs, shape)},
            "posterior_predictive": {name: by_chain(drawn[..., i], shape) for i, name in names},
            "observed_data": {name: observed[0, :, i] for i, name in names},
        }

    def _target_names(self, n_outputs):
        return ["y"] if n_outputs == 1 else [f"y{i}" for i in range(n_outputs)]
