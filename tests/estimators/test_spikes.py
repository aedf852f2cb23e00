"""Targets with a value that many rows share."""

import re
import warnings

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import r2_score

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn._data import canonical_rows
from skbayesnn.estimators.inputs._first_look import FirstLook, rounding_error
from skbayesnn.estimators.inputs._spikes import agreement
from tests.tools import parts_of

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(700, 3))
ZEROS = np.where(RNG.random(700) < 0.7, 0.0, np.exp(1 + X[:, 0] + 0.3 * RNG.normal(size=700)))
SMOOTH = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=700)
CEILING = np.minimum(SMOOTH, np.quantile(SMOOTH, 0.7))
TRAIN, TEST = slice(200), slice(200, None)


def spike_of(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return FirstLook.of(canonical_rows(X, y[:, None], weight)).spikes[0]


def spike(y, weight=None):
    return spike_of(X[: len(y)], y, weight)


def fit(y, **options):
    model = EvidenceMLPRegressor(n_restarts=2, random_state=0, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[TRAIN], y[TRAIN])
    return model, [str(w.message) for w in caught if w.category is UserWarning]


def test_what_a_spike_is():
    zeros, ceiling = spike(ZEROS), spike(CEILING)
    assert (zeros.value, zeros.place) == (0.0, "lowest")
    assert abs(zeros.share - np.mean(ZEROS == 0)) < 1e-12
    assert ceiling.place == "highest"
    assert ceiling.value == CEILING.max()
    assert spike((SMOOTH > 1).astype(float)).two_values
    one = np.r_[SMOOTH[:-1], 5.0]  # weights count rows
    assert spike(one, np.where(one == 5.0, 300.0, 1.0)).value == 5.0


ROUNDED = [np.round(SMOOTH / step) * step for step in (1.0, 0.5, 0.1)]


@pytest.mark.parametrize("y", [*ROUNDED, ZEROS[:20], np.zeros(700), np.r_[SMOOTH[:-1], 5.0]])
def test_what_is_none(y):
    assert spike(y) is None


def test_light_rows_are_none():
    assert spike(ZEROS, np.where(ZEROS == 0, 0.02, 1.0)) is None


def test_noise_has_a_bound_where_inputs_do_not_tell():
    most = spike(np.minimum(SMOOTH, np.quantile(SMOOTH, 0.4)))
    assert spike(ZEROS).agreement < 0.3 < 0.5 < most.agreement
    assert 0.7 < spike(ZEROS).least_noise <= 0.9
    # the other targets have noise of .1, that of CEILING in units of .75
    for limited in (spike(CEILING), most):
        assert 0.05 < limited.least_noise < 0.2


def test_limits_of_linear_functions_of_many_inputs():
    """Nearest neighbours are far: by them alone the agreement is .37, .34 and .34."""
    rng = np.random.default_rng(20)
    X = rng.normal(size=(300, 20))
    function = X[:, 0] + X[:, 1] + 0.05 * rng.normal(size=300)
    for limit in (0.0, -0.8, 0.5):
        assert agreement(X, function < limit) > 0.6
        assert abs(agreement(X, rng.permutation(function < limit))) < 0.2


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
@pytest.mark.filterwarnings("ignore:.* of the targets equal 0")
def test_zeros_that_one_input_tells():
    """Without noise of the others, networks interpolate these: R2 -.18 instead of .5."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1150, 3))
    y = np.where(X[:, 1] < 0.77, 0.0, np.exp(X[:, 0] + 0.2 * rng.normal(size=1150)))
    model = EvidenceMLPRegressor(random_state=0).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > BayesianRidge().fit(X[:150], y[:150]).score(
        X[150:], y[150:]
    )
    low, high = model.predict_interval(X[150:]).T
    assert 0.9 < np.mean((low <= y[150:]) & (y[150:] <= high)) < 0.995


def test_rows_are_not_their_own_neighbours():
    """Of equal rows either may be found first."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(200, 2)), 2, axis=0)
    same = rng.random(400) < 0.5
    pairs = np.mean(same[::2] == same[1::2])
    assert agreement(X, same) < max(2 * pairs - 1, 0) + 0.15


@pytest.mark.filterwarnings("ignore:.* of the targets equal 0.5, the highest value")
def test_left_out_rows_lower_the_least_noise():
    """Neither neighbours nor linear functions show the limit of a product among eight inputs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1250, 8))
    y = np.minimum(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=1250), 0.5)
    new, values = X[250:], y[250:]
    model = EvidenceMLPRegressor((6,), n_restarts=4, random_state=0).fit(X[:250], y[:250])
    first = FirstLook.of(canonical_rows(X[:250], y[:250, None], np.ones(250))).spikes[0].least_noise
    assert 0.45 < first < 0.65
    assert model.noise_std_ < 0.5 * first * y.std()
    assert model.score(new, values) > 0.93
    # with the first bound -.01 and -.25 nats, and intervals hold 99.6 and 99.9 %
    assert np.mean(model.log_predictive_density(new, values)) > 0.3


def test_noise_of_two_values_has_bounds_where_inputs_tell():
    one = np.random.default_rng(0).random(700) < 1 / (1 + np.exp(-4 * SMOOTH))
    y = one.astype(float)
    found = spike(y)
    assert found.agreement > 0.5
    assert found.least_noise == pytest.approx(0.9 * np.sqrt(1 - found.agreement))
    model, _ = fit(y, hidden_layer_sizes=(3,), noise="input_dependent")
    assert model.log_predictive_density(X[TEST], y[TEST]).min() > -10  # -370,000 without
    low, high = model.predict_interval(X[TEST]).T
    assert np.max(high - low) < 3  # 1,900 without


@pytest.mark.filterwarnings("ignore:y has only two values")
def test_classes_that_inputs_separate():
    """Left-out rows would lower the noise, and linearised units vary far beyond their range."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(660, 3))
    y = (X[:, 0] + 0.5 * X[:, 2] ** 2 > 1.0).astype(float)
    options = {"n_restarts": 2, "method": "laplace", "random_state": 0}
    model = EvidenceMLPRegressor((4,), **options).fit(X[:60], y[:60])
    new, values = X[60:], y[60:]
    assert model.score(new, values) > 0.7
    assert np.min(model.log_predictive_density(new, values)) > -12  # -24
    assert np.max(np.diff(model.predict_interval(new))) < 3.1  # 267
    wide = np.argsort(model.predict_std(new))[-20:]
    draws = model.sample_y(new[wide], 4000)  # with the same error bars
    sd = model.predict_std(new[wide], kind="epistemic")
    np.testing.assert_allclose(draws.std(axis=1), sd, rtol=4 / np.sqrt(2 * 4000))


def test_noise_that_varies_has_a_bound_where_inputs_tell():
    """It would shrink on the rows with zeros: the means then need not be right anywhere else."""
    rng = np.random.default_rng(41)
    X = rng.normal(size=(380, 3))
    y = np.where(X[:, 1] < 0.3, 0.0, np.exp(X[:, 0] + 0.2 * rng.normal(size=380)))
    found = spike_of(X[:80], y[:80])
    assert 0.05 < found.least_noise < 0.1
    assert found.least_level(varying=True) == pytest.approx(found.scatter * (1 - found.agreement))
    ridge = BayesianRidge().fit(X[:80], y[:80])
    for noise in ("input_dependent", "student_t"):
        model = EvidenceMLPRegressor((4,), noise=noise, n_restarts=2, random_state=0)
        words = "70 % of the targets equal 0, the lowest value. No .* describes this. If"
        with pytest.warns(UserWarning, match=words):
            model.fit(X[:80], y[:80])
        assert model.score(X[80:], y[80:]) > ridge.score(X[80:], y[80:])
        low, high = model.predict_interval(X[80:]).T
        held = np.mean((low <= y[80:]) & (y[80:] <= high))
        assert held > 0.92  # .87 and .62 without
        assert np.min(model.log_predictive_density(X[80:], y[80:])) > -10  # -227 and -13


def test_targets_over_decades_are_pointed_to_logarithms():
    """Few large targets decide; noise of inputs grows no further than half the range."""
    noise = np.random.default_rng(2).normal(size=len(X))
    y = np.exp(4.6 * (0.9 * X[:, 0] + 0.4 * noise))
    model, (words,) = fit(y, hidden_layer_sizes=(), noise="input_dependent")
    assert re.match(r"Most targets span 6\.\d decades.* func=np.log, inverse_func=np.exp", words)
    assert np.all(model.predict_std(X, kind="aleatoric") <= 0.5001 * np.ptp(y[TRAIN]))
    assert fit(np.exp(SMOOTH), hidden_layer_sizes=())[1] == []
    far = SMOOTH + 3 + 1e4 * (np.arange(700) % 10 == 0)  # outliers span no decades
    assert FirstLook.of(canonical_rows(X, far[:, None], np.ones(700))).warning(far[:, None]) is None


def test_a_spike_of_one_output_leaves_the_others_alone():
    y = np.column_stack([SMOOTH, ZEROS])
    found = FirstLook.of(canonical_rows(X, y, np.ones(len(y))))
    assert found.spikes[1].linear_share == 0.5
    assert found.linear_share == 0.0
    assert str(found.warning(y)).startswith("Output 1 of y: 71 % of the targets equal 0")
    assert FirstLook.of(canonical_rows(X, y[:, 1:], np.ones(len(y)))).linear_share == 0.5


def test_zeros_are_named_and_intervals_stay_sane():
    model, messages = fit(ZEROS)
    (words,) = messages
    assert words.startswith("71 % of the targets equal 0, the lowest value.")
    assert "so only constant noise and linear models are tried" in words
    assert "classifier" in words
    assert model.noise_model_ == "constant"
    interval = model.predict_interval(X[TEST])
    y, reach = ZEROS[TEST], 3 * np.ptp(ZEROS)
    assert interval.min() > -reach
    assert interval.max() < ZEROS.max() + reach
    assert 0.9 < np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) < 0.99
    assert np.all(model.log_predictive_density(X[TEST], y) > -200)


@pytest.mark.parametrize(("kind", "seed"), [(EvidenceMLPRegressor, 1), (HMCMLPRegressor, 2)])
@pytest.mark.filterwarnings("ignore:.* of the targets equal 0", "ignore:.*R-hat")
def test_zeros_are_predicted_as_well_as_by_ridge_regression(kind, seed):
    """Networks would fit the largest targets: with them R2 is below 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1200, 3))
    y = np.where(rng.random(1200) < 0.7, 0.0, np.exp(1 + X[:, 0] + 0.3 * rng.normal(size=1200)))
    model = kind(random_state=0).fit(X[TRAIN], y[TRAIN])
    assert model.hidden_layer_sizes_ == ()
    ridge = BayesianRidge().fit(X[TRAIN], y[TRAIN])
    assert model.score(X[TEST], y[TEST]) > ridge.score(X[TEST], y[TEST]) - 0.02


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
@pytest.mark.parametrize(
    ("n", "seed", "gain"),
    # of R2 over a linear model; in the second set the linear model has the highest evidence
    [(150, 900, 0.05), (150, 901, -0.04), (150, 902, 0.05), (600, 900, 0.05)],
)
@pytest.mark.filterwarnings("ignore:.* of the targets equal 0")
def test_fewer_zeros_among_large_values(n, seed, gain):
    """Networks alone follow the largest targets; linear models alone have R2 of .45 and .6."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 2000, 3))
    y = np.exp(1 + X[:, 0] + 0.3 * rng.normal(size=len(X)))
    y[rng.random(len(X)) < 0.35] = 0.0
    new, mean = X[n:], 0.65 * np.exp(1.045 + X[n:, 0])
    model = EvidenceMLPRegressor(random_state=0).fit(X[:n], y[:n])
    ridge = BayesianRidge().fit(X[:n], y[:n])
    assert r2_score(mean, model.predict(new)) > r2_score(mean, ridge.predict(new)) + gain
    low, high = model.predict_interval(new).T
    assert 0.9 < np.mean((low <= y[n:]) & (y[n:] <= high)) <= 0.99


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.filterwarnings("ignore:y has only two values")
def test_a_rare_one_of_two_values_is_predicted_as_well_as_by_ridge_regression(seed):
    """Networks would follow the few rows that have it: R2 is -.5 and less with them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1300, 3))
    y = (rng.random(1300) < 1 / (1 + np.exp(3.5 - 1.5 * X[:, 0]))).astype(float)
    model = EvidenceMLPRegressor(n_restarts=2, random_state=0).fit(X[:300], y[:300])
    ridge = BayesianRidge().fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > ridge.score(X[300:], y[300:]) - 0.02
    assert not spike((SMOOTH > 0.5).astype(float)).hides_structure  # inputs tell; nor are half rare


def test_no_other_noise_where_there_is_none():
    """Errors of linear rows without noise follow no law: they are those of the search."""
    y = X[:60] @ [1.0, 2.0, 3.0]
    model = EvidenceMLPRegressor((), random_state=0).fit(X[:60], y)
    assert model.noise_model_ == "constant"
    assert model.score(X, X @ [1.0, 2.0, 3.0]) > 0.99999
    assert model.evidence_report_.predictions.similarity < 0.1


def test_counts_are_pointed_to_their_laws():
    counts = np.random.default_rng(0).poisson(0.2 * np.exp(SMOOTH))
    assert fit(counts)[1][0].endswith("noise='poisson' or 'negative_binomial'.")
    for y in (counts + 2, counts / 2, np.minimum(counts, 1), np.clip(np.round(SMOOTH) + 3, 1, 5)):
        assert not any("poisson" in words for words in fit(y)[1])


def test_dispersed_counts_are_pointed_to_their_laws():
    """Without a common value, but with few large ones that decide: linear models have a share."""
    rng = np.random.default_rng(0)
    y = rng.poisson(np.exp(2.0 + 0.5 * X[:, 0]) * rng.exponential(size=len(X))).astype(float)
    code = np.where(rng.random(len(y)) < 0.02, 9999.0, y)
    for targets, named in ((y, True), (y + 2, False), (y + 0.5, False), (code, False)):
        found = FirstLook.of(canonical_rows(X, targets[:, None], np.ones(len(y))))
        words = str(found.warning(targets[:, None]))
        assert words.endswith("noise='poisson' or 'negative_binomial'.") == named
        assert found.linear_share == 0.5 * named
    assert not FirstLook.of(canonical_rows(X, np.round(y[:, None] ** 0.5), np.ones(len(y)))).counts


def test_limits_at_both_ends_are_named():
    """Either value alone is not much more common than the other one."""
    noise = np.random.default_rng(4).normal(size=len(X))
    y = np.clip(2 * X[:, 0] + 0.3 * noise, -1, 1)
    model, (words,) = fit(y)
    assert re.match("3. % of the targets equal -?1, the .*est value, and 3. % equal -?1", words)
    assert "so only constant noise is tried" in words
    low, high = model.predict_interval(X[TEST]).T
    assert np.mean((low <= y[TEST]) & (y[TEST] <= high)) > 0.88
    ratings = np.clip(np.round(3 + X[:, 0] + noise), 1, 5)
    assert spike(ratings) is None


@pytest.mark.filterwarnings("ignore:.* of the targets equal")
def test_limits_of_two_instruments():
    """Neither value is much more common than the other; noise of inputs would shrink on both."""
    rng = np.random.default_rng(46)
    limit = np.where(X[:, 2] > 0, 0.2, -0.3)
    y = np.maximum(X[:, 0] + 0.3 * rng.normal(size=len(X)), limit)
    assert spike(y).value in (-0.3, 0.2)
    model, _ = fit(y, hidden_layer_sizes=(4,))
    assert np.mean(model.log_predictive_density(X[TEST], y[TEST])) > -0.5  # -900 without
    assert np.max(np.diff(model.predict_interval(X[TEST]))) < 3 * np.ptp(y[TRAIN])  # 78 ranges
    for ratings in ([10, 53, 681, 638, 199, 18], [20, 470, 510]):
        values = np.repeat(np.arange(3.0, 3 + len(ratings)), ratings)
        assert spike_of(rng.normal(size=(len(values), 2)), values) is None


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
@pytest.mark.filterwarnings("ignore:.* of the targets equal 0.4")
@pytest.mark.parametrize("seed", [8, 11])
def test_values_below_a_limit_as_half_of_it(seed):
    """The others are lognormal: under constant noise intervals hold 85 and 88 %, R2 .38, .72."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, 3))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=900))
    y[y < 0.8] = 0.4
    model = EvidenceMLPRegressor(random_state=0).fit(X[:150], y[:150])
    assert "student_t" in model.noise_log_evidences_
    shares = [part.network.hidden_layer_sizes == () for part in parts_of(model)]
    assert np.dot(shares, [w.sum() for w in model._ensemble.weights]) == pytest.approx(0.35)
    assert model.score(X[150:], y[150:]) > 0.5
    low, high = model.predict_interval(X[150:]).T
    assert np.mean((low <= y[150:]) & (y[150:] <= high)) > 0.95
    assert np.max(high - low) < 3 * np.ptp(y[:150])


def test_scatter_of_zeros():
    """Zeros anywhere, with probability 0.2, scatter targets about functions by 0.2 * 0.8 E f^2."""
    function = 5 + X[:, 0]
    y = np.where(np.random.default_rng(3).random(700) < 0.2, 0.0, function)
    found = spike(y)
    share, others = np.mean(y == 0), function[y != 0]
    expected = share * (1 - share) * np.mean(others**2) / np.var(y)
    assert found.scatter == pytest.approx(np.sqrt(expected), rel=1e-12)
    assert abs(found.agreement) < 0.1
    assert found.least_noise == pytest.approx(found.scatter, rel=0.05)
    assert found.linear_share == 0.0
    assert spike(np.where(y == 0, 0.0, np.exp(2 * X[:, 0]))).linear_share == 0.5


def test_layers_that_were_asked_for():
    model, _ = fit(ZEROS, hidden_layer_sizes=(2,))
    assert model.hidden_layer_sizes_ == (2,)


def test_a_ceiling_is_learnt():
    model, messages = fit(CEILING)
    assert messages[0].startswith("3")
    assert "the highest value" in messages[0]
    assert model.hidden_layer_sizes_ != ()
    assert model.score(X[TEST], CEILING[TEST]) > 0.9


def test_coarse_rounding():
    step, rng = 4.0, np.random.default_rng(0)
    values = step * np.round(rng.uniform(0, 12, 300) / step)
    ones = np.ones(300)
    assert len(np.unique(values)) == 4
    assert rounding_error(values, ones) == pytest.approx(step / np.sqrt(12))
    assert rounding_error(values[:40], ones[:40] / 4) == 0.0  # ten rows
    assert rounding_error(np.round(rng.normal(size=300), 2), ones) == 0.0  # hardly repeated
    assert rounding_error((values > 4).astype(float), ones) == 0.0  # classes


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


def test_targets_on_a_grid_are_not_rounded():
    """A linear function meets 21 exact values, which no rounding would allow."""
    rng = np.random.default_rng(0)
    y = 0.05 * rng.integers(21, size=300)
    other = rng.normal(size=300)
    X = np.stack([other, y - other + 1e-3 * rng.normal(size=300)], axis=1)
    model = EvidenceMLPRegressor((), noise="constant", method="laplace").fit(X, y)
    assert model.noise_std_ == pytest.approx(1e-3, rel=0.16)  # four standard errors
    assert rounding_error(y, np.ones(300)) > 0.014


def test_left_out_errors_clearly_below_rounding_replace_it():
    y = np.stack([np.arange(300) % 6, np.arange(300) % 7, np.arange(300) / 7.0], axis=1)
    look = FirstLook.of(canonical_rows(X[:300], y, np.ones(300)))
    again = look.with_errors(np.array([0.05, 0.14, 0.01]), np.full(3, 2.0))
    np.testing.assert_allclose(again.rounding, [0.9 * 0.05 * 2.0, 12.0**-0.5, 0.0])


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
