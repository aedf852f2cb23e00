"""Reports of fits: ten lines, the rest on request."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.estimators.reports._minimum import verdict_of_measurement, verdict_of_minimum
from skbayesnn.estimators.reports._predictions import LeftOutScores
from skbayesnn.estimators.reports._printed import WIDTH
from skbayesnn.predictive import LeftOut
from tests.tools import BRIEF

pytestmark = pytest.mark.usefixtures("laplace")


def rows(n=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.2 * np.exp(0.8 * X[:, 0]) * rng.standard_normal(n)


@pytest.fixture(scope="module")
def model():
    return EvidenceMLPRegressor((3,), n_restarts=2, random_state=0).fit(*rows())


HEADINGS = ["Predictions", "Noise", "Method", "Network", "Log evidence", "All details"]


def headings(report):
    lines = repr(report).splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= WIDTH
    return [line.partition(":")[0] for line in lines if not line.startswith(" ")]


@pytest.mark.parametrize("noise", ["auto", "constant", "input_dependent", "student_t"])
def test_twelve_lines_predictions_first_evidence_last(noise):
    model = EvidenceMLPRegressor((2,), noise=noise, n_restarts=1, random_state=0).fit(*rows())
    report = model.evidence_report_
    found = headings(report)
    assert [name for name in found if name != "Residuals"] == HEADINGS
    words = " ".join(repr(report).split())
    assert words.startswith(f"Predictions: {report.predictions} Noise: {model.noise_model_}, ")
    assert "Method: Laplace's approximation, a Gaussian around " in words
    gamma = f"of which 40 targets determine {model.n_effective_weights_:.1f}"
    assert f"{report.n_weights} weights, {gamma}" in words
    assert f"Log evidence: {report.log_evidence:.2f} nats" in words
    assert report.advice not in words  # only where evidences are compared
    assert report.advice in report.full()
    assert "a few nats" not in report.full()


@pytest.mark.usefixtures("as_users_fit")
def test_drawn_networks_are_described_without_a_search_for_minima():
    """Sizes, weights and precisions are those of the networks that predict."""
    X, y = rows(30)
    model = EvidenceMLPRegressor(noise="constant", random_state=0).fit(X, y)
    report, shares = model.evidence_report_, dict.fromkeys([(), (16,)], 0.0)
    assert [name for name in headings(report) if name != "Residuals"] == HEADINGS
    for candidate in model.candidates_:
        assert candidate.noise == "constant"
        assert candidate.n_weights == {(): 3, (16,): 65}[candidate.hidden_layer_sizes]
        assert {type(value) for value in candidate} <= {tuple, str, int, float}
        shares[candidate.hidden_layer_sizes] += candidate.share
    of_parts = zip(model._ensemble.parts, model._ensemble.weights, strict=True)
    for part, weights in of_parts:
        shares[part.network.hidden_layer_sizes] -= weights.sum()
    assert_allclose(list(shares.values()), 0.0, atol=1e-12)
    assert sum(candidate.share for candidate in model.candidates_) == pytest.approx(1.0)
    error = model.log_evidence_std_
    assert f"Differences above {2 * np.sqrt(2) * error:.1f} nats count" in report.advice
    text = " ".join(report.full().split())
    assert f"(16,), 65 weights (share {model.candidates_[0].share:.2f})" in text or (
        f"(16,), 65 weights (share {model.candidates_[1].share:.2f})" in text
    )
    logs = np.log(model._result.drawn[0].alpha[:, -1])
    assert f"output {np.exp(-0.5 * logs.mean()):.4g} +- {logs.std():.2f}" in text
    assert "_laplace" not in vars(model)
    transformed = model._report(log_slopes=-3.0).full()
    assert all(f"{c.log_evidence - 3.0:.2f}" in transformed for c in model.candidates_)
    assert "Noise:" not in transformed


def test_diagnostics_say_what_to_do():
    options = BRIEF | {"n_warmup": 200, "n_draws": 1000}
    model = HMCMLPRegressor((), noise="constant", **options).fit(*rows())
    found = model.diagnostics_
    lines = repr(found).splitlines()
    assert len(lines) <= 10
    assert lines[0] == f"Verdict: {found.verdict}" == "Verdict: converged"
    assert lines[1] == "To do: Use the predictions."
    assert all(f"{value:.3f}" in found.full() for value in found.hyper_r_hat.values())
    assert len(found._tables()) == 2


def fit_of(n_targets=100.0, is_quadratic=False):
    """As much of a fit as a verdict asks for."""
    likelihood = SimpleNamespace(level_sizes=lambda: np.ones(1))
    posterior = SimpleNamespace(
        n_rows=n_targets,
        likelihood=likelihood,
        is_quadratic=is_quadratic,
        groups=SimpleNamespace(centred=False),
    )
    return SimpleNamespace(posed=SimpleNamespace(posterior=posterior))


def minimum(**changes):
    """As much of a minimum as a verdict asks for."""
    found = {
        "trouble": None,
        "network": SimpleNamespace(hidden_layer_sizes=(2,), n_weights=10),
        "smallest_eigenvalue": 1.0,
        "hyper": SimpleNamespace(alpha=np.ones(2)),
        "groups": SimpleNamespace(least=np.min),
        "exact": True,
        "converged": True,
        "fits_everything": False,
        "noise": None,
    }
    return SimpleNamespace(**(found | changes))


@pytest.mark.parametrize(
    ("changes", "n_targets", "doubt", "advice"),
    [
        ({"exact": False}, 100.0, "Gauss-Newton", "held-out rows"),
        ({"converged": False}, 100.0, "did not converge", "max_iter"),
        ({"fits_everything": True}, 100.0, "fitted exactly", "noise.std"),
        ({"smallest_eigenvalue": 0.05}, 100.0, "nearly singular", "random_state"),
        ({}, 29.0, "2.9 targets per weight (3 wanted)", "fewer hidden units"),
    ],
)
def test_doubts_come_with_advice(changes, n_targets, doubt, advice):
    verdict = verdict_of_minimum(fit_of(n_targets), minimum(**changes))
    assert verdict.text.startswith("doubtful: ")
    assert doubt in verdict.text
    assert advice in verdict.advice
    assert verdict_of_minimum(fit_of(), minimum()).text == "not measured"
    exact = fit_of(is_quadratic=True)
    assert verdict_of_minimum(exact, minimum()).text == "trusted"
    assert verdict_of_minimum(exact, minimum(noise="a network")).text == "not measured"


@pytest.mark.parametrize(("error", "text"), [(0.54, "trusted"), (0.56, "measured to +- 0.6 nats")])
def test_a_measured_evidence_is_judged_by_the_error_as_printed(error, text):
    verdict = verdict_of_measurement(SimpleNamespace(log_evidence_std=error, drawn=True))
    assert verdict.text == text
    assert verdict.advice.startswith(f"Differences above {2 * np.sqrt(2) * error:.1f} nats count")


def test_measuring_is_advised_only_where_it_is_possible():
    X = np.linspace(-2, 2, 40)[:, None]
    y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    options = {"n_restarts": 1, "method": "laplace", "random_state": 0}
    for noise in ("constant", "student_t", "input_dependent"):
        report = EvidenceMLPRegressor((2,), noise=noise, **options).fit(X, y).evidence_report_
        assert "measure it by method='population', hidden_layer_sizes=(2,)." in report.advice
    informed = EvidenceMLPRegressor((2,), noise="constant", prior=Prior(mean=0.0), **options)
    assert "method='population'" not in informed.fit(X, y).evidence_report_.advice


def test_predictions_of_a_linear_model_are_those_without_the_row():
    """Against fits that leave a row out, at given precisions and without standardisation."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=25)
    model = EvidenceMLPRegressor((), prior=Prior(precision=1.0), noise=0.5, standardize=False)
    found = model.fit(X, y).evidence_report_.predictions
    left = np.empty((25, 2))  # mean and standard deviation without each row
    for i in range(25):
        kept = np.arange(25) != i
        left[i] = np.ravel(clone(model).fit(X[kept], y[kept]).predict(X[[i]], return_std=True))
    errors = y - left[:, 0]
    plain = 1.0 - np.sum(errors**2) / np.sum((y - y.mean()) ** 2)
    assert_allclose(found.unweighted, plain, rtol=1e-8)
    precision = left[:, 1] ** -2.0
    deviation = y - np.average(y, weights=precision)
    assert_allclose(found.share, 1.0 - precision @ errors**2 / (precision @ deviation**2))
    assert_allclose(found.coverage, np.mean(np.abs(errors) < 1.959964 * left[:, 1]))


def test_few_rows_of_large_noise_do_not_decide_what_is_explained():
    """The others are predicted well, and the variances of all rows are right."""
    rng = np.random.default_rng(0)
    f, std = np.sin(np.linspace(0, 6, 100))[:, None], np.full((100, 1), 0.05)
    std[85:] = 20.0
    y = f + std * rng.normal(size=(100, 1))
    left = LeftOut(norm.logpdf(y, f, std)[:, 0], f, norm.cdf(y, f, std), std)
    found = LeftOutScores.of(left, y, y, np.ones(100), False)
    assert abs(found.unweighted) < 0.2
    assert found.share > 0.98
    assert not found.explains_nothing


def test_outliers_that_were_found_do_not_count_for_coverage():
    y, zeros = np.arange(10.0)[:, None] - 4.5, np.zeros((10, 1))
    cdf = np.full((10, 1), 0.5)
    cdf[7:] = 1.0
    left = LeftOut(zeros[:, 0], zeros, cdf, zeros + 3.0)
    assert LeftOutScores.of(left, y, y, np.ones(10), False).coverage == 0.7
    assert LeftOutScores.of(left, y, y, np.ones(10), False, np.arange(10) >= 7).coverage == 1.0


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
@pytest.mark.parametrize("size", [5.0, 9.0])
def test_rows_in_the_tails_do_not_decide_what_is_explained(size):
    """A fifth of the rows is off by 5 or 9, too near for outliers; the others are explained."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (100, 1))
    y = np.sin(5 * X[:, 0]) + 0.05 * rng.normal(size=100)
    y[:20] += size * rng.choice([-1, 1], 20)
    model = EvidenceMLPRegressor((4,), noise="student_t", random_state=0).fit(X, y)
    found = model.evidence_report_.predictions
    assert found.share > 0.95
    assert found.unweighted < 0.2
    assert found.coverage < 0.9
    y = rng.standard_t(2, 100)
    with pytest.warns(ConvergenceWarning, match="The fit explains nothing"):
        EvidenceMLPRegressor((4,), noise="student_t", random_state=0).fit(X, y)


def test_a_fit_that_explains_nothing_says_so_once():
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(30, 2)), (2, 1))
    y = np.repeat([-1.0, 1.0], 30) + 0.1 * rng.normal(size=60)  # both at every input
    given = {"noise": "constant", "random_state": 0}
    for model, targets in (
        (EvidenceMLPRegressor((), **given), y),
        (EvidenceMLPClassifier((), random_state=0), y > 0),
    ):
        with pytest.warns(ConvergenceWarning, match="The fit explains nothing") as caught:
            report = model.fit(X, targets).evidence_report_
        assert len(caught) == 1
        assert report.verdict.startswith("explains nothing: ")
        assert repr(report).startswith("Predictions: explain nothing; ")


@pytest.mark.parametrize(("seed", "weight"), [(0, 0.0), (1, 0.0), (0, 1.0), (1, 1.0)])
def test_missed_periods_of_a_series_show_in_neighbours(seed, weight):
    """The trend alone explains half of the variance."""
    t, rng = np.arange(120.0), np.random.default_rng(seed)
    y = 0.05 * t + 2 * weight * np.sin(np.pi * t / 6) + 0.3 * rng.normal(size=120)
    model = EvidenceMLPRegressor((), noise="constant", random_state=0)
    report = model.fit(t[:, None], y).evidence_report_
    assert report.predictions.share > 0.5
    assert report.verdict.startswith("misses structure") == bool(weight)


def test_doubts_about_predictions():
    fine = LeftOutScores(0.9, 0.05, 0.95, 100.0)
    assert fine.doubt is None
    assert fine.warning() is None
    assert fine._replace(share=0.1, error=0.2).doubt is None  # too few rows to tell
    narrow = fine._replace(coverage=0.7)
    assert narrow.doubt.startswith("95 % intervals hold 70 %")
    assert "error bars are too small" in str(narrow.warning())
    assert "another noise model" not in str(narrow.warning("student_t"))
    assert narrow._replace(n_rows=10.0).warning() is None  # too few to tell
    alike = fine._replace(similarity=0.6)
    assert alike.doubt.startswith("misses structure: ")
    assert alike.warning() is None  # the report says it
    assert str(alike).endswith("errors of neighbouring rows are alike")
    constant = LeftOutScores(np.nan, np.nan, 1.0, 30.0)
    assert str(constant) == "not compared: all targets are equal"
    assert constant.doubt is None


def test_first_line_of_the_report():
    fine = LeftOutScores(0.9, 0.05, 0.95, 100.0, unweighted=0.9)
    held = "95 % intervals hold 95 % of them"
    assert str(fine) == f"explain 90 % of the variance of left-out rows; {held}"
    weighted = "of left-out rows (90 % if rows are weighted by predicted variance)"
    plain = fine._replace(unweighted=0.2)
    assert str(plain) == f"explain 20 % of the variance {weighted}; {held}"
    assert str(fine._replace(unweighted=-0.3)) == f"R2 -0.30 {weighted}; {held}"
    assert "explain" not in str(fine._replace(error=0.3))  # few rows decide
    assert str(fine._replace(share=np.nan, n_rows=5.0)) == "not compared: too few rows"
    best = fine._replace(share=0.99958, unweighted=0.99958)
    assert "explain 99.95 % of the variance" in str(best)


@pytest.mark.parametrize(
    ("n_rows", "inside", "narrow"),
    [
        (20, 15, False),  # binomial probabilities of so few: .0026
        (20, 14, True),  # .0003
        (100, 88, False),  # .0043
        (100, 86, True),  # .0005
        (150, 131, True),  # .0004
        (2000, 1866, False),  # .0007, but only 1.7 % too few
        (2000, 1850, True),
    ],
)
def test_coverage_is_too_small_by_a_binomial_test(n_rows, inside, narrow):
    chance = binom.cdf(inside, n_rows, 0.95)
    scores = LeftOutScores(0.9, 0.05, inside / n_rows, float(n_rows))
    assert scores.too_narrow is narrow
    assert narrow == (chance < 0.001 and scores.coverage < 0.93)
    assert ("error bars are too small" in str(scores.warning())) is narrow


def test_predictions_beyond_all_targets_have_no_number_and_a_warning():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(60, 1))
    means, std = 0.9 * y, np.full((60, 1), 0.3)
    means[0], std[0] = 1e150, 1e140
    cdf = norm.cdf(y, means, std)
    left = LeftOut(norm.logpdf(y, means, std)[:, 0], means, cdf, std)
    found = LeftOutScores.of(left, y, y, np.ones(60), False)
    assert found.share > 0.9  # the error is one that the variance allows
    assert found.far_off
    assert str(found).startswith("R2 of left-out rows below -1")
    assert "e+" not in str(found)
    words = "predicts some left-out rows far beyond all targets"
    assert words in str(found.warning())
    assert "negative_binomial" in str(found.warning("poisson"))
    far = found._replace(share=-1e12)
    assert str(far).startswith("R2 of left-out rows below -1")
    assert "explains nothing" not in str(far.warning())
    assert "e+" not in str(far.warning())
    assert found._replace(n_rows=10.0).warning() is None


@pytest.mark.parametrize("seed", range(3))
def test_overdispersed_counts_and_forgotten_exposures_warn(seed):
    rng = np.random.default_rng(seed)
    X, exposure = rng.uniform(-2, 2, (100, 2)), rng.uniform(1, 50, 100)
    rate = np.exp(np.sin(1.5 * X[:, 0]))
    dispersed = rng.negative_binomial(1, 1.0 / (1.0 + 20.0 * rate))
    for counts in (rng.poisson(exposure * rate), dispersed):
        for hidden in ((), (8,)):
            model = EvidenceMLPRegressor(hidden, noise="poisson", random_state=0)
            with pytest.warns(ConvergenceWarning, match="exposure.*negative_binomial"):
                report = model.fit(X, counts).evidence_report_
            assert report.verdict != "trusted"
            assert "e+" not in repr(report)


def test_error_bars_of_noise_levels():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(40)
    model = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    report = model.evidence_report_
    (error,) = report.minima[0].log_noise_precision_std
    assert error == pytest.approx(np.sqrt(2.0 / (40 - model.n_effective_weights_)))
    lines = [line.split() for line in report.full().splitlines()]
    assert ["output", "0", f"{model.noise_std_:.4g}", "+-", f"{error:.2f}"] in lines
    both = EvidenceMLPRegressor((), noise="constant").fit(X, np.column_stack([y, X[:, 1] - y]))
    errors = both.evidence_report_.minima[0].log_noise_precision_std
    assert errors[0] == pytest.approx(error, rel=0.02)  # precisions of the weights are shared
    given = EvidenceMLPRegressor((), noise={0: 0.5}).fit(X, np.column_stack([y, y]))
    errors = given.evidence_report_.minima[0].log_noise_precision_std
    assert errors[0] == 0.0
    assert errors[1] > 0.0
    assert "given" in given.evidence_report_.full()
    logs = TransformedTargetRegressor(model, func=np.exp, inverse_func=np.log).fit(X, y)
    assert "error bar of ln beta" in logs.evidence_report_.full()


@pytest.mark.parametrize("noise", ["student_t", "input_dependent", "classes"])
def test_other_noise_has_no_level_with_an_error_bar(noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 1))
    y = X[:, 0] + 0.5 * rng.standard_normal(40)
    if noise == "classes":
        model = EvidenceMLPClassifier(()).fit(X, y > 0)
    else:
        model = EvidenceMLPRegressor((), noise=noise, random_state=0).fit(X, y)
    assert model.evidence_report_.minima[0].log_noise_precision_std is None
    assert "ln beta" not in model.evidence_report_.full()


def well_specified(index, linear):
    """Rows of one of four laws, 30 to 200 of them, with the noise of a right model."""
    rng, law = np.random.default_rng(index), index % 4
    n = int(rng.choice([30, 45, 60, 90, 120, 200]))
    X = rng.uniform(-2, 2, (n, int(rng.integers(1, 4))))
    f = X[:, 0] if linear else np.sin(1.5 * X[:, 0])
    if law == 0:
        return X, f + 0.3 * rng.standard_normal(n), "constant", {}
    if law == 1:
        return X, f + 0.3 * rng.standard_t(3, n), "student_t", {}
    if law == 2:
        return X, rng.poisson(np.exp(1.0 + f)), "poisson", {}
    exposure = rng.uniform(1, 20, n)
    return X, rng.poisson(exposure * np.exp(f)), "poisson", {"exposure": exposure}


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [(), (3,)])
def test_right_models_hardly_ever_warn_of_their_predictions(hidden):
    """One of 40, where the binomial test alone would reject .04."""
    n_warned = 0
    for index in range(40):
        X, y, noise, given = well_specified(index, not hidden)
        options = {"n_restarts": 2, "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = EvidenceMLPRegressor(hidden, noise=noise, **options).fit(X, y, **given)
        n_warned += model._predictions.warning(noise) is not None
    assert n_warned <= 1
