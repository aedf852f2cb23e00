"""Inputs of every kind: a clear error, or finite answers and at most one warning."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from skbayesnn.posterior import Gamma, LogUniform

EXPECTED = (ConvergenceWarning, DataConversionWarning, UserWarning)
SIZES = st.sampled_from([(), (1,), (3,), (2, 2), (2, 1, 2), "auto"])
HYPERPRIORS = [
    {"output": LogUniform(0.01, 0.1)},
    {"output": Gamma(2.0, 2.0), "hidden1_weights": LogUniform(1e-9, 1e9)},
]
COMMON = {
    "hidden_layer_sizes": SIZES,
    "activation": st.sampled_from(["tanh", "logistic", "relu", "silu", "gelu", "identity"]),
    "prior": st.sampled_from(["single", "layer", "ard", "layer+intercept"]),
    "fit_intercept": st.sampled_from([True, True, True, False]),
    "prior__hyperprior": st.sampled_from([None, None, *HYPERPRIORS]),
    "prior__mean": st.sampled_from([None, None, None, 0.0, 1.0]),
    "prior__base_precision": st.sampled_from([None, None, None, 1.0, 1e-9]),
    "standardize": st.sampled_from([True, True, False]),
    "prior__precision": st.sampled_from(["auto", "auto", 1e-6, 1.0, 1e6]),
    "random_state": st.integers(0, 3),
}
EVIDENCE = COMMON | {
    "combine": st.sampled_from(["posterior", "best", "equal", "stacking", "tempered"]),
    "solver__hessian": st.sampled_from(["auto", "auto", "gauss_newton"]),
    "n_restarts": st.just(2),
    "solver__max_iter": st.sampled_from([1, 5, 40]),
    "solver__tol": st.sampled_from([1e-6, 1e-3, 1e30]),
    "method": st.sampled_from(["laplace", "laplace", "chains"]),
}
SAMPLING = COMMON | {
    "sampler": st.sampled_from(["auto", "auto", "hmc", "langevin", "metropolis"]),
    "n_chains": st.integers(1, 2),
    "n_warmup": st.integers(0, 6),
    "n_draws": st.integers(1, 6),
    "sampler__dtype": st.sampled_from(["float64", "float32"]),
    "sampler__init": st.sampled_from(["modes", "prior"]),
    "measure_evidence": st.just(False),
}
NOISE = {
    "noise": st.sampled_from(
        ["auto", "constant", "shared", "student_t", "input_dependent", "correlated"]
    ),
    "noise__std": st.sampled_from(["auto", "auto", "auto", 1e-3, 1.0, 1e6]),
    "noise__hyperprior": st.sampled_from([None, None, Gamma(5.0, 0.1), LogUniform(0.1, 0.2)]),
}
CLASSES = {"class_weight": st.sampled_from([None, None, "balanced"])}
KINDS = {
    EvidenceMLPRegressor: EVIDENCE | NOISE,
    HMCMLPRegressor: SAMPLING | NOISE,
    EvidenceMLPClassifier: EVIDENCE | CLASSES,
    HMCMLPClassifier: SAMPLING | CLASSES,
}


@st.composite
def columns(draw, n, most):
    """A table whose columns are of different kinds and magnitudes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = []
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["normal", "normal", "integer", "constant", "outlier", "ulps"]))
        column = rng.standard_normal(n)
        if kind == "integer":
            column = np.round(column)
        elif kind == "constant":
            column = np.full(n, column[0])
        elif kind == "outlier":
            column[rng.integers(n)] = draw(st.sampled_from([1e3, 1e30, 1e149]))
        elif kind == "ulps":
            column = 1.0 + column * np.finfo(float).eps
        exponent = draw(st.one_of(st.just(0), st.just(0), st.integers(-320, 308)))
        shift = draw(st.sampled_from([0.0, 0.0, 1.0, 1e8]))
        with np.errstate(over="ignore", under="ignore"):
            column = np.float64(10.0) ** exponent * (column + shift)
        made.append(np.where(np.isfinite(column), column, 1.7e308))
    return np.stack(made, axis=1)


@st.composite
def cases(draw):
    """An estimator, training data, and rows to predict."""
    kind = draw(st.sampled_from(list(KINDS)))
    model = kind().set_params(**{name: draw(given) for name, given in KINDS[kind].items()})
    n = draw(st.integers(2, 24))
    X = draw(columns(n, 3))
    if kind in (EvidenceMLPRegressor, HMCMLPRegressor):
        y = draw(columns(n, 2))
        y = y[:, 0] if y.shape[1] == 1 else y
    else:
        y = np.arange(n) % draw(st.integers(2, min(n, 4)))
    weight = draw(
        st.sampled_from(
            [None, None, np.ones(n), np.arange(n) % 2, np.full(n, 1e6), np.geomspace(1e-9, 1e9, n)]
        )
    )
    if draw(st.integers(0, 3)) == 0:
        X[draw(st.integers(0, n - 1)), 0] = np.nan
    rows = np.vstack(
        [X[:2], draw(st.sampled_from([0.0, 1.0, -1e10, 1.7e308])) * np.ones_like(X[:1])]
    )
    return model, X, y, weight, rows


def check(case):
    """Fit and predict."""
    model, X, y, weight, rows = case
    refusal = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, sample_weight=weight)
        except (ValueError, TypeError) as error:
            refusal = str(error)
    if refusal is not None:
        assert len(refusal) > 20
        assert "array must not contain" not in refusal  # of a library underneath
        return
    assert all(issubclass(w.category, EXPECTED) for w in caught), [str(w.message) for w in caught]
    assert len(caught) <= 1, [str(w.message) for w in caught]
    assert not np.isnan(X).any()
    with warnings.catch_warnings(action="error"):
        if hasattr(model, "predict_proba"):
            answers = [model.predict_proba(rows)]
        else:
            answers = [*model.predict(rows, return_std=True), model.predict_interval(rows)]
    for answer in answers:
        assert np.all(np.isfinite(answer))


@pytest.mark.parametrize("n_cases", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_a_clear_error_or_finite_answers(n_cases):
    options = {"deadline": None, "derandomize": True}
    options["suppress_health_check"] = [HealthCheck.too_slow]
    settings(max_examples=n_cases, **options)(given(cases())(check))()
