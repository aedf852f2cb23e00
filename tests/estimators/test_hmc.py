"""The contract of the sampling estimators: what a fit leaves and predicts, under every noise."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, softmax
from sklearn.base import clone

from skbayesnn import (
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
)
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from skbayesnn.network import outputs
from tests.estimators import common
from tests.estimators.common import run_network, run_networks
from tests.tools import draws_of, parts_of, result_of, standardised

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

FEW = {"n_chains": 2, "n_warmup": 10, "n_draws": 15, "measure_evidence": False, "random_state": 0}
QUICK = FEW | {"sampler": "langevin"}
NOISES = ["constant", "student_t", "input_dependent"]
CLASSES = ["two classes", "three classes"]
UNITS = np.array([1.0, 30.0])
GRID = common.make_rows(n=9, seed=5)[0] * UNITS
each_noise = pytest.mark.parametrize("noise", NOISES[1:])


def make_rows(kind="one output"):
    """Rows of `common` with inputs in other units, and targets in one column on request."""
    X, y = common.make_rows(kind.replace("column", "output"), 40)
    return X * UNITS, y[:, None] if kind == "one column" else y


def fit(kind="one output", X=None, y=None, **options):
    if X is None:
        X, y = make_rows(kind)
    options = {"hidden_layer_sizes": (3,)} | FEW | options
    if "classes" in kind:
        return HMCMLPClassifier().set_params(**options).fit(X, y)
    options = {"noise": "constant", "noise__hidden_layer_sizes": (2,)} | options
    return HMCMLPRegressor().set_params(**options).fit(X, y)


@cache
def fitted(kind, noise="constant"):
    return fit(kind) if "classes" in kind else fit(kind, noise=noise)


REGRESSIONS = [("one column", "constant")]
REGRESSIONS += [(kind, noise) for noise in NOISES for kind in ("one output", "two outputs")]


@pytest.fixture(params=REGRESSIONS, ids=str)
def regressor(request):
    return fitted(*request.param)


@pytest.fixture(params=CLASSES)
def classifier(request):
    return fitted(request.param)


@pytest.fixture(params=[*REGRESSIONS, *((kind, "none") for kind in CLASSES)], ids=str)
def model(request):
    return fitted(*request.param)


# --- predictions ---------------------------------------------------------------------------------


def noise_by_hand(model, X):
    """Scales ``(m, n, n_outputs)`` and degrees of freedom ``(m, 1, 1)`` of all draws, y units."""
    draws = draws_of(model)
    noise = draws.noise.reshape(np.prod(draws.energy.shape), -1) if draws.noise.size else None
    if model.noise_model_ != "input_dependent":
        sd = draws.beta.reshape(draws.energy.size, 1, -1) ** -0.5
        degrees = np.full((len(sd), 1, 1), np.inf) if noise is None else noise[:, :, None]
        return sd * model._y_scaling.scale, degrees
    network = result_of(model).sampled.joint.noise_network
    log_precision = outputs(network, noise, standardised(model, X))
    sd = np.exp(-0.5 * np.clip(log_precision, *np.log([1e-6, 1e6])))
    return sd * model._y_scaling.scale, np.full((len(noise), 1, 1), np.inf)


def test_predictions_are_mixtures_of_the_draws(regressor):
    model, f = regressor, run_networks(regressor, GRID)
    scales, nu = noise_by_hand(model, GRID)
    mean = f.mean(axis=0)
    assert_allclose(model.predict(GRID).reshape(mean.shape), mean, rtol=1e-9)
    variance = np.mean(scales**2 / (1.0 - 2.0 / nu), axis=0)
    variance = np.broadcast_to(variance, mean.shape)
    parts = {"aleatoric": variance, "epistemic": f.var(axis=0), "total": f.var(axis=0) + variance}
    for kind, expected in parts.items():
        found = model.predict_std(GRID, kind=kind).reshape(mean.shape)
        assert_allclose(found**2, expected, rtol=1e-8)
    covariance = model.predict(GRID, return_cov=True)[1].reshape(9, 9, -1)
    for o in range(mean.shape[1]):
        expected = np.cov(f[..., o].T, bias=True) + np.diag(variance[:, o])
        assert_allclose(covariance[..., o], expected, rtol=1e-8, atol=1e-10)
    between = np.array([np.atleast_2d(np.cov(f[:, i].T, bias=True)) for i in range(9)])
    assert_allclose(model.predict_output_cov(GRID, kind="epistemic"), between, rtol=1e-8)
    noise = variance[:, None] * np.eye(mean.shape[1])
    assert_allclose(model.predict_output_cov(GRID), between + noise, rtol=1e-8)

    y = mean + 0.7 * np.sqrt(variance)
    given = y if model.n_outputs_ > 1 else y[:, 0]
    z = (y - f) / scales
    cdf = np.where(np.isinf(nu), stats.norm.cdf(z), stats.t.cdf(z, nu)).mean(axis=0)
    at = model.predict_distribution(GRID)
    assert_allclose(at.cdf(given).reshape(mean.shape), cdf, rtol=1e-8)
    low, high = np.moveaxis(model.predict_interval(GRID, 0.8), -1, 0)
    assert_allclose(at.cdf(low), 0.1, atol=1e-9)
    assert_allclose(at.cdf(high), 0.9, atol=1e-9)
    logs = np.empty(f.shape[:2])
    for i, row in np.ndindex(logs.shape):
        sd = np.broadcast_to(scales, f.shape)[i, row]
        logs[i, row] = stats.multivariate_t(f[i, row], np.diag(sd**2), nu[i, 0, 0]).logpdf(y[row])
    expected = np.log(np.mean(np.exp(logs), axis=0))
    assert_allclose(model.log_predictive_density(GRID, given), expected, rtol=1e-8)


def test_sampled_functions_are_drawn_networks(regressor):
    f = run_networks(regressor, GRID)
    draws = np.moveaxis(regressor.sample_y(GRID, 200, random_state=1).reshape(9, -1, 200), -1, 0)
    far = np.max(np.abs(draws[:, None] - f), axis=(2, 3)) / np.max(np.abs(f))
    assert np.max(np.min(far, axis=1)) < 1e-10
    assert len(set(np.argmin(far, axis=1))) > len(f) / 2  # 200 of 30 draws


def class_probabilities(f):
    if f.shape[-1] == 1:
        return np.concatenate([expit(-f), expit(f)], axis=-1)
    return softmax(f, axis=-1)


def test_probabilities_are_means_over_the_drawn_networks(classifier):
    p = class_probabilities(run_networks(classifier, GRID))
    proba = classifier.predict_proba(GRID)
    assert_allclose(proba, p.mean(axis=0), rtol=1e-10)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(classifier.predict_std(GRID), p.std(axis=0), rtol=1e-8, atol=1e-12)
    assert_array_equal(classifier.predict(GRID), classifier.classes_[np.argmax(proba, axis=1)])
    assert_allclose(classifier.predict_log_proba(GRID), np.log(proba), rtol=1e-12, atol=1e-14)
    # those that are not moderated belong to the draw of highest density
    best = classifier.networks_[int(np.argmin(classifier.diagnostics_.energy))]
    expected = class_probabilities(run_network(best, GRID))
    assert_allclose(classifier.predict_proba(GRID, moderated=False), expected, rtol=1e-10)
    for mine, its in zip(classifier.coefs_, best.coefs, strict=True):
        assert_array_equal(mine, its)


# --- what a fit leaves ---------------------------------------------------------------------------


def test_networks(model):
    assert len(model.networks_) == 30
    assert [network.weight for network in model.networks_] == [1 / 30] * 30
    part = model.networks_[3:9:2]
    assert len(part) == 3
    assert_array_equal(part[1].coefs[0], model.networks_[5].coefs[0])
    with pytest.raises(IndexError):
        model.networks_[30]


def test_attributes_and_diagnostics(model):
    found, alpha = model.diagnostics_, draws_of(model).alpha
    assert_allclose(np.log(model.weight_precisions_), np.log(alpha).mean(axis=(0, 1)))
    assert np.isnan([model.log_evidence_, model.log_evidence_std_]).all()
    assert model.n_iter_ == 10 + 15 * result_of(model).settings.thin
    names, noise = ["hidden1_weights", "hidden1_biases", "output"], []
    if not hasattr(model, "classes_"):
        noise = [f"noise_{o}" for o in range(model.n_outputs_)]
        scales, law = noise_by_hand(model, make_rows()[0])[0], model.noise_model_
        if law == "student_t":
            noise.append("degrees_of_freedom")
            assert DEGREES_OF_FREEDOM[0] <= model.degrees_of_freedom_ <= DEGREES_OF_FREEDOM[-1]
        elif law == "input_dependent":
            names += ["noise_hidden1_weights", "noise_hidden1_biases", "noise_output"]
            logs = np.exp(np.mean(np.log(scales), axis=1))
            assert_allclose(np.ravel(model.noise_std_), logs.mean(axis=0), rtol=1e-9)
        else:
            assert_allclose(np.ravel(model.noise_std_), scales.mean(axis=(0, 1)), rtol=1e-10)
    assert model.weight_group_names_ == names
    assert list(found.hyper_r_hat) == list(found.hyper_ess) == names + noise
    assert found.energy.shape == (2, 15)
    assert 0.0 < found.acceptance <= 1.0
    assert found.converged == (found.r_hat <= 1.05)
    assert ("not converged" in repr(found)) != found.converged
    assert all(name in found.full() for name in names)


@pytest.mark.parametrize("kind", ["one output", "two classes"])
def test_single_precision_needs_half_the_memory(kind):
    options = QUICK | {"hidden_layer_sizes": (20,), "n_draws": 300}
    double, single = fit(kind, **options), fit(kind, sampler__dtype="float32", **options)
    assert_array_equal(draws_of(single).theta, draws_of(double).theta.astype(np.float32))
    assert len(pickle.dumps(single)) < 0.6 * len(pickle.dumps(double))
    for mine, its in zip(*(m.predict_std(GRID) for m in (single, double)), strict=True):
        assert mine.dtype == np.float64
        assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


# --- options -------------------------------------------------------------------------------------


def test_thinning():
    """Every third state of the same chains; output layers are drawn for those only."""
    options = QUICK | {"n_draws": 12}
    every, third = fit(**options), fit(**(options | {"n_draws": 4, "sampler__thin": 3}))
    draws, thinned = draws_of(every), draws_of(third)
    assert_array_equal(thinned.theta, draws.theta[:, 2::3])
    assert_array_equal(thinned.n_steps, draws.n_steps.reshape(2, 4, 3).sum(axis=-1))
    assert_allclose(thinned.acceptance, draws.acceptance.reshape(2, 4, 3).mean(axis=-1))
    assert third.n_iter_ == every.n_iter_ == 10 + 12


@pytest.mark.parametrize("sampler", ["auto", "langevin"])
@pytest.mark.parametrize("hidden", [(), (3,)], ids=str)
def test_fixed_precisions_are_honoured(sampler, hidden):
    options = {"hidden_layer_sizes": hidden, "sampler": sampler, "prior": Prior(precision=2.0)}
    model = fit(noise=1.5, **options)
    assert_allclose(model.weight_precisions_, 2.0, rtol=1e-12)
    assert model.noise_std_ == pytest.approx(1.5, rel=1e-12)
    assert model.diagnostics_.hyper_r_hat == {}
    assert_allclose(model.predict_std(GRID, kind="aleatoric"), 1.5, rtol=1e-12)
    assert_allclose(fit("two classes", **options).weight_precisions_, 2.0, rtol=1e-12)


def test_some_fixed_precisions():
    prior = Prior(precision={"hidden1_biases": 7.0})
    model = fit("two outputs", prior=prior, noise={1: 0.25}, **QUICK)
    assert model.weight_precisions_[1] == pytest.approx(7.0, rel=1e-12)
    assert model.noise_std_[1] == pytest.approx(0.25, rel=1e-12)
    assert list(model.diagnostics_.hyper_r_hat) == ["hidden1_weights", "output", "noise_0"]


def test_input_prior_std_is_a_mean_over_draws():
    model = fit(prior="ard", **QUICK)
    alpha = draws_of(model).alpha[..., :2]
    assert_allclose(model.input_prior_std_, np.mean(alpha**-0.5, axis=(0, 1)), rtol=1e-12)
    model.set_params(prior="layer").fit(*make_rows())
    assert not hasattr(model, "input_prior_std_")


# --- beside the evidence -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evidence_fit():
    options = {"noise": "constant", "n_restarts": 4, "combine": "best", "random_state": 0}
    return EvidenceMLPRegressor((3,), **options).fit(*make_rows())


def test_chains_begin_at_the_minima_of_an_evidence_fit(evidence_fit):
    """Without warm-up and with tiny steps they stay there."""
    options = {"sampler": Sampler("langevin", step_size=1e-8), "n_warmup": 0}
    model = fit(sampler__init=evidence_fit, **options)
    minima = result_of(evidence_fit).minima[:2]
    networks = [model.networks_[0], model.networks_[15]][: len(minima)]
    for network, minimum in zip(networks, minima, strict=True):
        its = evidence_fit._in_user_units(minimum.network, minimum.theta)
        width = its[0][0].shape[1]
        assert_allclose(network.coefs[0][:, :width], its[0][0], rtol=1e-4, atol=1e-4)
        assert np.max(np.abs(network.coefs[0][:, width:]), initial=0.0) < 1e-4
    assert_allclose(run_network(networks[0], GRID), evidence_fit.predict(GRID)[:, None], rtol=0.01)
    assert hasattr(model, "comparison_")
    assert not hasattr(model.set_params(sampler__init="modes").fit(*make_rows()), "comparison_")


@each_noise
def test_noise_begins_where_an_evidence_fit_has_it(noise):
    X, y = make_rows()
    given = Noise(noise, hidden_layer_sizes=(2,))
    evidence = EvidenceMLPRegressor((3,), noise=given, n_restarts=2, random_state=0).fit(X, y)
    sampler = HMCMLPRegressor.from_evidence(evidence, **FEW)
    assert (sampler.noise.kind, sampler.noise.hidden_layer_sizes) == (noise, (2,))
    few = {"n_chains": 1, "n_warmup": 0, "n_draws": 4}
    sampler.set_params(**few, sampler__kind="hmc", sampler__step_size=1e-9).fit(X, y)
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


def test_noise_that_is_left_open_is_one_law_that_nests_the_others():
    X, y = make_rows()
    assert fit(noise="auto", **QUICK).noise_model_ == "input_dependent_student_t"
    start = EvidenceMLPRegressor((3,), noise="student_t", random_state=0).fit(X, y)
    assert fit(noise="auto", sampler__init=start, **QUICK).noise_model_ == "student_t"
    assert fit(noise="auto", noise__std=0.3, **QUICK).noise_model_ == "constant"


def test_from_evidence(evidence_fit):
    model = HMCMLPRegressor.from_evidence(evidence_fit, **QUICK)
    for name in ("hidden_layer_sizes", "activation", "prior"):
        assert getattr(model, name) == getattr(evidence_fit, name)
    assert model.noise.kind == evidence_fit.noise_model_ == "constant"
    assert model.n_draws == 15
    copy = clone(model)
    for some in (model, copy):
        some.fit(*make_rows())
    assert_array_equal(model.predict(GRID), copy.predict(GRID))
    assert_array_equal(model.predict(GRID), fit(sampler__init=evidence_fit, **QUICK).predict(GRID))
    wider = HMCMLPRegressor.from_evidence(evidence_fit, **(QUICK | {"hidden_layer_sizes": (5,)}))
    assert wider.fit(*make_rows()).coefs_[0].shape == (2, 5)


def test_evidence_fits_of_other_networks(evidence_fit):
    X, y = make_rows()
    for options in (
        {"hidden_layer_sizes": (2, 2)},
        {"hidden_layer_sizes": (1,)},
        {"prior": "single"},
    ):
        with pytest.raises(ValueError, match="no starting points for this network"):
            fit(sampler__init=evidence_fit, **QUICK | options)
    with pytest.raises(ValueError, match="no starting points for this network"):
        fit(X=X[:, :1], y=y, sampler__init=evidence_fit, **QUICK)
    with pytest.raises(ValueError, match="a fitted EvidenceMLPClassifier; got Evidence"):
        fit("two classes", sampler__init=evidence_fit, **QUICK)
