"""Pipelines with the methods of their last step."""

import numpy as np
import pytest
import sklearn.pipeline
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.compose import make_pipeline
from skbayesnn.model_selection import evidence_score

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 2))
Y = X[:, 0] ** 2 + 0.1 * RNG.standard_normal(40)
GRID = RNG.uniform(-1, 1, (5, 2))
LINEAR = EvidenceMLPRegressor((), noise="constant")
CALLS = {  # arguments after the rows
    "predict_std": ("epistemic",),
    "predict_output_cov": (),
    "predict_interval": ([0.5, 0.9],),
    "predict_quantiles": ([0.1, 0.2],),
    "sample_y": (3,),
    "sample_prior": (3,),
    "novelty": (),
    "log_predictive_density": (np.linspace(0, 1, 5),),
}


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(PolynomialFeatures(2), StandardScaler(), clone(LINEAR)).fit(X, Y)


@pytest.mark.parametrize("method", CALLS)
def test_methods(pipeline, method):
    rows = pipeline[:-1].transform(GRID)
    found = getattr(pipeline, method)(GRID, *CALLS[method])
    assert_array_equal(found, getattr(pipeline[-1], method)(rows, *CALLS[method]))


def test_it_is_a_pipeline_of_scikit_learn(pipeline):
    theirs = sklearn.pipeline.Pipeline(pipeline.steps)
    assert isinstance(pipeline, sklearn.pipeline.Pipeline)
    assert_array_equal(
        pipeline.predict(GRID, return_std=True), theirs.predict(GRID, return_std=True)
    )
    assert pipeline.score(X, Y) == theirs.score(X, Y)
    assert pipeline[-1].get_params() == LINEAR.get_params()


def test_evidence(pipeline):
    assert pipeline.log_evidence_ == evidence_score(pipeline) == pipeline[-1].log_evidence_
    assert np.isnan(pipeline.log_evidence_std_) == np.isnan(pipeline[-1].log_evidence_std_)
    assert repr(pipeline.evidence_report_) == repr(pipeline[-1].evidence_report_)


def test_only_what_the_last_step_has():
    classifier = make_pipeline(StandardScaler(), EvidenceMLPClassifier((), n_restarts=1))
    assert not hasattr(classifier, "predict_interval")
    assert hasattr(classifier, "predict_std")
    with pytest.raises(AttributeError) as error:  # not by the inputs of the pipeline
        _ = classifier.predict_gradient
    assert "pipeline[-1].predict_gradient" in str(error.value.__cause__)
    classifier.fit(X, Y > 0.3)
    assert classifier.predict_std(GRID).shape == (5, 2)
    foreign = make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
    assert not hasattr(foreign, "predict_std")
    assert not hasattr(foreign, "log_evidence_")
    with pytest.raises(NotFittedError):
        clone(classifier).predict_std(GRID)
