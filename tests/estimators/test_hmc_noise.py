"""`HMCMLPRegressor` under constant, Student-t and input-dependent noise."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Noise, Sampler
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from skbayesnn.network import outputs
from tests.estimators.common import run_networks
from tests.tools import draws_of, parts_of, result_of, standardised

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

FEW = {"n_chains": 2, "n_warmup": 10, "n_draws": 8, "measure_evidence": False, "random_state": 0}
NOISES = ["student_t", "input_dependent"]
KINDS = [(noise, n_outputs) for noise in ("constant", *NOISES) for n_outputs in (1, 2)]
GRID = np.linspace(-3.5, 3.5, 7)[:, None]

each_noise = pytest.mark.parametrize("noise", NOISES)


def make_rows(noise, n_outputs=1, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    truth = np.hstack([np.sin(1.5 * X), 5.0 * np.cos(X) + 30.0])[:, :n_outputs]
    scatter = 0.1 * rng.standard_normal(truth.shape) * [[1.0, 5.0]][0][:n_outputs]
    if noise == "input_dependent":
        scatter = scatter * 0.5 * 10.0 ** ((X + 3.0) / 6.0)
    else:
        scatter[:4] *= 30.0
    y = truth + scatter
    return X, y[:, 0] if n_outputs == 1 else y


def fit(noise, n_outputs=1, rows=None, weight=None, **options):
    X, y = make_rows(noise, n_outputs) if rows is None else rows
    options = {"hidden_layer_sizes": (3,), "noise__hidden_layer_sizes": (2,)} | FEW | options
    return HMCMLPRegressor(noise=noise).set_params(**options).fit(X, y, weight)


@cache
def fitted(noise, n_outputs=1):
    return fit(noise, n_outputs)


@pytest.fixture(scope="module", params=KINDS, ids=str)
def model(request):
    return fitted(*request.param)


def noise_by_hand(model, X):
    """Scales ``(m, n, n_outputs)`` and degrees of freedom ``(m, 1, 1)`` of all draws, y units."""
    draws = draws_of(model)
    noise = draws.noise.reshape(np.prod(draws.energy.shape), -1) if draws.noise.size else None
    if model.noise_model_ != "input_dependent":
        sd = draws.beta.reshape(draws.energy.size, 1, -1) ** -0.5
        degrees = np.full((len(sd), 1, 1), np.inf) if noise is None else noise[:, :, None]
        return sd * model._y_scaling.scale, degrees
    network = result_of(model).sampled.joint.noise_network
    log_precision = outputs(network, noise, (X - model._X_scaling.shift) / model._X_scaling.scale)
    sd = np.exp(-0.5 * np.clip(log_precision, *np.log([1e-6, 1e6])))
    return sd * model._y_scaling.scale, np.full((len(noise), 1, 1), np.inf)


# --- predictions ---------------------------------------------------------------------------------


def test_predictions_are_mixtures_of_the_draws(model):
    f, (scales, nu) = run_networks(model, GRID), noise_by_hand(model, GRID)
    mean = f.mean(axis=0)
    assert_allclose(model.predict(GRID).reshape(mean.shape), mean, rtol=1e-9)
    if model.noise_model_ == "constant":
        assert_allclose(np.ravel(model.noise_std_), scales.mean(axis=(0, 1)), rtol=1e-10)
    variance = np.mean(scales**2 / (1.0 - 2.0 / nu), axis=0)
    variance = np.broadcast_to(variance, mean.shape)
    for kind, expected in (
        ("aleatoric", variance),
        ("epistemic", f.var(axis=0)),
        ("total", f.var(axis=0) + variance),
    ):
        found = model.predict_std(GRID, kind=kind).reshape(mean.shape)
        assert_allclose(found**2, expected, rtol=1e-8)
    covariance = model.predict(GRID, return_cov=True)[1].reshape(7, 7, -1)
    for o in range(mean.shape[1]):
        expected = np.cov(f[..., o].T, bias=True) + np.diag(variance[:, o])
        assert_allclose(covariance[..., o], expected, rtol=1e-8, atol=1e-10)

    y = mean + 0.7 * np.sqrt(variance)
    cdf = np.where(
        np.isinf(nu), stats.norm.cdf((y - f) / scales), stats.t.cdf((y - f) / scales, nu)
    ).mean(axis=0)
    given = y if mean.shape[1] > 1 else y[:, 0]
    assert_allclose(model.predict_distribution(GRID).cdf(given).reshape(mean.shape), cdf, rtol=1e-8)
    low, high = np.moveaxis(model.predict_interval(GRID, 0.8), -1, 0)
    assert_allclose(model.predict_distribution(GRID).cdf(low), 0.1, atol=1e-9)
    assert_allclose(model.predict_distribution(GRID).cdf(high), 0.9, atol=1e-9)

    logs = np.empty(f.shape[:2])
    for i, row in np.ndindex(logs.shape):
        sd = np.broadcast_to(scales, f.shape)[i, row]
        law = stats.multivariate_t(f[i, row], np.diag(sd**2), nu[i, 0, 0])
        logs[i, row] = law.logpdf(y[row])
    expected = np.log(np.mean(np.exp(logs), axis=0))
    assert_allclose(model.log_predictive_density(GRID, given), expected, rtol=1e-8)


def test_attributes(model):
    names = ["hidden1_weights", "hidden1_biases", "output"]
    if model.noise_model_ == "student_t":
        assert DEGREES_OF_FREEDOM[0] <= model.degrees_of_freedom_ <= DEGREES_OF_FREEDOM[-1]
        assert list(model.diagnostics_.hyper_r_hat)[-1] == "degrees_of_freedom"
    elif model.noise_model_ == "input_dependent":
        names += ["noise_hidden1_weights", "noise_hidden1_biases", "noise_output"]
        X = make_rows("input_dependent", model.n_outputs_)[0]
        logs = np.mean(np.log(noise_by_hand(model, X)[0]), axis=1)
        assert_allclose(model.noise_std_, np.exp(logs).mean(axis=0).squeeze(), rtol=1e-9)
    assert model.weight_group_names_ == names
    assert model.weight_precisions_.shape == (len(names),)


# --- noise that is left open ----------------------------------------------------------------------


def test_one_law_that_nests_the_others():
    X, y = rows = make_rows("input_dependent")
    model = fit("auto", rows=rows, warm_start=True)
    assert model.noise_model_ == "input_dependent_student_t"
    start = EvidenceMLPRegressor((3,), noise="input_dependent", random_state=0).fit(X, y)
    given = fit("auto", rows=rows, sampler=Sampler(init=start))
    assert given.noise_model_ == "input_dependent"
    model.set_params(n_draws=model.n_draws + 2).fit(X, -y[::-1])  # any other data
    assert model.noise_model_ == "input_dependent_student_t"
    assert fit("auto", rows=rows, noise__std=0.3).noise_model_ == "constant"


# --- beside the evidence -------------------------------------------------------------------------


@each_noise
def test_chains_start_from_an_evidence_fit(noise):
    X, y = make_rows(noise)
    evidence = EvidenceMLPRegressor(
        (3,), noise=Noise(noise, hidden_layer_sizes=(2,)), n_restarts=2, random_state=0
    ).fit(X, y)
    assert evidence.noise_model_ == noise
    sampler = HMCMLPRegressor.from_evidence(evidence, **FEW)
    assert sampler.noise.kind == noise
    assert sampler.noise.hidden_layer_sizes == (2,)
    sampler.set_params(
        n_chains=1, n_warmup=0, n_draws=4, sampler__kind="hmc", sampler__step_size=1e-9
    ).fit(X, y)
    member, rows = parts_of(evidence)[0], standardised(evidence, GRID)
    scale, shift = evidence._y_scaling.scale, evidence._y_scaling.shift
    mean = outputs(member.network, member.theta, rows)[:, 0] * scale + shift
    assert_allclose(sampler.predict(GRID), mean, atol=1e-4)
    if noise == "input_dependent":
        sd = member.noise.scales(rows)[0, :, 0] * scale
        assert_allclose(sampler.predict_std(GRID, kind="aleatoric"), sd, rtol=1e-3)
    assert "noise sd" in sampler.comparison_.quantities
    other = HMCMLPRegressor.from_evidence(evidence, **(FEW | {"noise": "constant"})).fit(X, y)
    assert not hasattr(other, "comparison_")  # another model
