"""The contract of input-dependent noise, and the choice between noise models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor, Noise, Prior

pytestmark = pytest.mark.usefixtures("laplace")


def noise_sd(X):
    """From 0.05 to 0.5 across the range."""
    return 0.05 * 10 ** ((X[:, 0] + 3) / 6)


def make_rows(n=120, seed=0, n_outputs=None, sd=noise_sd):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    truth = np.sin(1.5 * X[:, 0])
    y = truth + sd(X) * rng.standard_normal(n)
    if n_outputs is not None:
        others = [o + np.cos(X[:, 0]) + 0.3 * rng.standard_normal(n) for o in range(1, n_outputs)]
        y = np.column_stack([y, *others])
    return X, y


def fit(X, y, hidden=(5,), sample_weight=None, noise="input_dependent", std="auto", **options):
    options = {"n_restarts": 2, "random_state": 0, "noise__hidden_layer_sizes": (3,)} | options
    model = EvidenceMLPRegressor(hidden, noise=Noise(noise, std=std)).set_params(**options)
    return model.fit(X, y, sample_weight)


@pytest.fixture(scope="module")
def model():
    return fit(*make_rows())


GRID = np.linspace(-3.5, 3.5, 9)[:, None]
FAR = np.array([[-1e6], [1e6], [1e300]])


def test_noise_level_of_every_row(model):
    X, y = make_rows()
    found = model.predict_std(X, kind="aleatoric")
    assert np.max(np.abs(np.log(found / noise_sd(X)))) < 0.4
    assert model.noise_std_ == pytest.approx(np.exp(np.mean(np.log(found))), rel=0.05)
    plain = fit(X, y, noise="constant")
    assert model.log_evidence_ > plain.log_evidence_ + 10
    X_new, y_new = make_rows(500, seed=1)
    gain = model.log_predictive_density(X_new, y_new) - plain.log_predictive_density(X_new, y_new)
    assert gain.mean() > 4 * gain.std() / np.sqrt(500)


def test_linear_networks_far_away():
    """A log-linear noise level stays inside the range of its hyperprior."""
    model = fit(*make_rows(), noise__hidden_layer_sizes=())
    std = model.predict_std(FAR[:2], kind="aleatoric")
    scale = np.std(make_rows()[1])
    assert_allclose(np.sort(std), [1e-3 * scale, 1e3 * scale], rtol=1e-12)


def test_several_outputs():
    X, y = make_rows(150, n_outputs=2)
    model = fit(X, y)
    levels = model.predict_std(GRID, kind="aleatoric")
    assert levels.shape == (9, 2)
    assert levels[-2, 0] / levels[1, 0] > 4
    assert 0.7 < levels[-2, 1] / levels[1, 1] < 1.4
    assert model.noise_std_.shape == (2,)
    mean, cov = model.predict(GRID, return_cov=True)
    assert cov.shape == (9, 9, 2)
    assert np.all(np.isfinite(model.log_predictive_density(GRID, mean)))


def test_report(model):
    report = model.evidence_report_
    best = report.minima[0]
    assert report.noise_occam == 0.0
    assert report.noise_weight_precision_occam < 0
    assert "Noise: input_dependent, typical sd " in repr(report)
    assert "Weight groups of the noise network" in report.full()
    network = best.noise_network
    assert network.hidden_layer_sizes == model._best.noise.network.hidden_layer_sizes
    assert list(network.gamma)[-1] == "level"
    assert abs(network.gamma["level"] - 1.0) < 0.1  # of one parameter, nearly determined


def test_report_of_constant_noise_says_when_it_is_not():
    X, y = make_rows()
    report = fit(X, y, noise="constant").evidence_report_
    assert report.noise_p_values["input_dependent"] < 1e-4
    advice = "larger at some inputs (p = "
    assert advice in repr(report)
    assert 'try noise="input_dependent"' in " ".join(repr(report).split())
    X, y = make_rows(sd=lambda X: np.full(len(X), 0.2))
    report = fit(X, y, noise="shared").evidence_report_
    assert min(report.noise_p_values.values()) > 0.01
    assert "try noise" not in " ".join(repr(report).split())
    for given in ({"noise": "student_t"}, {"noise": "constant", "std": 0.2}):
        assert fit(X, y, hidden=(), **given).evidence_report_.noise_p_values == {}


# --- promises ------------------------------------------------------------------------------------


def test_noise_level_of_drawn_networks(as_users_fit):
    """Typical of all rows, where noise networks of targets without noise meet their bounds."""
    X = make_rows(40)[0]
    model = fit(X, X[:, 0], (2,))
    assert model._result.drawn
    found = model.predict_std(X, kind="aleatoric")
    assert model.noise_std_ == pytest.approx(np.exp(np.mean(np.log(found))), rel=0.1)  # draws


def test_the_prior_of_drawn_networks_is_that_of_the_means(as_users_fit):
    X, y = make_rows(20)
    precision = {"hidden1_weights": 1.0, "hidden1_biases": 4.0, "output": 0.25}
    variances = []
    for noise in ("constant", "input_dependent"):
        model = fit(X, y, (2,), noise=noise, prior=Prior(precision=precision), n_restarts=1)
        assert model._result.drawn
        functions = model.sample_prior(GRID, 4000)
        variances.append(functions.var(axis=1))
    # the kurtosis of these functions is below 6: variances have a relative error of sqrt(5 / 4000)
    assert_allclose(*variances, rtol=4 * np.sqrt(2 * 5 / 4000))
