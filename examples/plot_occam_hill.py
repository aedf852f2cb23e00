"""
How many hidden units? Evidence and test error
==============================================

The data are those of MacKay's robot arm (D. J. C. MacKay, *Bayesian Methods for
Adaptive Models*, PhD thesis, 1992, section 3.4, figures 3.3 to 3.12): 200 noisy
positions of a hand. Networks of several widths and with two priors are compared
by their evidence, which needs no test data. The true positions are known here,
so you can check the choice.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import EvidenceDisplay
from skbayesnn.model_selection import EvidenceSearch

NOISE = 0.05  # m
# a fit may end some nats low
warnings.simplefilter("ignore", ConvergenceWarning)


def hand(angles):
    """Position of the hand, in m, from the angles of shoulder and elbow, in
    rad.
    """
    shoulder, both = angles[:, 0], angles[:, 0] + angles[:, 1]
    return np.column_stack(
        [
            2.0 * np.cos(shoulder) + 1.3 * np.cos(both),
            2.0 * np.sin(shoulder) + 1.3 * np.sin(both),
        ]
    )


def draw_angles(n_rows, rng):
    """Random angles inside the two training regions."""
    shoulder = rng.choice([-1.0, 1.0], n_rows) * rng.uniform(
        0.453, 1.932, n_rows
    )
    return np.column_stack([shoulder, rng.uniform(0.534, 3.142, n_rows)])


def error_in_cm(model, X, y):
    """Root mean squared distance to the true positions, in cm."""
    return 100 * np.sqrt(np.mean(np.sum((model.predict(X) - y) ** 2, axis=1)))


rng = np.random.default_rng(0)
X = draw_angles(200, rng)
y = hand(X) + NOISE * rng.standard_normal((200, 2))
X_test = draw_angles(1000, rng)
y_test = hand(X_test)

# %%
# Occam's hill
# ------------
# Two lines choose the number of hidden units and the prior, with one fit per
# candidate on all rows: one precision for all weights (``"single"``), or one
# for each layer (``"layer"``). By default the evidence of the smaller networks
# would be measured, and that of the larger ones not, which takes too long.
# ``method="laplace"`` takes the Gaussian approximation for all, as MacKay
# did, so the comparison is fair.

WIDTHS = [(n,) for n in (5, 6, 8, 10, 13, 20)]
model = EvidenceMLPRegressor(
    noise="shared", n_restarts=2, method="laplace", random_state=0
)
grid = {"hidden_layer_sizes": WIDTHS, "prior": ["layer", "single"]}
search = EvidenceSearch(model, grid).fit(X, y)
EvidenceDisplay.from_estimator(
    search, "hidden_layer_sizes", X_test, y_test, error=error_in_cm, terms=False
)
plt.show()

# %%
# With the single precision the evidence has a peak at 10 units. Small networks
# cannot describe the arm, and large ones waste prior probability. With one
# precision per layer, units that are not needed are switched off and removed,
# so the evidence hardly falls. The test error is smaller where the evidence is
# higher.

print(
    f"chosen: {search.best_params_}, test error "
    f"{error_in_cm(search, X_test, y_test):.2f} cm"
)

# %%
# Why the evidence has a peak
# ---------------------------
# The likelihood of the best fit rises with every unit. The Occam factor, the
# share of the prior probability that the data leave to the weights, falls.
# Their sum has the peak.

alone = EvidenceSearch(
    model.set_params(prior="single"), {"hidden_layer_sizes": WIDTHS[1:]}
)
EvidenceDisplay.from_estimator(alone.fit(X, y), "hidden_layer_sizes")
plt.show()


# %%
# Does the evidence predict the test error?
# -----------------------------------------
# The picture shows many fits, each from one random start; open markers are fits
# with a doubtful verdict. If evidence and test error disagree over many fits,
# the model is wrong (MacKay's warning bell).

grid = {
    "prior": ["layer", "single"],
    "hidden_layer_sizes": [(n,) for n in (5, 6, 8, 12, 20)],
    "random_state": [1, 2],
}
one_start = EvidenceMLPRegressor(noise="shared", n_restarts=1, method="laplace")
many = EvidenceSearch(one_start, grid).fit(X, y)
evidence, priors = many.results_["log_evidence"], many.results_["param_prior"]
errors = np.array([error_in_cm(m, X_test, y_test) for m in many.estimators_])
plt.rcParams.update({"font.size": 8, "legend.fontsize": 7})
fig, ax = plt.subplots(figsize=(3.5, 2.6), layout="constrained")
agreement = {}
for prior, marker in [("layer", "o"), ("single", "s")]:
    mine = priors == prior
    ax.plot(evidence[mine], errors[mine], marker, ms=4, label=prior)
    agreement[prior] = spearmanr(evidence[mine], errors[mine]).statistic
ax.set(xlabel="log evidence (nats)", ylabel="test error (cm)")
ax.legend(title="prior", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Over all fits, evidence and error agree. The prior per layer has a higher
# evidence and smaller errors, except with 5 units, which are too few for the
# arm. Among the other fits with this prior the errors are nearly equal, and the
# order by evidence means little.

together = spearmanr(evidence, errors).statistic
print(f"rank correlation of evidence and test error: {together:.2f} over all")
print(", ".join(f"{rho:.2f} with {prior}" for prior, rho in agreement.items()))
