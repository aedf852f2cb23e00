"""
Decisions with unequal costs, and refusing to decide
====================================================

Is a tumour malignant? A missed tumour costs ten times as much as a false alarm.
There is a third choice: a further examination, which settles the matter at a
price. If the probability of each outcome is right, the cheapest decision
follows from it. Here the models learn from 57 patients and decide for 512
others.

With so few rows the most probable outputs are overconfident. Moderated outputs
average over the uncertainty of the weights. Their expected costs are close to
the true costs, which are no higher than with logistic regression.
"""

# sphinx_gallery_thumbnail_number = 3

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier

X, y = load_breast_cancer(return_X_y=True)
malignant = y == 0

# %%
# Decisions
# ---------
# Let ``p`` be the probability that the tumour is malignant. On average, sending
# the patient home costs ``10 p``, treatment costs ``1 - p``, and a further
# examination always costs 0.3. The decision with the smallest cost is best. For
# ``p`` between 0.03 and 0.7 this is the examination.

MISSED, FALSE_ALARM, EXAMINATION = 10.0, 1.0, 0.3


def decide(p, price=EXAMINATION):
    """Cheapest decision (0: home, 1: treat, 2: examine), and its
    expected cost.
    """
    costs = np.stack(
        [MISSED * p, FALSE_ALARM * (1 - p), np.full(len(p), price)]
    )
    return np.argmin(costs, axis=0), np.min(costs, axis=0)


def bill(decision, malignant, price=EXAMINATION):
    """True cost of the decisions."""
    true_costs = [
        MISSED * malignant,
        FALSE_ALARM * ~malignant,
        np.full(len(malignant), price),
    ]
    return np.choose(decision, true_costs)


# %%
# Ten training sets
# -----------------
# Each tenth of the patients is the training set once, and the models predict
# the others. With ``hidden_layer_sizes="auto"``, called "evidence" here, eight
# hidden units and the linear model predict together; the linear model nearly
# always has the higher evidence. A network with two hidden units is fitted as
# well, to show the effect of moderation if the weights are very uncertain. Both
# fits are small, so moderated outputs are averages over networks drawn from the
# posterior. The other models have scikit-learn's defaults.

ours = {
    "evidence": EvidenceMLPClassifier("auto", random_state=0),
    "2 hidden units": EvidenceMLPClassifier((2,), n_restarts=2, random_state=0),
}
rivals = {
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
    "MLPClassifier": make_pipeline(
        StandardScaler(), MLPClassifier(max_iter=1000, random_state=0)
    ),
}
predicted, truth, chosen = {}, [], []
folds = StratifiedKFold(10, shuffle=True, random_state=0)
for others, few in folds.split(X, y):
    truth.append(malignant[others])
    for name, model in ours.items():
        model.fit(X[few], malignant[few])
        for kind, moderated in (("moderated", True), ("most probable", False)):
            p = model.predict_proba(X[others], moderated=moderated)[:, 1]
            predicted.setdefault(f"{name}, {kind}", []).append(p)
    for name, model in rivals.items():
        model.fit(X[few], malignant[few])
        predicted.setdefault(name, []).append(
            model.predict_proba(X[others])[:, 1]
        )
    chosen.append(ours["evidence"].hidden_layer_sizes_)
print("hidden units of highest evidence:", *chosen)

# %%
# Costs per patient, averaged over the ten training sets, with standard errors.

table = {}
print(f"{'':30s}log loss  examined  expected cost       true cost")
for name, sets in predicted.items():
    rows = []
    for p, m in zip(sets, truth, strict=True):
        decision, expected = decide(p)
        cost = bill(decision, m)
        rows.append(
            [
                log_loss(m, p),
                np.mean(decision == 2),
                expected.mean(),
                cost.mean(),
            ]
        )
    table[name] = rows = np.array(rows)
    loss, examined, expected, cost = rows.mean(axis=0)
    _, _, expected_error, error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    print(
        f"{name:30s}{loss:8.3f}{examined:10.0%}{expected:9.3f} ± "
        f"{expected_error:.3f}"
        f"{cost:8.3f} ± {error:.3f}"
    )

# %%
# For logistic regression expected and true costs agree. For moderated outputs,
# with and without hidden units, the expected costs are a little too high. All
# others underestimate their costs. With two hidden units the most probable
# outputs hardly ever choose an examination, and cost nearly twice as much.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.45"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, ax = plt.subplots(figsize=(4.6, 2.4), layout="constrained")
for place, rows in enumerate(table.values()):
    _, _, expected, cost = rows.mean(axis=0)
    _, _, _, error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    label = {
        "believed": "expected from the probabilities",
        "true": "true, with standard error",
    }
    labels = label if place == 0 else dict.fromkeys(label)
    ax.plot([expected, cost], [place, place], color="0.75", lw=1.5, zorder=0)
    ax.plot(
        expected,
        place,
        "o",
        mfc="white",
        color=ORANGE,
        ms=5,
        label=labels["believed"],
    )
    ax.errorbar(
        cost,
        place,
        xerr=error,
        fmt="s",
        color=BLUE,
        ms=4,
        capsize=2,
        label=labels["true"],
    )
ax.set_yticks(range(len(table)), table)
ax.set(
    xlabel="cost per patient (false alarm = 1)",
    xlim=(0, None),
    ylim=(5.5, -0.5),
)
fig.legend(loc="outside upper center", ncols=2, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Calibration
# -----------
# In a calibration curve, a class predicted with probability 0.8 should come
# true eight times in ten. Points below the diagonal on the right, and
# above it on the left, are overconfident. The most probable outputs of two
# hidden units, on the left, are nearly all at 0 or 1: few patients are between,
# and the curve jumps there.

fig, axes = plt.subplots(1, 2, figsize=(6.5, 3.6), layout="constrained")
groups = [[name for name in predicted if name.startswith("2 hidden")]]
groups += [["evidence, moderated", *rivals]]
for ax, names in zip(axes, groups, strict=True):
    for name in names:
        CalibrationDisplay.from_predictions(
            np.concatenate(truth),
            np.concatenate(predicted[name]),
            n_bins=8,
            name=name.removeprefix("2 hidden units, "),
            ax=ax,
        )
    ax.set(
        xlabel="predicted probability of a malignant tumour",
        ylabel="malignant among these",
    )
plt.show()

# %%
# At which price is a further examination useful? If it were free, everyone
# would be examined; at a price of 10/11 or above, no one. The picture shows the
# true costs for prices in between.

prices = np.linspace(0.02, 1.0, 50)
STYLES = {
    "evidence, moderated": {"color": BLUE, "lw": 1.6},
    "2 hidden units, moderated": {"color": "#56B4E9", "ls": "--"},
    "2 hidden units, most probable": {"color": ORANGE, "ls": ":"},
    "LogisticRegression": {"color": "black", "ls": "-."},
    "MLPClassifier": {"color": "#CC79A7", "ls": (0, (5, 1, 1, 1, 1, 1))},
}
fig, ax = plt.subplots(figsize=(3.54, 3.2), layout="constrained")
for name, style in STYLES.items():
    curve = [
        np.mean(
            [
                bill(decide(p, c)[0], m, c).mean()
                for p, m in zip(predicted[name], truth, strict=True)
            ]
        )
        for c in prices
    ]
    ax.plot(prices, curve, label=name, **({"lw": 1.1} | style))
ax.set(
    xlabel="price of an examination (false alarm = 1)",
    ylabel="cost per patient",
    xlim=(0, 1),
)
ax.set_ylim(0, None)
fig.legend(loc="outside upper center", ncols=2, frameon=False, columnspacing=1)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
