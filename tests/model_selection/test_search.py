"""Search by evidence: the table, the choice, what predicts, and failures."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Solver
from skbayesnn.active_learning import information_gain
from skbayesnn.estimators import AveragedRegressor
from skbayesnn.model_selection import AllData, EvidenceSearch, evidence_score

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (60, 1))
Y = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(60)
GRID = np.linspace(-4, 4, 9)[:, None]
LABELS = np.where(np.abs(X[:, 0]) + 0.5 * RNG.standard_normal(60) < 1.5, "in", "out")
WIDTHS = {"hidden_layer_sizes": [(), (2,), (3,)]}
REGRESSOR = EvidenceMLPRegressor(n_restarts=2, random_state=0)
CLASSIFIER = EvidenceMLPClassifier(n_restarts=2, random_state=0)
FEW = {"n_chains": 2, "n_warmup": 30, "n_draws": 30, "random_state": 0}


@pytest.fixture(scope="module")
def search():
    return EvidenceSearch(REGRESSOR, WIDTHS).fit(X, Y)


@pytest.fixture(scope="module")
def classifier():
    return EvidenceSearch(CLASSIFIER, WIDTHS).fit(X, LABELS)


class TestTable:
    def test_evidences_are_those_of_single_fits(self, search):
        for params, found, model in zip(
            search.results_["params"],
            search.results_["log_evidence"],
            search.estimators_,
            strict=True,
        ):
            single = clone(REGRESSOR).set_params(**params).fit(X, Y)
            assert found == single.log_evidence_ == model.log_evidence_
            assert_array_equal(model.predict(GRID), single.predict(GRID))

    def test_choice(self, search):
        best = np.argmax(search.results_["log_evidence"])
        assert search.best_index_ == best
        assert search.best_params_ == search.results_["params"][best] != {"hidden_layer_sizes": ()}
        assert search.best_score_ == search.results_["log_evidence"][best]
        assert search.best_estimator_ is search.estimators_[best]
        assert search.results_["rank_log_evidence"][best] == 1
        assert sorted(search.results_["rank_log_evidence"]) == [1, 2, 3]

    @pytest.mark.usefixtures("as_users_fit")
    @pytest.mark.filterwarnings("ignore:The evidence of the best candidate is doubtful")
    def test_every_evidence_is_measured_as_asked(self):
        """Laplace's approximation may be off by more than candidates differ."""
        search = EvidenceSearch(REGRESSOR, {"hidden_layer_sizes": [(1,), (2,), (3,)]}).fit(X, Y)
        assert search.results_["log_evidence"][0] < search.best_score_ - 15.0
        assert np.isfinite(search.results_["log_evidence_std"]).all()
        assert all(model.noise == model.method == "auto" for model in search.estimators_)

    def test_probabilities_and_evidence_of_the_family(self, search):
        evidences = search.results_["log_evidence"]
        assert_allclose(search.results_["posterior_probability"], softmax(evidences), rtol=1e-12)
        assert search.log_evidence_ == pytest.approx(logsumexp(evidences) - np.log(3), rel=1e-12)

    def test_terms_add_up_to_the_evidence_of_the_best_minimum(self, search):
        terms = [column for name, column in search.results_.items() if name.startswith("term_")]
        best = [model.evidence_report_.minima[0].log_evidence for model in search.estimators_]
        assert len(terms) == 8
        assert_allclose(np.sum(terms, axis=0), best, rtol=1e-12)

    def test_data_frame(self, search):
        frame = pd.DataFrame(search.results_)
        assert len(frame) == 3
        assert frame["param_hidden_layer_sizes"].tolist() == WIDTHS["hidden_layer_sizes"]
        assert frame["n_weights"].iloc[0] == 2
        assert (frame["n_effective_weights"] < frame["n_weights"]).all()
        assert (frame["fit_time"] > 0).all()
        assert frame["verdict"].iloc[0].startswith("misses structure")  # a line through a curve
        assert frame["weight"].sum() == 1


class TestPrediction:
    def test_the_best_candidate_predicts(self, search):
        best = search.best_estimator_
        for got, wanted in zip(
            search.predict(GRID, return_std=True), best.predict(GRID, return_std=True), strict=True
        ):
            assert_array_equal(got, wanted)
        assert_array_equal(search.predict_interval(GRID, 0.5), best.predict_interval(GRID, 0.5))
        assert_array_equal(search.predict_gradient(GRID), best.predict_gradient(GRID))
        assert_array_equal(information_gain(search, GRID), information_gain(best, GRID))
        assert str(search.evidence_report_) == str(best.evidence_report_)
        assert search.score(X, Y) == best.score(X, Y) > 0.8

    def test_derivatives_and_novelty_of_averages(self, search):
        average = AveragedRegressor(search.estimators_, np.array([0.2, 0.3, 0.5]))
        parts = [model.predict_gradient(GRID, return_std=True) for model in search.estimators_]
        means, stds = np.stack(parts, axis=1)
        mean, std = average.predict_gradient(GRID, return_std=True)
        assert_allclose(mean, np.tensordot(average.weights, means, 1))
        assert_allclose(std**2, np.tensordot(average.weights, stds**2 + (means - mean) ** 2, 1))
        assert_array_equal(
            average.novelty(GRID, return_distance=True)[1],
            search.estimators_[2].novelty(GRID, return_distance=True)[1],
        )
        piped = AveragedRegressor([make_pipeline(search.estimators_[0])], np.ones(1))
        with pytest.raises(ValueError, match="pipelines"):
            piped.predict_gradient(GRID)

    def test_classifier(self, classifier):
        best, probabilities = classifier.best_estimator_, ("predict_proba", "predict_log_proba")
        for method in ("predict", *probabilities, "decision_function", "predict_std"):
            assert_array_equal(getattr(classifier, method)(GRID), getattr(best, method)(GRID))
        assert_array_equal(classifier.classes_, ["in", "out"])
        assert classifier.score(X, LABELS) == best.score(X, LABELS) > 0.7
        assert is_classifier(classifier)

    def test_methods_that_the_estimator_lacks(self, search, classifier):
        for unfitted, fitted, absent in (
            (EvidenceSearch(REGRESSOR, WIDTHS), search, "predict_proba"),
            (EvidenceSearch(CLASSIFIER, WIDTHS), classifier, "predict_interval"),
        ):
            assert not hasattr(unfitted, absent)
            assert not hasattr(fitted, absent)
            assert hasattr(unfitted, "predict_std")
        assert is_regressor(search)
        with pytest.raises(NotFittedError):
            EvidenceSearch(REGRESSOR, WIDTHS).predict(GRID)

    def test_pipeline(self):
        pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(), clone(REGRESSOR))
        pipeline.set_params(evidencemlpregressor__hidden_layer_sizes=())
        grid = {"polynomialfeatures__degree": [1, 3, 5]}
        search = EvidenceSearch(pipeline, grid).fit(X, Y)
        assert search.best_params_ == {"polynomialfeatures__degree": 3}
        best = search.best_estimator_
        features = best[:-1].transform(GRID)
        assert_array_equal(search.predict_std(GRID), best[-1].predict_std(features))
        assert_array_equal(search.predict(GRID), best.predict(GRID))
        with pytest.raises(AttributeError) as error:  # not by the inputs of the pipeline
            _ = search.predict_gradient
        assert "pipeline[-1].predict_gradient" in str(error.value.__cause__)

    @pytest.mark.slow
    def test_any_number_of_processes(self, search):
        options = {"method": "laplace", "combine": "tempered"}  # in all processes
        unmeasured = clone(REGRESSOR).set_params(**options)
        other = EvidenceSearch(unmeasured, WIDTHS, n_jobs=2).fit(X, Y)
        assert_array_equal(other.results_["log_evidence"], search.results_["log_evidence"])
        assert_array_equal(other.predict(GRID), search.predict(GRID))


class TestScikitLearnsSearch:
    def test_same_choice(self, search):
        grid = GridSearchCV(REGRESSOR, WIDTHS, scoring=evidence_score, cv=AllData()).fit(X, Y)
        assert grid.best_params_ == search.best_params_
        assert grid.best_score_ == search.best_score_
        assert_array_equal(grid.cv_results_["mean_test_score"], search.results_["log_evidence"])

    def test_score_of_a_pipeline_and_of_a_search(self, search):
        pipeline = make_pipeline(StandardScaler(), clone(REGRESSOR)).fit(X, Y)
        assert evidence_score(pipeline, X, Y) == pipeline[-1].log_evidence_
        assert evidence_score(search) == search.log_evidence_

    def test_models_without_evidence(self):
        with pytest.raises(TypeError, match="LinearRegression has no log_evidence_"):
            evidence_score(LinearRegression().fit(X, Y), X, Y)
        with pytest.raises(NotFittedError):
            evidence_score(REGRESSOR, X, Y)


class TestTrouble:
    def test_some_candidates_fail(self):
        with pytest.warns(FitFailedWarning, match=r"1 of 2 candidates failed.*positive integers"):
            search = EvidenceSearch(REGRESSOR, {"hidden_layer_sizes": [(2,), (0,)]}).fit(X, Y)
        assert search.estimators_[1] is None
        assert np.isnan(search.results_["log_evidence"][1])
        assert search.results_["posterior_probability"].tolist() == [1.0, 0.0]
        assert search.results_["rank_log_evidence"].tolist() == [1, 2]
        assert search.results_["verdict"][1].startswith("failed: ValueError: hidden_layer_sizes")
        assert search.log_evidence_ == pytest.approx(search.best_score_ - np.log(2))

    def test_all_candidates_fail(self):
        with pytest.raises(ValueError, match="NaN") as failure:
            EvidenceSearch(REGRESSOR, WIDTHS).fit(np.full_like(X, np.nan), Y)
        assert "All 3 candidates failed" in failure.value.__notes__[0]

    def test_no_candidate_has_an_evidence(self):
        model = EvidenceMLPRegressor(
            (4,), activation="identity", n_restarts=1, solver=Solver(max_iter=3)
        )
        with (
            pytest.warns(UserWarning, match="log_evidence_ is nan"),
            pytest.raises(ValueError, match="No candidate has an evidence"),
        ):
            EvidenceSearch(model, {"random_state": [0]}).fit(X, Y)

    def test_a_choice_that_is_doubtful(self):
        model = EvidenceMLPRegressor(n_restarts=1, random_state=0, method="laplace")
        with pytest.warns(ConvergenceWarning, match="best candidate is doubtful"):
            search = EvidenceSearch(model, {"hidden_layer_sizes": [(3,)]}).fit(X[:12], Y[:12])
        assert search.results_["verdict"][0].startswith("doubtful")

    @pytest.mark.parametrize(
        ("verdict", "gap", "std", "doubt"),
        [
            ("trusted", 0.1, 0.3, None),
            ("measured to +- 0.8 nats", 5.4, 0.8, None),
            ("measured to +- 0.8 nats", 2.0, 0.8, "leads by 2.0 nats; above 2.3 would count"),
            ("doubtful: few targets", 50.0, np.nan, "doubtful"),
        ],
    )
    def test_a_choice_is_doubtful_if_another_seed_could_change_it(self, verdict, gap, std, doubt):
        search = EvidenceSearch(REGRESSOR, WIDTHS)
        evidences = np.array([-10.0 - gap, -10.0, np.nan])
        search.best_index_ = 1
        search.results_ = {
            "verdict": np.array([verdict] * 3),
            "log_evidence_std": np.full(3, std),
            "evidence_from": ["Laplace" if np.isnan(std) else "sampling"] * 3,
        }
        found = search._doubt(evidences)
        assert found is None if doubt is None else doubt in found

    @pytest.mark.usefixtures("as_users_fit")
    def test_measured_and_approximate_evidences_are_not_compared_in_silence(self):
        model = EvidenceMLPRegressor((3,), n_restarts=1, noise="constant", random_state=0)
        grid = {"method": ["population", "laplace"]}
        with pytest.warns(ConvergenceWarning, match="1 evidences are measured, 1 others"):
            EvidenceSearch(model, grid).fit(X[:30], Y[:30])
        exact = {"hidden_layer_sizes": [(), (3,)]}  # Laplace's approximation is exact for one
        search = EvidenceSearch(model, exact).fit(X[:30], Y[:30])
        assert search.results_["evidence_from"].tolist() == ["closed form", "sampling"]

    def test_estimators_without_evidence(self):
        with pytest.raises(TypeError, match="Ridge has no log_evidence_"):
            EvidenceSearch(Ridge(), {"alpha": [1.0]}).fit(X, Y)

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"combine": "mean"}, ValueError, "combine must be one of"),
            ({"param_grid": {"hidden": [(2,)]}}, ValueError, "Invalid parameter 'hidden'"),
            ({"estimator": Ridge(), "combine": "equal", "param_grid": {}}, TypeError, "Ridge"),
            (
                {"estimator": HMCMLPRegressor(), "combine": "stacking"},
                TypeError,
                "needs evidence estimators of this package",
            ),
            (
                {"estimator": HMCMLPRegressor(), "combine": "tempered"},
                TypeError,
                "needs evidence estimators of this package",
            ),
        ],
    )
    def test_bad_parameters(self, parameters, error, message):
        search = EvidenceSearch(REGRESSOR, WIDTHS).set_params(**parameters)
        with pytest.raises(error, match=message):
            search.fit(X, Y)
        assert not hasattr(search, "results_")


def test_progress(capsys):
    grid = {"hidden_layer_sizes": [(), (0,)]}
    with pytest.warns(FitFailedWarning):
        EvidenceSearch(REGRESSOR, grid, verbose=1).fit(X, Y)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[1/2] hidden_layer_sizes=(): log evidence -")
    assert "misses structure" in first
    assert second.startswith("[2/2] hidden_layer_sizes=(0,): failed: hidden_layer_sizes must be")


class ConstantEvidence(RegressorMixin, BaseEstimator):
    """An estimator whose log evidence is given."""

    def __init__(self, value=0.0):
        self.value = value

    def fit(self, X, y):
        self.log_evidence_ = self.value
        return self


def test_estimators_of_others_can_be_searched():
    model = make_pipeline(StandardScaler(), ConstantEvidence())
    search = EvidenceSearch(model, {"constantevidence__value": [1.0, 2.0]}).fit(X, Y)
    assert search.best_score_ == 2.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        EvidenceSearch(
            EvidenceMLPRegressor((), method="laplace", random_state=0),
            {"prior__precision": [0.1, 1.0]},
            combine="stacking",
        )
    ]
)
def test_check_estimator(estimator, check):
    check(estimator)


def test_three_classes_and_sample_weight():
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(X))
    grid = {"hidden_layer_sizes": [(), (1,)]}
    model = EvidenceMLPClassifier(n_restarts=1, solver=Solver(max_iter=50), random_state=0)
    for combine in ("evidence", "stacking", "tempered"):
        search = EvidenceSearch(model, grid, combine=combine)
        weighted = clone(search).fit(X, y, sample_weight=weight)
        rows = np.repeat(np.arange(len(X)), weight)
        repeated = clone(search).fit(X[rows], y[rows])
        assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-9)
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
