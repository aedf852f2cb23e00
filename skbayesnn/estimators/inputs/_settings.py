"""Constructor parameters that belong together, as one value of the estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skbayesnn._docs import LinkToSite
from skbayesnn._typing import Estimator, LayerSizes

COUNTS = "poisson", "negative_binomial"  # kinds of noise for counts


class Setting(LinkToSite, BaseEstimator):
    """Base class of parameters that belong together and are one parameter of an estimator.

    ``get_params``, ``set_params``, `sklearn.base.clone` and ``repr`` are those of scikit-learn.
    """

    _number: str | None = None  # parameter that a number is short for, if not the first one

    @classmethod
    def _of(cls, value: Any) -> Self:
        """Return an object of this class, made from a short value if need be."""
        if isinstance(value, cls):
            return value
        if cls._number is None or value is None or isinstance(value, str | bool):
            return cls(value)
        return cls(**{cls._number: value})


@dataclass(eq=False, repr=False)
class Prior(Setting):
    """Prior of the weights: groups that share a precision, and given precisions and means.

    The weights of a group are Gaussian with mean zero and precision ``alpha`` (inverse variance),
    unless ``mean`` and ``base_precision`` say otherwise. A name, an array of labels or a fitted
    estimator as ``prior`` of an estimator is short for a `Prior` of that ``kind``.

    Parameters
    ----------
    kind : str, array-like of shape (n_weights,) or estimator, default="auto"
        Which weights share a precision.

        * ``"auto"``: ``"layer"``; but where evidence estimators compare networks by rows that are
          held out, as many rows require, ``"ard"`` if that predicts these rows better, and
          ``precision`` and ``hyperprior`` are not given.
        * ``"single"``: all weights and biases.
        * ``"layer"``: the weights of each layer; the biases of each hidden layer form a
          separate group.
        * ``"ard"`` (automatic relevance determination): as ``"layer"``, but the weights of each
          input form a separate group. With fewer than four rows per input, the priors of these
          ``d`` precisions are ``Gamma(0.5, 0.05 / d**2)``, under which few inputs matter.
        * ``"single+intercept"``, ``"layer+intercept"``, ``"ard+intercept"``: as without
          ``"+intercept"``, but the biases of the outputs form a separate group, ``"intercept"``.
        * An array: one group label per weight, layer by layer. Each layer's matrix has shape
          (inputs + 1, units), in row-major order, with the biases in its last row.
        * A fitted evidence estimator of the same task: its posterior is the prior, as in
          ``partial_fit``. Its network and scaling are used again. If estimators are cloned, wrap it
          in `sklearn.frozen.FrozenEstimator`.
    precision : "auto", "inferred", float, array-like or dict, default="auto"
        Given values of ``alpha`` (standardised units): one number for all groups, one per group, or
        a dict by group name. ``"auto"`` infers ``alpha`` (samplers: draws it). With
        ``base_precision``, and with an estimator as ``kind``, ``precision`` is a factor of that
        precision: ``"auto"`` is 1, and ``"inferred"`` infers it.
    mean : float or array-like of shape (n_weights,), default=None
        Prior means of the weights in the units of X and y, as ``coefs_`` and ``intercepts_``, in
        the order of the labels of ``kind``. ``None``: 0 in standardised units.
    base_precision : float or array-like of shape (n_weights,) or (n_weights, n_weights), \
            default=None
        Inverse prior covariance of the weights in the units of X and y, or its diagonal (Bishop
        2006, equation 4.140). All weights are then one group, ``"weights"``.
    hyperprior : dict, default=None
        Priors of the precisions that are inferred: from names of weight groups to
        `~skbayesnn.posterior.LogUniform` (bounds of a standard deviation) or
        `~skbayesnn.posterior.Gamma` (of a precision), in standardised units. Groups you do
        not name keep the default: ``LogUniform(1e-3, 1e3)`` but for many inputs of ``"ard"``, and
        ``Gamma(1 / 4, 1 / (4 * n_features))`` for classes with ``"auto"`` or ``"layer"`` and
        ``standardize=True``.

    Notes
    -----
    With ``mean`` or ``base_precision`` evidence estimators prune no hidden unit and do not measure
    the evidence. Samplers draw the output layer with the other weights, and their evidence run
    begins at the prior alone.

    Examples
    --------
    >>> from skbayesnn import EvidenceMLPRegressor, Prior
    >>> model = EvidenceMLPRegressor(prior=Prior("ard", precision={"output": 1.0}))
    >>> model.set_params(prior__kind="layer").prior
    Prior(kind='layer', precision={'output': 1.0})
    """

    _role = "prior"

    kind: str | ArrayLike | Estimator = "auto"
    _: KW_ONLY
    precision: str | ArrayLike | dict[Any, float] = "auto"
    mean: float | ArrayLike | None = None
    base_precision: float | ArrayLike | None = None
    hyperprior: dict[str, Any] | None = None


@dataclass(eq=False, repr=False)
class Noise(Setting):
    """Noise of the targets of regressors: its model, and a given level or its prior.

    A name as ``noise`` of an estimator is short for a `Noise` of that ``kind``, and a number for
    one of that ``std``.

    Parameters
    ----------
    kind : {"auto", "constant", "shared", "correlated", "input_dependent", "student_t", \
"input_dependent_student_t", "poisson", "negative_binomial"}, default="auto"
        Noise model.

        * ``"constant"``: Gaussian, one level per output.
        * ``"shared"``: Gaussian, one level for all outputs, equal in units of y.
        * ``"correlated"``: Gaussian, with a covariance matrix between several outputs, of evidence
          estimators. A priori all correlation matrices are equally probable.
        * ``"input_dependent"``: Gaussian; a second network learns the logarithm of the level as a
          function of the inputs (MacKay 1992, chapter 6).
        * ``"student_t"``: Student-t noise, for data with outliers. The degrees of freedom are
          chosen by evidence, or sampled, from 2.5, 5, 10, 20 and 40, and 1 where gross outliers are
          found; standard deviations are then those of the noise within 1,000 of its scales. A row
          is an outlier in all its outputs (Lange, Little & Taylor 1989; Geweke 1993).
        * ``"input_dependent_student_t"``: both, of drawn networks. Constant and Gaussian noise
          are limits of this law, so that nothing has to be chosen. The degrees of freedom may also
          be 80 and 160.
        * ``"poisson"``: counts; the network learns the logarithm of the rate (see ``exposure`` of
          ``fit``).
        * ``"negative_binomial"``: counts of variance ``m + a m^2`` for the mean ``m``. The
          dispersion ``a`` is inferred like a noise level, as the variance of a factor of the rate.
          It takes about 20 times as long as ``"poisson"``: minutes from some thousand rows on.
        * ``"auto"``: if networks are drawn by chains, the law that nests the others. Populations
          begin with constant noise; if a test of the residuals (see `EvidenceReport`) suggests
          input-dependent (p < 0.05) or Student-t noise (p < 0.5), networks are drawn under these,
          too, and predict together, weighted by stacking. With early stopping, the log density of
          held-out rows decides between the same models. With ``method="laplace"``, or if ``std``
          is given, the noise is constant. If targets far from all others, at no particular inputs,
          make most of the variance (gross outliers), it is Student-t. Samplers take the noise model
          of the estimator given as ``init`` (see `Sampler`); without one that of a population, if
          it takes seconds, else that of chains. With ``warm_start`` they keep that of the last fit.
    std : "auto", float, array-like or dict, default="auto"
        Given standard deviation (units of y): one number for all outputs, one per output,
        or a dict by the number of the output. ``"auto"`` infers it (samplers: draws it).
        ``measurement_std`` of ``fit`` adds to it; with ``measurement_std`` it may be 0.
    hidden_layer_sizes : tuple of int, default=(8,)
        Units of each hidden layer of the network of input-dependent noise. With ``()`` the
        logarithm of the level is linear in the inputs. This network has the activation and kind of
        prior of the first network.
    hyperprior : LogUniform, Gamma or list of them, default=None
        Prior of the level, or of the level of every output:
        `~skbayesnn.posterior.LogUniform` (bounds of the standard deviation) or
        `~skbayesnn.posterior.Gamma` (of the precision). ``None``: ``LogUniform(1e-3, 1e3)``.
        Values are in standardised units: fractions of the standard deviation of ``y``
        (``"shared"`` noise: of the geometric mean over outputs). The level of Student-t noise is
        its scale. Neal's (1992) likelihood ``(s0 + sum |t - f|^2)^(-(m0 + N)/2)`` has
        ``Gamma(m0/2, s0/2)``. With a Gamma prior ``"auto"`` is ``"constant"``.

    References
    ----------
    K. L. Lange, R. J. A. Little & J. M. G. Taylor (1989), "Robust statistical modeling using the
    t distribution", Journal of the American Statistical Association 84. J. Geweke (1993),
    "Bayesian treatment of the independent Student-t linear model", Journal of Applied Econometrics
    8.

    Examples
    --------
    >>> from skbayesnn import EvidenceMLPRegressor, Noise
    >>> model = EvidenceMLPRegressor(noise=Noise("input_dependent", hidden_layer_sizes=()))
    >>> model.set_params(noise=0.1).set_params(noise__kind="student_t").noise
    Noise(kind='student_t', std=0.1)
    """

    _role = "noise"
    _number = "std"

    kind: str = "auto"
    _: KW_ONLY
    std: str | ArrayLike | dict[Any, float] = "auto"
    hidden_layer_sizes: LayerSizes = (8,)
    hyperprior: Any = None

    @property
    def _is_of_counts(self):
        return self.kind in COUNTS

    @property
    def _hyperpriors(self):
        """Given priors of the noise levels, as a list."""
        given = self.hyperprior
        if given is None:
            return []
        return list(given) if isinstance(given, list | tuple) else [given]


@dataclass(eq=False, repr=False)
class Solver(Setting):
    """Training of evidence estimators: the curvature at a minimum, and when training ends.

    A name as ``solver`` of an estimator is short for a `Solver` with that ``hessian``.

    Parameters
    ----------
    hessian : {"auto", "exact", "gauss_newton"}, default="auto"
        Curvature at the minimum.

        * ``"exact"``: the Hessian.
        * ``"gauss_newton"``: the Gauss-Newton matrix. It is faster, and the evidence is
          approximate.
        * ``"auto"``: the Hessian; but from 5,000 rows on, training of networks with fewer than 50
          rows per weight ends early, and they have no evidence. The other two values give one there
          as well, for up to 3,000 weights and 1e10 rows times squared weights.
    max_iter : int, default=300
        Training steps per start; the refinement at the minimum has its own limits. Of networks that
        are trained by gradients, one step is a descent of up to 1000 quasi-Newton steps, followed
        by a re-estimation of the precisions.
    tol : float, default=1e-3
        Training ends when steps and re-estimations of the precisions gain less than this many nats
        (with more than 100 weights: per 100 weights).

    Examples
    --------
    >>> from skbayesnn import EvidenceMLPRegressor, Solver
    >>> EvidenceMLPRegressor(solver="exact").set_params(solver__max_iter=1000).solver
    Solver(hessian='exact', max_iter=1000)
    """

    _role = "solver"

    hessian: str = "auto"
    _: KW_ONLY
    max_iter: int = 300
    tol: float = 1e-3


@dataclass(eq=False, repr=False)
class Sampler(Setting):
    """Transitions of the chains of sampling estimators, where these start, and what is kept.

    A name as ``sampler`` of an estimator is short for a `Sampler` of that ``kind``.

    Parameters
    ----------
    kind : {"auto", "hmc", "langevin", "stochastic_dynamics", "metropolis"}, default="auto"
        Method.

        * ``"auto"``: Hamiltonian Monte Carlo that tunes its step size (regressors: and metric)
          during warm-up. All chains have the same step size. Regressors integrate the output layer
          out. With hidden layers, trajectories have at most 64 steps; with 64 to 1024 rows at most
          256 steps: the number of rows, or 65,536 divided by it, whichever is less. Elliptical
          slice sampling of classifiers' units follows (Murray, Adams & MacKay 2010).
        * ``"hmc"``: Hamiltonian Monte Carlo without metric (Duane et al. 1987; Neal 1992).
        * ``"langevin"``: the Langevin method (MacKay 2003, algorithm 41.4).
        * ``"stochastic_dynamics"``: Neal's (1992) stochastic dynamics, which keeps part of the
          momentum and has no Metropolis test.
        * ``"metropolis"``: a random walk (Metropolis et al. 1953).

        If precisions are fixed, the positions of the last four are the weights themselves.
    step_size : float, optional
        Step size, only used by the last four, the classic samplers. By default the warm-up adapts
        it to 80 % acceptance (random walk: 25 %).
    n_steps : int or tuple of (int, int), optional
        Leapfrog steps per transition of the classic samplers except the random walk. By default 20
        for ``"hmc"`` and 1 for the others. If there are several, the step size varies by up to
        20 %. With a pair ``(low, high)`` the number is drawn for each chain and transition, and the
        step size is constant.
    persistence : float, optional
        Share of the momentum that a transition of the classic samplers keeps, from 0 to below 1. By
        default 0.95 for ``"stochastic_dynamics"`` and 0 for the others. A rejection reverses the
        momentum, so that the posterior is sampled exactly (Horowitz 1991).
    thin : int or "auto", default="auto"
        Transitions per draw that is kept. ``"auto"``: with ``kind="auto"`` up to 4 for networks
        with hidden units (regressors: and noise that is not constant), if rows and weights are few
        enough for this to take only seconds; otherwise 1. Under constant noise transitions are
        longer instead.
    dtype : {"float64", "float32"}, default="float64"
        Type in which drawn weights are stored.
    init : {"modes", "prior"} or fitted estimator, default="modes"
        Where the chains start.

        * ``"modes"``: on small data, at draws of populations of networks, which sequential Monte
          Carlo carries from the prior to the posterior. Each chain then consists of 16 short ones
          from different draws, one after the other, which share its transitions (Margossian et al.
          2024). On larger data each chain starts at its own minimum.
        * ``"prior"``: the chains start at draws from the prior.
        * A fitted evidence estimator of the same task: the first chains start at its minima (see
          ``from_evidence`` of the estimators).

    References
    ----------
    R. M. Neal (1992), "Bayesian learning via stochastic dynamics", Advances in Neural Information
    Processing Systems 5.

    I. Murray, R. P. Adams & D. J. C. MacKay (2010), "Elliptical slice sampling", Proceedings of
    Machine Learning Research 9, 541-548.

    D. J. C. MacKay (2003), Information Theory, Inference, and Learning Algorithms, chapter 41,
    Cambridge University Press.

    Examples
    --------
    >>> from skbayesnn import HMCMLPRegressor, Sampler
    >>> HMCMLPRegressor(sampler=Sampler("hmc", n_steps=30)).set_params(sampler__thin=2).sampler
    Sampler(kind='hmc', n_steps=30, thin=2)
    """

    _role = "sampler"

    kind: str = "auto"
    _: KW_ONLY
    step_size: float | None = None
    n_steps: Any = None
    persistence: float | None = None
    thin: int | str = "auto"
    dtype: Any = "float64"
    init: str | Estimator = "modes"


SETTINGS = {setting._role: setting for setting in (Prior, Noise, Solver, Sampler)}


def opened(estimator, params):
    """Values for ``set_params``, short ones replaced by objects whose parameters are to be set."""
    objects = {}
    for path in params:
        name, _, within = path.partition("__")
        if not (within and name in SETTINGS and hasattr(estimator, name)):
            continue
        value = params.get(name, getattr(estimator, name))
        if within in SETTINGS[name]._get_param_names() or not hasattr(value, "set_params"):
            objects[name] = SETTINGS[name]._of(value)
    return params | objects
