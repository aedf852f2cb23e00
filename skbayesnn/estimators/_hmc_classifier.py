"""Classification by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators.inputs._settings import Prior, Sampler
from skbayesnn.estimators.predictions._categorical import TINY
from skbayesnn.estimators.reports._comparison import compare_classifiers
from skbayesnn.estimators.tasks._classification import Classification
from skbayesnn.predictive import class_probabilities


class HMCMLPClassifier(Classification, HMCMLP):
    """Classification that averages over networks drawn from the posterior.

    Weights and prior precisions are sampled by Hamiltonian Monte Carlo (Neal 1992, 1996). Use it to
    check the Gaussian approximation of `EvidenceMLPClassifier`. Class probabilities are averages
    over the sampled networks.

    Most fits need no more than the first six parameters:
    ``HMCMLPClassifier((8, 4), prior="ard", class_weight="balanced", activation="silu",
    random_state=0, max_time=60)``.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default=(16,)
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"`` takes those
        of the estimator given as ``init`` of the `Sampler`. Without one it chooses them as
        `EvidenceMLPClassifier` does. With ``warm_start`` the choice of the last fit is kept.
    prior : str, array-like of shape (n_weights,), estimator or Prior, default="layer"
        Which weights share a precision: ``"single"``, ``"layer"``, ``"ard"``, or labels of the
        weights; ``prior="ard"`` gives every input its own. A fitted `EvidenceMLPClassifier` makes
        its posterior the prior, as ``partial_fit`` does. Precisions, means and hyperpriors are
        those of a `Prior`: ``prior=Prior("ard", precision={"output": 1.0})``.
    class_weight : None, "balanced" or dict, default=None
        Multiplies the weights of the rows.

        * A dict: by the number for the class of the row, or 1 if the dict does not name it.
        * ``"balanced"``: by a factor inversely proportional to the weight of the class, so that all
          classes count equally. The total weight stays the same.

        Do not compare evidences under different class weights.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Activation function of the hidden units.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    max_time : float or None, default=None
        Seconds after which the fit stops, uses the best it has found, and warns. The warm-up
        ends after half of the time that is left when it begins, and the chains keep at least four
        draws. Results then depend on the speed of the machine.
    fit_intercept : bool, default=True
        Whether outputs have intercepts. Use ``False`` if the data are centred, or X has a constant
        column. X is then scaled, but not shifted. Hidden units keep their biases;
        the last of ``intercepts_`` is 0.
    standardize : bool, default=True
        Shift and scale inputs internally to mean 0 and standard deviation 1. ``False`` keeps the
        units of the user.
    n_chains : int, default=4
        Number of chains. They advance together, each with its own random numbers.
    n_warmup : int, default=150
        Transitions in which the chains tune themselves. They are not kept.
    n_draws : int, default=500
        Draws kept of every chain.
    measure_evidence : bool, default=True
        Estimate ``log_evidence_``: by the populations from which chains start, or by separate ones,
        whose time ``False`` saves.
    sampler : str or Sampler, default="auto"
        Method: ``"auto"``, ``"hmc"``, ``"langevin"``, ``"stochastic_dynamics"`` or
        ``"metropolis"``. Its steps, where chains start and which draws are kept are parameters of
        a `Sampler`: ``sampler=Sampler("hmc", n_steps=30, init="prior")``.
    n_jobs : int, optional
        Number of parallel processes for the chains (joblib). The draws do not depend on it.
    verbose : int, default=0
        If positive, print some ten lines while sampling, with the time so far and about how much is
        left, or one for every process; what is chosen before is told as by the evidence estimators.
    warm_start : bool, default=False
        Continue the chains of the last fit if only ``n_draws`` was raised, or if they had ended
        before, at ``max_time`` or by Ctrl-C. The result equals that of one longer fit. After any
        other change the fit starts again.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    log_evidence_ : float
        Logarithm of the evidence in nats, by sequential Monte Carlo (Del Moral et al. 2006; Dau &
        Chopin 2022). ``nan`` with ``measure_evidence=False``, and if R-hat exceeds 1.5.
    log_evidence_std_ : float
        Standard error of ``log_evidence_``, from independent populations.
    hidden_layer_sizes_ : tuple of int
    candidates_ : tuple of Candidate
        Networks of ``hidden_layer_sizes="auto"`` that were tried, as in evidence estimators.
    diagnostics_ : Diagnostics
        R-hat and effective sample sizes of the outputs and the precisions, acceptance, divergences.
    comparison_ : Comparison
        Predictions, noise and evidence of a fitted estimator given as ``init`` of the `Sampler`,
        compared with those of the samples, with a verdict.
    weight_precisions_ : ndarray of shape (n_groups,)
        Geometric posterior mean of ``alpha`` of every weight group (standardised units).
    weight_group_names_ : list of str
    feature_relevance_ : ndarray of shape (n_features,)
        Posterior mean of the prior standard deviation of each input's weights (standardised units);
        with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the draw of highest density in the units of X.
    networks_ : sequence of ClassificationNetwork
        All sampled networks, chain by chain.
    posterior_ : list of DrawnPosterior
        One item: the sampled weights with their names, mean and covariance.
    n_iter_ : int
        Transitions of each chain.
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    R. M. Neal (1992), "Bayesian learning via stochastic dynamics", Advances in Neural Information
    Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayesnn import HMCMLPClassifier
    >>> X, y = (part[50:] for part in load_iris(return_X_y=True))  # two of the species
    >>> few = {"n_chains": 2, "n_draws": 200, "measure_evidence": False}
    >>> model = HMCMLPClassifier((), random_state=1, **few).fit(X, y)
    >>> model.predict_proba(X[:1]).shape
    (1, 2)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSizes = (16,),
        *,
        prior: str | ArrayLike | Estimator | Prior = "layer",
        class_weight: Any = None,
        activation: str = "tanh",
        random_state: RandomState = None,
        max_time: float | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        n_chains: int = 4,
        n_warmup: int = 150,
        n_draws: int = 500,
        measure_evidence: bool = True,
        sampler: str | Sampler = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.class_weight = class_weight
        self.activation = activation
        self.random_state = random_state
        self.max_time = max_time
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.measure_evidence = measure_evidence
        self.sampler = sampler
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    def _compare(self, fitted, X):
        return compare_classifiers(fitted, self, X)

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihood, drawn classes and classes of some rows, by their numbers."""
        p = class_probabilities(f)
        observed = (y[:, 0] if y.shape[1] == 1 else np.argmax(y, axis=1)).astype(int)
        of_class = np.take_along_axis(p, observed[None, :, None], axis=-1)[..., 0]
        below = np.cumsum(p[..., :-1], axis=-1)
        drawn = np.sum(rng.uniform(size=(*p.shape[:-1], 1)) > below, axis=-1)
        return {"y": np.log(np.maximum(of_class, TINY))}, {"y": drawn}, {"y": observed}
