"""Choice of the noise model by evidence, among those that tests of the residuals suggest."""

from dataclasses import replace

import numpy as np
from scipy.stats import chi2, norm

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._minimum import total_log_evidence
from skbayesnn.inference.minima._search import ALONE, distinct, find_minima, own_posterior
from skbayesnn.inference.noise._constant_noise import NOISE_MINIMA
from skbayesnn.inference.noise._input_dependent_noise import residuals_and_gamma
from skbayesnn.inference.noise._noise_models import NOISE_MODELS

SIGNIFICANT = 0.01  # p value below which residuals contradict constant Gaussian noise
FEW_ROWS = 500  # rows beyond which the threshold of tests falls in proportion to their inverse
CLEARLY = 1.0  # nats by which another noise model must exceed the evidence of constant noise
# nats by which a fit must be better that outliers influence little, as its noise has no variance
DECISIVE = 10.0
RANDOM_STARTS = 2  # of such fits: minima under constant noise follow the outliers
# time of a noise model, larger networks under it included, as a multiple of all before (measured
# 2.3 for 2,000 rows of 6 inputs, 2.9 for 777 rows of 17 inputs)
SECONDS_OF_NOISE = 2.0
# mean square of residuals, in noise variances, below which the noise is the least possible
NO_NOISE = 0.5
CLOSELY_FITTED = 0.01  # least residual degrees of freedom of a row; below, rounding dominates


def with_chosen_noise(fit, previous=None, workers=ALONE):
    """Choose the noise model by the evidence, among those that tests of the residuals suggest.

    Starts with a fit under constant noise. Minima under other noise models than the chosen one join
    ``others``.
    """
    p_values = p_values_of(fit)
    comparable = np.isfinite(fit.best.log_evidence)
    names = suspected(fit.problem, p_values) if comparable else []
    found = {"constant": (fit.posed, fit.minima)}
    seconds = SECONDS_OF_NOISE * len(names) * workers.progress.elapsed
    with workers.progress.stage("noise models", np.ones(len(names)), seconds=seconds) as step:
        for noise in names:
            if fit.problem.deadline.passed:
                break
            found[noise] = search_under_noise(noise, fit, previous, workers)
            total = total_log_evidence(found[noise][1]) + fit.problem.log_scale
            step(f"{noise} noise: log evidence {total:.2f}")
        further = [minima[0] for name, (_, minima) in found.items() if name != "constant"]
        if further and not fit.problem.deadline.passed:
            # minima found under other noise may lead to new ones under constant noise
            minima = find_minima(*fit.posed, (), further, workers=workers)
            found["constant"] = fit.posed, distinct([*fit.minima, *minima])
    totals = {n: total_log_evidence(m) + fit.problem.log_scale for n, (_, m) in found.items()}
    bonus = {"constant": CLEARLY}  # the simpler model is preferred where evidences are close
    noise = max(totals, key=lambda n: np.nan_to_num(totals[n], nan=-np.inf) + bonus.get(n, 0.0))
    posed, minima = found.pop(noise)
    others = [(model.posterior, m) for model, minima_of in found.values() for m in minima_of]
    return replace(
        fit,
        posed=posed,
        minima=minima,
        others=[*fit.others, *others],
        noise=noise,
        noise_p_values=p_values,
        noise_log_evidences=totals,
    )


def suspected(problem, p_values):
    """Noise models that are allowed and suggested by tests; none if the deadline has passed.

    With more rows a test is more powerful and a trial takes longer, so that the threshold is lower.
    """
    if problem.deadline.passed:
        return []
    strict = min(1.0, FEW_ROWS / len(problem.X))
    allowed = problem.laws or TESTS
    return [
        noise
        for noise, p_value in p_values.items()
        if noise in allowed and p_value < strict * TESTS[noise][1]
    ]


def search_under_noise(noise, fit, previous, workers):
    """Find minima under a noise model other than constant noise; return `Posed` and these."""
    model = NOISE_MODELS[noise]
    posed = model.pose(fit.posed)
    starts = [*continuing(noise, fit.problem, posed, previous), *fit.minima[:NOISE_MINIMA]]
    minima = model.search(fit.problem, posed, starts, workers)
    robust = model.for_outliers(posed)
    # with many rows, where training stops early, outliers lead it astray less often
    if robust is None or Method.choose(*posed).early or fit.problem.deadline.passed:
        return posed, minima
    seeds = np.random.SeedSequence(0).spawn(RANDOM_STARTS)
    others = model.search(fit.problem, robust, find_minima(*robust, seeds), workers)
    others = [m for m in others if m.likelihood.bends]
    if others and others[0].log_evidence > minima[0].log_evidence + DECISIVE:
        return robust, others
    return posed, minima


def continuing(noise, problem, posed, previous):
    """Minima of an earlier fit that can start this one."""
    old = [] if previous is None else previous.minima
    return [m for m in old if NOISE_MODELS[noise].continues(problem, posed, m)]


def p_values_of(fit):
    """P values of tests of constant noise against each of the other noise models.

    There are none after the deadline. The exact Hessian may be so small in some directions that
    degrees of freedom of rows would be negative, so that the Gauss-Newton matrix is used.
    """
    if fit.problem.deadline.passed:
        return {}
    posterior, best = fit.posed.posterior, fit.best
    testable = posterior.likelihood.quadratic and not fit.problem.noise_is_given
    if not testable:
        return {}
    own = own_posterior(posterior, best)
    method = Method.choose(own, fit.posed.settings)
    with method.threads():
        precision = method.gauss_newton(own, best.theta, best.hyper).precision
        if not precision.definite:
            return {}
        residuals, gamma = residuals_and_gamma(own, best.theta, best.hyper, precision)
    return p_values(posterior, residuals, gamma, own.likelihood.precisions(best.hyper.beta))


def p_values(posterior, residuals, gamma, beta):
    """P values of tests of constant noise by noise model.

    ``residuals`` and ``gamma``, the remaining degrees of freedom of each, have shape (n,
    n_outputs), the noise precisions ``beta`` (n_outputs,). Targets without noise say nothing about
    its law.
    """
    residuals = residuals * np.sqrt(beta / np.maximum(gamma, CLOSELY_FITTED))
    if np.all(posterior.sample_weight @ residuals**2 < NO_NOISE * posterior.n_rows):
        return {}
    rows = posterior.X, residuals, posterior.sample_weight
    return {noise: test(*rows) for noise, (test, _) in TESTS.items()}


def noise_trend(X, residuals, sample_weight):
    """Test whether residuals are larger at some inputs than at others.

    Absolute residuals (Glejser 1969, "A new test for heteroskedasticity", Journal of the American
    Statistical Association 64) are regressed on the inputs and their squares. Under constant noise
    the number of rows times ``R^2`` follows a chi-squared distribution, whatever the law of the
    residuals (Koenker 1981, Journal of Econometrics 17).

    Residuals, of shape (n, n_outputs), are divided by their expected standard deviations
    ``sqrt(gamma_m / beta)`` (MacKay 1992, thesis, chapter 6); ``sample_weight`` (n,) repeats rows.
    Returns the probability under constant noise of as strong a trend in any output; ``nan`` if no
    input varies, or if the rows do not outnumber the inputs and squares.
    """
    n, root = sample_weight.sum(), np.sqrt(sample_weight)[:, None]
    X = X - sample_weight @ X / n
    X /= np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
    regressors, sizes = np.hstack([X, X**2]), np.abs(residuals)
    regressors -= sample_weight @ regressors / n
    regressors *= root
    sizes = root * (sizes - sample_weight @ sizes / n)
    fit, _, rank, _ = np.linalg.lstsq(regressors, sizes)
    if n <= rank + 1 or rank == 0:
        return np.nan
    total = np.sum(sizes**2, axis=0)
    explained = np.sum((regressors @ fit) ** 2, axis=0) / np.where(total > 0.0, total, 1.0)
    p_values = chi2.sf(n * explained, rank)
    return float(min(1.0, len(p_values) * np.min(p_values)))  # Bonferroni


def heavy_tails(X, residuals, sample_weight):
    """Test whether residuals have heavier tails than a Gaussian.

    The ratio of mean absolute deviation to standard deviation is ``sqrt(2 / pi)`` for a Gaussian
    and smaller for heavy tails (Geary 1935, "The ratio of the mean deviation to the standard
    deviation as a test of normality", Biometrika 27).

    Returns the probability under Gaussian noise of as heavy tails in any output; the arguments are
    those of `noise_trend`.
    """
    n = sample_weight.sum()
    deviation = sample_weight @ np.abs(residuals) / n
    rms = np.sqrt(sample_weight @ residuals**2 / n)
    expected = np.sqrt(2.0 / np.pi) * (1.0 + 0.25 / n)
    ratio = deviation / np.where(rms > 0.0, rms, 1.0)
    ratio = np.where(rms > 0.0, ratio, expected)
    p_values = norm.cdf((ratio - expected) * np.sqrt(n / (1.0 - 3.0 / np.pi)))
    return float(min(1.0, len(p_values) * np.min(p_values)))  # Bonferroni


TESTS = {  # of constant noise: the test, and the P value below which the other model is tried
    "input_dependent": (noise_trend, 0.05),  # lenient, as the evidence decides
    "student_t": (heavy_tails, 0.5),  # cheap, and networks that fit outliers hide them
}
