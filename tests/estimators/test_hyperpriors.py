"""Hyperpriors by weight group: both engines against quadrature, and what cannot be given."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import logsumexp
from scipy.stats import gamma
from sklearn.base import clone

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
)
from skbayesnn.posterior import Gamma, LogUniform
from tests.tools import draws_of, result_of

pytestmark = pytest.mark.usefixtures("laplace")

rng = np.random.default_rng(3)
X = rng.standard_normal((25, 2))
y = X @ [1.0, -0.4] + 0.3 + 0.5 * rng.standard_normal(25)
PHI = np.column_stack([X, np.ones(25)])
FEW = {"n_chains": 4, "n_warmup": 100, "n_draws": 400, "random_state": 0}
DEFAULT = LogUniform()
CASES = {  # priors of the weights and of the noise
    "narrow weights": (LogUniform(0.05, 0.2), DEFAULT),
    "gamma noise": (DEFAULT, Gamma(15.0, 1.2)),
    "both": (Gamma(2.0, 4.0, 0.1, 10.0), LogUniform(0.3, 0.4)),
}


def log_marginal(x_alpha, x_beta):
    """``ln P(D | alpha, beta)`` on a grid of logarithms."""
    s2, U = np.linalg.eigh(PHI @ PHI.T)
    c2 = (U.T @ y) ** 2
    total = np.exp(-x_alpha)[..., None] * np.maximum(s2, 0) + np.exp(-x_beta)[..., None]
    return -0.5 * np.sum(np.log(2 * np.pi * total) + c2 / total, axis=-1)


def grids(priors, n=500):
    """Midpoints of both log precisions, and the logarithm of all that integrates to the evidence"""
    x, logs = [], []
    for prior in priors:
        low, high = -2 * np.log([prior.upper, prior.lower])
        step = (high - low) / n
        x.append(low + step * (np.arange(n) + 0.5))
        if isinstance(prior, Gamma):
            one = gamma(prior.shape, scale=1 / prior.rate).logpdf(np.exp(x[-1])) + x[-1]
            one = one - logsumexp(one)  # cut off at the bounds
        else:
            one = np.full(n, -np.log(n))
        logs.append(one)
    table = np.stack([log_marginal(np.full(n, value), x[1]) for value in x[0]])
    return *x, table + logs[0][:, None] + logs[1]


@pytest.mark.parametrize("name", CASES)
def test_both_engines_against_quadrature(name):
    """A linear model: the evidence, and the posterior of the precisions."""
    weights, noise = CASES[name]
    given = {
        "prior": Prior("single", hyperprior={"weights": weights}),
        "noise": Noise("constant", hyperprior=noise),
        "standardize": False,
    }
    x_alpha, x_beta, table = grids(CASES[name])
    exact = logsumexp(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # at a bound
        laplace = EvidenceMLPRegressor((), **given).fit(X, y)
        model = HMCMLPRegressor((), **given, **FEW).fit(X, y)
    # where weights end at a bound one precision depends on the other
    near = 0.5 if name == "narrow weights" else 0.15
    assert laplace.log_evidence_ == pytest.approx(exact, abs=near)
    assert model.log_evidence_ == pytest.approx(exact, abs=4 * model.log_evidence_std_)
    share = np.exp(table - exact)
    for drawn, x, axis in ((draws_of(model).alpha, x_alpha, 1), (draws_of(model).beta, x_beta, 0)):
        marginal, logs = share.sum(axis=axis), np.log(drawn[..., 0])
        mean = marginal @ x
        sd = np.sqrt(marginal @ (x - mean) ** 2)
        n_effective = model.diagnostics_.bulk_ess
        assert abs(np.mean(logs) - mean) < 4 * sd / np.sqrt(n_effective)


def test_defaults_are_log_uniform():
    plain = EvidenceMLPRegressor((2,), random_state=0, n_restarts=1).fit(X, y)
    named = {"output": LogUniform(), "hidden1_biases": LogUniform(1e-3, 1e3)}
    given = clone(plain).set_params(prior__hyperprior=named, noise__hyperprior=LogUniform())
    given.fit(X, y)
    assert given.log_evidence_ == plain.log_evidence_
    assert_array_equal(given.predict(X), plain.predict(X))


FEWER = FEW | {"n_draws": 50, "measure_evidence": False}
ONE_START = {"n_restarts": 1, "random_state": 0}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EvidenceMLPRegressor, ONE_START),
        (HMCMLPRegressor, FEWER),
        (EvidenceMLPClassifier, ONE_START),
        (HMCMLPClassifier, FEWER),
    ],
)
def test_a_strong_prior_is_obeyed(kind, options):
    """Bounds hold in both engines; a narrow Gamma prior nearly fixes a precision."""
    prior = Prior(hyperprior={"hidden1_weights": LogUniform(0.5, 0.6), "output": Gamma(4e4, 1e4)})
    model, t = kind((2,), prior=prior, **options), y > 0.2
    if "Regressor" in kind.__name__:
        t = np.column_stack([y, X[:, 1] + 0.3 * y])
        model.set_params(noise=Noise(hyperprior=[LogUniform(0.5, 0.9), Gamma(3e4, 3e4)]))
        model.set_params(standardize=False)
    # groups of a noise network follow
    hidden, _, output, *_ = model.fit(X, t).weight_precisions_
    assert 0.6**-2 * 0.999 <= hidden <= 0.5**-2 * 1.001
    assert output == pytest.approx(4.0, rel=0.02)
    if "Regressor" in kind.__name__:
        assert 0.5 <= model.noise_std_[0] <= 0.9
        assert model.noise_std_[1] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("noise", ["shared", "student_t", "input_dependent", "correlated"])
def test_bounds_under_other_noise(noise):
    Y = np.column_stack([y, 2 * X[:, 1] + 0.3 * rng.standard_normal(25)])
    given = Noise(noise, hyperprior=LogUniform(0.8, 0.9))
    model = EvidenceMLPRegressor((1,), noise=given, random_state=0, n_restarts=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
        sd = model.predict_std(X, kind="aleatoric") / Y.std(axis=0)
    if noise == "shared":
        sd = sd * Y.std(axis=0) / np.exp(np.mean(np.log(Y.std(axis=0))))
    factor = 1.0
    if noise == "student_t":
        factor = np.sqrt(model.degrees_of_freedom_ / (model.degrees_of_freedom_ - 2.0))
    assert np.all(sd >= 0.8 * factor * (1 - 1e-6))
    assert np.all(sd <= 0.9 * factor * (1 + 1e-6))


def test_partial_fit_begins_with_the_prior_of_the_noise():
    """A Gamma prior worth many targets, then two batches."""
    given = Noise("constant", hyperprior=Gamma(500.0, 500.0))
    model = EvidenceMLPRegressor((), noise=given, standardize=False)
    for rows in np.array_split(np.arange(25), 2):
        model.partial_fit(X[rows], y[rows])
    assert model.noise_std_ == pytest.approx(1.0, abs=0.03)
    once = clone(model).fit(X, y)
    assert model.noise_std_ == pytest.approx(once.noise_std_, rel=0.01)
    before = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    after = EvidenceMLPRegressor(
        prior=Prior(before, precision="inferred", hyperprior={"weights": LogUniform(0.9, 1.1)})
    ).fit(X, y)
    assert 1.1**-2 * 0.999 <= after.weight_precisions_[0] <= 0.9**-2 * 1.001


def test_ends_at_a_bound_are_told():
    model = EvidenceMLPRegressor((), standardize=False)
    for given, message in (
        (
            {"prior": Prior(hyperprior={"output": LogUniform(0.1, 0.2)})},
            r"upper bound of 0\.2.*hyper",
        ),
        ({"noise": Noise(hyperprior=LogUniform(0.8, 3.0))}, r"noise is at its lower bound of 0\.8"),
    ):
        with pytest.warns(UserWarning, match=message):
            clone(model).set_params(**given).fit(X, y)
    model.set_params(noise__hyperprior=LogUniform(1e-9, 1e9)).fit(1e4 * X, 1e4 * y)


OUTPUT = {"output": LogUniform()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": Prior(hyperprior=LogUniform())}, "must be None, or a dict"),
        ({"prior": Prior(hyperprior={"output": 3.0})}, "must be a LogUniform or Gamma"),
        ({"prior": Prior(hyperprior={"hidden": LogUniform()})}, "names 'hidden', but this model"),
        ({"prior": Prior(hyperprior=OUTPUT, precision=1.0)}, "precision is fixed"),
        ({"noise": Noise(hyperprior=LogUniform(), std=1.0)}, "std fixes all noise levels"),
        ({"noise": Noise(hyperprior=[LogUniform()] * 3)}, "3 priors, but there are 1"),
        ({"noise": Noise("input_dependent", hyperprior=Gamma(1.0, 1.0))}, "is not possible"),
    ],
)
def test_what_cannot_be_given(options, message):
    for kind in (EvidenceMLPRegressor, HMCMLPRegressor):
        with pytest.raises(TypeError if "must be" in message else ValueError, match=message):
            kind((), **options).fit(X, y)


@pytest.mark.parametrize(
    ("prior", "n", "informed"), [("ard", 7, 2), ("ard", 8, 0), ("layer", 7, 0)]
)
def test_few_inputs_have_log_uniform_precisions(prior, n, informed):
    model = EvidenceMLPRegressor((), prior=prior).fit(X[:n], y[:n])
    assert np.sum(result_of(model).posed.settings.free.alpha_prior.informative) == informed
