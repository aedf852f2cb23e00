"""Networks drawn by independent chains."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import cauchy, norm

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn._progress import Deadline
from skbayesnn.inference import _chains_fit, fit_evidence
from skbayesnn.inference._chains_fit import (
    FLEXIBLE,
    MAX_TRAINING,
    N_TOGETHER,
    chains_of,
    fit_by_chains,
    held_out_split,
    is_drawn_by_chains,
    model_of,
    monte_carlo_error,
)
from skbayesnn.inference.minima._search import ALONE, Workers
from skbayesnn.inference.minima._training import log_density_of, random_starts, train
from skbayesnn.inference.sampling._sampling import Draws
from skbayesnn.inference.task._problem import Problem, weak_hyperpriors
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import (
    Bernoulli,
    Gaussian,
    MeasuredGaussian,
    StudentT,
    instructions,
    weight_groups,
)

SHORT = {"N_TEMPERED": 4, "SHORT": (12, 6), "LONG": (20, 8), "MAX_STEPS": 8, "MAX_TRAINING": 10}
MEASURED = MeasuredGaussian(np.zeros(1, int), np.ones(1), np.ones(1))
SHORT |= {"SIZES": {True: ((3,),), False: ((3,),)}}


@pytest.fixture
def short(monkeypatch):
    """Few transitions of small networks, which serve where only the bookkeeping counts."""
    for name, value in SHORT.items():
        monkeypatch.setattr(_chains_fit, name, value)


def problem_of(n=40, likelihood=None, **options):
    rng = np.random.default_rng(n)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    y = np.sin(2.0 * X[:, :1]) + 0.2 * rng.standard_normal((n, 1))
    y = (y > 0.0) * 1.0 if isinstance(likelihood, Bernoulli) else y
    likelihood = likelihood or Gaussian.per_output(1)
    return Problem(X, y, np.ones(n), likelihood, open_prior=True, **options)


# --- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "noise"),
    [
        ({}, FLEXIBLE),
        ({"likelihood": StudentT.per_output(1)}, FLEXIBLE),
        ({"laws": ("constant",)}, "constant"),
        ({"laws": ("constant",), "likelihood": StudentT.per_output(1)}, "student_t"),
        ({"noise_precision": (np.zeros(1, dtype=bool), np.ones(1))}, "constant"),
        ({"likelihood": MEASURED, "known": np.ones((400, 1))}, "constant"),
    ],
)
def test_noise_that_is_left_open_may_depend_on_the_inputs(options, noise):
    assert model_of(problem_of(400, **options), "auto", "auto") == ((16, 16), noise)


def test_what_is_given_is_taken():
    assert model_of(problem_of(), (5,), "student_t") == ((5,), "student_t")


@pytest.mark.parametrize(
    ("n", "likelihood", "sizes", "drawn"),
    [
        (337, None, (16, 16), True),
        (336, None, (12, 12), True),
        (204, None, (8, 8), True),
        (104, None, (8,), True),
        (32, None, (4,), True),
        (16, None, (), False),
        (65, Bernoulli(), (16,), True),
        (64, Bernoulli(), (8,), True),
        (32, Bernoulli(), (), True),
        (2, Bernoulli(), (), False),
    ],
)
def test_size_by_the_number_of_targets(n, likelihood, sizes, drawn):
    problem = problem_of(n, likelihood)
    assert model_of(problem, "auto", "auto")[0] == sizes
    compiled = instructions() is not None
    assert is_drawn_by_chains(problem, "auto", "auto") == (drawn and compiled)


def test_weights_are_cauchy_a_priori():
    network = Network((9, 4, 1), "tanh")
    groups = weight_groups(network, "layer")
    rng, draws = np.random.default_rng(0), 20_000
    fan_in = dict(zip(groups.names, [9.0, 1.0, 4.0], strict=True))
    for name, prior in zip(groups.names, weak_hyperpriors(network, groups), strict=True):
        log_precision = prior.quantile(rng.random(draws))
        weights = np.exp(-0.5 * log_precision) * rng.standard_normal(draws)
        for probability in (0.25, 0.5, 0.9):
            end = cauchy.ppf(probability, scale=fan_in[name] ** -0.5)
            error = 4.0 * np.sqrt(probability * (1.0 - probability) / draws)
            assert abs(np.mean(weights < end) - probability) < error


# --- starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sd", [0.05, 0.5])
def test_starts_know_the_noise_of_rows_held_out(sd):
    """Trained to convergence, a network of 57 weights would halve the noise of 80 rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (80, 1))
    y = np.sin(2.0 * X) + sd * rng.standard_normal((80, 1))
    problem = Problem(X, y, np.ones(80), Gaussian.per_output(1), weak_prior=True)
    levels = []
    for seed in range(12):
        (start,) = random_starts(problem.posed((6, 5)).posterior, [np.random.default_rng(seed)])
        posterior, search = held_out_split(problem, (6, 5), np.random.default_rng(seed))
        trained = train(posterior, start, search)
        assert 0 < trained.n_iter <= MAX_TRAINING
        levels.append(trained.hyper.beta[0] ** -0.5)
    # 8 rows are held out of each: relative standard error 1 / (2 * 8)^(1/2), and a worse mean
    assert 0.7 * sd < np.median(levels) < 1.7 * sd


def test_noise_level_that_fits_rows_best():
    problem = problem_of(30)
    posterior = problem.posed((3,)).posterior
    (start,) = random_starts(posterior, [np.random.default_rng(0)])
    value, beta = log_density_of(posterior, start.theta, np.array([7.0]))
    residuals = outputs(posterior.network, start.theta, posterior.X) - posterior.y
    assert beta == pytest.approx([1.0 / np.mean(residuals**2)])
    assert value == pytest.approx(norm.logpdf(residuals, scale=beta**-0.5).sum())
    classes = problem_of(30, Bernoulli()).posed((3,)).posterior
    f = outputs(classes.network, start.theta, classes.X)
    value, beta = log_density_of(classes, start.theta, np.empty(0))
    assert value == pytest.approx(np.sum(classes.y * f - np.logaddexp(0.0, f)))
    assert beta.size == 0


# --- how many chains -----------------------------------------------------------------------------


def made_draws(problem, shifts, spread=0.0):
    """Draws of constant functions, one level for each chain, with a spread within chains."""
    posterior = problem.posed(()).posterior
    theta = np.zeros((len(shifts), 2, posterior.network.n_weights))
    theta[..., -1] = np.array(shifts)[:, None] + spread * np.array([-1.0, 1.0])
    empty = np.empty((len(shifts), 2, 0))
    beta = np.full((len(shifts), 2, posterior.likelihood.n_levels), 4.0)
    return posterior, Draws(theta, empty, beta, empty, *[empty[..., 0:0]] * 4)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_monte_carlo_error_in_predictive_standard_deviations(spread):
    posterior, draws = made_draws(problem_of(), [-1.0, 1.0, -1.0, 1.0], spread)
    total = 1.0 + spread**2 + 0.25  # between and within chains, and noise
    expected = np.sqrt(4.0 / 3.0 / total * 2.0 / 4.0)
    assert monte_carlo_error(posterior, draws) == pytest.approx(expected)


def test_chains_that_agree_have_no_error():
    posterior, draws = made_draws(problem_of(), [0.5] * 4)
    assert monte_carlo_error(posterior, draws) == 0.0


def test_monte_carlo_error_of_probabilities():
    posterior, draws = made_draws(problem_of(likelihood=Bernoulli()), [0.0, np.log(3.0)])
    p = np.array([0.5, 0.75])
    total = np.mean(p * (1.0 - p)) + p.var()
    assert monte_carlo_error(posterior, draws) == pytest.approx(np.sqrt(p.var(ddof=1) / total))


@pytest.mark.parametrize(
    ("error", "n_networks"), [(0.05, N_TOGETHER * 6), (0.5, 2 * N_TOGETHER * 8)]
)
def test_chains_are_drawn_until_they_agree(short, monkeypatch, error, n_networks):
    """Short ones first; if these differ, they go on beside further long ones."""
    monkeypatch.setattr(_chains_fit, "monte_carlo_error", lambda *args: error)
    problem = problem_of()
    assert chains_of(problem.posed((3,)).posterior) == 2 * N_TOGETHER
    fit = fit_by_chains(problem, "auto", "constant", 0, ALONE)
    assert fit.error == error
    assert len(fit.drawn[0].theta) == n_networks


def test_large_data_have_fewer_chains():
    posterior = problem_of(4000).posed((16, 16)).posterior
    assert chains_of(posterior) == N_TOGETHER


# --- runs ----------------------------------------------------------------------------------------


def test_same_draws_for_any_number_of_processes(short, monkeypatch):
    monkeypatch.setattr(_chains_fit, "MAX_CHAINS", N_TOGETHER)
    one = fit_by_chains(problem_of(), "auto", "auto", 3, ALONE).drawn[0]
    two = fit_by_chains(problem_of(), "auto", "auto", 3, Workers(n_jobs=2)).drawn[0]
    np.testing.assert_array_equal(one.theta, two.theta)
    np.testing.assert_array_equal(one.state, two.state)


def test_what_was_drawn_is_kept_when_the_time_is_up(short):
    problem = problem_of(deadline=Deadline.after(1e-6))
    fit = fit_by_chains(problem, "auto", "auto", 0, ALONE)
    assert len(fit.drawn[0].theta) == N_TOGETHER * 4  # the fewest draws of each chain


def test_an_interrupted_fit_is_no_fit(short, monkeypatch):
    run = _chains_fit.run_chains

    def interrupted(*args, **options):
        return replace(run(*args, **options), interrupted=True)

    monkeypatch.setattr(_chains_fit, "run_chains", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_by_chains(problem_of(), "auto", "auto", 0, ALONE)


@pytest.mark.parametrize("noise", ["constant", "student_t", "input_dependent", FLEXIBLE])
def test_every_noise_law_can_be_drawn(short, monkeypatch, noise):
    monkeypatch.setattr(_chains_fit, "MAX_CHAINS", N_TOGETHER)
    X, y = problem_of().X, problem_of().y[:, 0]
    model = EvidenceMLPRegressor((3,), noise=noise, method="chains", random_state=0).fit(X, y)
    assert (model.method_, model.noise_model_) == ("chains", noise)
    assert np.all(np.isfinite(model.log_predictive_density(X, y)))
    std = model.predict(X, return_std=True)[1]
    parts = model.predict_std(X, kind="epistemic"), model.predict_std(X, kind="aleatoric")
    np.testing.assert_allclose(std, np.hypot(*parts))
    assert np.isnan(model.log_evidence_std_)
    assert model.evidence_report_.verdict in ("not measured", model._predictions.doubt)
    assert model.monte_carlo_error_ == model._result.error > 0.0
    text = " ".join(repr(model.evidence_report_).split())
    assert f"move predictions by {model.monte_carlo_error_:.2f} of their sd" in text
    assert "_laplace" not in vars(model)  # the report needs no search for minima
    assert model.log_evidence_ == model.evidence_report_.laplace_log_evidence


def test_classes_and_counts(short, monkeypatch):
    monkeypatch.setattr(_chains_fit, "MAX_CHAINS", N_TOGETHER)
    X, y = problem_of().X, problem_of().y[:, 0]
    classifier = EvidenceMLPClassifier(method="chains", random_state=0).fit(X, y > 0.0)
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    counts = np.random.default_rng(0).poisson(np.exp(1.0 + y))
    model = EvidenceMLPRegressor(noise="poisson", method="chains", random_state=0).fit(X, counts)
    assert np.all(model.predict(X) > 0.0)


@pytest.mark.skipif(instructions() is None, reason="without the core chains take minutes")
def test_drawn_by_default_between_populations_and_many_rows(short):
    problem = problem_of(400)
    limits = problem.limits._replace(sampled_seconds=0.0, checked_seconds=0.0)
    problem = replace(problem, limits=limits)
    fit = fit_evidence(problem, "auto", 0, noise="auto", method="auto")
    assert np.isnan(fit.log_evidence)
    assert fit.drawn[0].noise == FLEXIBLE
    for noise in ("auto", "constant"):  # exact by Laplace's approximation
        assert not fit_evidence(problem, (), 0, 1, noise, method="auto").drawn


def test_law_without_minima_is_refused():
    model = EvidenceMLPRegressor(noise=FLEXIBLE, method="laplace")
    with pytest.raises(ValueError, match="Use method='auto'"):
        model.fit(*[problem_of().X, problem_of().y[:, 0]])


# --- predictions ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_law_finds_noise_that_varies_and_outliers(seed):
    """Noise of .05 to .45, and every twentieth target an outlier of ten times that."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (1300, 1))
    sd = 0.05 + 0.1 * (X[:, 0] + 2.0)
    rare = rng.random(1300) < 0.05
    f = np.sin(2.0 * X[:, 0])
    y = f + sd * np.where(rare, 10.0, 1.0) * rng.standard_normal(1300)
    model = EvidenceMLPRegressor(method="chains", random_state=seed).fit(X[:300], y[:300])
    rest = slice(300, None)
    assert np.sqrt(np.mean((model.predict(X[rest]) - f[rest]) ** 2)) < 0.1
    held = np.mean((y[rest, None] < model.predict_interval(X[rest], 0.5)) @ [-1.0, 1.0])
    assert abs(held - 0.5) < 4.0 * np.sqrt(0.25 / 300)  # the spread of the training rows decides
    width = np.diff(model.predict_interval([[-1.8], [1.8]], 0.5), axis=1)[:, 0]
    assert 2.0 < width[1] / width[0] < 12.0  # truly 6.1
    assert model.degrees_of_freedom_ < 10.0
