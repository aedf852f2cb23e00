import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import rel_entr, softmax
from scipy.stats import norm

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, Prior
from skbayesnn.active_learning import model_discrimination
from skbayesnn.predictive import Ensemble
from tests.active_learning.exact import table_information
from tests.active_learning.fitted import blank, candidates, constants, data, evidence, sampled
from tests.tools import parts_of, with_ensemble

pytestmark = pytest.mark.usefixtures("laplace")

X = candidates()


def linear(task):
    regression = task in ("one", "two")  # Student-t noise would count as Gaussian
    model = EvidenceMLPRegressor((), noise="constant") if regression else EvidenceMLPClassifier(())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(task))


@pytest.mark.parametrize("first", [evidence, sampled])
def test_several_outputs(first):
    """The second output is the same for both models: only the first tells them apart."""
    A, y = data("two")
    common = {"prior": Prior(precision=1.0), "standardize": False, "noise": {0: 0.3, 1: 0.5}}
    two = [
        EvidenceMLPRegressor((), **common).fit(A, np.column_stack([target, y[:, 1]]))
        for target in (y[:, 0], y[:, 0] + 0.4 * A[:, 0])
    ]
    common["noise"] = 0.3
    one = [
        EvidenceMLPRegressor((), **common).fit(A, target)
        for target in (y[:, 0], y[:, 0] + 0.4 * A[:, 0])
    ]
    assert_allclose(model_discrimination(*two, X), model_discrimination(*one, X), atol=2e-3)
    model = first("two")
    assert_allclose(model_discrimination(model, model, X), 0.0, atol=1e-12)
    gains = model_discrimination(model, linear("two"), X)
    assert np.all(gains > 0)
    assert np.all(gains < np.log(2))


@pytest.mark.parametrize("task", ["binary", "three"])
@pytest.mark.parametrize("first", [evidence, sampled])
def test_classification(task, first):
    models, P = (first(task), linear(task)), np.array([0.25, 0.75])
    exact = model_discrimination(*models, X, probabilities=P)
    p = [model.predict_proba(X) for model in models]
    for row in range(len(X)):
        table = np.stack([P[0] * p[0][row], P[1] * p[1][row]])
        assert_allclose(exact[row], table_information(table), rtol=1e-8)


def test_errors():
    one, two, binary, three = (evidence(task) for task in ("one", "two", "binary", "three"))
    with pytest.raises(ValueError, match="all be regressors"):
        model_discrimination(one, binary, X)
    with pytest.raises(ValueError, match="different classes"):
        model_discrimination(binary, three, X)
    with pytest.raises(ValueError, match="different numbers of outputs: 1 and 2"):
        model_discrimination(one, two, X)
    for wrong in ([0.5], [-1.0, 2.0], [0.0, 0.0], "equal"):
        with pytest.raises(ValueError, match=r"probabilities must be .* or 2 numbers"):
            model_discrimination(one, one, X, probabilities=wrong)
    with pytest.raises(TypeError, match="got 'linear'"):
        model_discrimination(one, "linear", X)
    with pytest.raises(TypeError, match="Pass one or more fitted models, and X_candidates"):
        model_discrimination(X)
    with pytest.raises(TypeError, match="must be a fitted EvidenceMLPRegressor, EvidenceMLP"):
        model_discrimination(sampled("one"), X)
    with pytest.raises(ValueError, match=r"Only one minimum .* no alternatives to compare"):
        model_discrimination(linear("one"), X)


def quadrature(models, P, x):
    """Mutual information of model and target at a point, by a fine sum over targets."""
    ends = [model.predict(x[None], return_std=True) for model in models]
    low, high = min(m[0] - 30 * s[0] for m, s in ends), max(m[0] + 30 * s[0] for m, s in ends)
    y = np.linspace(low, high, 4001)
    rows = np.repeat(x[None], len(y), axis=0)
    p = np.exp([model.log_predictive_density(rows, y) for model in models])
    return np.sum(P @ rel_entr(p, P @ p)) * (y[1] - y[0])


def test_three_models_of_regression():
    models = [evidence("one", "equal"), linear("one"), sampled("one")]
    P = np.array([0.5, 0.2, 0.3])
    gains = model_discrimination(*models, X, probabilities=3 * P)
    expected = [quadrature(models, P, x) for x in X]
    assert_allclose(gains, expected, rtol=1e-5)
    assert np.all(gains < -P @ np.log(P))
    by_name = model_discrimination(*models, X_candidates=X, probabilities=P)
    assert_allclose(by_name, gains, rtol=1e-12)
    order = [2, 0, 1]
    again = model_discrimination(*(models[i] for i in order), X, probabilities=P[order])
    assert_allclose(again, gains, rtol=1e-8)


def test_a_model_given_twice_shares_its_probability():
    first, second = evidence("one"), linear("one")
    two = model_discrimination(first, second, X, probabilities=[0.7, 0.3])
    three = model_discrimination(first, second, first, X, probabilities=[0.4, 0.3, 0.3])
    assert_allclose(three, two, rtol=1e-7)
    third = model_discrimination(first, second, sampled("one"), X, probabilities=[0.7, 0.3, 0.0])
    assert_allclose(third, two)


def test_minima_of_one_fit():
    """They take the place of models of one minimum each."""
    model = evidence("one", "equal")
    shares = np.array([network.weight for network in model.networks_])
    assert len(shares) > 1
    parts = [with_ensemble(model, Ensemble((part,), (np.ones(1),))) for part in parts_of(model)]
    expected = model_discrimination(*parts, X, probabilities=shares)
    assert_allclose(model_discrimination(model, X), expected, rtol=1e-9)
    by_evidence = model_discrimination(model, X, probabilities="evidence")
    weights = softmax([network.log_evidence for network in model.networks_])
    assert_allclose(by_evidence, model_discrimination(model, X, probabilities=weights))


def test_probabilities_by_evidence():
    first, second = evidence("one"), linear("one")
    P = softmax([first.log_evidence_, second.log_evidence_])
    expected = model_discrimination(first, second, X, probabilities=P)
    assert_allclose(model_discrimination(first, second, X, probabilities="evidence"), expected)
    unknown = sampled("one")
    if not np.isfinite(unknown.log_evidence_):
        with pytest.raises(ValueError, match="probabilities='evidence', but log evidences are"):
            model_discrimination(first, unknown, X, probabilities="evidence")


def test_mixtures_of_two_outputs_against_a_grid():
    rng = np.random.default_rng(0)
    side, P = np.linspace(-9.0, 9.0, 241), np.array([0.4, 0.6])
    y = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 1, 2)
    models, densities = [], []
    for shift in (0.0, 1.5):
        means, sds = shift + rng.standard_normal((3, 2)), rng.uniform(0.5, 1.0, (3, 2))
        weights = rng.dirichlet(np.ones(3))
        models.append(with_ensemble(blank("two"), constants(means, sds**2, weights)))
        densities.append(np.prod(norm.pdf(y, means, sds), axis=2) @ weights)
        found = models[-1].log_predictive_density(np.zeros((1, 1)), y[12_345])
        assert_allclose(found, np.log(densities[-1][12_345]), rtol=1e-12)
    parts = [rel_entr(density, P @ densities) for density in densities]
    expected = np.sum(P @ parts) * (side[1] - side[0]) ** 2
    gain = model_discrimination(*models, [[0.0]], probabilities=P)
    assert_allclose(gain, expected, rtol=5e-3)
