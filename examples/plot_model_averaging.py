"""
Averaging models instead of choosing one
========================================

A search by evidence fits its candidates to all rows and chooses the most
probable one. It can also predict with several of them: weighted by their
posterior probabilities, with equal weights, or by stacking. Its weights
maximise the density of every training row under models that have not seen it
(Yao et al. 2018). The target is the content of phenols in 178 wines, predicted
from twelve other measurements. Linear regression has the highest evidence, and
predicts worse than the network with four hidden units. Stacking gives that
network a large weight, and predicts better.
"""

# sphinx_gallery_thumbnail_number = 2

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import EvidenceDisplay
from skbayesnn.model_selection import EvidenceSearch

wines = load_wine(as_frame=True).data
X, y = (
    wines.drop(columns="total_phenols"),
    wines["total_phenols"].rename("total phenols"),
)
SIZES = [(), (2,), (4,)]
# a fit may end some nats low
warnings.simplefilter("ignore", ConvergenceWarning)
folds = list(KFold(5, shuffle=True, random_state=0).split(X))

# %%
# One search
# ----------
# The search is trained on four fifths of the wines. Each fit gives
# leave-one-out densities in closed form, so stacking needs no further fits.


def make_search():
    """Three candidates, averaged by stacking."""
    model = EvidenceMLPRegressor(n_restarts=2, random_state=0)
    return EvidenceSearch(
        model, {"hidden_layer_sizes": SIZES}, combine="stacking"
    )


searches = [
    make_search().fit(X.iloc[train], y.iloc[train]) for train, _ in folds
]
search, (_, test) = searches[0], folds[0]
columns = ("log_evidence", "posterior_probability", "leave_one_out", "weight")
print("hidden units  " + "  ".join(columns))
for i, sizes in enumerate(SIZES):
    values = (f"{search.results_[name][i]:{len(name)}.2f}" for name in columns)
    print(f"{sizes!s:12s}  " + "  ".join(values))
mean, std = search.predict(X.iloc[test], return_std=True)
print(
    f"first test wine: {mean[0]:.2f} ± {std[0]:.2f}, measured "
    f"{y.iloc[test[0]]:.2f}"
)

# %%
# The display draws the evidence, its terms, and the test error. With more
# hidden units the fit improves and the Occam factor falls. The test error falls
# as well.

EvidenceDisplay.from_estimator(
    search, "hidden_layer_sizes", X.iloc[test], y.iloc[test]
)
plt.show()

# %%
# Four ways to average
# --------------------
# The same for each of the five folds. The density of a mixture is the weighted
# mean of the densities of its members, so one search per fold gives all four
# averages.


def shares(search):
    """Weights of the candidates under every kind of averaging."""
    n = len(SIZES)
    return {
        "best": np.eye(n)[search.best_index_],
        "evidence": search.results_["posterior_probability"],
        "equal": np.full(n, 1 / n),
        "stacking": search.weights_,
    }


density = {
    name: np.empty(len(y)) for name in (*map(str, SIZES), *shares(search))
}
for search, (_, test) in zip(searches, folds, strict=True):
    rows, truth = X.iloc[test], y.iloc[test]
    members = np.stack(
        [m.log_predictive_density(rows, truth) for m in search.estimators_]
    )
    for sizes, values in zip(SIZES, members, strict=True):
        density[str(sizes)][test] = values
    for name, weights in shares(search).items():
        density[name][test] = logsumexp(members, b=weights[:, None], axis=0)

# %%
# Differences from the choice by evidence, in nats per wine, with standard
# errors.

BLUE, GREY = "#0072B2", "0.45"
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6})
gain, error = {}, {}
for name, values in density.items():
    behind = values - density["best"]
    gain[name], error[name] = (
        behind.mean(),
        behind.std(ddof=1) / np.sqrt(len(y)),
    )
    print(
        f"{name:9s} {values.mean():6.3f}, gain {gain[name]:6.3f} ± "
        f"{error[name]:.3f}"
    )

fig, ax = plt.subplots(figsize=(3.9, 2.4), layout="constrained")
for place, name in enumerate(density):
    style = (
        {"color": GREY, "marker": "s"}
        if name.startswith("(")
        else {"color": BLUE, "marker": "o"}
    )
    ax.errorbar(gain[name], place, xerr=error[name], ms=4, capsize=2, **style)
ax.axvline(0, color="black", lw=0.8)
labels = [f"{name} alone" if name.startswith("(") else name for name in density]
ax.set_yticks(range(len(density)), labels)
ax.set(
    xlabel="gain over the choice by evidence\n(log density, nats per wine)",
    ylim=(6.5, -0.5),
)
ax.locator_params(axis="x", nbins=5)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# If evidence and test error disagree, the model is wrong in some way, or the
# approximation is rough (MacKay 1992, section 7.1). The verdicts show which
# evidences were measured, and how accurate they are.

for i, sizes in enumerate(SIZES):
    print(sizes, searches[0].results_["verdict"][i])
