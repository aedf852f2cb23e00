"""
Feature selection by automatic relevance determination
======================================================

Friedman's function depends on five inputs; here there are ten more. Two of the
five act together. One acts by its square, so it is not correlated with the
target. One of the other ten is a noisy copy of an input that matters. With
``prior="ard"`` the width of the prior is inferred for each input, and inputs
without effect are switched off (MacKay 1994; Neal 1996). The network finds the
five inputs and nothing else. Univariate tests miss the square, select the copy,
or both.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.metrics import sobol_indices

# a fit may end some nats low
warnings.simplefilter("ignore", ConvergenceWarning)
NAMES = ["product a", "product b", "square", "linear 10", "linear 5", "decoy"]
NAMES += [f"noise {i}" for i in range(1, 10)]


def make_data(n, rng):
    """Fifteen columns and a target with noise of standard deviation 1 (Friedman
    1991).
    """
    X = pd.DataFrame(rng.uniform(0, 1, (n, len(NAMES))), columns=NAMES)
    y = (
        10 * np.sin(np.pi * X["product a"] * X["product b"])
        + 20 * (X["square"] - 0.5) ** 2
    )
    y += 10 * X["linear 10"] + 5 * X["linear 5"] + rng.standard_normal(n)
    X["decoy"] = X["linear 10"] + 0.15 * rng.standard_normal(n)
    return X, y.to_numpy()


rng = np.random.default_rng(0)
X, y = make_data(300, rng)
X_test, y_test = make_data(2000, rng)

# %%
# Used inputs and their effects
# -----------------------------
# ``input_prior_std_`` is the prior standard deviation of an input's weights,
# for standardised inputs. Its lower bound is 0.001; an input at this bound is
# switched off. It shows whether an input is used and how strongly the function
# bends along it, not how large its effect is: inputs that act linearly need
# small weights into the hidden units and large ones out of them. The size of
# the effects is that of Sobol indices, shares of the variance of the function.
# A start may end at a minimum where a useful input is off, with a much lower
# evidence. Therefore there are three starts.

ard = EvidenceMLPRegressor((6,), prior="ard", n_restarts=3, random_state=0).fit(
    X, y
)
effects = sobol_indices(ard, X)
F, p_values = f_regression(X, y)

VERMILION = "#D55E00"  # Okabe and Ito
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6})
fig, (left, right) = plt.subplots(
    1, 2, figsize=(6.5, 3.2), layout="constrained"
)
order = np.argsort(-effects.total)
error = {"xerr": effects.total_std[order], "error_kw": {"elinewidth": 0.9}}
left.barh(range(15), effects.total[order], color="#0072B2", height=0.7, **error)
left.set_yticks(range(15), [NAMES[i] for i in order])
left.set(xlabel="ARD network: total Sobol index", ylim=(14.6, -0.6))
left.spines[["top", "right"]].set_visible(False)
order = np.argsort(p_values)
right.barh(range(15), -np.log10(p_values[order]), color="0.6", height=0.7)
right.axvline(-np.log10(0.05), color=VERMILION, lw=1.0, ls="--")
right.text(-np.log10(0.05) + 0.5, 14, "5 % level", color=VERMILION, va="center")
right.set_yticks(range(15), [NAMES[i] for i in order])
right.set(xlabel="univariate F test: $-\\log_{10}$ p", ylim=(14.6, -0.6))
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# On the left the five inputs are on top, the strongest first, and no other has
# an effect. On the right the copy ("decoy") is highly significant, as its
# original is, and the input that acts by its square is not.

table = pd.DataFrame(
    {
        "total_index": effects.total,
        "input_prior_std": ard.input_prior_std_,
        "p_value": p_values,
    },
    index=NAMES,
)
print(table.sort_values("total_index", ascending=False).round(4))

# %%
# Selection in a pipeline
# -----------------------
# ``SelectFromModel`` takes ``input_prior_std_`` by name, and drops inputs that
# are switched off. The next step gets only the other columns. It is compared
# with three others: all columns, with one prior for all inputs; the five
# columns of largest F; and the ARD network alone, which needs no selection.

select = SelectFromModel(
    EvidenceMLPRegressor((6,), prior="ard", n_restarts=3, random_state=0),
    importance_getter="input_prior_std_",
    threshold=0.01,
)
network = EvidenceMLPRegressor((6,), n_restarts=2, random_state=0)
models = {
    "selected by ARD": make_pipeline(select, clone(network)),
    "selected by F": make_pipeline(
        SelectKBest(f_regression, k=5), clone(network)
    ),
    "all columns": network,
}
models = {name: model.fit(X, y) for name, model in models.items()} | {
    "ARD network": ard
}
for name in ("selected by ARD", "selected by F"):
    print(f"{name}: {', '.join(X.columns[models[name][0].get_support()])}")

# %%
# Errors on new rows, with standard errors over these rows. Noise alone is 1.

errors = {
    name: (model.predict(X_test) - y_test) ** 2
    for name, model in models.items()
}
mean, spread = {}, {}
print(f"{'':18s}mean squared error")
for name, squares in errors.items():
    mean[name], spread[name] = (
        squares.mean(),
        squares.std(ddof=1) / np.sqrt(len(squares)),
    )
    print(f"{name:18s}{mean[name]:8.2f} ± {spread[name]:.2f}")

fig, ax = plt.subplots(figsize=(4.2, 1.8), layout="constrained")
places = range(len(errors))
ax.barh(
    places,
    mean.values(),
    xerr=list(spread.values()),
    color="#0072B2",
    height=0.6,
    capsize=2,
)
ax.axvline(1.0, color="black", lw=0.8, ls="--")
ax.text(1.03, -0.62, "noise alone", va="bottom", fontsize=7)
ax.set_yticks(places, errors)
ax.set(xlabel="mean squared error on new rows", ylim=(3.5, -0.8))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
