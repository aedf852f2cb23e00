"""Student-t noise: outliers, degrees of freedom, and evidence against brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp

from skbayesnn import EvidenceMLPRegressor, Noise, Prior
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from tests.estimators.common import grid_of_lines

pytestmark = pytest.mark.usefixtures("laplace")


def make_rows(n=80, share=0.08, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    y = np.sin(1.5 * X) + 0.1 * rng.standard_normal((n, 1))
    far = rng.random(n) < share
    y[far] += rng.choice([-1, 1], (far.sum(), 1)) * rng.uniform(1, 5, (far.sum(), 1))
    return X, y[:, 0]


def fit(X, y, hidden=(4,), **options):
    options = {"noise": "student_t", "n_restarts": 2, "random_state": 0} | options
    return EvidenceMLPRegressor(hidden, **options).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fit(*make_rows())


# --- evidence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 100])
def test_evidence_of_a_line_by_brute_force(n):
    """Fixed precisions: the sum over the grid of degrees of freedom against the true one."""
    rng = np.random.default_rng(n)
    X = rng.uniform(-2, 2, (n, 1))
    y = 0.7 * X[:, 0] + 0.3 * rng.standard_t(3, n)
    noise = Noise("student_t", std=0.5)
    model = fit(X, y, (), standardize=False, prior=Prior(precision=1.0), noise=noise)
    W, B, prior = grid_of_lines((-0.3, 1.7), (-1.0, 1.0), 121, 1.0)
    residuals = y - W[:, None] * X[:, 0] - B[:, None]
    exact = []
    for nu in DEGREES_OF_FREEDOM:
        logs = stats.t.logpdf(residuals, nu, scale=0.5 * np.sqrt((nu - 2) / nu))
        exact.append(logsumexp(prior + logs.sum(axis=1)))
    expected = logsumexp(exact) - np.log(len(exact))
    assert model.degrees_of_freedom_ == DEGREES_OF_FREEDOM[np.argmax(exact)]
    assert model.log_evidence_ == pytest.approx(
        expected, abs=0.1 if n == 30 else 0.03
    )  # falls as 1 / n
    assert model.noise_std_ == pytest.approx(0.5)


def test_report(model):
    report = model.evidence_report_
    best = report.minima[0]
    assert report.degrees_of_freedom_occam == best.terms.degrees_of_freedom_occam <= 0
    assert best.terms.degrees_of_freedom_occam >= -np.log(len(DEGREES_OF_FREEDOM)) - 1e-12
    assert best.degrees_of_freedom == model.degrees_of_freedom_ == 2.5
    assert f"scale {0.2**0.5 * model.noise_std_:.4g}, 2.5 degrees of freedom" in repr(report)
    assert best.log_evidence == pytest.approx(best.terms.total)
    plain = EvidenceMLPRegressor((), noise="constant").fit(*make_rows())
    assert np.isinf(plain.evidence_report_.minima[0].degrees_of_freedom)
    assert "egrees of freedom" not in plain.evidence_report_.full()
    with pytest.raises(AttributeError, match="student_t"):
        _ = plain.degrees_of_freedom_


# --- what it is for ------------------------------------------------------------------------------


def test_gaussian_noise_has_many_degrees_of_freedom():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 1))
    quantiles = stats.norm.ppf((np.arange(300) + 0.5) / 300)  # as Gaussian as a sample can be
    y = X[:, 0] + 0.3 * rng.permutation(quantiles)
    robust, plain = fit(X, y, ()), fit(X, y, (), noise="constant")
    assert robust.degrees_of_freedom_ >= 10
    assert robust.noise_std_ == pytest.approx(plain.noise_std_, rel=0.05)
    assert plain.log_evidence_ > robust.log_evidence_ + 1.0


def test_improbable_minima_do_not_predict(monkeypatch):
    """A wide one would be given a share for the sake of the outliers, and spoil the mean."""
    X, y = make_rows(100, 0.05, seed=2)
    # from minima under constant noise alone
    monkeypatch.setattr("skbayesnn.inference.noise._noise_search.DECISIVE", np.inf)

    def evidences():
        report = fit(X, y, n_restarts=6).evidence_report_
        return [m.log_evidence for m in report.minima]

    probable = evidences()
    monkeypatch.setattr("skbayesnn.inference.noise._student_t_noise.IMPROBABLE", np.inf)
    everything = evidences()
    assert min(probable) > max(probable) - 12.0
    assert min(everything) < max(everything) - 50.0
    assert probable == everything[: len(probable)]


def heavy_tailed(seed):
    """100 rows of three inputs with Student-t noise of two degrees of freedom, and test rows."""
    rng = np.random.default_rng(seed)

    def rows(n):
        X = rng.uniform(-2, 2, (n, 3))
        f = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
        return X, f + 0.1 * rng.standard_t(2, n)

    return rows(100), rows(1000)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
def test_heavy_tails_predict_beside_networks_drawn_under_constant_noise():
    (X, y), test = heavy_tailed(1)
    options = {"n_restarts": 1, "random_state": 0}
    model = EvidenceMLPRegressor((8,), **options).fit(X, y)
    constant = EvidenceMLPRegressor((8,), noise="constant", **options).fit(X, y)
    assert model.log_evidence_ >= constant.log_evidence_
    laws = [type(part.noise).__name__ for part in model._ensemble.parts]
    assert "StudentTNoise" in laws
    assert_allclose(model._ensemble.member_weights.sum(), 1.0, rtol=1e-12)
    densities = [m.log_predictive_density(*test).mean() for m in (model, constant)]
    assert densities[0] > densities[1] + 1.0
