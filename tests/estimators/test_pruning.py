"""`prune="saliency"` of the evidence estimators."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from tests.tools import set_limits


def make_rows(n=80):
    """Two of five inputs matter."""
    rng = np.random.default_rng(0)
    X = 50.0 + 10.0 * rng.standard_normal((n, 5))
    z = (X - 50.0) / 10.0
    y = 200.0 + 30.0 * (np.sin(1.5 * z[:, 0]) + 0.5 * z[:, 1] ** 2)
    return X, y + 4.0 * rng.standard_normal(n)


X, Y = make_rows()
OPTIONS = {"noise": "constant", "n_restarts": 2, "random_state": 0}


@pytest.fixture(scope="module")
def pruned():
    return EvidenceMLPRegressor((4,), prune="saliency", **OPTIONS).fit(X, Y)


@pytest.fixture(scope="module")
def full():
    return EvidenceMLPRegressor((4,), measure_evidence=False, **OPTIONS).fit(X, Y)


def test_path(pruned, full):
    first, *steps = pruned.prune_path_
    assert first.name is None
    assert first.n_weights == full.evidence_report_.n_weights == 29
    assert_allclose(first.log_evidence, full.evidence_report_.minima[0].log_evidence, atol=1e-3)
    evidences = [step.log_evidence for step in pruned.prune_path_]
    best = pruned.evidence_report_.minima[0]
    assert_allclose(best.log_evidence, max(evidences), rtol=1e-12)
    assert best.log_evidence > first.log_evidence + 20
    assert evidences[-1] < max(evidences)  # it went on until nothing more was to be gained
    assert all(step.name in full.posterior_[0].names for step in steps)
    assert pruned.evidence_report_.n_weights == 29 - np.sum(
        pruned.posterior_[0].in_units("standardised").mean == 0
    )


def test_terms_are_of_what_is_left(pruned):
    """No term has what cancels for weights without width: 11.5 nats for each of some 17."""
    best = pruned.evidence_report_.minima[0]
    assert -60 < best.terms.log_det < 0
    assert abs(best.terms.weight_prior) < 60
    posterior = pruned.posterior_[0].in_units("standardised")
    left = np.flatnonzero(posterior.mean != 0)
    covariance = posterior.covariance[np.ix_(left, left)]
    assert_allclose(best.terms.log_det, 0.5 * np.linalg.slogdet(covariance)[1], atol=0.01)


def test_inputs_that_matter_nothing_are_cut_off(pruned, full):
    """But for one weight of the twelve, which chance gives a use."""
    idle = pruned.coefs_[0][2:]
    assert np.sum(idle != 0.0) <= 1
    assert np.max(np.abs(idle)) < 0.01 * np.max(np.abs(pruned.coefs_[0]))
    assert np.all(np.any(pruned.coefs_[0][:2] != 0.0, axis=1))
    assert np.all(full.coefs_[0] != 0.0)
    assert np.all(np.isfinite(pruned.predict(X, return_std=True)[1]))


def test_error_bars_of_what_is_left(pruned):
    """Those of weights that were taken out are next to nothing."""
    out = pruned.coefs_[0] == 0.0
    assert np.max(pruned.coefs_std_[0][out]) < 1e-3 * np.max(pruned.coefs_std_[0])
    index = pruned.weight_group_names_.index("removed")
    assert pruned.weight_precisions_[index] == 1e10
    assert pruned.n_effective_weights_ < pruned.evidence_report_.n_weights


def test_predictions_are_better(pruned, full):
    X_new, y_new = make_rows(1000)
    assert np.mean(pruned.log_predictive_density(X_new, y_new)) > np.mean(
        full.log_predictive_density(X_new, y_new)
    )


def test_classifier():
    (X, y), (X_new, y_new) = make_rows(300), make_rows(1000)
    options = {"n_restarts": 2, "measure_evidence": False, "random_state": 0}
    full = EvidenceMLPClassifier((3,), **options).fit(X, y > np.median(y))
    model = clone(full).set_params(prune="saliency").fit(X, y > np.median(y))
    assert model.log_evidence_ > full.log_evidence_ + 20
    assert_array_equal(model.coefs_[0][2:], 0.0)
    densities = [
        m.log_predictive_density(X_new, y_new > np.median(y)).mean() for m in (full, model)
    ]
    assert densities[1] > densities[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", ["student_t", "input_dependent", "auto", "shared"])
def test_other_noise_begins_at_what_is_left(noise):
    options = {**OPTIONS, "noise": noise, "noise_hidden_layer_sizes": ()}
    model = EvidenceMLPRegressor((3,), prune="saliency", **options).fit(X, Y)
    assert np.sum(model.coefs_[0][2:] != 0) <= 1
    assert np.isfinite(model.log_evidence_)
    assert model.prune_path_[0].name is None


def test_hidden_layers_are_chosen_before():
    model = EvidenceMLPRegressor(prune="saliency", **OPTIONS).fit(X, Y)
    assert model.growth_
    assert np.sum(model.coefs_[0] == 0) > 3


def test_warm_start_goes_on_without_them(pruned):
    model = clone(pruned).set_params(warm_start=True).fit(X, Y)
    before = model.log_evidence_
    model.fit(X, Y)
    assert model.log_evidence_ > before - 0.5
    assert np.sum(model.coefs_[0][2:] != 0) <= 1
    model.set_params(prune=None, measure_evidence=False).fit(X, Y)
    assert not hasattr(model, "prune_path_")


def test_the_same_for_any_number_of_processes(pruned):
    model = clone(pruned).set_params(n_jobs=2).fit(X, Y)
    assert_array_equal(model.predict(X), pruned.predict(X))


def test_bad_parameters():
    with pytest.raises(ValueError, match="prune must be None or 'saliency', got 'magnitude'"):
        EvidenceMLPRegressor((2,), prune="magnitude").fit(X, Y)
    with pytest.raises(ValueError, match="pruned network cannot be measured"):
        EvidenceMLPRegressor((2,), prune="saliency", measure_evidence=True).fit(X, Y)


def test_a_warning_where_nothing_can_be_pruned(monkeypatch):
    set_limits(monkeypatch, dense=0, dual_doubles=0, batch_rows=1, batch_steps=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match="No weights were pruned, as there is no evidence"):
            EvidenceMLPRegressor((2,), prune="saliency", **OPTIONS).fit(X, Y)
