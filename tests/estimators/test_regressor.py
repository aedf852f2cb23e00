"""The contract of `EvidenceMLPRegressor`."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import norm

from skbayesnn import EvidenceMLPRegressor, Noise, Prior, Solver
from tests.estimators.common import run_network, run_networks
from tests.tools import assert_moments

pytestmark = pytest.mark.usefixtures("laplace")


def make_rows(n=50, n_outputs=None, seed=0):
    """Rows of a smooth function of two inputs; ``n_outputs=None`` gives a 1-D target."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2)) * [1.0, 30.0]
    y = np.sin(1.5 * X[:, 0]) + X[:, 1] / 60.0 + 0.2 * rng.standard_normal(n)
    if n_outputs is None:
        return X, 10.0 * y + 50.0
    others = [
        np.cos(X[:, 0] + o) * 10.0**o + 0.3 * rng.standard_normal(n) for o in range(n_outputs)
    ]
    return X, np.column_stack([10.0 * y + 50.0, *others[1:]])[:, :n_outputs]


def fit(n_outputs=None, n=50, X=None, y=None, sample_weight=None, **options):
    if X is None:
        X, y = make_rows(n, n_outputs)
    options = {"hidden_layer_sizes": (3,), "n_restarts": 2, "random_state": 0} | options
    return EvidenceMLPRegressor(**{"noise": "constant"} | options).fit(X, y, sample_weight)


@cache
def several_minima(combine):
    """Two units fit two of three steps in the data: which ones depends on the start."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-6, 6, (60, 1))
    y = np.sum([1, -1, 1] * np.tanh(3 * (X - [-4, 0, 4])), axis=1)
    options = {"prior": Prior(precision=0.01), "noise": 0.4, "combine": combine}
    model = fit(
        X=X, y=y + 0.3 * rng.standard_normal(60), hidden_layer_sizes=(2,), n_restarts=16, **options
    )
    assert len(model.networks_) > 1
    return model


GRID = make_rows(9, seed=5)[0]
LINE = np.linspace(-8, 7, 9)[:, None]
KINDS = {"1-D": None, "one column": 1, "three columns": 3}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return fit(KINDS[request.param], combine="best")


@pytest.fixture(scope="module", params=[*KINDS, "mixture"])
def any_model(request):
    if request.param == "mixture":
        return several_minima("equal")
    return fit(KINDS[request.param], combine="best")


def test_variances_agree(any_model):
    model, grid = any_model, LINE if any_model.n_features_in_ == 1 else GRID
    mean, std = model.predict(grid, return_std=True)
    cov_mean, cov = model.predict(grid, return_cov=True)
    assert_allclose(model.predict(grid), mean, rtol=1e-12)
    assert_allclose(cov_mean, mean, rtol=1e-12)
    assert_allclose(np.moveaxis(np.diagonal(cov), -1, 0), std**2, rtol=1e-10)
    kinds = "epistemic", "aleatoric", "total"
    parts = [model.predict_std(grid, kind=kind) for kind in kinds]
    assert_allclose(parts[0] ** 2 + parts[1] ** 2, parts[2] ** 2, rtol=1e-12)
    assert_allclose(parts[2], std, rtol=1e-12)
    for kind, part in zip(kinds, parts, strict=True):
        between = model.predict_output_cov(grid, kind=kind)
        variances = np.diagonal(between, axis1=1, axis2=2)
        assert_allclose(variances, part.reshape(9, -1) ** 2, rtol=1e-12)
        assert_allclose(between, np.swapaxes(between, 1, 2), rtol=1e-10)
        assert np.all(np.linalg.eigvalsh(between) > 0)
    # moments that are known, and one by quadrature over the density
    at = model.predict_distribution(grid)
    for found, expected in zip(
        at.expect(lambda y: 3 * y - 1), (3 * mean - 1, 3 * std), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-9)
    assert_allclose(at.expect(np.square)[0], mean**2 + std**2, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_coverage_of_intervals():
    """Targets of a network drawn from the prior: intervals hold what they promise."""
    rng = np.random.default_rng(0)
    coverage, inside, total = np.array([0.5, 0.9]), 0, 0
    for _ in range(20):
        X = rng.standard_normal((80, 2))
        y = np.tanh(X @ rng.standard_normal((2, 2))) @ [1.0, -1.0] + 0.3 * rng.standard_normal(80)
        model = fit(X=X[:60], y=y[:60], hidden_layer_sizes=(2,))
        low, high = model.predict_interval(X[60:], coverage).T
        inside += np.sum((low < y[60:]) & (y[60:] < high), axis=1)
        total += 20
    error = np.sqrt(coverage * (1 - coverage) / total)
    assert np.all(np.abs(inside / total - coverage) < 4 * error)


def test_sampled_functions(any_model):
    model, grid = any_model, LINE if any_model.n_features_in_ == 1 else GRID
    grid, size = grid[:4], 20_000
    draws = model.sample_y(grid, size, random_state=1).reshape(4, -1, size)
    mean, cov = model.predict(grid, return_cov=True)
    mean, cov = mean.reshape(4, -1), cov.reshape(4, 4, -1)
    noise = np.reshape(model.predict_std(grid, kind="aleatoric") ** 2, (4, -1))
    for o in range(model.n_outputs_):
        assert_moments(draws[:, o].T, mean[:, o], cov[..., o] - np.diag(noise[:, o]))


FUNCTIONS = {
    "tanh": np.tanh,
    "logistic": expit,
    "relu": lambda a: np.maximum(a, 0),
    "silu": lambda a: a * expit(a),
    "gelu": lambda a: a * norm.cdf(a),
}


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_network_can_be_rebuilt_in_the_users_units(activation):
    model = fit(2, activation=activation, hidden_layer_sizes=(3, 2), n_restarts=1, combine="best")
    found = run_network(model.networks_[0], GRID, FUNCTIONS[activation])
    assert_allclose(found, model.predict(GRID), rtol=1e-9)
    for own, first in zip(model.coefs_, model.networks_[0].coefs, strict=True):
        assert_array_equal(own, first)


def test_prediction_is_the_weighted_mean_of_the_networks():
    mixture = several_minima("equal")
    weights = np.array([net.weight for net in mixture.networks_])
    assert_allclose(weights, 1.0 / len(weights), rtol=1e-12)
    mean = np.tensordot(weights, run_networks(mixture, LINE)[..., 0], 1)
    assert_allclose(mixture.predict(LINE), mean, rtol=1e-9)


@pytest.mark.parametrize("precision", [2.0, [1.0, 2.0, 3.0], {"hidden1_biases": 7.0}], ids=str)
def test_fixed_precisions_are_honoured(precision):
    names = ["hidden1_weights", "hidden1_biases", "output"]
    model = fit(prior=Prior(precision=precision))
    assert model.weight_group_names_ == names
    if isinstance(precision, dict):
        assert model.weight_precisions_[1] == 7.0
        assert np.all(model.weight_precisions_[[0, 2]] != 1.0)
    else:
        assert_array_equal(model.weight_precisions_, np.broadcast_to(precision, 3))


def test_fixed_noise_levels_are_honoured():
    assert fit(noise=np.float32(1.5)).noise_std_ == pytest.approx(1.5, rel=1e-6)
    for fixed in ([1.5, 2.5, 3.5], 2.0):
        assert_allclose(fit(3, noise=fixed).noise_std_, fixed, rtol=1e-12)
    free = fit(3).noise_std_
    noise_std = fit(3, noise={1: 2.5}).noise_std_
    assert noise_std[1] == pytest.approx(2.5, rel=1e-12)
    assert np.all(np.abs(noise_std[[0, 2]] - 2.5) > 0.1)
    # a level that is fixed where it was found leaves the others where they were
    assert_allclose(fit(3, noise={1: free[1]}).noise_std_, free, rtol=1e-3)


def test_shared_noise_is_equal_in_units_of_y():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = X @ [[1000.0, 1.0], [0.0, 1.0]] + 3.0 * rng.standard_normal((400, 2))
    shared = fit(X=X, y=y, hidden_layer_sizes=(), noise="shared")
    assert shared.noise_std_.shape == (2,)
    assert shared.noise_std_[0] == pytest.approx(shared.noise_std_[1], rel=1e-12)
    assert abs(shared.noise_std_[0] - 3.0) < 4 * 3.0 / np.sqrt(2 * 800)
    own = fit(X=X, y=y, hidden_layer_sizes=())
    assert own.noise_std_[0] != own.noise_std_[1]
    assert shared.log_evidence_ > own.log_evidence_  # the simpler model is the true one
    fixed = fit(X=X, y=y, hidden_layer_sizes=(), noise=Noise("shared", std=2.0))
    assert_allclose(fixed.noise_std_, 2.0, rtol=1e-12)


@pytest.mark.parametrize("combine", ["best", "evidence", "stacking"])
def test_shares_of_the_minima(combine):
    model = several_minima(combine)
    evidences = np.array([net.log_evidence for net in model.networks_])
    weights = np.array([net.weight for net in model.networks_])
    assert np.all(np.diff(evidences) <= 0)
    assert_allclose(weights.sum(), 1.0, rtol=1e-12)
    assert np.all(weights >= 0)
    assert model.log_evidence_ == pytest.approx(np.logaddexp.reduce(evidences), abs=1e-9)
    assert_array_equal([m.weight for m in model.evidence_report_.minima], weights)
    if combine == "best":
        assert_array_equal(weights, np.arange(len(weights)) == 0)
    if combine == "evidence":
        expected = np.exp(evidences - model.log_evidence_)
        assert_allclose(weights, expected, atol=1e-5)
    if combine == "stacking":
        assert np.sum(weights > 0) > 1  # no network fits every row
        assert not np.allclose(weights, 1.0 / len(weights), atol=1e-2)


def test_warm_start_continues_from_the_minima():
    X, y = make_rows(60, seed=1)
    model = fit(X=X, y=y, n_restarts=1, warm_start=True)
    first, n_iter = model.log_evidence_, model.n_iter_
    model.fit(X, y)
    assert model.log_evidence_ == pytest.approx(first, abs=1e-3)
    assert model.n_iter_ < n_iter
    model.set_params(n_restarts=4).fit(X, y)
    assert model.log_evidence_ > first - 1e-3
    model.set_params(hidden_layer_sizes=(2,)).fit(X, y)  # another architecture begins anew
    assert model.coefs_[0].shape[1] <= 2
    model.fit(X[:, :1], y)
    assert model.coefs_[0].shape[0] == 1
    model.set_params(hidden_layer_sizes=(), prior="ard").fit(X, y)
    assert model.log_evidence_ == fit(X=X, y=y, hidden_layer_sizes=(), prior="ard").log_evidence_


def test_fitting_again_forgets_the_shape_of_y():
    model = fit()
    for n_outputs, shape in ((3, (9, 3)), (None, (9,))):
        found = model.fit(*make_rows(n_outputs=n_outputs)).predict(GRID)
        assert found.shape == shape
        assert_array_equal(found, fit(n_outputs).predict(GRID))
    model = fit(prior="ard")
    with pytest.raises(AttributeError, match=r"set prior='ard'.*sobol_indices"):
        _ = model.set_params(prior="layer").fit(*make_rows()).input_prior_std_


def test_report_adds_up(model):
    report = model.evidence_report_
    best = report.minima[0]
    names = ["misfit", "noise_normaliser", "weight_prior", "log_det", "symmetry"]
    names += ["weight_precision_occam", "noise_occam", "target_scale"]
    total = sum(getattr(report, name) for name in names)
    assert total == pytest.approx(best.log_evidence, rel=1e-12)
    assert best.log_evidence == model.networks_[0].log_evidence
    assert report.log_evidence == model.log_evidence_
    y = make_rows(n_outputs=model.n_outputs_)[1]
    assert report.target_scale == pytest.approx(-50 * np.sum(np.log(y.std(axis=0))))
    text = report.full()
    for name in (*names, *model.weight_group_names_, "gamma", best.verdict, "Log evidence"):
        assert name in text
    for name in names:
        assert f"{getattr(report, name):.2f}" in text
        assert f"{getattr(report, name):.2f}" in repr(report.terms)


def test_report_says_which_precisions_nothing_determines():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    model = fit(X=X, y=y, hidden_layer_sizes=(), prior=[0, 1, 2])  # group 1: an idle input
    lines = [line.split() for line in model.evidence_report_.full().splitlines()]
    ends = {line[0]: line[-2:] for line in lines if len(line) == 5 and line[0] in "01"}
    assert ends["1"] == ["not", "determined"]
    found = model.evidence_report_.minima[0].log_precision_std
    assert found["1"] > 8.0
    assert ends["0"] == ["+-", f"{found['0']:.2f}"]


def test_rotatable_hidden_units_have_no_evidence():
    with pytest.warns(UserWarning, match="log_evidence_ is nan.*isolated") as record:
        model = fit(activation="identity")
    assert len(record) == 1
    assert np.isnan(model.log_evidence_)
    assert "isolated" in model.evidence_report_.minima[0].verdict
    mean, std = model.predict(GRID, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


def test_relevance_tells_live_from_dead_inputs():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (100, 4))
    y = np.sin(2 * X[:, 1]) + 0.5 * X[:, 3] + 0.1 * rng.standard_normal(100)
    model = fit(X=X, y=y, hidden_layer_sizes=(4,), prior="ard")
    assert model.input_prior_std_[[1, 3]].min() > 10 * model.input_prior_std_[[0, 2]].max()
    assert_array_equal(model.input_prior_std_, model.weight_precisions_[:4] ** -0.5)
    assert model.weight_group_names_[:2] == ["input_x0", "input_x1"]
    assert not hasattr(fit(), "input_prior_std_")


@pytest.mark.parametrize(("hidden", "n_outputs"), [((), 1), ((3,), 2), ("auto", 1)], ids=str)
def test_constant_targets(hidden, n_outputs):
    X, _ = make_rows()
    y = np.full((50, n_outputs), 1e6 + 0.1)
    with pytest.warns(UserWarning, match=r"All targets .*equal 1e\+06, so how y depends"):
        model = fit(X=X, y=y, hidden_layer_sizes=hidden)
    assert model.noise_model_ == "constant"
    assert hidden != "auto" or model.hidden_layer_sizes_ == ()  # no network is needed
    mean, std = model.predict(GRID, return_std=True)
    assert_allclose(mean, y[:9], rtol=1e-9)
    assert np.all(np.isfinite(std))
    assert np.all(np.isfinite(model.predict_interval(GRID)))


@pytest.mark.parametrize("prior", ["single", "layer", "ard"])
def test_constant_columns_change_nothing(prior):
    X, y = make_rows()
    wide = np.column_stack([np.full(50, 1e5 / 3), X])
    grid = np.column_stack([np.full(9, 1e5 / 3), GRID])
    model = fit(X=wide, y=y, prior=prior, hidden_layer_sizes=())
    without = fit(X=X, y=y, prior=prior, hidden_layer_sizes=())
    expected, expected_std = without.predict(GRID, return_std=True)
    mean, std = model.predict(grid, return_std=True)
    assert_allclose(mean, expected, rtol=1e-6)
    assert_allclose(std, expected_std, rtol=1e-6)
    assert model.log_evidence_ == pytest.approx(without.log_evidence_, abs=1e-3)
    mean, std = fit(X=wide, y=y, prior=prior).predict(grid, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_number_of_iterations_is_bounded():
    model = fit(solver=Solver(max_iter=3), n_restarts=1)
    assert model.n_iter_ == 3 < fit(n_restarts=1).n_iter_
    assert np.all(np.isfinite(model.predict(GRID)))
