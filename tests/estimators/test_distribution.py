"""Predictive distributions: identities between their methods, under every noise model."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.estimators import predictive_distribution

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("laplace"),
]

NOISES = ["constant", "input_dependent", "student_t"]
FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "evidence": False}
GRID = np.linspace(-2.5, 2.5, 7)[:, None]


def make_rows(n_outputs=1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 1))
    y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] ** 2])[:, :n_outputs]
    y = y + 0.2 * rng.standard_normal(y.shape)
    return X, y[:, 0] if n_outputs == 1 else y


def make(engine, noise="constant"):
    if engine == "evidence":
        return EvidenceMLPRegressor((3,), noise=noise, n_restarts=2, random_state=0)
    return HMCMLPRegressor((3,), noise=noise, random_state=0, **FEW)


@pytest.fixture(scope="module")
def fitted():
    """Fitted models by engine, noise and number of outputs, each made once."""
    made = {}

    def get(engine, noise="constant", n_outputs=1):
        key = engine, noise, n_outputs
        if key not in made:
            made[key] = make(engine, noise).fit(*make_rows(n_outputs))
        return made[key]

    return get


@pytest.fixture(params=[("evidence", noise) for noise in NOISES] + [("hmc", "student_t")])
def at(request, fitted):
    """Distribution at the rows of `GRID`."""
    return fitted(*request.param).predict_distribution(GRID)


def test_quantiles_are_the_inverse_of_the_cdf(at):
    q = np.array([0.01, 0.3, 0.5, 0.99])
    for probability, y in zip(q, at.ppf(q).T, strict=True):
        assert_allclose(at.cdf(y), probability, rtol=1e-6)


def test_the_density_is_the_derivative_of_the_cdf(at):
    y, h = at.ppf(0.3), 1e-4 * (at.ppf(0.7) - at.ppf(0.3))
    assert_allclose((at.cdf(y + h) - at.cdf(y - h)) / (2 * h), at.pdf(y), rtol=1e-5)
    assert_allclose(np.log(at.pdf(y)), at.logpdf(y))


@pytest.mark.parametrize("engine", ["evidence", "hmc"])
def test_moments_are_those_of_the_density(fitted, engine):
    at = fitted(engine).predict_distribution(GRID)
    low, high = at.mean() - 12 * at.std(), at.mean() + 12 * at.std()
    y = low + (high - low) * np.linspace(0, 1, 4001)[:, None]
    density = np.array([at.pdf(some) for some in y])
    assert_allclose(np.trapezoid(density, y, axis=0), 1.0, rtol=1e-8)
    assert_allclose(np.trapezoid(y * density, y, axis=0), at.mean(), rtol=1e-6, atol=1e-8)
    variance = np.trapezoid((y - at.mean()) ** 2 * density, y, axis=0)
    assert_allclose(variance, at.var(), rtol=1e-6)
    assert_allclose(at.var(), at.var("epistemic") + at.var("aleatoric"))


def test_entropy_of_gaussians_is_exact():
    X, y = make_rows()
    at = EvidenceMLPRegressor((), noise="constant").fit(X, y).predict_distribution(GRID)
    assert_allclose(at.entropy(), stats.norm(scale=at.std()).entropy(), rtol=1e-6)


def test_draws_have_the_distribution(at):
    drawn = at.rvs(4000, random_state=0)
    below = np.mean(drawn <= at.ppf(0.8), axis=0)
    assert drawn.shape == (4000, len(GRID))
    assert at.rvs().shape == (len(GRID),)
    assert np.all(np.abs(below - 0.8) < 4 * np.sqrt(0.16 / 4000))  # standard errors


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_predictions_are_methods_of_the_distribution(fitted, n_outputs):
    model = fitted("evidence", n_outputs=n_outputs)
    at, (X, y) = model.predict_distribution(make_rows()[0]), make_rows(n_outputs)
    assert_array_equal(at.mean(), model.predict(X))
    assert_array_equal(at.std(), model.predict_std(X))
    assert_array_equal(at.interval(0.9), model.predict_interval(X, 0.9))
    assert_array_equal(at.joint_logpdf(y), model.log_predictive_density(X, y))
    assert at.logpdf(y).shape == at.cdf(y).shape == y.shape
    assert_array_equal(at[3:5].mean(), at.mean()[3:5])
    assert len(at) == len(X)


def test_pipelines_and_transformed_targets():
    X, y = make_rows()
    functions = {"func": np.log, "inverse_func": np.exp}
    inner = EvidenceMLPRegressor((), noise="constant")
    model = make_pipeline(StandardScaler(), TransformedTargetRegressor(inner, **functions))
    at = predictive_distribution(model.fit(X, np.exp(y)), GRID)
    log_at = make_pipeline(StandardScaler(), inner).fit(X, y)
    log_at = predictive_distribution(log_at, GRID)
    exact = stats.lognorm(s=log_at.std(), scale=np.exp(log_at.mean()))
    q = at.ppf(0.9)
    assert_allclose(q, exact.ppf(0.9), rtol=1e-8)
    assert_allclose(at.logpdf(q), exact.logpdf(q), rtol=1e-8)
    assert_allclose(at.cdf(q), 0.9, rtol=1e-8)
    assert_allclose(at.mean(), exact.mean(), rtol=1e-4)
    assert_allclose(at.std(), exact.std(), rtol=1e-2)  # by quadrature; the tail is heavy


def test_classes():
    X, y = load_iris(return_X_y=True, as_frame=False)
    names = np.array(["a", "b", "c"])[y]
    model = EvidenceMLPClassifier((), random_state=0).fit(X, names)
    at = model.predict_distribution(X)
    assert_array_equal(at.mode(), model.predict(X))
    assert_array_equal(at.mean(), model.predict_proba(X))
    assert_array_equal(at.logpmf(names), model.log_predictive_density(X, names))
    assert_allclose(at.entropy(), stats.entropy(at.mean(), axis=1))
    shares = np.mean(at.rvs(4000, random_state=0)[:, 60] == "b")
    p = at.pmf(np.full(len(X), "b"))[60]
    assert abs(shares - p) < 4 * np.sqrt(p * (1 - p) / 4000)  # standard errors
    with pytest.raises(ValueError, match="not in the training data"):
        at.pmf(np.full(len(X), "d"))


def test_distributions_are_pickled(fitted):
    at = fitted("hmc").predict_distribution(GRID)
    assert_array_equal(pickle.loads(pickle.dumps(at)).ppf(0.2), at.ppf(0.2))


def test_targets_are_checked(fitted):
    at = fitted("evidence").predict_distribution(GRID)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        at.logpdf(np.zeros(3))
    with pytest.raises(ValueError, match="kind must be one of"):
        at.std("all")
