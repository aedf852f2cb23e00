"""What is unusual about targets: common values, rounding, counts, decades; and fits to them."""

import re
import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import r2_score

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn._data import canonical_rows
from skbayesnn.estimators.inputs._target_summary import TargetSummary, rounding_error

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(700, 3))
ZEROS = np.where(RNG.random(700) < 0.7, 0.0, np.exp(1 + X[:, 0] + 0.3 * RNG.normal(size=700)))
SMOOTH = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=700)
CEILING = np.minimum(SMOOTH, np.quantile(SMOOTH, 0.7))
TRAIN, TEST = slice(200), slice(200, None)


def summary(y, weight=None):
    y = y[:, None] if y.ndim == 1 else y
    weight = np.ones(len(y)) if weight is None else weight
    return TargetSummary.of(canonical_rows(X[: len(y)], y, weight))


def common_value(y, weight=None):
    return summary(y, weight).common[0]


def words(y):
    """The warning about targets, or "None"."""
    return str(summary(y).warning(y[:, None] if y.ndim == 1 else y))


def fit(y, **options):
    model = EvidenceMLPRegressor(n_restarts=2, random_state=0, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[TRAIN], y[TRAIN])
    return model, [str(w.message) for w in caught if w.category is UserWarning]


# --- what is found -------------------------------------------------------------------------------


def test_what_a_common_value_is():
    zeros, ceiling = common_value(ZEROS), common_value(CEILING)
    assert (zeros.value, zeros.place) == (0.0, "lowest")
    assert abs(zeros.share - np.mean(ZEROS == 0)) < 1e-12
    assert (ceiling.value, ceiling.place) == (CEILING.max(), "highest")
    assert common_value((SMOOTH > 1).astype(float)).two_values
    one = np.r_[SMOOTH[:-1], 5.0]  # weights count rows
    assert common_value(one, np.where(one == 5.0, 300.0, 1.0)).value == 5.0


ROUNDED = [np.round(SMOOTH / step) * step for step in (1.0, 0.5, 0.1)]
RATINGS = [
    np.repeat(np.arange(len(counts)) + 3.0, counts)
    for counts in ([4, 20, 265, 248, 78, 7], [13, 317, 344])
]


@pytest.mark.parametrize(
    "y", [*ROUNDED, *RATINGS, ZEROS[:20], np.zeros(700), np.r_[SMOOTH[:-1], 5.0]]
)
def test_what_is_none(y):
    assert common_value(y) is None


def test_light_rows_are_none():
    assert common_value(ZEROS, np.where(ZEROS == 0, 0.02, 1.0)) is None


def test_two_limits_are_common_values():
    """Neither value is much more common than the other one."""
    noise = np.random.default_rng(4).normal(size=len(X))
    both_ends = np.clip(2 * X[:, 0] + 0.3 * noise, -1, 1)
    assert common_value(both_ends).value in (-1, 1)
    instruments = np.maximum(X[:, 0] + 0.3 * noise, np.where(X[:, 2] > 0, 0.2, -0.3))
    assert common_value(instruments).value in (-0.3, 0.2)
    uneven = np.clip(X[:, 0] + 0.3 * noise, -1.2, 1.5)  # 12 and 7 %
    assert common_value(uneven).value == -1.2


def test_coarse_rounding():
    step, rng = 4.0, np.random.default_rng(0)
    values = step * np.round(rng.uniform(0, 12, 300) / step)
    ones = np.ones(300)
    assert len(np.unique(values)) == 4
    assert rounding_error(values, ones) == pytest.approx(step / np.sqrt(12))
    assert rounding_error(values[:40], ones[:40] / 4) == 0.0  # ten rows
    assert rounding_error(np.round(rng.normal(size=300), 2), ones) == 0.0  # hardly repeated
    assert rounding_error((values > 4).astype(float), ones) == 0.0  # classes


# --- what is said --------------------------------------------------------------------------------


def test_a_common_value_is_named():
    assert re.match("71 % of the targets equal 0, the lowest value.*classifier", words(ZEROS))
    assert "the highest value" in words(CEILING)
    assert words((SMOOTH > 0).astype(float)).startswith("y has only two values. Use a classifier")
    of_second = words(np.column_stack([SMOOTH, ZEROS]))
    assert of_second.startswith("Output 1 of y: 71 % of the targets equal 0")


def test_counts_are_pointed_to_their_laws():
    counts = np.random.default_rng(0).poisson(0.2 * np.exp(SMOOTH)).astype(float)
    assert words(counts).endswith("noise='poisson' or 'negative_binomial'.")
    for y in (counts + 2, counts / 2, np.minimum(counts, 1), np.clip(np.round(SMOOTH) + 3, 1, 5)):
        assert "poisson" not in words(y)


def test_dispersed_counts_are_pointed_to_their_laws():
    """They have no common value, but few large ones decide."""
    rng = np.random.default_rng(0)
    y = rng.poisson(np.exp(2.0 + 0.5 * X[:, 0]) * rng.exponential(size=len(X))).astype(float)
    code = np.where(rng.random(len(y)) < 0.02, 9999.0, y)
    for targets, named in ((y, True), (y + 2, False), (y + 0.5, False), (code, False)):
        assert words(targets).endswith("noise='poisson' or 'negative_binomial'.") == named
    assert not summary(np.round(y**0.5)).counts


def test_targets_over_decades_are_pointed_to_logarithms():
    noise = np.random.default_rng(2).normal(size=len(X))
    y = np.exp(4.6 * (0.9 * X[:, 0] + 0.4 * noise))
    assert re.match(
        r"Most targets span \d\.\d decades.* func=np.log, inverse_func=np.exp", words(y)
    )
    assert words(np.exp(SMOOTH)) == "None"
    far = SMOOTH + 3 + 1e4 * (np.arange(700) % 10 == 0)  # outliers span no decades
    assert words(far) == "None"


def test_a_fit_gives_the_warning():
    model, messages = fit(ZEROS, hidden_layer_sizes=(2,))
    assert messages == [words(ZEROS[TRAIN])]
    assert model.hidden_layer_sizes_ == (2,)


# --- fits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EvidenceMLPRegressor, HMCMLPRegressor])
@pytest.mark.filterwarnings("ignore:.* of the targets equal 0", "ignore:.*R-hat")
def test_zeros_that_nothing_tells_leave_linear_models(kind):
    """Networks and heavy tails would take most other targets for outliers, or fit the largest."""
    found = summary(ZEROS)
    assert found.hides_structure
    assert found.laws == ("constant",)
    model = kind(random_state=0).fit(X[TRAIN], ZEROS[TRAIN])
    assert (model.hidden_layer_sizes_, model.noise_model_) == ((), "constant")
    ridge = BayesianRidge().fit(X[TRAIN], ZEROS[TRAIN])
    assert model.score(X[TEST], ZEROS[TEST]) > ridge.score(X[TEST], ZEROS[TEST]) - 0.02
    low, high = model.predict_interval(X[TEST]).T
    assert 0.9 < np.mean((low <= ZEROS[TEST]) & (ZEROS[TEST] <= high)) < 0.99


def test_what_hides_no_structure():
    told = np.where(X[:, 1] < 0.5, 0.0, np.exp(X[:, 0]))
    many, rare = (np.random.default_rng(0).random(700) < share for share in (0.4, 0.05))
    for y in (SMOOTH, CEILING, told, 1.0 * many, np.column_stack([SMOOTH, ZEROS])):
        assert not summary(y).hides_structure
        assert summary(y).laws is None
    assert summary(1.0 * rare).hides_structure


def test_bounds_of_the_noise():
    """In standard deviations: common values bound it from both sides, few values from below."""
    ratings = np.round(2 * SMOOTH)
    for y, least, most in (
        (SMOOTH, 0.0, np.inf),
        (ZEROS, 0.02, 0.5 * np.ptp(ZEROS) / 3.0),
        (ratings, 12.0**-0.5 / 3.0, np.inf),
    ):
        bounds = summary(y).noise_bounds(y[:, None], np.array([3.0]))
        np.testing.assert_allclose(bounds[:, 0], [least, most])


@pytest.mark.filterwarnings("ignore:.* of the targets equal")
def test_noise_that_varies_does_not_vanish_at_limits():
    """Without its bound the log density is -32 nats per row."""
    noise = np.random.default_rng(46).normal(size=len(X))
    y = np.maximum(X[:, 0] + 0.3 * noise, np.where(X[:, 2] > 0, 0.2, -0.3))
    model, _ = fit(y, hidden_layer_sizes=(4,))
    assert np.mean(model.log_predictive_density(X[TEST], y[TEST])) > -0.5
    assert np.max(np.diff(model.predict_interval(X[TEST]))) < 3 * np.ptp(y[TRAIN])


@pytest.mark.filterwarnings("ignore:70 % of the targets equal 0")
def test_noise_that_varies_does_not_vanish_at_zeros():
    """Without its bound the log density is -276 nats per row."""
    rng = np.random.default_rng(41)
    X = rng.normal(size=(380, 3))
    y = np.where(X[:, 1] < 0.3, 0.0, np.exp(X[:, 0] + 0.2 * rng.normal(size=380)))
    model = EvidenceMLPRegressor((4,), noise="input_dependent", n_restarts=2, random_state=0)
    model.fit(X[:80], y[:80])
    assert np.mean(model.log_predictive_density(X[80:], y[80:])) > -1.0


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
@pytest.mark.filterwarnings("ignore:.* of the targets equal 0")
@pytest.mark.parametrize("told", [False, True])
def test_default_fits_of_zeros(told):
    """Default fits predict zeros among large values better than a normal law about a line."""
    gains, held = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1100, 3))
        y = np.exp(1 + X[:, 0] + 0.3 * rng.normal(size=1100))
        y[(X[:, 1] < -0.5) if told else (rng.random(1100) < 0.3)] = 0.0
        model = EvidenceMLPRegressor(random_state=0).fit(X[:100], y[:100])
        mean, sd = BayesianRidge().fit(X[:100], y[:100]).predict(X[100:], return_std=True)
        log_density = model.log_predictive_density(X[100:], y[100:])
        assert np.min(log_density) > -50.0
        gains.append(np.mean(log_density - norm.logpdf(y[100:], mean, sd)))
        low, high = model.predict_interval(X[100:]).T
        held.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert np.mean(gains) > 0.3
    assert 0.9 < np.mean(held) < 0.995


@pytest.mark.parametrize("noise", ["constant", "student_t", "input_dependent"])
@pytest.mark.filterwarnings("ignore:.* of the targets equal")
def test_noise_of_rounded_targets(noise):
    """Networks can meet four values exactly; rounding alone has a standard deviation of 1.15."""
    rng = np.random.default_rng(201)
    X = rng.normal(size=(150, 3))
    linear = 2 * X[:, 0] - X[:, 1]
    y = 4 * np.round((linear + 0.2 * rng.normal(size=150)) / 4)
    options = {"noise": noise, "random_state": 0}
    model = EvidenceMLPRegressor((8,), n_restarts=2, method="laplace", **options).fit(X, y)
    assert np.min(model.predict_std(X, kind="aleatoric")) > 0.99 * 4 / np.sqrt(12)
    assert r2_score(linear, model.predict(X)) > 0.8
    sampler = HMCMLPRegressor((), n_draws=20, n_warmup=50, measure_evidence=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.min(sampler.fit(X, y).predict_std(X, kind="aleatoric")) > 0.99 * 4 / np.sqrt(12)


def test_a_ceiling_is_learnt():
    model, _ = fit(CEILING)
    assert model.score(X[TEST], CEILING[TEST]) > 0.9


def test_a_shared_noise_level_has_the_loosest_bounds_of_its_outputs():
    """The zeros of one output bound its own noise by half its range, not the other's."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (100, 1))
    small = np.maximum(0.1 * X[:, 0] + 0.05 * rng.standard_normal(100), 0.0)
    large = 10.0 * X[:, 0] + 5.0 * rng.standard_normal(100)
    for y in (np.column_stack([small, large]), np.column_stack([large, small])):
        with pytest.warns(UserWarning, match="43 % of the targets equal 0"):
            model = EvidenceMLPRegressor((), noise="shared", random_state=0).fit(X, y)
        pooled = np.sqrt(np.mean((model.predict(X) - y) ** 2))
        assert model.noise_std_[0] == pytest.approx(pooled, rel=0.05)


def test_no_other_noise_where_there_is_none():
    """Errors of linear rows without noise follow no law: they are those of the search."""
    y = X[:60] @ [1.0, 2.0, 3.0]
    model = EvidenceMLPRegressor((), random_state=0).fit(X[:60], y)
    assert model.noise_model_ == "constant"
    assert model.score(X, X @ [1.0, 2.0, 3.0]) > 0.99999
    assert model.evidence_report_.predictions.similarity < 0.1


def test_targets_on_a_grid_are_not_rounded():
    """A linear function meets 21 exact values, which no rounding would allow."""
    rng = np.random.default_rng(0)
    y = 0.05 * rng.integers(21, size=300)
    other = rng.normal(size=300)
    X = np.stack([other, y - other + 1e-3 * rng.normal(size=300)], axis=1)
    model = EvidenceMLPRegressor((), noise="constant", method="laplace").fit(X, y)
    assert model.noise_std_ == pytest.approx(1e-3, rel=0.16)  # four standard errors
    assert rounding_error(y, np.ones(300)) > 0.014
