"""Terms of an evidence as bars."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.displays import EvidenceTermsDisplay

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

X = np.random.default_rng(0).uniform(-2, 2, (40, 1))
Y = np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(1).standard_normal(40)

NOISE = np.random.default_rng(2).standard_normal((40, 2))


@pytest.mark.parametrize("noise", ["constant", "input_dependent", "student_t"])
def test_bars_are_the_terms_and_their_sum(noise, readable):
    model = EvidenceMLPRegressor((2,), noise=noise, n_restarts=1, random_state=0).fit(X, Y)
    display = EvidenceTermsDisplay.from_estimator(model)
    terms = dict(model.evidence_report_.terms.items())
    widths = [bar.get_width() for bar in display.bars_]
    assert_allclose(widths, [*terms.values(), sum(terms.values())])
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_]
    assert_allclose(ends[:-1], np.cumsum(list(terms.values())))
    assert display.bars_[-1].get_x() == 0.0
    readable(display)


def test_no_terms_without_an_evidence():
    sampler = HMCMLPRegressor(
        (), n_chains=1, n_warmup=5, n_draws=5, measure_evidence=False, random_state=0
    )
    with pytest.raises(TypeError, match="Only evidence estimators have terms"):
        EvidenceTermsDisplay.from_estimator(sampler.fit(X, Y))
    with pytest.warns(UserWarning, match="linear hidden units"):
        model = EvidenceMLPRegressor((2,), activation="identity", random_state=0).fit(
            np.column_stack([X[:, 0], Y]), np.column_stack([Y, X[:, 0]]) + 0.1 * NOISE
        )
    with pytest.raises(ValueError, match="no evidence: linear hidden units"):
        EvidenceTermsDisplay.from_estimator(model)
