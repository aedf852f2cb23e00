"""Code of users with the types that they get; checked by mypy, never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
    Solver,
)
from skbayesnn.active_learning import select
from skbayesnn.basis import LegendreFeatures
from skbayesnn.displays import CalibrationDisplay, PredictiveDisplay
from skbayesnn.metrics import interval_coverage
from skbayesnn.model_selection import EvidenceSearch, compare
from skbayesnn.posterior import Gamma, LogUniform

X, y = [[0.0], [1.0]], np.zeros(2)

model = EvidenceMLPRegressor((4, 4), prior=[0, 1, 1], noise={0: 0.1}, random_state=0)
assert_type(model.fit(X, y, sample_weight=[1, 2]), EvidenceMLPRegressor)
mean, std = model.predict(X, return_std=True)
assert_type(model.predict_interval(X, coverage=0.9), NDArray[Any])
assert_type(model.sample_y(X, 3, random_state=np.random.RandomState(0)), NDArray[Any])
EvidenceMLPRegressor("auto", max_time=10, n_jobs=-1)
prior = Prior("ard", mean=1.0, base_precision=[1], hyperprior={"output": LogUniform(0.1, 10.0)})
HMCMLPRegressor((), fit_intercept=False, prior=prior, noise=Noise(hyperprior=Gamma(2.0, 1.0)))
EvidenceMLPClassifier(solver=Solver("exact", max_iter=1000), prior=model)
HMCMLPRegressor(sampler=Sampler("hmc", n_steps=(1, 4), init=model), noise=0.1)
assert_type(model.set_params(prior__kind="ard"), EvidenceMLPRegressor)
assert_type(model.predict_std(X, measurement_std=0.1), NDArray[Any])
EvidenceMLPRegressor(hidden_layer_sizes=2.5)  # type: ignore[arg-type]

classifier = EvidenceMLPClassifier(random_state=0).fit(X, ["a", "b"])
assert_type(classifier, EvidenceMLPClassifier)
assert_type(classifier.predict_proba(X), NDArray[Any])
assert_type(HMCMLPRegressor.from_evidence(model, n_draws=10), HMCMLPRegressor)

assert_type(interval_coverage(y, [[0, 1], [0, 1]]), float)
EvidenceSearch(model, {"prior": ["layer", "ard"]}, combine="tempered").fit(X, y)
compare({"one": model})
select(model, X, 2)
LegendreFeatures(3).fit_transform(X)

assert_type(CalibrationDisplay.from_pit([0.2, 0.7]), CalibrationDisplay)
assert_type(PredictiveDisplay.from_estimator(model, X, y).plot(), PredictiveDisplay)
