"""Class probabilities as targets, and weights of classes: rows with other weights, exactly."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skbayesnn import EvidenceMLPClassifier, HMCMLPClassifier, Prior
from tests.tools import BRIEF

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 2)).round(1)
GRID = RNG.standard_normal((7, 2))
LABELS = np.where(X[:, 0] > 0.8, "b", np.where(X[:, 1] > 0, "a", "c"))
WEIGHT = RNG.integers(0, 4, 24)
ENGINES = {
    "evidence": EvidenceMLPClassifier((2,), n_restarts=1, random_state=0),
    "samples": HMCMLPClassifier((2,), **BRIEF),
}


@pytest.fixture(params=ENGINES)
def model(request):
    return clone(ENGINES[request.param])


def assert_same_fits(one, other):
    assert_array_equal(one.predict_proba(GRID), other.predict_proba(GRID))
    assert_array_equal(one.log_evidence_, other.log_evidence_)
    assert_array_equal(one.coefs_[0], other.coefs_[0])


class TestProbabilities:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
    def test_rows_for_each_class(self, model, n_classes, weight):
        shares = np.random.default_rng(1).dirichlet(np.ones(n_classes), 24)
        shares[:3] = np.eye(n_classes)[0]  # some are certain
        repeated = np.repeat(X, n_classes, axis=0), np.tile(np.arange(n_classes), 24)
        counts = shares if weight is None else shares * weight[:, None]
        other = clone(model).fit(*repeated, sample_weight=counts.ravel())
        assert_same_fits(model.fit(X, shares, sample_weight=weight), other)
        assert_array_equal(model.classes_, np.arange(n_classes))

    def test_certain_probabilities_are_labels(self, model):
        table = pd.get_dummies(pd.Series(LABELS))[["c", "a", "b"]]  # in any order, of booleans
        other = clone(model).fit(X, LABELS)
        assert_same_fits(model.fit(X, table), other)
        assert_array_equal(model.classes_, ["a", "b", "c"])
        assert_array_equal(model.predict(GRID), other.predict(GRID))
        densities = model.log_predictive_density(X, table)
        assert_allclose(densities, other.log_predictive_density(X, LABELS), rtol=1e-14)

    def test_leave_one_out_is_the_mean_over_the_classes(self):
        shares = np.random.default_rng(1).dirichlet(np.ones(3), 24)
        model = EvidenceMLPClassifier((), prior=Prior(precision=1.0), random_state=0)
        model.fit(X, shares, sample_weight=WEIGHT)
        rows = np.repeat(X, 3, axis=0), np.tile(np.arange(3), 24)
        single = clone(model).fit(*rows, sample_weight=(shares * WEIGHT[:, None]).ravel())
        found = model.leave_one_out_log_density_
        expected = np.sum(shares * single.leave_one_out_log_density_.reshape(24, 3), axis=1)
        assert_allclose(found[WEIGHT > 0], expected[WEIGHT > 0], rtol=1e-12)
        assert_array_equal(np.isnan(found), WEIGHT == 0)

    def test_the_teacher_is_imitated(self):
        teacher = 1 / (1 + np.exp(-2 * X[:, 0]))
        shares = np.column_stack([1 - teacher, teacher])
        pupil = EvidenceMLPClassifier((), prior=Prior(precision=1e-6)).fit(X, shares)
        logits = np.log(pupil.predict_proba(X, moderated=False))
        assert_allclose(logits[:, 1] - logits[:, 0], 2 * X[:, 0], atol=1e-4)
        assert pupil.evidence_report_.n_targets == pytest.approx(24)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.full((24, 2), 0.6), "sum to 1 in every row"),
            (np.tile([1.2, -0.2], (24, 1)), "not negative"),
            (np.ones((24, 3), dtype=int), "several labels of a row use .*MultiOutputClassifier"),
            (np.column_stack([LABELS, LABELS]), "must hold class probabilities"),
            (np.tile([np.nan, 1.0], (24, 1)), "contains NaN"),
            (pd.DataFrame(np.full((24, 2), 0.5), columns=["a", "a"]), "columns of the same name"),
            (np.full((23, 2), 0.5), "inconsistent numbers of samples"),
            (np.tile([0.0, 1.0], (24, 1)), "only one class: 1"),
        ],
    )
    def test_what_is_refused(self, model, y, message):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)

    def test_densities_of_other_classes_are_refused(self):
        model = EvidenceMLPClassifier((), n_restarts=1).fit(X, LABELS)
        with pytest.raises(ValueError, match="y has columns for the classes"):
            model.log_predictive_density(X, np.full((24, 2), 0.5))


class TestClassWeight:
    def test_a_dict_multiplies_weights(self, model):
        factors = {"a": 2.0, "c": 0.5}
        weight = WEIGHT * np.array([factors.get(label, 1.0) for label in LABELS])
        other = clone(model).fit(X, LABELS, sample_weight=weight)
        model.set_params(class_weight=factors).fit(X, LABELS, sample_weight=WEIGHT)
        assert_same_fits(model, other)

    def test_balanced(self, model):
        factors = {c: WEIGHT.sum() / (3 * WEIGHT[c == LABELS].sum()) for c in "abc"}
        other = clone(model).set_params(class_weight=factors)
        model.set_params(class_weight="balanced").fit(X, LABELS, sample_weight=WEIGHT)
        assert_same_fits(model, other.fit(X, LABELS, sample_weight=WEIGHT))

    def test_balanced_probabilities(self):
        """Of classes as probable as rows are: all precisions known, the bias tells."""
        shares = np.tile([0.9, 0.1], (24, 1))
        options = {"prior": Prior("single", precision=1e-6)}
        plain = EvidenceMLPClassifier((), **options).fit(X, shares)
        balanced = EvidenceMLPClassifier((), class_weight="balanced", **options).fit(X, shares)
        assert_allclose(plain.predict_proba(GRID, moderated=False)[:, 1], 0.1, atol=1e-5)
        assert_allclose(balanced.predict_proba(GRID, moderated=False)[:, 1], 0.5, atol=1e-5)
        assert balanced.evidence_report_.n_targets == pytest.approx(24)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("equal", "class_weight must be None, 'balanced' or a dict"),
            ([1, 2], "class_weight must be None, 'balanced' or a dict"),
            ({"a": 0.0}, "must be positive and finite, got 0.0 for 'a'"),
            ({"a": "1"}, "must be positive and finite"),
            ({"a": np.inf}, "must be positive and finite"),
            ({"d": 1.0}, r"class_weight has weights for \['d'\], which are no classes"),
        ],
    )
    def test_what_is_refused(self, model, given, message):
        with pytest.raises(ValueError, match=message):
            model.set_params(class_weight=given).fit(X, LABELS)
