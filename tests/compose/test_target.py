"""Transformed targets: predictions, densities and evidence in units of the targets."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import lognorm, norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
from skbayesnn.model_selection import EvidenceSearch, compare, evidence_score

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 1))
T = 2 * X[:, 0] + 0.4 * RNG.standard_normal(40)
Y = np.exp(T)
GRID = np.linspace(-1.5, 1.5, 7)[:, None]
LOG = {"func": np.log, "inverse_func": np.exp}
LINEAR = EvidenceMLPRegressor((), noise="constant")


def fit_log(regressor, **parameters):
    return TransformedTargetRegressor(clone(regressor), **LOG, **parameters).fit(X, Y)


@pytest.fixture(scope="module")
def linear():
    return fit_log(LINEAR)


@pytest.fixture(scope="module")
def law(linear):
    """Distribution of the targets at the rows of ``GRID``."""
    mean, std = linear.regressor_.predict(GRID, return_std=True)
    return lognorm(std, scale=np.exp(mean))


CENTRES = np.linspace(0.1, 9, 7)
LEVELS = np.array([0.01, 0.3, 0.9])
LOG_NORMAL = {  # methods, and what they are for log-normal targets
    "predict": (lambda m: m.predict(GRID), lambda law: law.median()),
    "mean": (lambda m: m.predict_distribution(GRID).mean(), lambda law: law.mean()),
    "predict_std": (lambda m: m.predict_std(GRID), lambda law: law.std()),
    "return_std": (lambda m: m.predict(GRID, return_std=True)[1], lambda law: law.std()),
    "quantiles": (
        lambda m: m.predict_quantiles(GRID, LEVELS),
        lambda law: law.ppf(LEVELS[:, None]).T,
    ),
    "support": (
        lambda m: m.predict_distribution(GRID).ppf([0.0, 1.0]),
        lambda law: np.tile([0.0, np.inf], (7, 1)),
    ),
    "interval": (
        lambda m: m.predict_interval(GRID, 0.8),
        lambda law: law.ppf([[0.1], [0.9]]).T,
    ),
    "cdf": (lambda m: m.predict_distribution(GRID).cdf(CENTRES), lambda law: law.cdf(CENTRES)),
    "cdf of no target": (
        lambda m: m.predict_distribution(GRID).cdf(np.linspace(-9, 0, 7)),
        lambda law: np.zeros(7),
    ),
    "density": (
        lambda m: m.log_predictive_density(GRID, CENTRES),
        lambda law: law.logpdf(CENTRES),
    ),
    "entropy": (lambda m: m.predict_distribution(GRID).entropy(), lambda law: law.entropy()),
    "score": (
        lambda m: log_density_scorer(m, GRID, CENTRES),
        lambda law: law.logpdf(CENTRES).mean(),
    ),
}


@pytest.mark.parametrize("name", LOG_NORMAL)
def test_targets_are_log_normal_where_t_is_gaussian(linear, law, name):
    found, expected = LOG_NORMAL[name]
    tol = {"entropy": 1e-6, "density": 1e-9, "score": 1e-9}.get(name, 1e-12)
    assert_allclose(found(linear), expected(law), rtol=1e-10, atol=tol)


def test_the_mean_is_predicted_on_request(linear, law):
    mean = clone(linear).set_params(prediction="mean").fit(X, Y)
    centre, std = mean.predict(GRID, return_std=True)
    assert_allclose(centre, law.mean(), rtol=1e-12)
    assert_array_equal(std, linear.predict_std(GRID))


def test_crps(linear):
    def square(z, row, y):
        return (linear.predict_distribution(row).cdf([z])[0] - (z >= y)) ** 2

    for row, y in ((GRID[[0]], 0.5), (GRID[[3]], 2.75)):
        integral = quad(square, 0, 60, args=(row, y), points=[y], limit=200)[0]
        assert_allclose(-neg_crps_scorer(linear, row, [y]), integral, rtol=2e-3)


class TestEvidence:
    def test_slopes_are_added(self, linear):
        plain = clone(LINEAR).fit(X, T)
        assert linear.log_evidence_ == pytest.approx(plain.log_evidence_ - T.sum(), abs=1e-9)
        assert_allclose(linear.log_slopes_, -T, atol=1e-10)
        expected = plain.leave_one_out_log_density_ - T
        assert_allclose(linear.leave_one_out_log_density_, expected, atol=1e-9)

    @pytest.mark.parametrize("transformer", [StandardScaler(), PowerTransformer()])
    def test_weights_reach_transformers(self, transformer):
        """Transformers get ``sample_weight`` if they take it, else rows of positive weight."""
        weight = np.where(np.arange(40) < 25, 1.0, 0.0)
        model = TransformedTargetRegressor(clone(LINEAR), transformer=transformer)
        some = clone(model).fit(X[:25], Y[:25])
        model.fit(X, Y, sample_weight=weight)
        assert model.log_evidence_ == pytest.approx(some.log_evidence_, abs=1e-9)
        assert_allclose(model.predict(GRID), some.predict(GRID), rtol=1e-9)

    def test_report(self, linear):
        report, inner = linear.evidence_report_, linear.regressor_.evidence_report_
        assert report.log_evidence == linear.log_evidence_
        assert report.minima[0].terms.total == pytest.approx(report.minima[0].log_evidence)
        assert report.target_scale == pytest.approx(inner.target_scale - T.sum(), abs=1e-9)
        assert report.minima[0].bic == pytest.approx(inner.minima[0].bic - T.sum(), abs=1e-9)
        assert "Noise" not in repr(report)
        assert "Noise" in repr(inner)
        search = fit_log(EvidenceSearch(LINEAR, {"prior": ["layer"]}))
        assert repr(search.evidence_report_) == repr(linear.evidence_report_)

    def test_the_true_transformation_is_chosen(self):
        transformers = [
            None,
            FunctionTransformer(np.log, np.exp),
            FunctionTransformer(np.sqrt, np.square),
        ]
        model = TransformedTargetRegressor(clone(LINEAR))
        search = EvidenceSearch(model, {"transformer": transformers}).fit(X, Y)
        assert search.best_index_ == 1
        assert search.best_score_ == pytest.approx(fit_log(LINEAR).log_evidence_)
        assert_array_equal(search.predict_interval(GRID), fit_log(LINEAR).predict_interval(GRID))
        table = compare(search.estimators_)
        assert table["model"][0] == "1"
        assert table["n_weights"][0] == 2
        by_folds = [
            cross_val_score(m, X, Y, scoring=log_density_scorer, cv=4).mean()
            for m in search.estimators_[:2]
        ]
        assert by_folds[1] > by_folds[0]


def test_in_and_around_pipelines():
    inside = TransformedTargetRegressor(make_pipeline(StandardScaler(), clone(LINEAR)), **LOG)
    around = make_pipeline(StandardScaler(), TransformedTargetRegressor(clone(LINEAR), **LOG))
    weight = np.arange(40) % 3
    inside.fit(X, Y, sample_weight=weight)
    step = "transformedtargetregressor"
    around.fit(X, Y, **{f"{step}__sample_weight": weight})
    assert inside.predict_interval(GRID).shape == (7, 2)
    _, std = around.predict(GRID, return_std=True)
    assert np.all(std > 0)
    slopes = -weight @ T
    assert inside.log_evidence_ - inside.regressor_[-1].log_evidence_ == pytest.approx(slopes)
    assert evidence_score(around) == around[-1].log_evidence_


def test_several_outputs():
    """One increases, the other decreases."""
    y = np.column_stack([Y, np.exp(-T) + 1.0])

    def forward(y):
        return np.column_stack([np.log(y[:, 0]), -np.log(y[:, 1] - 1.0)])

    def inverse(t):
        return np.column_stack([np.exp(t[:, 0]), np.exp(-t[:, 1]) + 1.0])

    model = TransformedTargetRegressor(clone(LINEAR), func=forward, inverse_func=inverse).fit(X, y)
    inner = model.regressor_
    interval, ends = (
        model.predict_interval(GRID, [0.5, 0.9]),
        inner.predict_interval(GRID, [0.5, 0.9]),
    )
    assert interval.shape == (7, 2, 2, 2)
    assert_allclose(interval[:, 0], np.exp(ends[:, 0]), rtol=1e-12)
    assert_allclose(interval[:, 1], np.exp(-ends[:, 1, :, ::-1]) + 1.0, rtol=1e-9)
    assert model.predict(GRID).shape == model.predict_std(GRID).shape == (7, 2)
    assert model.sample_y(GRID, 3).shape == (7, 2, 3)
    cdf = model.predict_distribution(GRID).cdf(interval[:, :, 1, 0])
    assert_allclose(cdf, 0.05, rtol=1e-6)
    drawn = model.predict_distribution(GRID).rvs(4000)
    share = np.mean(drawn < interval[:, :, 0, 1], axis=0)
    assert np.all(np.abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000))
    slopes = -T - np.log(y[:, 1] - 1.0)
    density = inner.log_predictive_density(X, forward(y)) + slopes
    assert_allclose(model.log_predictive_density(X, y), density, atol=1e-8)
    assert model.log_evidence_ == pytest.approx(inner.log_evidence_ + slopes.sum(), abs=1e-8)


def test_values_beyond_the_transformation_are_its_end():
    y = (0.2 + T - T.min()) ** 2
    model = TransformedTargetRegressor(clone(LINEAR), func=np.sqrt, inverse_func=np.square).fit(
        X, y
    )
    low, high = model.predict_interval([[-1.0]], 0.999)[0]
    assert 0 <= low < 1e-9
    assert high > 0.1
    assert np.all(np.isfinite(model.predict(np.array([[-50.0], [50.0]]))))


def test_no_slope():
    quantiles = QuantileTransformer(n_quantiles=10, output_distribution="normal")
    model = TransformedTargetRegressor(clone(LINEAR), transformer=quantiles)
    with pytest.warns(UserWarning, match="no finite slope at some training targets"):
        model.fit(X, Y)
    assert np.isnan(model.log_evidence_)
    assert np.all(np.isfinite(model.predict_interval(GRID)))
    with pytest.raises(ValueError, match="no finite slope at y = "):
        model.log_predictive_density(X, Y)


def test_moments_leave_out_networks_with_student_t_noise(as_users_fit):
    """Networks of other noise models predict beside those of the model that is chosen."""
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((80, 2))
    y = np.exp(inputs[:, 0] + 0.2 * rng.standard_normal(80))
    model = TransformedTargetRegressor(EvidenceMLPRegressor(random_state=0), **LOG).fit(inputs, y)
    inner = model.regressor_
    assert inner.noise_model_ == "constant"
    heavy = [part.noise.heavy_tails for part in inner._ensemble.parts]
    assert any(heavy)
    gaussian = inner._ensemble.with_moments
    assert len(gaussian.parts) == len(heavy) - sum(heavy)
    assert sum(w.sum() for w in gaussian.weights) == pytest.approx(1.0, rel=1e-12)
    mean, std = model.predict_distribution(inputs[:1]).expect(lambda y: y)
    row = inner._X_scaling.transform(inputs[:1])

    def moment(power):
        def integrand(t):
            density = np.exp(gaussian.log_density(row, np.array([[t]]))[0])
            return density * np.exp(power * inner._y_scaling.inverse(np.array([[t]]))[0, 0])

        return quad(integrand, -8.0, 8.0, limit=200)[0]

    assert mean[0] == pytest.approx(moment(1), rel=1e-6)
    assert std[0] == pytest.approx(np.sqrt(moment(2) - moment(1) ** 2), rel=1e-5)
    assert_array_equal(model.predict(inputs[:1], return_std=True)[1], std)


POWERS = {  # targets, transformer; the power that is fitted has a pole where t is finite
    "box-cox": (1.0 / (4.0 + T), PowerTransformer("box-cox")),
    "yeo-johnson": (np.exp(1.0 + T), PowerTransformer()),
    "yeo-johnson, skewed to the left": (-np.exp(1.0 + T), PowerTransformer()),
    "reciprocal": (1.0 / (6.0 + T), FunctionTransformer(np.reciprocal, np.reciprocal)),
    "arctan": (np.tan(T / 8.0), FunctionTransformer(np.arctan, np.tan)),
    "logarithm": (
        -np.log(6.0 - T),
        FunctionTransformer(lambda y: -np.exp(-y), lambda t: -np.log(-t)),
    ),
}


@pytest.mark.parametrize("name", POWERS)
def test_moments_behind_a_pole(name):
    """They are right where the pole is out of reach, and missing where it is not."""
    y, transformer = POWERS[name]
    model = TransformedTargetRegressor(clone(LINEAR), transformer=transformer).fit(X, y)
    known, inner, rows = model._map, model.regressor_, np.linspace(-12.0, 12.0, 49)[:, None]
    t, sd = inner.predict(rows, return_std=True)
    finite = [end for end in (known.lower[0], known.upper[0]) if np.isfinite(end)]
    far = np.min([np.abs(t - end) / sd for end in finite], axis=0)
    beyond = np.any([np.sign(t - end) != np.sign(t[24] - end) for end in finite], axis=0)
    at = model.predict_distribution(rows)
    with pytest.warns(UserWarning, match="moments are nan"):
        mean, std = at.mean(), at.std()
    assert np.isnan(mean[beyond | (far < 6.0)]).all()
    assert np.isnan(std[beyond | (far < 6.0)]).all()
    assert (beyond | (far < 6.0)).any()
    near = ~beyond & (far > 15.0)
    assert near.any()
    z, step = np.linspace(-10.0, 10.0, 4001, retstep=True)
    share = norm.pdf(z) * step
    for row in np.flatnonzero(near):
        values = known.back(t[row] + sd[row] * z)
        assert mean[row] == pytest.approx(share @ values, rel=1e-5)
        expected = np.sqrt(share @ (values - mean[row]) ** 2)
        assert std[row] == pytest.approx(expected, rel=1e-4)
    assert np.isfinite(at.expect(np.tanh)[0]).all()  # bounded functions have moments everywhere
    assert np.all(np.diff(at.interval()) >= 0)
    with pytest.warns(UserWarning, match="Use quantiles or intervals"):
        model.set_params(prediction="mean").predict(rows)


def test_inverse_that_grows_too_fast_for_moments():
    """The mean of ``exp(exp(t))`` is infinite for a Gaussian; there is no pole."""
    functions = {"func": lambda y: np.log(np.log(y)), "inverse_func": lambda t: np.exp(np.exp(t))}
    model = TransformedTargetRegressor(clone(LINEAR), **functions).fit(X, np.exp(np.exp(T / 2)))
    with pytest.warns(UserWarning, match="moments are nan"):
        assert np.isnan(model.predict_std([[1.0]])).all()


@pytest.mark.parametrize("noise", ["constant", "student_t"])
@pytest.mark.parametrize("functions", [(np.log, np.exp), (logit, expit), (np.arcsinh, np.sinh)])
def test_entropy(noise, functions):
    model = TransformedTargetRegressor(
        EvidenceMLPRegressor((), noise=noise), func=functions[0], inverse_func=functions[1]
    ).fit(X, functions[1](T))
    at, size = model.predict_distribution(GRID[::3]), 20_000
    drawn, entropy = at.rvs(size, random_state=1), at.entropy()
    for row in range(3):
        losses = -at[np.full(size, row)].logpdf(drawn[:, row])
        error = losses.std() / np.sqrt(size)
        assert abs(losses.mean() - entropy[row]) < 4 * error + 0.01


@pytest.mark.parametrize("error", [ValueError, ArithmeticError, UserWarning])
@pytest.mark.filterwarnings("error")
def test_functions_that_refuse_targets(error):
    """They are never called with targets that nobody gave, or their errors are taken as no."""

    def forward(y):
        if np.any(y < 0.01) or np.any(y > 1e3):
            if error is UserWarning:
                warnings.warn("no such target", stacklevel=1)
            else:
                raise error("no such target")
        return np.log(y)

    functions = {"func": forward, "inverse_func": np.exp}
    model = TransformedTargetRegressor(clone(LINEAR), **functions).fit(X, Y)
    assert_allclose(model.log_slopes_, -T, atol=1e-6)
    at = model.predict_distribution(GRID)
    assert np.isfinite([at.ppf(0.9), at.entropy(), at.std()]).all()
    assert_allclose(at.cdf(at.ppf(0.6)), 0.6, rtol=1e-6)


def test_a_curve_at_one_row(linear, law):
    at, y = linear.predict_distribution(GRID[3:4]), np.array([[0.2, 1.0, 2.0], [3.0, 4.0, 5.0]])
    expected = lognorm(*(law.kwds.get("s", law.args[0])[3:4],), scale=law.kwds["scale"][3])
    for name in ("pdf", "logpdf", "cdf", "sf"):
        assert_allclose(getattr(at, name)(y), getattr(expected, name)(y), atol=1e-9)


def test_student_t_noise_has_no_moments():
    model = fit_log(EvidenceMLPRegressor((), noise="student_t"))
    assert np.all(model.predict_interval(GRID) > 0)
    with pytest.raises(ValueError, match="Student-t noise, under which the mean"):
        model.predict_std(GRID)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"prediction": "mode"}, ValueError, "prediction must be one of 'median', 'mean'"),
        ({"func": np.log}, ValueError, "must be given together"),
        ({"inverse_func": np.log}, ValueError, "must be given together"),
        ({"transformer": StandardScaler(), **LOG}, ValueError, "not both"),
        ({"regressor": LinearRegression()}, TypeError, "regressor must be a regressor of this"),
        (
            {"regressor": EvidenceMLPClassifier()},
            TypeError,
            "regressor must be a regressor of this",
        ),
        ({"func": np.log, "inverse_func": np.exp2}, ValueError, "do not lead back to y"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        TransformedTargetRegressor(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: clone(m).fit(X, T), "not finite at y = "),
        (lambda m: m.log_predictive_density(GRID[:1], [-1.0]), "not finite at y = "),
        (lambda m: m.predict_distribution(GRID).cdf(np.ones((7, 2))), "y has 2 outputs, the model"),
        (lambda m: m.predict_distribution(GRID).expect(lambda y: y[:1]), "must return finite num"),
        (lambda m: m.predict_std(GRID, "epistemic"), "kind must be 'total'"),
        (lambda m: m.predict_interval(GRID, measurement_std=1.0), "exposure are not supported"),
        (lambda m: clone(m).predict(X), "is not fitted yet"),  # NotFittedError
    ],
)
def test_bad_data(linear, call, message):
    with pytest.raises(ValueError, match=message):
        call(linear)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        TransformedTargetRegressor(
            EvidenceMLPRegressor((), noise="constant", method="laplace"),
            func=np.arcsinh,
            inverse_func=np.sinh,
        )
    ]
)
def test_check_estimator(estimator, check):
    check(estimator)
