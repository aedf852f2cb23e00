"""Known noise of the inputs: closed forms, both engines, promises, and what users may get wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.estimators import AveragedRegressor
from skbayesnn.network import Network
from skbayesnn.posterior import (
    Gaussian,
    Posterior,
    at_slopes,
    weight_groups,
    with_input_noise,
)
from tests.tools import result_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

REGRESSORS = EvidenceMLPRegressor, HMCMLPRegressor
ALPHA, NOISE, INPUT = 0.7, 0.3, 0.5
FIXED = {"weight_precision": ALPHA, "standardize": False, "prior": "single"}
FEW = {"n_chains": 2, "n_warmup": 12, "n_draws": 10, "thin": 1, "evidence": False}

each_regressor = pytest.mark.parametrize("kind", REGRESSORS)
each_number = pytest.mark.parametrize("n_outputs", [1, 2])


def make_line(n=40, n_outputs=1, seed=0):
    """A line, measured at inputs that are set with an error."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1))
    true = X + INPUT * rng.standard_normal((n, 1))
    y = true * [1.5, -0.8] + [0.5, 0.1] + NOISE * rng.standard_normal((n, 2))
    return X, y[:, 0] if n_outputs == 1 else y


def make_step(n=150, seed=0, input_sd=0.15):
    """A steep step between flat parts; noise 0.05."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    true = X[:, 0] + input_sd * rng.standard_normal(n)
    return X, np.tanh(4.0 * true) + 0.3 * true + 0.05 * rng.standard_normal(n)


def fit(kind, rows, hidden=(), weight=None, **options):
    few = FEW if kind is HMCMLPRegressor else {"n_restarts": 1, "measure_evidence": False}
    options = few | {"random_state": 0, "input_std": INPUT} | options
    return kind(hidden, **options).fit(*rows, sample_weight=weight)


# --- closed forms --------------------------------------------------------------------------------


@each_number
def test_likelihood_of_a_line_is_an_integral_over_true_inputs(n_outputs):
    """To first order, which of a line is all."""
    X, y = make_line(n=6, n_outputs=n_outputs)
    y, rng = y.reshape(6, -1), np.random.default_rng(1)
    network, theta = Network((1, n_outputs)), rng.standard_normal(2 * n_outputs)
    noise = with_input_noise(Gaussian.per_output(n_outputs), np.array([INPUT**2]))
    weight, groups = rng.uniform(0.5, 2.0, 6), weight_groups(network, "single")
    posterior = at_slopes(Posterior(network, noise, groups, X, y, weight), theta)
    beta = np.array([4.0, 0.5])[:n_outputs]
    slope, shift = theta.reshape(2, n_outputs)

    def density(true, row):
        means = slope * true + shift
        return norm.pdf(true, X[row, 0], INPUT) * np.prod(norm.pdf(y[row], means, beta**-0.5))

    rows = [
        quad(density, X[i, 0] - 10 * INPUT, X[i, 0] + 10 * INPUT, (i,), epsabs=1e-13)[0]
        for i in range(6)
    ]
    misfit = posterior.energies(theta, beta).misfit
    found = posterior.noise_normaliser(beta) - misfit
    assert found == pytest.approx(weight @ np.log(rows), rel=1e-9)


def at_fixed_point(rows, noise=NOISE):
    """Slopes and intercepts ``(2, p)``, noise covariance, and log evidence: linear regression."""
    X, y = rows[0], np.reshape(rows[1], (len(rows[0]), -1))
    Z, p = np.column_stack([X, np.ones(len(X))]), y.shape[1]
    W = np.zeros((2, p))
    for _ in range(200):
        sigma = noise**2 * np.eye(p) + INPUT**2 * np.outer(W[0], W[0])
        A = ALPHA * np.eye(2 * p) + np.kron(Z.T @ Z, np.linalg.inv(sigma))
        W = np.linalg.solve(A, (Z.T @ y @ np.linalg.inv(sigma)).ravel()).reshape(2, p)
    covariance = np.kron(np.eye(len(Z)), sigma) + np.kron(Z @ Z.T / ALPHA, np.eye(p))
    return W, sigma, multivariate_normal.logpdf(y.ravel(), cov=covariance), A


@each_number
def test_linear_model_in_closed_form(n_outputs):
    rows = make_line(n_outputs=n_outputs)
    model = fit(EvidenceMLPRegressor, rows, noise_std=NOISE, **FIXED)
    W, sigma, evidence, A = at_fixed_point(rows)
    assert_allclose(model.coefs_[0], W[:1], rtol=1e-4)
    assert_allclose(model.intercepts_[0], W[1], rtol=1e-4)
    assert model.log_evidence_ == pytest.approx(evidence, abs=1e-4)
    assert_allclose(model.predict_output_cov([[0.4]], "aleatoric")[0], sigma, rtol=1e-4)
    J = np.kron([0.4, 1.0], np.eye(n_outputs))
    epistemic = J @ np.linalg.solve(A, J.T)
    assert_allclose(model.predict_output_cov([[0.4]], "epistemic")[0], epistemic, rtol=1e-4)
    assert_allclose(model.predict_output_cov([[0.4]])[0], epistemic + sigma, rtol=1e-4)
    exact = model.predict_output_cov([[0.4]], "aleatoric", input_std=0)[0]
    assert_allclose(exact, NOISE**2 * np.eye(n_outputs), atol=1e-12)
    assert not model.evidence_report_.verdict.startswith("trusted")  # slopes follow the weights


def test_level_of_highest_evidence_given_the_slope():
    X, y = make_line(n=60)
    model = fit(EvidenceMLPRegressor, (X, y), **FIXED)
    Z, slope = np.column_stack([X, np.ones(60)]), model.coefs_[0][0, 0]

    def minus_log_evidence(log_sd):
        variance = np.exp(2.0 * log_sd) + slope**2 * INPUT**2
        return -multivariate_normal.logpdf(y, cov=variance * np.eye(60) + Z @ Z.T / ALPHA)

    best = minimize_scalar(minus_log_evidence, bounds=(-4.0, 1.0), method="bounded").x
    assert model.noise_std_ == pytest.approx(np.exp(best), rel=1e-3)
    W = at_fixed_point((X, y), model.noise_std_)[0]
    assert_allclose(model.coefs_[0], W[:1], rtol=1e-3)
    ignoring = fit(EvidenceMLPRegressor, (X, y), input_std=None, noise="constant", **FIXED)
    assert model.noise_std_ < 0.6 * ignoring.noise_std_


def on_grid(rows, n=161):
    """Weights, and the log of prior times likelihood at all of them, slopes free to move."""
    X, y = rows
    w, b = np.meshgrid(np.linspace(0.5, 2.5, n), np.linspace(-0.5, 1.5, n), indexing="ij")
    variance = NOISE**2 + (w * INPUT) ** 2
    residual = y - w[..., None] * X[:, 0] - b[..., None]
    log = -0.5 * np.sum(residual**2, axis=-1) / variance
    log -= 0.5 * len(y) * np.log(2.0 * np.pi * variance)
    log += norm.logpdf(w, 0, ALPHA**-0.5) + norm.logpdf(b, 0, ALPHA**-0.5)
    return w, b, log, logsumexp(log) + 2.0 * np.log(2.0 / (n - 1))


def test_sampler_by_quadrature():
    """Its slopes move the noise: the posterior and the evidence of both weights together."""
    rows = make_line()
    options = {"n_chains": 4, "n_warmup": 100, "n_draws": 600, "evidence": True}
    model = fit(HMCMLPRegressor, rows, noise_std=NOISE, **options, **FIXED)
    w, b, log, evidence = on_grid(rows)
    assert abs(model.log_evidence_ - evidence) < 4.0 * model.log_evidence_std_ + 0.05
    share = np.exp(log - logsumexp(log))
    theta = result_of(model).draws.theta.reshape(-1, 2)
    for draws, values in zip(theta.T, (w, b), strict=True):
        mean = np.sum(share * values)
        sd = np.sqrt(np.sum(share * (values - mean) ** 2))
        assert abs(draws.mean() - mean) < 4.5 * sd / np.sqrt(model.diagnostics_.bulk_ess)
        assert draws.std() == pytest.approx(sd, rel=0.12)
    aleatoric = model.predict_std([[0.0]], "aleatoric") ** 2
    assert_allclose(aleatoric, NOISE**2 + INPUT**2 * np.mean(theta[:, 0] ** 2), rtol=1e-9)


def test_what_the_evidence_leaves_out():
    """That slopes move the noise: about half a nat of a line of 40 rows."""
    rows = make_line()
    model = fit(EvidenceMLPRegressor, rows, noise_std=NOISE, **FIXED)
    w, _, log, evidence = on_grid(rows)
    assert model.log_evidence_ == pytest.approx(evidence, abs=1.0)
    share = np.exp(log - logsumexp(log))
    assert abs(model.coefs_[0][0, 0] - np.sum(share * w)) < 1.5 * model.coefs_std_[0][0, 0]


# --- networks ------------------------------------------------------------------------------------


def test_a_steep_function():
    """Level, and coverage where it is steep and where it is flat, against ignoring the noise."""
    inside, levels = {}, {}
    for seed in range(3):
        rows, (X, y) = make_step(seed=seed), make_step(2000, seed + 100)
        steep = np.abs(X[:, 0]) < 0.35
        for input_std in (0.15, None):
            options = {"noise": "constant", "input_std": input_std, "n_restarts": 2}
            model = fit(EvidenceMLPRegressor, rows, (6,), **options)
            low, high = model.predict_interval(X, 0.9).T
            covered = (low < y) & (y < high)
            pair = covered[steep].mean(), covered[~steep].mean()
            inside.setdefault(input_std, []).append(pair)
            levels.setdefault(input_std, []).append(model.noise_std_)
    assert_allclose(np.mean(levels[0.15]), 0.05, rtol=0.25)
    assert np.min(levels[None]) > 0.15
    assert_allclose(np.mean(inside[0.15], axis=0), 0.9, atol=0.06)
    steep, flat = np.mean(inside[None], axis=0)
    assert steep < 0.75
    assert flat > 0.97


def test_evidence_of_a_network_prefers_the_noise_of_its_inputs():
    rows = make_step()
    own, other = (
        fit(EvidenceMLPRegressor, rows, (4,), noise="constant", input_std=sd) for sd in (0.15, None)
    )
    assert own.log_evidence_ > other.log_evidence_ + 50.0
    assert own.evidence_report_.minima[0].converged
    assert own.noise_ == "constant"
    assert np.all(np.isfinite(own.leave_one_out_log_density_))


@each_number
def test_variance_is_that_of_the_slopes(n_outputs):
    """By differences of predictions; one network."""
    X, y = make_step()
    y = y if n_outputs == 1 else np.column_stack([y, np.cos(X[:, 0])])
    model = fit(EvidenceMLPRegressor, (X, y), (3,), input_std=0.15, combine="best")
    grid, step = np.linspace(-1, 1, 7)[:, None], 1e-5
    slope = (model.predict(grid + step) - model.predict(grid - step)).reshape(7, -1) / (2 * step)
    added = 0.15**2 * slope[:, :, None] * slope[:, None, :]
    for kind in ("total", "aleatoric"):
        both = [model.predict_output_cov(grid, kind, input_std=sd) for sd in (None, 0.0)]
        assert_allclose(both[0] - both[1], added, atol=1e-7)
    double = model.predict_output_cov(grid, "aleatoric", input_std=[0.3])
    assert_allclose(double - both[1], 4.0 * added, atol=1e-6)
    f, covariance = model.predict(grid).reshape(7, -1), model.predict_output_cov(grid)
    target = f + 0.1
    expected = [multivariate_normal.logpdf(*row) for row in zip(target, f, covariance, strict=True)]
    given = target[:, 0] if n_outputs == 1 else target
    assert_allclose(model.log_predictive_density(grid, given), expected, rtol=1e-6)
    sd = model.predict_std(grid, input_std=0.3)
    interval = model.predict_interval(grid, 0.9, input_std=0.3)
    assert_allclose(interval[..., 1] - interval[..., 0], 2 * norm.ppf(0.95) * sd, rtol=1e-6)


def test_models_of_exact_inputs_predict_at_noisy_ones():
    model = fit(EvidenceMLPRegressor, make_line(), input_std=None, noise="constant")
    sd, more = (model.predict_std([[0.3]], input_std=s) for s in (None, 0.2))
    assert_allclose(more**2 - sd**2, (0.2 * model.coefs_[0][0]) ** 2, rtol=1e-9)
    assert_array_equal(model.predict_std([[0.3]], input_std=0.0), sd)


def test_errors_of_targets_besides():
    X, y = make_line()
    errors = 10.0 ** np.random.default_rng(1).uniform(-1.0, 0.3, 40)
    y = y + errors * np.random.default_rng(2).standard_normal(40)
    model = EvidenceMLPRegressor((), input_std=INPUT, noise_std=NOISE, n_restarts=1, **FIXED)
    model.fit(X, y, measurement_std=errors)
    Z = np.column_stack([X, np.ones(40)])
    variance = NOISE**2 + errors**2 + (INPUT * model.coefs_[0][0, 0]) ** 2
    expected = multivariate_normal.logpdf(y, cov=np.diag(variance) + Z @ Z.T / ALPHA)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match="noise_std must be positive"):
        fit(EvidenceMLPRegressor, (X, y), noise_std=0)


# --- promises ------------------------------------------------------------------------------------


def state(model, X):
    """Whatever could tell two fits apart in the last bit."""
    return np.concatenate([np.ravel(model.predict(X)), np.ravel(model.predict_output_cov(X))])


@each_regressor
@each_number
def test_order_and_repetition_do_not_matter(kind, n_outputs):
    X, y = make_line(n=20, n_outputs=n_outputs)
    times = np.random.default_rng(0).integers(0, 3, 20)
    one = fit(kind, (X, y), (2,), weight=times)
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(20), times))
    other = fit(kind, (X[index], y[index]), (2,))
    assert_array_equal(state(one, X), state(other, X))


@each_regressor
def test_units_do_not_matter(kind):
    X, y = make_line(n=30, n_outputs=2)
    one = fit(kind, (X, y), (2,))
    other = fit(kind, (1e3 * X, y * [1e-3, 1e4]), (2,), input_std=1e3 * INPUT)
    assert_allclose(other.predict(1e3 * X), one.predict(X) * [1e-3, 1e4], rtol=1e-5)
    assert_allclose(other.predict_std(1e3 * X), one.predict_std(X) * [1e-3, 1e4], rtol=1e-5)


@each_regressor
def test_no_noise_of_inputs_changes_nothing(kind):
    rows = make_line()
    models = [fit(kind, rows, (2,), input_std=sd) for sd in (None, 0.0, [0.0])]
    for model in models[1:]:
        assert_array_equal(state(models[0], rows[0]), state(model, rows[0]))


@pytest.mark.parametrize("noise", ["auto", "constant", "shared"])
def test_noise_models_with_levels(noise):
    model = fit(EvidenceMLPRegressor, make_line(n_outputs=2), (2,), noise=noise)
    assert model.noise_ == ("shared" if noise == "shared" else "constant")
    assert (model.noise_std_[0] == pytest.approx(model.noise_std_[1])) == (noise == "shared")


def test_sampler_goes_on_from_the_evidence():
    rows = make_line()
    evidence = fit(EvidenceMLPRegressor, rows, (2,))
    few = FEW | {"random_state": 0, "warm_start": True}
    model = HMCMLPRegressor.from_evidence(evidence, **few).fit(*rows)
    assert model.input_std == INPUT
    longer = model.set_params(n_draws=14).fit(*rows)
    whole = HMCMLPRegressor.from_evidence(evidence, **few | {"n_draws": 14}).fit(*rows)
    assert_array_equal(longer.predict(rows[0]), whole.predict(rows[0]))


def test_warm_start_goes_on_from_the_minima():
    rows = make_step()
    options = {"warm_start": True, "input_std": 0.15}
    model = fit(EvidenceMLPRegressor, rows, (3,), **options)
    before = model.log_evidence_
    assert model.fit(*rows).log_evidence_ > before - 0.01


# --- bad input -----------------------------------------------------------------------------------

BAD = [
    ({"input_std": -0.1}, ValueError, "none of them negative"),
    ({"input_std": np.nan}, ValueError, "finite"),
    ({"input_std": [0.1, 0.2]}, ValueError, "one number, or have shape"),
    ({"input_std": "large"}, TypeError, "must hold numbers"),
    ({"input_std": 1e12}, ValueError, "too many orders of magnitude"),
    ({"noise": "student_t"}, ValueError, "input_std is not possible with noise='student_t'"),
    ({"noise": "correlated"}, ValueError, "input_std is not possible with noise='correlated'"),
    ({"noise": "noisy_inputs"}, ValueError, "noise must be one of"),
]


@each_regressor
@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_input(kind, options, error, message):
    with pytest.raises(error, match=message):
        fit(kind, make_line(n_outputs=2), **options)


def test_what_later_data_cannot_know():
    X, y = make_line()
    with pytest.raises(AttributeError, match="partial_fit") as error:
        EvidenceMLPRegressor((), input_std=[0.1]).partial_fit(X, y)
    assert "input_std is not possible" in str(error.value.__cause__)
    first = EvidenceMLPRegressor((), n_restarts=1).fit(X, y)
    with pytest.raises(ValueError, match="not possible with an estimator as prior"):
        EvidenceMLPRegressor((), prior=first, input_std=0.1).fit(X, y)


def test_predictions_refuse_what_they_cannot_do():
    X, y = make_line()
    model = EvidenceMLPRegressor((), noise="student_t", n_restarts=1).fit(X, y)
    with pytest.raises(ValueError, match="Gaussian noise of constant level"):
        model.predict_std(X, input_std=0.1)
    plain = EvidenceMLPRegressor((), n_restarts=1, noise="constant").fit(X, y)
    with pytest.raises(ValueError, match="one number, or have shape"):
        plain.predict_std(X, input_std=[0.1, 0.2])
    average = AveragedRegressor([plain, plain], np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="from its models"):
        average.predict_std(X, input_std=0.1)


def test_average_of_models_with_noisy_inputs():
    X, y = make_line()
    models = [fit(EvidenceMLPRegressor, (X, y), hidden) for hidden in ((), (2,))]
    both = AveragedRegressor(models, np.array([0.3, 0.7]))
    found = both.predict_std(X, "aleatoric") ** 2
    assert_allclose(found, both.weights @ [m.predict_std(X, "aleatoric") ** 2 for m in models])


def test_classifiers_have_no_noise_of_inputs():
    with pytest.raises(TypeError, match="input_std"):
        EvidenceMLPClassifier((), input_std=0.1)


@pytest.mark.slow
@pytest.mark.measured
def test_network_against_the_sampler():
    rows = make_step(100)
    one = fit(EvidenceMLPRegressor, rows, (3,), input_std=0.15, n_restarts=5)
    options = {"n_chains": 4, "n_warmup": 300, "n_draws": 500, "evidence": True, "thin": 2}
    other = fit(HMCMLPRegressor, rows, (3,), input_std=0.15, **options)
    assert abs(one.log_evidence_ - other.log_evidence_) < 6.0
    assert one.noise_std_ == pytest.approx(other.noise_std_, rel=0.15)
    grid = np.linspace(-1.8, 1.8, 25)[:, None]
    sd = other.predict_std(grid)
    assert np.max(np.abs(one.predict(grid) - other.predict(grid)) / sd) < 1.0
