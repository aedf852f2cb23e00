"""Linear models under every law: evidence and posterior of both engines against quadrature."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit, logsumexp

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Prior,
)
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from tests.estimators.common import mean_and_sd, quadrature

PRECISION = 0.7  # of slope and intercept
BOUND = 6.0 * np.log(10.0)  # log precisions of the noise are uniform up to there, and from minus it
PLACE = 0.5  # an input to predict at
FIXED = {"prior": Prior(precision=PRECISION), "standardize": False, "random_state": 0}


class Law(NamedTuple):
    """Parameters of an estimator, targets, and their density.

    Attributes
    ----------
    noise : str
    draw : callable
        Of mean functions ``(n,)``, what is known of the targets, and a generator.
    log_density : callable
        Of targets, outputs ``(m, n)``, log precisions ``(m, 1)`` and degrees of freedom.
    given : str or None
        Name of what is known.
    link : callable
        From outputs to predictions.
    has_level : bool
    degrees : tuple
    """

    noise: str
    draw: Callable
    log_density: Callable
    given: str | None = None
    link: Callable = np.asarray
    has_level: bool = True
    degrees: tuple = (np.inf,)


def of_scale(log_pdf):
    """Log density of residuals, in units of a scale."""
    return lambda y, f, r, nu, _: log_pdf((y - f) * np.exp(0.5 * r), nu) + 0.5 * r


def normal(z, nu):
    return stats.norm.logpdf(z)


def with_limits(measured, log_below):
    """Limits count with the integral over the values they allow."""

    def log_density(y, f, r, nu, sides):
        z = (y - f) * np.exp(0.5 * r)
        return np.where(sides == 0, measured(z, nu) + 0.5 * r, log_below(-sides * z, nu))

    return log_density


def negative_binomial(y, f, r, nu, exposure):
    size = np.exp(r)
    return stats.nbinom.logpmf(y, size, size / (size + exposure * np.exp(f)))


def gaussian_targets(f, known, rng):
    return f + 0.5 * rng.standard_normal(len(f))


def heavy_targets(f, known, rng):
    return f + 0.3 * rng.standard_t(3.0, len(f))


def dispersed_counts(f, known, rng):
    return rng.poisson(known * np.exp(f) * rng.gamma(2.0, 0.5, len(f))).astype(float)


LAWS = {
    "gaussian": Law("constant", gaussian_targets, of_scale(normal)),
    "student_t": Law(
        "student_t", heavy_targets, of_scale(stats.t.logpdf), degrees=DEGREES_OF_FREEDOM
    ),
    "measured": Law(
        "constant",
        lambda f, errors, rng: f + np.hypot(0.5, errors) * rng.standard_normal(len(f)),
        lambda y, f, r, nu, errors: stats.norm.logpdf(y, f, np.hypot(np.exp(-0.5 * r), errors)),
        "measurement_std",
    ),
    "censored": Law(
        "constant",
        gaussian_targets,
        with_limits(normal, lambda z, nu: stats.norm.logcdf(z)),
        "censored",
    ),
    "censored_student_t": Law(
        "student_t",
        heavy_targets,
        with_limits(stats.t.logpdf, stats.t.logcdf),
        "censored",
        degrees=DEGREES_OF_FREEDOM,
    ),
    "poisson": Law(
        "poisson",
        lambda f, exposure, rng: rng.poisson(exposure * np.exp(f)).astype(float),
        lambda y, f, r, nu, exposure: stats.poisson.logpmf(y, exposure * np.exp(f)),
        "exposure",
        np.exp,
        has_level=False,
    ),
    "negative_binomial": Law(
        "negative_binomial", dispersed_counts, negative_binomial, "exposure", np.exp
    ),
    "classes": Law(
        "none",
        lambda f, known, rng: (f + rng.logistic(size=len(f)) > 0.8).astype(int),
        lambda y, f, r, nu, known: log_expit((2 * y - 1) * f),
        link=expit,
        has_level=False,
    ),
}


def make_rows(law, n=50):
    """Inputs, targets, and what is known of these by name."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (n, 1))
    known = {
        "measurement_std": 10.0 ** rng.uniform(-1.5, 0.3, n),
        "exposure": rng.uniform(0.5, 3.0, n),
    }.get(law.given)
    y = law.draw(0.8 + X[:, 0], known, rng)
    if law.given == "censored":
        known = np.where(y > 1.5, 1, np.where(y < 0.1, -1, 0))
        y = np.clip(y, 0.1, 1.5)
    return X, y, {} if law.given is None else {law.given: known}


class Exact(NamedTuple):
    """The evidence, and mean and standard deviation of a prediction and of the log precision."""

    log_evidence: float
    prediction: tuple
    log_level: tuple


@cache
def by_quadrature(name):
    """Over slope, intercept and log precision."""
    law = LAWS[name]
    X, y, given = make_rows(law)
    (known,) = given.values() or (None,)

    def log_density(place):
        f = place[0][:, None] * X[:, 0] + place[1][:, None]
        r = place[2][:, None] if law.has_level else 0.0
        logs = [law.log_density(y, f, r, nu, known).sum(axis=1) for nu in law.degrees]
        prior = stats.norm.logpdf(place[:2], scale=PRECISION**-0.5).sum(axis=0)
        prior -= np.log(len(law.degrees)) + law.has_level * np.log(2.0 * BOUND)
        return logsumexp(logs, axis=0) + prior

    ranges = [(-3.0, 3.0), (-3.0, 3.0), (-4.0, 8.0)][: 2 + law.has_level]
    value, place, share = quadrature(log_density, ranges)
    prediction = mean_and_sd(share, law.link(place[0] * PLACE + place[1]))
    return Exact(value, prediction, mean_and_sd(share, place[2]) if law.has_level else None)


def found_by(law, rows, kinds, **options):
    """A fitted estimator, and mean and standard deviation of its prediction."""
    X, y, given = rows
    if law.noise == "none":
        model = kinds[1]((), **FIXED | options).fit(X, y)
        return model, model.predict_proba([[PLACE]])[0, 1], model.predict_std([[PLACE]])[0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many equal values
        model = kinds[0]((), noise=law.noise, **FIXED | options).fit(X, y, **given)
    return model, model.predict([[PLACE]])[0], model.predict_std([[PLACE]], "epistemic")[0]


def log_level_of(model, law):
    sizes = "binomial" in law.noise
    return -np.log(model.dispersion_) if sizes else -2.0 * np.log(model.noise_std_)


@pytest.mark.parametrize("name", LAWS)
def test_laplace(name):
    """Noise levels are integrated after the weights, which costs some hundredths of a nat."""
    law, rows = LAWS[name], make_rows(LAWS[name])
    exact = by_quadrature(name)
    kinds = EvidenceMLPRegressor, EvidenceMLPClassifier
    model, mean, sd = found_by(law, rows, kinds, method="laplace")
    assert model.log_evidence_ == pytest.approx(exact.log_evidence, abs=0.15)
    assert abs(mean - exact.prediction[0]) < 0.2 * exact.prediction[1]
    assert sd == pytest.approx(exact.prediction[1], rel=0.1)
    if law.has_level and not len(law.degrees) > 1:
        expected, spread = exact.log_level
        assert abs(log_level_of(model, law) - expected) < 0.5 * spread


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "name",
    [name if name == "gaussian" else pytest.param(name, marks=pytest.mark.slow) for name in LAWS],
)
def test_sampling(name):
    law, rows = LAWS[name], make_rows(LAWS[name])
    exact = by_quadrature(name)
    options = {"n_chains": 4, "n_warmup": 100, "n_draws": 400, "measure_evidence": True}
    model, mean, sd = found_by(law, rows, (HMCMLPRegressor, HMCMLPClassifier), **options)
    gap = abs(model.log_evidence_ - exact.log_evidence)
    assert gap < 4.0 * model.log_evidence_std_ + 1e-6
    error = 1.0 / np.sqrt(model.diagnostics_.bulk_ess)
    assert abs(mean - exact.prediction[0]) < 4.0 * exact.prediction[1] * error
    assert sd == pytest.approx(exact.prediction[1], rel=4.0 * error)
    if law.has_level and not len(law.degrees) > 1:
        expected, spread = exact.log_level
        assert abs(log_level_of(model, law) - expected) < 4.0 * spread * error + 0.1 * spread
