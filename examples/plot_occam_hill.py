"""
How many hidden units? Evidence beside test error
=================================================

MacKay's robot arm (D. J. C. MacKay, *Bayesian Methods for Adaptive Models*, PhD thesis, 1992,
section 3.4, figures 3.3 to 3.12): from 200 noisy positions of a hand, networks of several widths
and with two priors are fitted, and compared by their evidence, which needs no test data. Here the
true positions are known, so that one can look whether the evidence chose well.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import EvidenceDisplay, EvidenceVersusTestDisplay
from skbayesnn.model_selection import EvidenceSearch

NOISE = 0.05  # m


def hand(angles):
    """Position of the hand, in m, from the angles of shoulder and elbow, in rad."""
    shoulder, both = angles[:, 0], angles[:, 0] + angles[:, 1]
    return np.column_stack(
        [
            2.0 * np.cos(shoulder) + 1.3 * np.cos(both),
            2.0 * np.sin(shoulder) + 1.3 * np.sin(both),
        ]
    )


def draw_angles(n_rows, rng):
    """Random angles inside the two training regions."""
    shoulder = rng.choice([-1.0, 1.0], n_rows) * rng.uniform(0.453, 1.932, n_rows)
    return np.column_stack([shoulder, rng.uniform(0.534, 3.142, n_rows)])


def miss(model, X, y):
    """Root mean squared distance between predicted and true positions, in cm."""
    return 100 * np.sqrt(np.mean(np.sum((model.predict(X) - y) ** 2, axis=1)))


rng = np.random.default_rng(0)
X = draw_angles(200, rng)
y = hand(X) + NOISE * rng.standard_normal((200, 2))
X_test = draw_angles(1000, rng)
y_test = hand(X_test)

# %%
# Occam's hill
# ------------
# One fit per candidate, on all rows. With one precision for all weights (``prior="single"``) the
# evidence has a peak: small networks cannot describe the arm, large ones waste prior probability.

grid = {"hidden_layer_sizes": [(n,) for n in (4, 5, 6, 8, 10, 12, 16, 20)]}
model = EvidenceMLPRegressor(prior="single", noise="shared", n_restarts=2, random_state=0)
search = EvidenceSearch(model, grid).fit(X, y)
EvidenceDisplay.from_estimator(search, "hidden_layer_sizes", X_test, y_test, error=miss)
plt.show()

# %%
# What should be seen: the misfit falls with every unit, the Occam factor charges for each, and the
# sum has a broad peak at about ten units. The test error stops falling where the evidence does.

evidence = search.results_["log_evidence"]
chosen = search.best_params_["hidden_layer_sizes"][0]
print(f"chosen: {chosen} units, test error {miss(search, X_test, y_test):.1f} cm")
assert 7 <= chosen <= 12
print(evidence)
assert evidence[-1] < evidence.max() - 3

# %%
# Does the evidence know the test error?
# --------------------------------------
# Many fits, each from one random start, with both priors. MacKay's warning bell: where evidence and
# test error disagree over many fits, the model is wrong.

grid = {
    "prior": ["layer", "single"],
    "hidden_layer_sizes": [(n,) for n in (6, 8, 10, 12, 16, 20)],
    "random_state": [0, 1, 2],
}
model = EvidenceMLPRegressor(noise="shared", n_restarts=1)
many = EvidenceSearch(model, grid).fit(X, y)
display = EvidenceVersusTestDisplay.from_estimator(
    many, X_test, y_test, group_by="prior", error=miss
)
plt.show()

# %%
# What should be seen: with one precision per layer (``"layer"``) networks have more evidence and
# smaller test errors than with a single one, and among them those of more evidence err less.

print(display.correlations_)
