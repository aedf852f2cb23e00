"""Priors with a mean and a precision matrix, and sequential learning: against closed forms."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
)
from skbayesnn.samplers import bulk_ess
from tests.estimators.common import linear_model
from tests.tools import assert_moments

pytestmark = pytest.mark.usefixtures("laplace")


@pytest.fixture(autouse=True)
def settled_by_the_first_batch(request, monkeypatch):
    """Few rows settle the fit, so that small data show what later batches do."""
    if "joined" not in request.fixturenames:
        monkeypatch.setattr("skbayesnn.estimators.inputs._sequential.JOINED", 0)


@pytest.fixture
def joined():
    """Few rows are fitted together, as for users."""


rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
Y = X @ np.array([[1.0, 0.2], [-0.5, 0.0], [0.2, 1.0]]) + [0.7, -1.0]
Y += 0.3 * rng.standard_normal((40, 2))
y = Y[:, 0]
PHI = np.column_stack([X, np.ones(40)])
ROOT = rng.standard_normal((4, 4))
MEAN, PRECISION = np.array([1.0, -1.0, 0.0, 0.5]), ROOT @ ROOT.T + np.eye(4)
FIXED = {"prior": Prior(precision=2.0), "noise": Noise("constant", std=0.3), "standardize": False}
PARTS = np.array_split(np.arange(40), [1, 12])  # the first batch is a single row
LINE = {"noise": Noise("constant", std=0.3)}


def log_marginal(mean, precision, noise=0.3):
    """Log evidence of the first target, and mean and covariance of the weights."""
    return linear_model(PHI, y, precision, noise**2, mean)


def weights(model):
    return np.concatenate([model.coefs_[0], model.intercepts_[0][None]]).T.ravel()


@pytest.mark.parametrize(
    ("order", "targets"), [((0, 1, 2), Y), ((2, 0, 1), y)], ids=["two outputs", "one"]
)
def test_batches_of_any_order_equal_one_fit(order, targets):
    one = EvidenceMLPRegressor((), **FIXED).fit(X, targets)
    model = EvidenceMLPRegressor((), **FIXED)
    for i in order:
        model.partial_fit(X[PARTS[i]], targets[PARTS[i]])
    assert_allclose(weights(model), weights(one), atol=1e-10)
    assert_allclose(model.log_evidence_, one.log_evidence_, atol=1e-10)
    assert_allclose(sum(model.batch_log_evidences_), one.log_evidence_, atol=1e-10)
    for options in ({"return_std": True}, {"return_cov": True}):
        for mine, other in zip(model.predict(X, **options), one.predict(X, **options), strict=True):
            assert_allclose(mine, other, atol=1e-10)


FORMS = [(PRECISION, True), (PRECISION, False), (3.0, True), ([1.0, 2.0, 3.0, 4.0], True)]


@pytest.mark.parametrize(("precision", "standardize"), FORMS, ids=str)
def test_closed_form(precision, standardize):
    """Units of X and y, whatever the scaling inside."""
    matrix = precision if np.ndim(precision) == 2 else np.diag(np.broadcast_to(precision, 4))
    given = {"prior": Prior(mean=MEAN, base_precision=precision), "standardize": standardize}
    model = EvidenceMLPRegressor((), **given, **LINE).fit(X, y)
    value, mean, S = log_marginal(MEAN, matrix)
    assert_allclose(model.log_evidence_, value, atol=1e-6 if standardize else 1e-10)  # rounded data
    assert_allclose(weights(model), mean, atol=1e-8 if standardize else 1e-12)
    assert_allclose(model.weight_precisions_, 1.0)
    errors = np.append(model.coefs_std_[0], model.intercepts_std_[0])
    assert_allclose(errors, np.sqrt(np.diag(S)), rtol=1e-8)
    covariance = PHI[:2] @ np.linalg.solve(matrix, PHI[:2].T)
    assert_moments(model.sample_prior(X[:2], 20_000).T, PHI[:2] @ MEAN, covariance)


def test_a_mean_alone_shifts_the_groups():
    given = {"standardize": False, **LINE}
    model = EvidenceMLPRegressor((), prior=Prior(mean=MEAN, precision=2.0), **given).fit(X, y)
    assert_allclose(model.log_evidence_, log_marginal(MEAN, 2.0 * np.eye(4))[0], atol=1e-10)
    shifted = EvidenceMLPRegressor((), prior=Prior(precision=2.0), **given).fit(X, y - PHI @ MEAN)
    assert_allclose(model.log_evidence_, shifted.log_evidence_, atol=1e-10)
    free = EvidenceMLPRegressor((), prior=Prior(mean=MEAN), **given).fit(X, y)
    other = EvidenceMLPRegressor((), **given).fit(X, y - PHI @ MEAN)
    assert_allclose(free.log_evidence_, other.log_evidence_, atol=1e-6)
    assert_allclose(free.weight_precisions_, other.weight_precisions_, rtol=1e-4)


def test_an_inferred_scale_is_integrated():
    """``P = alpha R`` with ``alpha`` inferred, against quadrature."""
    prior = Prior(mean=MEAN, base_precision=PRECISION, precision="inferred")
    model = EvidenceMLPRegressor((), prior=prior, standardize=False, **LINE).fit(X, y)
    logs = np.linspace(-6 * np.log(10), 6 * np.log(10), 4001)
    values = np.array([log_marginal(MEAN, np.exp(t) * PRECISION)[0] for t in logs])
    assert_allclose(np.log(model.weight_precisions_[0]), logs[values.argmax()], atol=0.01)
    # the evidence is interpolated along alpha, and its tails 5 nats below the top are left out
    assert_allclose(model.log_evidence_, logsumexp(values) - np.log(4000), atol=5e-3)
    gamma = 4 - model.weight_precisions_[0] * np.sum(
        log_marginal(MEAN, model.weight_precisions_[0] * PRECISION)[2] * PRECISION
    )
    assert_allclose(model.n_effective_weights_, gamma, rtol=1e-6)


def test_an_inferred_noise_level_remembers_earlier_targets():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    y = X @ [1.0, -1.0] + 0.5 * rng.standard_normal(400)
    model = EvidenceMLPRegressor((), random_state=0)
    one = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    for rows in [*np.array_split(np.arange(400), 40), [0]]:  # the last one hardly moves it
        model.partial_fit(X[rows], y[rows])
    assert_allclose(model.noise_std_, one.noise_std_, rtol=0.02)
    assert_allclose(weights(model), weights(one), atol=0.01)
    assert model.evidence_report_.noise_normaliser < 1e3  # terms of the last batch are finite


def test_an_estimator_as_prior():
    first = EvidenceMLPRegressor((), **FIXED).fit(X[:20], y[:20])
    one = EvidenceMLPRegressor((), **FIXED).fit(X, y)
    second = EvidenceMLPRegressor("auto", **FIXED | {"prior": FrozenEstimator(first)})
    second = clone(second).fit(X[20:], y[20:])
    assert second.hidden_layer_sizes_ == ()
    assert_allclose(weights(second), weights(one), atol=1e-10)
    chain = first.log_evidence_ + second.log_evidence_
    assert_allclose(chain, one.log_evidence_, atol=1e-10)
    third = EvidenceMLPRegressor((), **FIXED | {"prior": first})
    for rows in (slice(20, 25), slice(25, 40)):
        third.set_params(prior__precision=1.0).partial_fit(X[rows], y[rows])
    assert_allclose(weights(third), weights(one), atol=1e-10)
    assert_allclose(first.log_evidence_ + third.log_evidence_, one.log_evidence_, atol=1e-10)


def wave(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, 1))
    return x, np.sin(x[:, 0]) + 0.1 * rng.standard_normal(n)


def test_networks_go_on_learning():
    x, t = wave(90, 0)
    grid = np.linspace(-3, 3, 100)[:, None]
    model = EvidenceMLPRegressor((4,), random_state=0, n_restarts=2)
    for rows in np.array_split(np.arange(90), 3):
        model.partial_fit(x[rows], t[rows])
    mean, std = model.predict(grid, return_std=True)
    error = mean - np.sin(grid[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.05
    assert np.all(np.abs(error) < 4 * std)
    assert model.evidence_report_.symmetry == 0.0
    assert "Prior: informative" in repr(model.evidence_report_)
    assert "Prior: informative" not in repr(FITTED.evidence_report_)
    assert len(model.batch_log_evidences_) == 3


def test_classes_go_on_learning():
    x, t = wave(120, 1)
    codes = np.digitize(t, [-0.5, 0.5])
    model = EvidenceMLPClassifier((), random_state=0)
    for rows in np.array_split(np.random.default_rng(1).permutation(120), 3):
        model.partial_fit(x[rows], codes[rows], classes=[0, 1, 2])
    one = EvidenceMLPClassifier((), random_state=0).fit(x, codes)
    far = np.max(np.abs(model.predict_proba(x) - one.predict_proba(x)))
    assert far < 0.1  # precisions are chosen anew
    assert abs(model.log_evidence_ - one.log_evidence_) < 5.0


WAITING = {  # first batches that determine no scale or precision
    "row": (1, "a single row determines no precisions"),
    "constant": (5, "only one value of a target. The 5 rows so far are kept"),
    "noise": (20, "explain nothing of the targets so far"),
}


@pytest.mark.parametrize("name", WAITING)
def test_first_rows_that_settle_nothing_wait_for_the_next_batch(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 1))
    n, message = WAITING[name]
    t = np.where(np.arange(120) < n, 0.0, 50.0 + 30.0 * X[:, 0] + rng.normal(size=120))
    if name == "noise":
        t[:n] = rng.normal(size=n)
    model = EvidenceMLPRegressor((), noise="constant", random_state=0)
    with pytest.warns(UserWarning, match=message):
        model.partial_fit(X[:n], t[:n])
    if name == "row":
        with pytest.raises(NotFittedError):
            model.predict(X)
    model = pickle.loads(pickle.dumps(model)).partial_fit(X[n:70], t[n:70])
    both = EvidenceMLPRegressor((), noise="constant", random_state=0).fit(X[:70], t[:70])
    assert_allclose(weights(model), weights(both), rtol=1e-12)
    assert model.batch_log_evidences_ == (both.log_evidence_,)
    model.partial_fit(X[70:], t[70:])
    assert len(model.batch_log_evidences_) == 2  # settled
    assert len(model.fit(X, t).partial_fit(X, t).batch_log_evidences_) == 2  # nothing waits


def test_a_first_batch_of_one_class_waits_for_the_next_one():
    model = EvidenceMLPClassifier(())
    with pytest.warns(ConvergenceWarning, match="only one class"):
        model.partial_fit(X[:1], y[:1] > 0, classes=[False, True])
    assert model.partial_fit(X[1:], y[1:] > 0).score(X, y > 0) > 0.8


def test_batches_warn_once_of_every_kind():
    """Warnings of spikes differ in the share of their rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 1))
    t = np.where(rng.random(160) < 0.5, 0.0, X[:, 0])
    model = EvidenceMLPRegressor((), random_state=0)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X[:40], t[:40])
            for rows in np.array_split(np.arange(40, 160), 3):
                model.partial_fit(X[rows], t[rows])
            model.partial_fit(X[:40], X[:40, 0], sample_weight=np.full(40, 0.01))
        first, second = (str(each.message) for each in caught)
        assert "of the targets equal 0" in first
        assert "sample_weight adds up to" in second


def test_few_rows_in_order_are_fitted_together(joined):
    rng = np.random.default_rng(400)
    X = rng.normal(size=(120, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=120)
    order = np.argsort(X[:, 0])
    model = EvidenceMLPRegressor((4,), noise="constant", random_state=0)
    for rows in np.array_split(order, 3):
        model.partial_fit(X[rows], y[rows])
    assert model.score(X, y) > 0.9  # with the network of the first batch below 0


def test_a_batch_far_from_the_first_ones_gives_a_warning():
    X = np.linspace(0, 1, 40)[:, None]
    y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(40)
    model = EvidenceMLPRegressor((), noise="constant").partial_fit(X, y)
    for shift_X, shift_y, name in ((2.0, 2.0, "X"), (0.0, 9.0, "y")):
        with pytest.warns(ConvergenceWarning, match=f"have a value of {name} .* Shuffle rows"):
            model.partial_fit(X + shift_X, y + shift_y)


def test_logistic_regression_at_the_mode_of_a_given_prior():
    """Bishop 4.140-4.143, against a direct minimisation."""
    t = (y > 0).astype(int)
    given = {"prior": Prior(mean=MEAN, base_precision=PRECISION)}
    model = EvidenceMLPClassifier((), **given).fit(X, t)
    w = MEAN.copy()
    for _ in range(50):
        p = 1 / (1 + np.exp(-PHI @ w))
        A = PRECISION + (PHI * (p * (1 - p))[:, None]).T @ PHI
        w = w - np.linalg.solve(A, PRECISION @ (w - MEAN) + PHI.T @ (p - t))
    assert_allclose(weights(model), w, atol=1e-5)
    d, G = w - MEAN, np.sum(t * np.log(p) + (1 - t) * np.log(1 - p))
    value = G - 0.5 * d @ PRECISION @ d
    value += 0.5 * (np.linalg.slogdet(PRECISION)[1] - np.linalg.slogdet(A)[1])
    assert_allclose(model.log_evidence_, value, atol=1e-6)


def test_state_is_whole():
    model = EvidenceMLPRegressor((), **FIXED).partial_fit(X[:5], y[:5])
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(X[:, :2], y)
    copy = pickle.loads(pickle.dumps(model))
    for some in (model, copy):
        some.partial_fit(X[5:], y[5:])
    assert_allclose(weights(copy), weights(model), rtol=0)
    model.fit(X[:5], y[:5])  # begins anew
    assert not hasattr(model, "batch_log_evidences_")
    fresh = EvidenceMLPRegressor((), **FIXED).fit(X[:5], y[:5])
    assert_allclose(weights(model), weights(fresh), rtol=0)


FITTED = EvidenceMLPRegressor((), **FIXED).fit(X, y)
BASE = Prior(base_precision=1.0)
AS_GIVEN = {"prior": FITTED, "standardize": False}
BAD = [
    ({"prior": Prior(mean=np.zeros(3))}, r"prior.mean must be a number or an .* shape \(4,\)"),
    ({"prior": Prior(mean=np.full(4, np.nan))}, "prior.mean must be finite"),
    ({"prior": Prior(base_precision=np.ones((3, 3)))}, r"prior.base_precision must be .* \(4, 4\)"),
    ({"prior": Prior(base_precision=-np.eye(4))}, "definite; its smallest eigenvalue is -1"),
    ({"prior": Prior(base_precision=np.zeros(4))}, "prior.base_precision must be positive"),
    ({"prior": Prior(base_precision=np.triu(np.ones((4, 4))))}, "symmetric"),
    ({"prior": Prior("ard", base_precision=1.0)}, "prior='ard' is not possible"),
    ({"prior": BASE, "hidden_layer_sizes": "auto"}, "hidden_layer_sizes='auto'"),
    ({"prior": FITTED, "method": "population"}, "method='population'"),
    (AS_GIVEN | {"standardize": True}, "standardize=False; got True"),
    (AS_GIVEN | {"activation": "relu"}, "activation='tanh'"),
    (AS_GIVEN | {"hidden_layer_sizes": (2,)}, r"hidden layers \(\)"),
    (AS_GIVEN | {"prior": Prior(FITTED, mean=0.0)}, "Leave it at None"),
    ({"prior": EvidenceMLPClassifier()}, "same task"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_priors(options, message):
    model = EvidenceMLPRegressor(**{"hidden_layer_sizes": ()} | options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_what_cannot_be_learnt_in_batches():
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        EvidenceMLPRegressor((), prior=clone(FITTED)).fit(X, y)
    with pytest.raises(ValueError, match="2 outputs, the earlier data had 1"):
        clone(FITTED).partial_fit(X, y).partial_fit(X, Y)
    two = FrozenEstimator(EvidenceMLPRegressor((), noise="constant").fit(X, Y))
    with pytest.raises(ValueError, match="1 outputs, the earlier data had 2"):
        EvidenceMLPRegressor((), noise="constant", prior=two).fit(X, y)
    model = EvidenceMLPClassifier(())
    with pytest.raises(ValueError, match="classes must be passed"):
        model.partial_fit(X, y > 0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.partial_fit(X, y > 0, classes=[True])
    model.partial_fit(X, y > 0, classes=[False, True])
    with pytest.raises(ValueError, match="not the same as on the first call"):
        model.partial_fit(X, y > 0, classes=[False, True, 2])
    with pytest.raises(ValueError, match="are not among"):
        model.partial_fit(X, np.arange(40) % 3)


def test_posterior_under_a_prior_that_couples_weights():
    X = np.random.default_rng(0).normal(size=(20, 1))
    P = np.array([[2.0, 1.0], [1.0, 2.0]])
    options = {"noise": 0.5, "standardize": False}
    model = EvidenceMLPRegressor((), prior=Prior(base_precision=P), **options).fit(X, X[:, 0])
    posterior, Z = model.posterior_[0], np.hstack([X, np.ones((20, 1))])
    assert_allclose(posterior.precision, P + Z.T @ Z / 0.25, rtol=1e-8)
    assert "gamma" not in repr(posterior)
    with pytest.raises(ValueError, match="couples weights"):
        _ = posterior.gamma


def test_samplers_refuse():
    with pytest.raises(ValueError, match="evidence estimator of the same task"):
        HMCMLPClassifier((), prior=FITTED).fit(X, y > 0)
    batches = EvidenceMLPRegressor((), **FIXED).partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    with pytest.raises(ValueError, match="learnt in batches"):
        HMCMLPRegressor.from_evidence(batches)


# --- samplers -------------------------------------------------------------------------------------

CHAINS = {"n_chains": 4, "n_warmup": 150, "n_draws": 250, "random_state": 0}
SHORTER = CHAINS | {"n_warmup": 50, "n_draws": 100}


def weights_of(sampler):
    """Weights of all draws of a linear model, ``(n_draws, k)``."""
    return np.array([[*net.coefs[0][:, 0], *net.intercepts[0]] for net in sampler.networks_])


@pytest.mark.parametrize(
    ("standardize", "sampler", "target"),
    [
        (True, "auto", 0.8),
        pytest.param(False, "hmc", 0.8, marks=pytest.mark.slow),
        (False, Sampler("metropolis", thin=10), 0.25),
    ],
    ids=str,
)
def test_draws_of_a_linear_model_have_the_closed_form(standardize, sampler, target):
    given = {"prior": Prior(mean=MEAN, base_precision=PRECISION), "standardize": standardize}
    options = {"measure_evidence": sampler == "auto", "sampler": sampler}
    model = HMCMLPRegressor((), **given, **LINE, **CHAINS, **options).fit(X, y)
    value, mean, S = log_marginal(MEAN, PRECISION)
    if sampler == "auto":
        error = 4 * model.log_evidence_std_
        assert 0 < error < 3
        assert_allclose(model.log_evidence_, value, atol=error)
    drawn = weights_of(model)
    n = min(bulk_ess(drawn.reshape(4, 250, 4)[..., i]) for i in range(4))
    assert n > 200
    assert abs(model.diagnostics_.acceptance - target) < 0.15  # short warm-ups end above it
    sd = np.sqrt(np.diag(S))
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 4 * sd / np.sqrt(n))
    # covariances have the variance (S_ii S_jj + S_ij^2) / n
    error = np.sqrt((np.outer(sd, sd) ** 2 + S**2) / n)
    assert np.all(np.abs(np.cov(drawn.T) - S) < 4 * error)


@pytest.mark.slow
def test_a_fitted_estimator_as_prior_of_a_sampler():
    """Two batches, the second one sampled, against the closed form of both."""
    first = EvidenceMLPRegressor((), **FIXED).fit(X[:15], y[:15])
    second = HMCMLPRegressor(**FIXED | SHORTER | {"prior": FrozenEstimator(first)})
    second.fit(X[15:], y[15:])
    value, mean, S = log_marginal(np.zeros(4), 2.0 * np.eye(4))
    total = first.log_evidence_ + second.log_evidence_
    assert_allclose(total, value, atol=4 * second.log_evidence_std_)
    sd = np.sqrt(np.diag(S))
    assert np.all(np.abs(weights_of(second).mean(axis=0) - mean) < 4 * sd / np.sqrt(250))


@pytest.mark.parametrize("sampler", [HMCMLPClassifier, EvidenceMLPClassifier])
def test_a_precision_that_vanishes_in_the_units_of_the_fit_is_refused(sampler):
    tiny = np.array([[1.2e-155], [-1.3e-155]])
    with pytest.raises(ValueError, match="numerically singular"):
        sampler((), prior=Prior(base_precision=1.0), random_state=0).fit(tiny, [0, 1])


def test_a_matrix_of_more_weights_than_are_formed():
    model = EvidenceMLPRegressor((2,), prior=Prior(base_precision=1.0), standardize=True)
    model._limits = model._limits._replace(dense=5)
    with pytest.raises(ValueError, match="formed for up to 5 weights"):
        model.fit(X, y)
    fitted = EvidenceMLPRegressor((2,), random_state=0, n_restarts=1)
    fitted._limits = model._limits
    with pytest.warns(ConvergenceWarning, match="Kronecker"):
        fitted.partial_fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="needs its whole precision matrix"):
        fitted.partial_fit(X[20:], y[20:])
