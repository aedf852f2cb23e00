"""The sampling engine of the estimators: networks drawn from the posterior."""

from collections.abc import Sequence
from inspect import signature

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators._base import BayesianMLP, FittedNetwork
from skbayesnn.estimators._diagnostics import LARGEST_R_HAT, diagnose, spread_rows
from skbayesnn.estimators._evidence import EvidenceMLP
from skbayesnn.estimators._parameters import integer, is_boolean, one_of, positive
from skbayesnn.inference import Recipe, fit_by_sampling, fits
from skbayesnn.predictive import ensemble_of_draws
from skbayesnn.samplers import Plan

PERSISTENCE = 0.95  # of the momentum in stochastic dynamics
ASTRAY = 1.5  # R-hat above which the evidence, measured from where the chains are, is left out
DTYPES = ("float32", "float64", np.float32, np.float64)
LARGEST_GROWN = 16, 16  # units; a guess of the memory for networks that are to be chosen
N_STEPS = {"langevin": 1, "hmc": 20, "stochastic_dynamics": 1}


def thawed(init):
    """An estimator without the wrapper that keeps `sklearn.base.clone` from unfitting it."""
    return init.estimator if isinstance(init, FrozenEstimator) else init


class NetworkDraws(Sequence):
    """Drawn networks in the units of X and y, made when asked for.

    Parameters
    ----------
    estimator : HMCMLP
    """

    def __init__(self, estimator):
        self._estimator = estimator

    def __len__(self):
        return len(self._estimator._draws.theta)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        theta = self._estimator._draws.theta[index].astype(float)
        weights = self._estimator._in_user_units(self._estimator._draws.network, theta)
        return FittedNetwork(*weights, weight=1.0 / len(self), log_evidence=np.nan)


class HMCMLP(BayesianMLP):
    """Common part of `HMCMLPRegressor` and `HMCMLPClassifier`.

    Examples
    --------
    >>> from skbayesnn import HMCMLPClassifier
    >>> from skbayesnn.estimators import HMCMLP
    >>> issubclass(HMCMLPClassifier, HMCMLP)
    True
    """

    @classmethod
    def from_evidence(cls, fitted, **parameters):
        """Make a sampler of the same model. Its first chains start at the minima of the fit.

        Parameters
        ----------
        fitted : EvidenceMLPRegressor or EvidenceMLPClassifier
            After ``fit``.
        **parameters
            Parameters of the sampler that differ from those of ``fitted``.

        Returns
        -------
        HMCMLPRegressor or HMCMLPClassifier
            Not fitted yet.
        """
        check_is_fitted(fitted)
        shared = set(cls().get_params()) & set(fitted.get_params()) - {"warm_start", "verbose"}
        taken = {name: fitted.get_params()[name] for name in shared}
        taken["hidden_layer_sizes"] = fitted.hidden_layer_sizes_
        if "noise" in taken:
            taken["noise"] = fitted.noise_
        return cls(**{**taken, "init": FrozenEstimator(fitted), **parameters})

    @property
    def _thins_itself(self):
        return isinstance(self.thin, str) and self.thin == "auto"

    def _check_engine_parameters(self):
        one_of(self, "sampler", ("auto", *N_STEPS))
        if self.step_size is not None:
            positive(self, "step_size")
        if self.n_steps is not None:
            integer(self, "n_steps", 1)
        for name in ("n_chains", "n_draws"):
            integer(self, name, 1)
        if not self._thins_itself:
            integer(self, "thin", 1)
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
        return same_task and hasattr(init, "_result")

    def _infer(self, problem, hidden_layer_sizes, previous):
        """Sample, and estimate the evidence."""
        sizes = LARGEST_GROWN if hidden_layer_sizes == "auto" else hidden_layer_sizes
        numbers = self.n_chains * self.n_draws * problem.network(sizes).n_weights
        n_bytes = float(np.dtype(self.dtype).itemsize) * numbers
        self._warn_of_memory(n_bytes, "Keeping the draws", "fewer n_draws, or dtype='float32'")
        return fit_by_sampling(
            problem,
            hidden_layer_sizes,
            self._recipe(),
            self._entropy,
            self._noise_model(problem),
            self._init_fit(problem, hidden_layer_sizes),
            (self.init, self.random_state),
            previous,
            self._workers,
        )

    def _recipe(self):
        """What is wanted of the chains."""
        plan = None
        if self.sampler != "auto":
            dynamics = self.sampler == "stochastic_dynamics"
            plan = Plan(
                step_size=self.step_size,
                n_steps=N_STEPS[self.sampler] if self.n_steps is None else self.n_steps,
                persistence=PERSISTENCE if dynamics else 0.0,
                metropolis=not dynamics,
            )
        return Recipe(
            plan,
            self.n_chains,
            self.n_warmup,
            self.n_draws,
            None if self._thins_itself else self.thin,
            np.dtype(self.dtype).name,
            isinstance(self.init, str) and self.init == "prior",
            self.evidence,
        )

    def _init_fit(self, problem, hidden_layer_sizes):
        """The fit of an estimator given as ``init``, whose minima must be some of this network."""
        if isinstance(self.init, str):
            return None
        fit = thawed(self.init)._result
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
        """Set the fitted attributes."""
        self._result, draws = result, result.draws
        self._keep_common(result)
        self._ensemble = self._gaussians = ensemble_of_draws(result)
        self.log_evidence_, self.log_evidence_std_ = result.log_evidence, result.log_evidence_std
        self.diagnostics_ = diagnose(result.sampled)
        if self.diagnostics_.r_hat > ASTRAY:
            self.log_evidence_ = self.log_evidence_std_ = np.nan
        self.weight_group_names_ = list(result.sampled.joint.groups.names)
        self.weight_precisions_ = np.exp(np.mean(np.log(draws.alpha), axis=(0, 1)))
        if isinstance(self.prior, str) and self.prior == "ard":
            inputs = draws.alpha[..., : self.n_features_in_]
            self.feature_relevance_ = np.mean(inputs**-0.5, axis=(0, 1))
        self.n_iter_ = self.n_warmup + draws.energy.shape[1] * result.settings.thin
        best = self._draws.theta[self._draws.best].astype(float)
        self.coefs_, self.intercepts_ = self._in_user_units(self._draws.network, best)
        if not isinstance(self.init, str) and self._is_same_model(thawed(self.init)):
            inputs = rows.X[spread_rows(len(rows.X))]
            self.comparison_ = self._compare(thawed(self.init), inputs)

    @property
    def _draws(self):
        """Drawn networks with their noise."""
        return self._ensemble.parts[0]

    @property
    def networks_(self):
        """All drawn networks, in the units of X and y."""
        check_is_fitted(self)
        return NetworkDraws(self)

    def _trouble(self):
        """A warning about the chains, with its category, or ``None``."""
        found, sampled = self.diagnostics_, self._result.sampled
        n_transitions = sampled.draws.energy.size * self._result.settings.thin
        stuck = found.divergences > 0.1 * n_transitions
        if sampled.interrupted:
            message = f"Interrupted: the {found.n_draws} draws of each chain so far are kept"
            if self.evidence:
                message += ", and log_evidence_ is nan"
        elif self.sampler == "stochastic_dynamics" and found.divergences:
            message = (
                f"The dynamics are unstable ({found.divergences} trajectories diverged). "
                "Reduce step_size"
            )
        elif np.isnan(found.r_hat):
            message = (
                f"{found.n_draws} draws per chain are too few to check convergence. Raise n_draws"
            )
        elif found.r_hat > LARGEST_R_HAT:
            message = (
                f"The chains have not converged: R-hat of the outputs is {found.r_hat:.3f}, above "
                f"{LARGEST_R_HAT}. Raise n_warmup and n_draws, or simplify the model"
            )
            if self.evidence and found.r_hat > ASTRAY:
                message += ". log_evidence_ is nan, because it is estimated from the chains"
        elif stuck and not found.acceptance > 0.5:
            message = (
                f"{found.divergences} trajectories diverged. Reduce step_size or raise n_warmup"
            )
        else:
            return None
        return message + "; see diagnostics_.", ConvergenceWarning

    def to_inference_data(self):
        """Return the draws for ArviZ, an optional dependency.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            The type depends on the version of ArviZ. Groups ``posterior`` (weights in standardised
            units, prior and noise standard deviations, degrees of freedom of Student-t noise,
            weights of a noise network) and ``sample_stats`` (energy, acceptance, leapfrog steps,
            divergences).
        """
        check_is_fitted(self)
        try:
            import arviz
        except ImportError as error:
            raise ImportError(
                "to_inference_data needs ArviZ: pip install skbayesnn[arviz]."
            ) from error
        draws = self._result.draws
        posterior = {"weights": draws.theta, "prior_sd": draws.alpha**-0.5}
        if not is_classifier(self):
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
