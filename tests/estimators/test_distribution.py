"""Predictive distributions: identities between their methods, for every law and engine."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Prior,
    Sampler,
)
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.estimators import AveragedRegressor, conformal_interval, predictive_distribution
from skbayesnn.model_selection import EvidenceSearch
from skbayesnn.predictive import Ensemble
from tests.tools import BRIEF, parts_of, set_block_doubles, with_ensemble

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
NOISE = RNG.standard_normal((60, 2))
Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] - X[:, 1]], 1) + 0.2 * NOISE
GRID = np.array([[0.0, 0.0], [1.0, -1.0], [3.0, 1.0]])
LAWS = ["constant", "shared", "input_dependent", "student_t", "correlated"]
EVIDENCE = EvidenceMLPRegressor((3,), n_restarts=2, method="laplace", random_state=0)
SAMPLER = HMCMLPRegressor((3,), **BRIEF, sampler=Sampler(init="prior"))
CLASSIFYING_SAMPLER = HMCMLPClassifier((2,), **BRIEF, sampler=Sampler(init="prior"))
LINEAR = EvidenceMLPRegressor((), noise=0.3, prior=Prior(precision=1.0), standardize=False)


@pytest.fixture(
    scope="module",
    params=[(EVIDENCE, law) for law in LAWS]
    + [(SAMPLER, law) for law in LAWS if law != "correlated"],  # which samplers refuse
    ids=lambda pair: f"{type(pair[0]).__name__}-{pair[1]}",
)
def model(request):
    engine, law = request.param
    model = clone(engine).set_params(noise=law).fit(X, Y)
    return with_given_draws(model) if engine is SAMPLER else model


def with_given_draws(model):
    """A sampler whose networks and noise are invented: short chains end anywhere."""
    rng, (part,) = np.random.default_rng(3), parts_of(model)
    invented = {
        "squared_scales": lambda shape: rng.uniform(0.02, 0.2, shape),
        "degrees_of_freedom": lambda shape: rng.choice([2.5, 5.0, 40.0], shape),
        "theta": lambda shape: 0.5 * rng.standard_normal(shape),
    }
    arrays = {name: draw for name, draw in invented.items() if hasattr(part.noise, name)}
    noise = {name: draw(getattr(part.noise, name).shape) for name, draw in arrays.items()}
    part = replace(
        part, theta=rng.standard_normal(part.theta.shape), noise=replace(part.noise, **noise)
    )
    return with_ensemble(model, Ensemble((part,), model._ensemble.weights))


def check_identities(at, n_rows):
    q = np.array([0.01, 0.3, 0.975])
    ends = at.ppf(q)
    for i, probability in enumerate(q):
        assert_allclose(at.cdf(ends[..., i]), probability, rtol=1e-6)
    assert_allclose(at.interval(0.9), at.ppf([0.05, 0.95]), rtol=1e-12)
    assert_allclose(at.var(), at.std() ** 2, rtol=1e-12)
    assert_allclose(at.pdf(ends[..., 1]), np.exp(at.logpdf(ends[..., 1])), rtol=1e-12)
    assert len(at) == n_rows
    assert_allclose(at[1:].mean(), at.mean()[1:], rtol=1e-12)


def integral(at, row, function, output=...):
    """Integral of a function times the density of one target, between extreme quantiles."""
    p = np.array([1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.3])
    ends = at[[row]].ppf(np.r_[p, 0.5, 1 - p[::-1]])[0][output]
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = 0.5 * np.diff(ends)[:, None]
    y = (ends[:-1, None] + half * (nodes + 1)).ravel()
    many = at[np.full(len(y), row)]
    targets = y if output is ... else np.tile(y[:, None], (1, 2))  # of one output, or of two
    density = many.pdf(targets)[:, output] if targets.ndim == 2 else many.pdf(targets)
    return (half * weights).ravel() @ (density * function(y))


def test_methods_agree(model):
    at = model.predict_distribution(GRID)
    check_identities(at, 3)
    for output in range(2):
        assert_allclose(integral(at, 1, np.ones_like, output), 1.0, rtol=1e-6)
        median = at.median()[1, output]
        assert at.sf(median)[1, output] == 1.0 - at.cdf(median)[1, output]
        assert_allclose(integral(at, 1, lambda y, m=median: y < m, output), 0.5, rtol=1e-6)
        if model.noise_model_ != "student_t":  # whose variance lies in tails beyond any quadrature
            mean, std = at.mean()[1, output], at.std()[1, output]
            assert_allclose(integral(at, 1, lambda y: y, output), mean, atol=1e-6)
            assert_allclose(
                integral(at, 1, lambda y, m=mean: (y - m) ** 2, output), std**2, rtol=1e-5
            )


def test_entropy_is_the_mean_loss_of_draws(model):
    """Inside the data and far outside; draws come by another way than densities."""
    at, size = model.predict_distribution([[0.0, 0.0], [30.0, -30.0]]), 4000
    drawn = at.rvs(size, random_state=1)
    entropies = at.entropy()
    for row in range(2):
        losses = -at[np.full(size, row)].logpdf(drawn[:, row])
        error = losses.std(axis=0) / np.sqrt(size)
        assert np.all(np.abs(losses.mean(axis=0) - entropies[row]) < 4 * error + 3e-3)


def test_draws_are_those_of_the_distribution(model):
    at, size = model.predict_distribution(GRID), 20_000
    assert at.rvs().shape == (3, 2)
    drawn = at.rvs(size, random_state=1)
    assert drawn.shape == (size, 3, 2)
    assert_array_equal(drawn, at.rvs(size, random_state=1))
    for q in (0.05, 0.5, 0.9):
        share = np.mean(drawn <= at.ppf(q), axis=0)
        # five standard errors: these are 162 shares in all
        assert np.all(np.abs(share - q) < 5 * np.sqrt(q * (1 - q) / size))


def test_draws_of_outputs_are_correlated():
    noise = NOISE @ np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]]).T
    Y = np.stack([X[:, 0], X[:, 1]], 1) + 0.3 * noise
    at = EvidenceMLPRegressor((), noise="correlated").fit(X, Y).predict_distribution(GRID[:1])
    cov, size = at.cov()[0], 20_000
    found = np.cov(at.rvs(size)[:, 0].T)
    error = np.sqrt((cov[0, 0] * cov[1, 1] + cov[0, 1] ** 2) / size)
    assert abs(found[0, 1] - cov[0, 1]) < 4 * error
    assert cov[0, 1] > 20 * error


def test_predictions_are_methods_of_the_distribution(model):
    at = model.predict_distribution(GRID)
    assert_array_equal(model.predict(GRID), at.mean())
    assert_array_equal(model.predict_std(GRID, "epistemic"), at.std("epistemic"))
    assert_array_equal(model.predict_output_cov(GRID), at.cov())
    assert_array_equal(model.predict_quantiles(GRID, 0.2), at.ppf(0.2))
    several = model.predict_interval(GRID, [0.8, 0.95])
    assert_allclose(several, np.stack([at.interval(0.8), at.interval(0.95)], axis=-2), rtol=1e-9)
    assert_array_equal(model.log_predictive_density(GRID, Y[:3]), at.joint_logpdf(Y[:3]))


def test_linear_models_have_the_curves_of_scipy():
    """Outputs of one linear model with given precisions are independent."""
    at = clone(LINEAR).fit(X, Y).predict_distribution(GRID)
    assert_allclose(at.joint_logpdf(Y[:3]), at.logpdf(Y[:3]).sum(axis=1), rtol=1e-10)
    assert_allclose(at.entropy(), norm(at.mean(), at.std()).entropy(), rtol=1e-4)
    at = clone(LINEAR).fit(X, Y[:, 0]).predict_distribution(GRID[:1])
    expected, y = norm(at.mean(), at.std()), np.linspace(-1.0, 1.0, 6)
    for some in (y, y.reshape(2, 3), y[:, None], 0.3, [0.3]):
        for name in ("pdf", "logpdf", "cdf", "sf"):
            curve = getattr(expected, name)(some)
            found = getattr(at, name)(some)
            assert found.shape == curve.shape
            assert_allclose(found, curve, rtol=1e-9)


def test_blocks_of_rows_pickles_and_arguments(model, monkeypatch):
    at = model.predict_distribution(GRID)
    whole, ends = at.ppf(0.3), at.ppf([[0, 1], [0.2, 0.5]])
    assert_array_equal(ends[..., 0, :], np.tile([-np.inf, np.inf], (3, 2, 1)))
    assert_array_equal(ends[..., 1, :], at.ppf([0.2, 0.5]))
    assert_array_equal(at.ppf(0), np.full((3, 2), -np.inf))
    again = pickle.loads(pickle.dumps(at))
    assert_allclose(again.logpdf(Y[:3]), at.logpdf(Y[:3]), rtol=1e-9)
    assert "3 rows" in repr(again)
    for call, value, message in (
        (at.cdf, np.zeros((3, 3)), "3 outputs"),
        (at.pdf, np.zeros((2, 2)), "inconsistent"),
        (at.std, "both", "kind must be"),
        (at.ppf, 1.5, "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call(value)
    set_block_doubles(monkeypatch, 1)
    assert_allclose(at.ppf(0.3), whole, rtol=1e-9)


def test_targets_of_any_shape_at_one_row(model):
    """As of SciPy's frozen distributions, targets broadcast against the row."""
    at, y = model.predict_distribution(GRID[1:2]), RNG.standard_normal((4, 5, 2))
    rows = model.predict_distribution(np.tile(GRID[1], (20, 1)))
    for name in ("pdf", "logpdf", "cdf", "sf", "joint_logpdf"):
        found = getattr(at, name)(y)
        assert_allclose(
            found, getattr(rows, name)(y.reshape(20, 2)).reshape(found.shape), rtol=1e-9
        )
        assert found.shape == ((4, 5) if name == "joint_logpdf" else (4, 5, 2))
        assert_allclose(getattr(at, name)(y[..., :1])[0, 0], getattr(at, name)(y[0, 0, 0])[0])
    assert_allclose(at.cdf(np.moveaxis(at.ppf([0.2, 0.7]), -1, 0)[:, 0]), [[0.2] * 2, [0.7] * 2])
    with pytest.raises(ValueError, match="inconsistent"):
        at.cdf(np.zeros((4, 3)))


def test_averages_searches_and_pipelines():
    search = EvidenceSearch(
        make_pipeline(StandardScaler(), clone(EVIDENCE).set_params(noise="constant")),
        {"evidencemlpregressor__hidden_layer_sizes": [(), (2,)]},
        combine="equal",
    ).fit(X, Y)
    at = predictive_distribution(search, GRID)
    check_identities(at, 3)
    assert_array_equal(at.mean(), search.predict(GRID))
    both = [predictive_distribution(model, GRID) for model in search.estimators_]
    y = np.zeros((3, 2))
    assert_allclose(at.pdf(y), np.mean([one.pdf(y) for one in both], axis=0), rtol=1e-10)
    assert isinstance(search.predictor_, AveragedRegressor)
    drawn = at.rvs(4000)
    assert np.all(np.abs(np.mean(drawn < at.ppf(0.3), axis=0) - 0.3) < 4 * np.sqrt(0.21 / 4000))
    with pytest.raises(TypeError, match="no leave-one-out"):
        conformal_interval(search, GRID)


@pytest.mark.parametrize(
    "engine",
    [
        EvidenceMLPClassifier((2,), n_restarts=2, method="laplace", random_state=0),
        CLASSIFYING_SAMPLER,
    ],
    ids=["minima", "draws"],
)
@pytest.mark.parametrize("cuts", [[0.0], [-0.7, 0.7]])
def test_classes(engine, cuts):
    labels = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], cuts)]
    model = clone(engine).fit(X, labels)
    at, p = predictive_distribution(make_pipeline(model), GRID), model.predict_proba(GRID)
    assert_array_equal(at.mean(), p)
    assert_array_equal(at.mode(), model.predict(GRID))
    assert_array_equal(at.pmf(["b"] * 3), p[:, 1])
    assert_array_equal(at.pmf("b"), p[:, 1])
    assert_array_equal(at[1:].mean(), p[1:])
    assert (
        repr(at) == f"<CategoricalDistribution: 3 rows, classes {str(at.classes.tolist())[1:-1]}>"
    )
    assert_array_equal(at.logpmf(labels[:3]), model.log_predictive_density(GRID, labels[:3]))
    assert_allclose(at.entropy(), entr(p).sum(axis=1), rtol=1e-12)
    drawn = at.rvs(4000)
    share = np.mean(drawn == "b", axis=0)
    assert np.all(np.abs(share - p[:, 1]) < 4 * np.sqrt(p[:, 1] * (1 - p[:, 1]) / 4000 + 1e-6))
    with pytest.raises(ValueError, match="not in the training data"):
        at.pmf(["d"] * 3)
    with pytest.raises(TypeError, match="no leave-one-out"):
        conformal_interval(model, GRID)


def covered(model, seeds, coverage, draw):
    """Shares of new targets in conformal intervals of several data sets."""
    shares = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (140, 2))
        y = X[:, 0] - X[:, 1] + draw(rng, 140)
        low, high = conformal_interval(model.fit(X[:40], y[:40]), X[40:], coverage).T
        shares.append(np.mean((low < y[40:]) & (y[40:] < high)))
    return np.array(shares)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: 0.5 * rng.standard_normal(n),
        lambda rng, n: 0.3 * rng.standard_t(2, n),
        lambda rng, n: rng.exponential(1.0, n),
    ],
    ids=["normal", "student_t", "skewed"],
)
def test_conformal_coverage_does_not_need_the_right_noise(draw):
    model, coverage = EvidenceMLPRegressor((), noise=0.1), 0.8
    shares = covered(model, range(20), coverage, draw)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    # between the nominal coverage and that of the rank rounded up: 33 of 40 rows and a new one
    assert coverage - 4 * error < shares.mean() < 33 / 41 + 4 * error
    plain = model.predict_interval(X, coverage)
    assert np.mean(np.diff(conformal_interval(model, X, coverage), axis=-1) > np.diff(plain)) == 1


def test_conformal_intervals_follow_units_weights_and_transformations():
    model = clone(LINEAR).fit(X, Y)
    found = conformal_interval(model, GRID, 0.8)
    for output in range(2):
        one = clone(LINEAR).fit(X, Y[:, output])
        assert_allclose(found[:, output], conformal_interval(one, GRID, 0.8), rtol=1e-6)
    repeated = clone(LINEAR).fit(np.r_[X, X[:9]], np.r_[Y, Y[:9]])
    weighted = clone(LINEAR).fit(X, Y, sample_weight=1.0 + (np.arange(60) < 9))
    assert_array_equal(*(conformal_interval(some, GRID, 0.8) for some in (repeated, weighted)))
    turned = {"func": np.negative, "inverse_func": np.negative}
    model = TransformedTargetRegressor(clone(LINEAR), **turned).fit(X, Y)
    assert_allclose(conformal_interval(model, GRID, 0.8), found, rtol=1e-6)
    with pytest.raises(NotFittedError):
        conformal_interval(clone(LINEAR), GRID)
    with pytest.raises(ValueError, match="at least 99 training rows"):
        conformal_interval(model, GRID, 0.99)
