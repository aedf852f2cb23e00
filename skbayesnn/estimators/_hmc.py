"""The sampling engine of the estimators: networks drawn from the posterior."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators._base import FittedNetwork
from skbayesnn.estimators._diagnostics import LARGEST_R_HAT, diagnose, spread_rows
from skbayesnn.estimators._evidence import EvidenceMLP, fits
from skbayesnn.estimators._growth import Growing
from skbayesnn.estimators._noise_models import same_noise, same_plan
from skbayesnn.estimators._parameters import integer, is_boolean, one_of, positive
from skbayesnn.inference import SamplingSettings, estimate_evidence, run_chains, start_sampling
from skbayesnn.network import outputs
from skbayesnn.samplers import Plan

PERSISTENCE = 0.95  # of the momentum in stochastic dynamics
DTYPES = ("float32", "float64", np.float32, np.float64)
LEAST_LIMIT = 64  # of the steps of a trajectory
LARGEST_WORK = 2**16  # of a trajectory, steps times rows, beyond that many steps
N_STEPS = {"langevin": 1, "hmc": 20, "stochastic_dynamics": 1}


def thawed(init):
    """An estimator without the wrapper that keeps `sklearn.base.clone` from unfitting it."""
    return init.estimator if isinstance(init, FrozenEstimator) else init


def _tuned_plan(posterior, noise_plan=None):
    """How the tuned sampler makes its transitions.

    With hidden layers and few rows trajectories are short: what is slow are the scales of whole
    groups of weights, which have transitions of their own. With many rows they are short because of
    what they cost. Where the output layer stays in the position the curvature changes so much from
    place to place that its mean is no guide to a metric.
    """
    networks = (
        [posterior.network] if noise_plan is None else [posterior.network, noise_plan.network]
    )
    if not any(network.hidden_layer_sizes for network in networks):
        return Plan()
    n_rows = len(posterior.X)  # distinct ones, which set the time
    max_steps = max(LEAST_LIMIT, min(n_rows, LARGEST_WORK // n_rows))
    return Plan(max_steps=max_steps, metric_power=0.5 if posterior.likelihood.has_noise else 0.0)


class NetworkDraws(Sequence):
    """Drawn networks in the units of X and y, made when asked for.

    Parameters
    ----------
    estimator : HMCMLP
    """

    def __init__(self, estimator):
        self._estimator = estimator

    def __len__(self):
        return len(self._estimator._theta)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        theta = self._estimator._theta[index].astype(float)
        weights = self._estimator._in_user_units(self._estimator._network, theta)
        return FittedNetwork(*weights, weight=1.0 / len(self), log_evidence=np.nan)


class HMCMLP(Growing):
    """Common part of `HMCMLPRegressor` and `HMCMLPClassifier`."""

    @classmethod
    def from_evidence(cls, fitted, **parameters):
        """A sampler of the same model whose first chains start from an evidence fit's minima.

        Parameters
        ----------
        fitted : EvidenceMLPRegressor or EvidenceMLPClassifier
            After ``fit``.
        **parameters
            Parameters of the sampler that are not those of ``fitted``.

        Returns
        -------
        HMCMLPRegressor or HMCMLPClassifier
            Not fitted yet.
        """
        shared = set(cls().get_params()) & set(fitted.get_params()) - {"warm_start", "verbose"}
        taken = {name: fitted.get_params()[name] for name in shared}
        taken["hidden_layer_sizes"] = fitted.hidden_layer_sizes_
        if "noise" in taken:
            taken["noise"] = fitted.noise_
        return cls(**{**taken, "init": FrozenEstimator(fitted), **parameters})

    def _infer(self, rows, hidden_layer_sizes):
        """Sample, estimate the evidence, and say whether the chains agree."""
        hidden_layer_sizes, minima = self._choose_layers(rows, hidden_layer_sizes)
        problem, minima = self._choose_noise(self._pose(rows, hidden_layer_sizes), minima)
        settings = self._sampling_settings(problem)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        chain_seed, evidence_seed = np.random.SeedSequence(seed).spawn(2)
        seeds = chain_seed.spawn(self.n_chains)
        sampled = self._sample(problem, settings, seeds, minima)
        self._keep(problem, sampled)
        self.log_evidence_, self.log_evidence_std_ = np.nan, np.nan
        if self.evidence:
            log_evidence, std = estimate_evidence(
                sampled.joint, sampled.draws, evidence_seed, self.n_jobs
            )
            self.log_evidence_ = log_evidence + self._scale_term(problem)
            self.log_evidence_std_ = std
        vars(self).pop("comparison_", None)  # of an earlier fit with another init
        if not isinstance(self.init, str) and self._is_same_model(thawed(self.init)):
            rows = problem.posterior.X[spread_rows(len(problem.posterior.X))]
            self.comparison_ = self._compare(thawed(self.init), self._X_scaling.inverse(rows))
        self._warn_of_trouble(sampled)

    def _check_engine_parameters(self):
        one_of(self, "sampler", ("auto", *N_STEPS))
        if self.step_size is not None:
            positive(self, "step_size")
        if self.n_steps is not None:
            integer(self, "n_steps", 1)
        for name in ("n_chains", "n_draws", "thin"):
            integer(self, name, 1)
        integer(self, "n_warmup", 0)
        is_boolean(self, "evidence")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype!r}.")
        if self.sampler == "auto" and not (self.step_size is None and self.n_steps is None):
            raise ValueError(
                "step_size and n_steps belong to the samplers 'hmc', 'langevin' and "
                "'stochastic_dynamics'; sampler='auto' tunes its own."
            )
        known = isinstance(self.init, str) and self.init in ("modes", "prior")
        if not (known or self._is_fitted_for_this_task(thawed(self.init))):
            task = "Classifier" if is_classifier(self) else "Regressor"
            raise ValueError(
                f"init must be 'modes', 'prior' or a fitted EvidenceMLP{task}; got {self.init!r}."
            )

    def _is_fitted_for_this_task(self, init):
        same_task = isinstance(init, EvidenceMLP) and is_classifier(init) == is_classifier(self)
        return same_task and hasattr(init, "_minima")

    def _search_options(self):
        return {}

    def _sampling_settings(self, problem):
        tuned = self.sampler == "auto"
        plan = _tuned_plan(problem.posterior, problem.settings.noise_plan)
        if not tuned:
            n_steps = N_STEPS[self.sampler] if self.n_steps is None else self.n_steps
            dynamics = self.sampler == "stochastic_dynamics"
            plan = Plan(
                step_size=self.step_size,
                n_steps=n_steps,
                persistence=PERSISTENCE if dynamics else 0.0,
                metropolis=not dynamics,
            )
        return SamplingSettings(
            search=problem.settings,
            plan=plan,
            n_warmup=self.n_warmup,
            n_draws=self.n_draws,
            thin=self.thin,
            tuned=tuned,
            dtype=np.dtype(self.dtype),
        )

    def _choose_layers(self, rows, hidden_layer_sizes):
        """Hidden layers, and minima of that network if it was chosen by their evidence."""
        if hidden_layer_sizes == "auto":
            if not isinstance(self.init, str):
                hidden_layer_sizes = thawed(self.init).hidden_layer_sizes_
            elif self.warm_start and hasattr(self, "growth_"):
                return self.hidden_layer_sizes_, ()
        hidden_layer_sizes, tried = self._grown(rows, hidden_layer_sizes)
        return hidden_layer_sizes, tried[hidden_layer_sizes][1] if tried else ()

    def _choose_noise(self, problem, minima):
        """The problem under the noise model asked for, or chosen, and minima to start from."""
        return problem, minima

    def _sample(self, problem, settings, seeds, minima):
        """Run the chains, or go on with those of the last fit if only their length changed."""
        progress = print if self.verbose else None
        posterior = problem.posterior
        old = getattr(self, "_sampled", None) if self.warm_start else None
        if old is not None and self._continues(old, problem, settings):
            done = old.draws.energy.shape[1]
            if done == self.n_draws:
                return old
            rest = settings._replace(n_draws=self.n_draws - done)
            more = run_chains(old.joint, old.chains, rest, False, self.n_jobs, progress)
            return more.after(old)
        minima = self._minima_to_start_from(problem, minima)
        from_prior = isinstance(self.init, str) and self.init == "prior"
        joint, chains = start_sampling(posterior, settings, seeds, minima, from_prior, self.n_jobs)
        return run_chains(joint, chains, settings, True, self.n_jobs, progress)

    def _continues(self, old, problem, settings):
        """Whether an earlier run was of the same posterior, sampled in the same way."""
        new, last = problem.posterior, old.joint.posterior
        n_chains, n_draws = old.draws.energy.shape
        same = new.network == last.network and self._origin == (self.init, self.random_state)
        same = same and self.n_chains == n_chains and self.n_draws >= n_draws
        same = same and settings._replace(n_draws=0, search=None) == self._settings._replace(
            n_draws=0, search=None
        )
        search, before = problem.settings, self._settings.search
        same = same and same_noise(new.likelihood, last.likelihood)
        same = same and same_plan(search.noise_plan, before.noise_plan)
        arrays = zip(
            (new.X, new.y, new.sample_weight, new.groups.labels, *search.fixed),
            (last.X, last.y, last.sample_weight, last.groups.labels, *before.fixed),
            strict=True,
        )
        same = same and np.array_equal(search.free.mask, before.free.mask)
        return same and all(np.array_equal(a, b) for a, b in arrays)

    def _minima_to_start_from(self, problem, minima):
        """Some of this network, or those of a fitted evidence estimator given as ``init``."""
        posterior, plan = problem.posterior, problem.settings.noise_plan
        if not isinstance(self.init, str):
            minima = thawed(self.init)._minima
        sizes = posterior.network.layer_sizes
        for minimum in minima:
            theirs = minimum.network.layer_sizes
            inside = len(theirs) == len(sizes) and np.all(np.less_equal(theirs, sizes))
            ends = theirs[0] == sizes[0] and theirs[-1] == sizes[-1]
            if not (inside and ends and minimum.groups.names == posterior.groups.names):
                raise ValueError(
                    "The estimator given as init was fitted with other inputs, outputs, hidden "
                    "layers or prior; its minima are no starting points for this network."
                )
        if plan is not None:  # a noise network of another layout is no starting point
            minima = [m if fits(m.noise, *plan) else replace(m, noise=None) for m in minima]
        return minima

    def _keep(self, problem, sampled):
        """Set the fitted attributes."""
        posterior, draws = problem.posterior, sampled.draws
        self._sampled, self._settings = sampled, self._sampling_settings(problem)
        self._origin = self.init, self.random_state
        self._X_scaling, self._y_scaling = problem.X_scaling, problem.y_scaling
        self._likelihood, self._network = posterior.likelihood, posterior.network
        self.hidden_layer_sizes_ = posterior.network.hidden_layer_sizes
        self.diagnostics_ = diagnose(sampled)
        self.weight_group_names_ = list(sampled.joint.groups.names)
        self.weight_precisions_ = np.exp(np.mean(np.log(draws.alpha), axis=(0, 1)))
        vars(self).pop("feature_relevance_", None)  # of an earlier fit with another prior
        if isinstance(self.prior, str) and self.prior == "ard":
            inputs = draws.alpha[..., : self.n_features_in_]
            self.feature_relevance_ = np.mean(inputs**-0.5, axis=(0, 1))
        self.n_iter_ = self.n_warmup + draws.energy.shape[1] * self.thin
        best = self._theta[np.argmin(draws.energy)].astype(float)
        self.coefs_, self.intercepts_ = self._in_user_units(posterior.network, best)

    @property
    def _theta(self):
        """Weights of all draws, ``(n_total, k)``, chain by chain."""
        theta = self._sampled.draws.theta
        return theta.reshape(-1, theta.shape[-1])

    @property
    def networks_(self):
        """All drawn networks, in the units of X and y."""
        check_is_fitted(self)
        return NetworkDraws(self)

    def _warn_of_trouble(self, sampled):
        """The one place where the states of the algorithms become a warning."""
        found = self.diagnostics_
        draws = sampled.draws
        stuck = found.divergences > 0.1 * draws.energy.size * self.thin
        if sampled.interrupted:
            message = f"Interrupted: the {found.n_draws} draws of each chain so far are kept"
        elif self.sampler == "stochastic_dynamics" and found.divergences:
            message = (
                f"The dynamics is unstable ({found.divergences} trajectories exploded): make "
                "step_size smaller"
            )
        elif np.isnan(found.r_hat):
            message = (
                f"{found.n_draws} draws per chain are too few to tell whether the chains agree. "
                "Raise n_draws"
            )
        elif found.r_hat > LARGEST_R_HAT:
            message = (
                f"The chains do not agree: R-hat of the outputs is {found.r_hat:.3f}, above "
                f"{LARGEST_R_HAT}. Raise n_warmup and n_draws, or simplify the model"
            )
        elif stuck and not found.acceptance > 0.5:
            message = (
                f"{found.divergences} trajectories were given up because the energy exploded: "
                "make step_size smaller, or raise n_warmup"
            )
        else:
            return
        warnings.warn(message + "; see diagnostics_.", ConvergenceWarning, stacklevel=4)

    def to_inference_data(self):
        """Draws for ArviZ, an optional dependency.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            As the version of ArviZ has it. Groups ``posterior`` (weights in standardised units,
            prior and noise standard deviations, degrees of freedom of Student-t noise, weights of
            a noise network) and ``sample_stats`` (energy, acceptance, leapfrog
            steps, divergences).
        """
        check_is_fitted(self)
        try:
            import arviz
        except ImportError as error:
            raise ImportError(
                "to_inference_data needs ArviZ: pip install skbayesnn[arviz]."
            ) from error
        draws = self._sampled.draws
        posterior = {"weights": draws.theta, "prior_sd": draws.alpha**-0.5}
        if self._likelihood.has_noise:
            posterior |= self._noise_to_inference_data()
        stats = {
            "energy": draws.energy,
            "acceptance_rate": draws.acceptance,
            "n_steps": draws.n_steps,
            "diverging": draws.diverged > 0,
        }
        groups = {"posterior": posterior, "sample_stats": stats}
        labels = {"coords": {"group": self.weight_group_names_}, "dims": {"prior_sd": ["group"]}}
        if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ before 1.0
            return arviz.from_dict(**groups, **labels)
        return arviz.from_dict(groups, **labels)

    def _is_same_model(self, fitted):
        """Whether an evidence fit says something about the same posterior."""
        return True

    # --- what tasks ask for ---------------------------------------------------------------------

    @property
    def _member_weights(self):
        return np.full(len(self._theta), 1.0 / len(self._theta))

    def _doubles_per_row(self):
        """Memory that a row to predict takes: all drawn networks side by side."""
        width = max(*self._network.layer_sizes[1:], self.n_outputs_**2)
        return len(self._theta) * width // 4

    def _activations(self, X, need_covariance=True):
        """Outputs of all draws, ``(m, n, n_outputs)``, and zeros for their covariances."""
        f = outputs(self._network, self._theta.astype(float), X)
        if not need_covariance:
            return f, None
        return f, np.broadcast_to(0.0, (*f.shape, f.shape[-1]))

    def _draw_functions(self, X, n_samples, rng):
        """Outputs of drawn networks, ``(n_samples, n, n_outputs)``."""
        chosen = rng.integers(len(self._theta), size=n_samples)
        return outputs(self._network, self._theta[chosen].astype(float), X)

    def _prior_of_weights(self, n_samples, rng):
        """The network, and prior sds of its weights under drawn precisions, ``(n_samples, k)``."""
        alpha = self._sampled.draws.alpha
        alpha = alpha.reshape(-1, alpha.shape[-1])[rng.integers(len(self._theta), size=n_samples)]
        return self._network, self._sampled.joint.posterior.groups.expand(alpha) ** -0.5
