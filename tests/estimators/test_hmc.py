"""The contract of `HMCMLPRegressor` and `HMCMLPClassifier`: what a fit leaves and predicts."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Prior,
    Sampler,
)
from tests.estimators import common
from tests.estimators.common import run_network, run_networks
from tests.tools import draws_of, result_of

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

FEW = {"n_chains": 2, "n_warmup": 10, "n_draws": 15, "measure_evidence": False, "random_state": 0}
QUICK = FEW | {"sampler": "langevin"}
REGRESSIONS = ["1-D", "one column", "two columns"]
CLASSIFICATIONS = ["two classes", "three classes"]
KINDS = [*REGRESSIONS, *CLASSIFICATIONS]


def make_rows(kind="1-D"):
    """Rows of `common`, in other units."""
    columns = {"1-D": "one output", "one column": "one output", "two columns": "two outputs"}
    X, y = common.make_rows(columns.get(kind, kind), 40)
    return X * [1.0, 30.0], y[:, None] if kind == "one column" else y


def fit(kind="1-D", X=None, y=None, **options):
    if X is None:
        X, y = make_rows(kind)
    options = {"hidden_layer_sizes": (3,)} | FEW | options
    if "classes" in kind:
        return HMCMLPClassifier().set_params(**options).fit(X, y)
    return HMCMLPRegressor().set_params(**{"noise": "constant"} | options).fit(X, y)


GRID = common.make_rows(n=9, seed=5)[0] * [1.0, 30.0]


@cache
def fitted(kind):
    return fit(kind)


@pytest.fixture(scope="module", params=REGRESSIONS)
def regressor(request):
    return fitted(request.param)


@pytest.fixture(scope="module", params=CLASSIFICATIONS)
def classifier(request):
    return fitted(request.param)


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return fitted(request.param)


# --- regression ----------------------------------------------------------------------------------


def test_covariance_between_outputs():
    model = fitted("two columns")
    f = run_networks(model, GRID)
    expected = np.array([np.cov(f[:, i].T, bias=True) for i in range(9)])
    assert_allclose(model.predict_output_cov(GRID, kind="epistemic"), expected, rtol=1e-8)
    noise = model.predict_output_cov(GRID, kind="aleatoric")
    assert np.all(noise[:, 0, 1] == 0.0)
    assert_allclose(model.predict_output_cov(GRID), expected + noise, rtol=1e-8)


def test_sampled_functions_are_drawn_networks(regressor):
    f = run_networks(regressor, GRID)
    draws = np.moveaxis(regressor.sample_y(GRID, 200, random_state=1).reshape(9, -1, 200), -1, 0)
    far = np.max(np.abs(draws[:, None] - f), axis=(2, 3)) / np.max(np.abs(f))
    nearest = np.argmin(far, axis=1)
    assert np.max(np.min(far, axis=1)) < 1e-10
    assert len(set(nearest)) > len(f) / 2  # 200 of 30 draws


# --- classification ------------------------------------------------------------------------------


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


def test_probabilities_that_are_not_moderated(classifier):
    """Those of the draw of highest density, which is `coefs_` and `intercepts_`."""
    index = np.argmin(classifier.diagnostics_.energy)
    best = classifier.networks_[int(index)]
    expected = class_probabilities(run_network(best, GRID))
    assert_allclose(classifier.predict_proba(GRID, moderated=False), expected, rtol=1e-10)
    for mine, its in zip(classifier.coefs_, best.coefs, strict=True):
        assert_array_equal(mine, its)


# --- what a fit leaves ---------------------------------------------------------------------------


def test_networks(model):
    total = model.diagnostics_.n_chains * model.diagnostics_.n_draws
    assert len(model.networks_) == total == 30
    assert [network.weight for network in model.networks_] == [1 / 30] * 30
    part = model.networks_[3:9:2]
    assert len(part) == 3
    assert_array_equal(part[1].coefs[0], model.networks_[5].coefs[0])
    with pytest.raises(IndexError):
        model.networks_[30]


def test_fitted_attributes(model):
    assert model.n_iter_ == 10 + 15 * result_of(model).settings.thin
    alpha = draws_of(model).alpha
    assert_allclose(np.log(model.weight_precisions_), np.log(alpha).mean(axis=(0, 1)))
    assert np.isnan([model.log_evidence_, model.log_evidence_std_]).all()


def test_diagnostics(model):
    found = model.diagnostics_
    noise = [f"noise_{o}" for o in range(model.n_outputs_)]
    names = model.weight_group_names_ + ([] if hasattr(model, "classes_") else noise)
    assert list(found.hyper_r_hat) == list(found.hyper_ess) == names
    assert found.energy.shape == (2, 15)
    assert 0.0 < found.acceptance <= 1.0
    assert found.bulk_ess > 0.0
    assert found.converged == (found.r_hat <= 1.05)
    assert ("not converged" in repr(found)) != found.converged
    assert all(name in found.full() for name in names)


def everything(model):
    """All predictions of a model at rows."""
    if hasattr(model, "classes_"):
        return [model.predict_proba(GRID), model.predict_std(GRID)]
    return [*model.predict(GRID, return_std=True), model.sample_y(GRID, 3)]


@pytest.mark.parametrize("kind", ["1-D", "two classes"])
def test_single_precision_needs_half_the_memory(kind):
    options = QUICK | {"hidden_layer_sizes": (20,), "n_draws": 300}
    double = fit(kind, **options)
    for dtype in ("float32", np.float32, np.dtype("float32")):
        single = fit(kind, sampler__dtype=dtype, **options)
        theta = draws_of(single).theta
        assert theta.dtype == np.float32
        assert_array_equal(theta, draws_of(double).theta.astype(np.float32))
    assert len(pickle.dumps(single)) < 0.6 * len(pickle.dumps(double))
    for mine, its in zip(everything(single), everything(double), strict=True):
        assert mine.dtype == np.float64
        assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


# --- options -------------------------------------------------------------------------------------


def test_leapfrog_steps_of_the_classics():
    steps = {
        name: fit(sampler=name).diagnostics_.n_gradients / 30
        for name in ("hmc", "langevin", "stochastic_dynamics")
    }
    assert steps == {"hmc": 20, "langevin": 1, "stochastic_dynamics": 1}
    drawn = draws_of(fit(sampler=Sampler("hmc", n_steps=[2, 4], thin=1))).n_steps
    assert set(np.unique(drawn)) == {2, 3, 4}


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
    model = fit(hidden_layer_sizes=hidden, sampler=sampler, prior=Prior(precision=2.0), noise=1.5)
    assert_allclose(model.weight_precisions_, 2.0, rtol=1e-12)
    assert model.noise_std_ == pytest.approx(1.5, rel=1e-12)
    assert model.diagnostics_.hyper_r_hat == {}
    assert_allclose(model.predict_std(GRID, kind="aleatoric"), 1.5, rtol=1e-12)
    model = fit(
        "two classes", hidden_layer_sizes=hidden, sampler=sampler, prior=Prior(precision=0.5)
    )
    assert_allclose(model.weight_precisions_, 0.5, rtol=1e-12)


def test_some_fixed_precisions():
    model = fit(prior=Prior(precision={"hidden1_biases": 7.0}), **QUICK)
    assert model.weight_precisions_[1] == pytest.approx(7.0, rel=1e-12)
    assert list(model.diagnostics_.hyper_r_hat) == ["hidden1_weights", "output", "noise_0"]
    model = fit("two columns", noise={1: 0.25}, **QUICK)
    assert model.noise_std_[1] == pytest.approx(0.25, rel=1e-12)
    assert list(model.diagnostics_.hyper_r_hat)[-1] == "noise_0"


def test_input_prior_std_is_a_mean_over_draws():
    model = fit(prior="ard", **QUICK)
    alpha = draws_of(model).alpha[..., :2]
    assert_allclose(model.input_prior_std_, np.mean(alpha**-0.5, axis=(0, 1)), rtol=1e-12)
    model.set_params(prior="layer").fit(*make_rows())
    assert not hasattr(model, "input_prior_std_")


@pytest.fixture(scope="module")
def evidence_fit():
    model = EvidenceMLPRegressor((3,), n_restarts=4, combine="best", random_state=0)
    return model.fit(*make_rows())


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


@pytest.mark.parametrize(
    ("evidence", "sampler"),
    [(EvidenceMLPRegressor, HMCMLPRegressor), (EvidenceMLPClassifier, HMCMLPClassifier)],
)
def test_a_comparison_keeps_the_names_of_columns(evidence, sampler):
    pandas = pytest.importorskip("pandas")
    X, y = make_rows("1-D" if sampler is HMCMLPRegressor else "two classes")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    fitted = evidence((), method="laplace").fit(frame, y)
    model = sampler.from_evidence(fitted, **FEW).fit(frame, y)  # a warning would be an error
    assert len(model.comparison_.quantities) >= 3


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
