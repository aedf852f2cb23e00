import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln, softmax

from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    CensoredGaussian,
    CensoredStudentT,
    CorrelatedGaussian,
    MeasuredGaussian,
    NegativeBinomial,
    Poisson,
    SquaredResiduals,
    StudentT,
    Targets,
)
from tests.tools import ALL_LIKELIHOODS, make_likelihood, make_targets, make_variances


def draw(name, n=6, lead=(), seed=0):
    """A likelihood, outputs, targets with row weights, and precisions of the noise levels.

    ``"rows"`` are Gaussian targets with a factor each, the product of an output's factors 1.
    """
    rng = np.random.default_rng(seed)
    likelihood, n_outputs = make_likelihood("gaussian" if name == "rows" else name)
    f = 2.0 * rng.standard_normal((*lead, n, n_outputs))
    y = make_targets(name, rng.standard_normal((n, n_outputs)), rng)
    weight = rng.uniform(0.5, 3.0, n)
    beta = np.exp(rng.uniform(-1, 1, (*lead, likelihood.n_levels)))
    factors = None
    if name == "rows":
        logs = rng.standard_normal(y.shape)
        factors = np.exp(logs - weight @ logs / weight.sum())
    return likelihood, f, Targets(y, weight, factors, make_variances(name, y.shape, rng)), beta


def log_probability(likelihood, f, targets, beta):
    """Log probability of every row, by SciPy's distributions."""
    y, known = targets.y, targets.known
    if isinstance(likelihood, Bernoulli):
        return stats.bernoulli.logpmf(y, expit(f))[:, 0]
    if isinstance(likelihood, Categorical):
        return stats.multinomial.logpmf(y, 1, softmax(f, axis=1))
    if isinstance(likelihood, Poisson):
        return stats.poisson.logpmf(y, known * np.exp(f))[:, 0]
    if isinstance(likelihood, NegativeBinomial):
        return stats.nbinom.logpmf(y, beta, beta / (beta + known * np.exp(f)))[:, 0]
    variance = 1.0 / (beta[likelihood.levels] * likelihood.relative)
    if isinstance(likelihood, StudentT):
        degrees = likelihood.degrees_of_freedom
        return stats.multivariate_t(shape=np.diag(variance), df=degrees).logpdf(y - f)
    if isinstance(likelihood, CorrelatedGaussian):
        sd = np.sqrt(variance)
        covariance = sd[:, None] * likelihood.correlation * sd
        return stats.multivariate_normal(cov=covariance).logpdf(y - f)
    if isinstance(likelihood, CensoredGaussian):
        heavy = isinstance(likelihood, CensoredStudentT)
        law = stats.t(likelihood.degrees_of_freedom) if heavy else stats.norm()
        z = (y - f) / np.sqrt(variance)
        limits = np.where(known > 0, law.logsf(z), law.logcdf(z))
        measured = law.logpdf(z) - 0.5 * np.log(variance)
        return np.where(known == 0, measured, limits).sum(axis=1)
    if isinstance(likelihood, MeasuredGaussian):
        variance = variance + known
    if targets.factors is not None:
        variance = variance / targets.factors
    return stats.norm.logpdf(y, f, np.sqrt(variance)).sum(axis=1)


@pytest.mark.parametrize("name", [*ALL_LIKELIHOODS, "rows"])
def test_log_probability(name):
    likelihood, f, targets, beta = draw(name, lead=(2,))
    misfits = likelihood.misfit(f, targets, beta).value
    for i in range(2):
        expected = targets.weight @ log_probability(likelihood, f[i], targets, beta[i])
        actual = likelihood.log_normaliser(beta[i], targets.weight.sum()) - misfits[i]
        if name == "poisson":
            actual += left_out_by_poisson(targets)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_misfit_of_squares():
    """One half of ``exp(h) q - gamma h`` for every squared residual ``q``."""
    rng = np.random.default_rng(0)
    h, q = rng.standard_normal((6, 2)), rng.gamma(1.0, size=(6, 2))
    gamma = rng.uniform(0.2, 1.0, (6, 2))
    targets = Targets(q / gamma, rng.uniform(0.5, 3.0, 6), gamma)
    expected = targets.weight @ np.sum(0.5 * (np.exp(h) * q - gamma * h), axis=1)
    misfit = SquaredResiduals().misfit(h, targets, np.ones(0))
    assert misfit.value == pytest.approx(expected, rel=1e-13)
    assert misfit.errors.shape == (0,)


def test_enormous_log_precisions_do_not_overflow():
    targets = Targets(np.ones((1, 1)), np.ones(1), np.ones((1, 1)))
    with np.errstate(over="raise", invalid="raise"):
        misfit = SquaredResiduals().misfit(np.full((1, 1), 1e4), targets, np.ones(0))
    assert misfit.value > 1e100


def test_student_t_outliers_have_no_weight_and_negative_curvature():
    likelihood = StudentT.per_output(1)
    assert likelihood.variance_factor == 2.0
    x = np.linspace(0.0, 1e3, 10**6 + 1)
    density = (1 + x**2 / 2) ** -1.5 / np.sqrt(8.0)  # two degrees of freedom, within 1,000 scales
    expected = np.trapezoid(x**2 * density, x) / np.trapezoid(density, x)
    heavy = StudentT(np.zeros(1, dtype=int), np.ones(1), 2.0)
    assert heavy.variance_factor == pytest.approx(expected, rel=1e-4)
    f, targets = np.array([[0.0], [100.0]]), Targets(np.zeros((2, 1)), np.ones(2))
    rows = likelihood.output_rows(f, targets, np.ones(1))
    np.testing.assert_allclose(rows.counts[:, 0], [1.25, 5.0 / 10004.0])
    _, exact = likelihood.derivatives(f, targets, np.ones(1))
    _, steps = likelihood.derivatives(f, targets, np.ones(1), exact=False)
    assert exact[1, 0] < 0 < steps[1, 0] < 1e-3


def test_measured_without_noise_stays_finite():
    likelihood, f, targets, _ = draw("measured")
    targets = targets._replace(known=targets.known + 0.1)
    beta = np.array([1e16])
    expected = targets.weight / targets.known[:, 0]
    np.testing.assert_allclose(likelihood.derivatives(f, targets, beta)[1][:, 0], expected)
    assert np.isfinite(likelihood.misfit(f, targets, beta).value)
    assert likelihood.noise_counts(targets, beta) < 1e-13
    np.testing.assert_allclose(likelihood.noise_sd(beta), 1.0)


def test_extreme_logits_of_two_classes():
    f = np.array([[800.0], [800.0], [-800.0], [-800.0]])
    y = np.array([[1.0], [0.0], [1.0], [0.0]])
    targets = Targets(y, np.array([1.0, 1.0, 2.0, 1.0]))
    with np.errstate(all="raise", under="ignore"):
        misfit = Bernoulli().misfit(f, targets, np.ones(0))
        gradient, curvature = Bernoulli().derivatives(f, targets, np.ones(0))
    assert misfit.value == 800.0 + 1600.0
    np.testing.assert_array_equal(gradient[:, 0], [0.0, 1.0, -2.0, 0.0])
    np.testing.assert_array_equal(curvature, np.zeros((4, 1)))


def test_extreme_logits_of_several_classes():
    f = np.array([[800.0, -800.0, 0.0], [-800.0, 800.0, 0.0], [800.0, 800.0, -800.0]])
    targets = Targets(np.eye(3)[[0, 0, 1]], np.ones(3))
    with np.errstate(all="raise", under="ignore"):
        misfit = Categorical().misfit(f, targets, np.ones(0))
        gradient, curvature = Categorical().derivatives(f, targets, np.ones(0))
    np.testing.assert_allclose(misfit.value, 1600.0 + np.log(2.0), rtol=1e-15)
    np.testing.assert_allclose(gradient, [[0, 0, 0], [-1, 1, 0], [0.5, -0.5, 0]], atol=1e-12)
    expected = np.zeros((3, 3, 3))
    expected[2, :2, :2] = [[0.25, -0.25], [-0.25, 0.25]]
    np.testing.assert_allclose(curvature, expected, atol=1e-12)


def test_far_tail_of_two_classes_keeps_its_digits():
    targets = Targets(np.zeros((2, 1)), np.ones(2))
    _, curvature = Bernoulli().derivatives(np.array([[-40.0], [40.0]]), targets, np.ones(0))
    np.testing.assert_allclose(curvature[:, 0], np.exp([-40.0, -40.0]), rtol=1e-14)


def left_out_by_poisson(targets):
    """Constants of the log probability that the misfit lacks."""
    t, known = targets.y[:, 0], targets.known[:, 0]
    return targets.weight @ (t * np.log(known) - gammaln(t + 1.0))


def test_counts_at_extreme_rates_stay_finite():
    f, targets = np.array([[1e3], [-1e3]]), Targets(np.array([[0.0], [5.0]]), np.ones(2))
    for noise in (Poisson(), NegativeBinomial.per_output(1)):
        misfit, gradient = noise.misfit_and_gradient(f, targets, np.ones(noise.n_levels))
        assert np.isfinite(misfit.value)
        assert np.all(np.isfinite(gradient))
        assert np.all(noise.derivatives(f, targets, np.ones(noise.n_levels))[1] >= 0)
