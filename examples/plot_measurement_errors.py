"""
Measurements with known error bars
==================================

A physicist knows how precise each measurement is: the long exposures, the good instrument. Given
to ``fit`` as ``measurement_std``, these error bars make precise rows count for more, and leave to
the noise level only what they do not explain.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

rng = np.random.default_rng(4)
grid = np.linspace(0, 10, 201)[:, None]


def signal(X):
    """A resonance on a slope."""
    return 0.3 * X[:, 0] + 4.0 / (1.0 + (X[:, 0] - 5.5) ** 2)


X = np.sort(rng.uniform(0, 10, 80))[:, None]
errors = 0.05 * 10 ** rng.uniform(0, 1.6, 80)  # from 0.05 to 2
y = signal(X) + np.hypot(errors, 0.3) * rng.standard_normal(80)

# %%
# Three fits: without error bars, with error bars and an inferred noise level beside them, and with
# error bars alone. The true noise beside the errors is 0.3.

models = {
    "no error bars": EvidenceMLPRegressor((5,), noise="constant", random_state=0).fit(X, y),
    "error bars": EvidenceMLPRegressor((5,), random_state=0).fit(X, y, measurement_std=errors),
    "error bars alone": EvidenceMLPRegressor((5,), noise_std=0, random_state=0).fit(
        X, y, measurement_std=errors
    ),
}
rms = {}
for name, model in models.items():
    rms[name] = np.sqrt(np.mean((model.predict(grid) - signal(grid)) ** 2))
    print(
        f"{name:17s} log evidence {model.log_evidence_:7.1f}, noise sd {model.noise_std_:.2f}, "
        f"rms error of the curve {rms[name]:.2f}"
    )

# %%
# What the data say of the function is the epistemic band; the noise of a new measurement comes on
# top.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"  # Okabe and Ito: safe for colour-blind readers
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7})
fig, axes = plt.subplots(2, 1, figsize=(3.54, 4.4), sharex=True, layout="constrained")
shown = ("no error bars", "error bars"), (ORANGE, BLUE)
for ax, name, colour in zip(axes, *shown, strict=True):
    mean = models[name].predict(grid)
    band = 2 * models[name].predict_std(grid, kind="epistemic")
    bars = errors if name != "no error bars" else None
    ax.errorbar(X[:, 0], y, bars, fmt=".", color=GREY, ms=3, elinewidth=0.5, label="data")
    ax.fill_between(
        grid[:, 0], mean - band, mean + band, color=colour, alpha=0.3, lw=0, label="two sd"
    )
    ax.plot(grid[:, 0], mean, color=colour, lw=1.2, label="mean")
    ax.plot(grid[:, 0], signal(grid), color="black", lw=0.8, ls="--", label="true function")
    ax.set(title=f"fitted with {name}", ylabel="target $y$", ylim=(-2.5, 8.5))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")
axes[1].set(xlabel="input $x$", xlim=(0, 10))
plt.show()

# %%
# What should be seen: with error bars the curve follows the precise measurements, and its band is
# narrower by a third. Error bars alone are trusted too much here: the curve bends to meet precise
# rows, and the evidence says that they are not the whole truth.

width = {name: model.predict_std(grid, kind="epistemic").mean() for name, model in models.items()}
print({name: round(float(value), 2) for name, value in width.items()})
assert rms["error bars"] < 0.7 * rms["no error bars"]
assert width["error bars"] < 0.7 * width["no error bars"]
evidence = {name: model.log_evidence_ for name, model in models.items()}
assert evidence["error bars"] > max(evidence["no error bars"], evidence["error bars alone"]) + 10
assert 0.2 < models["error bars"].noise_std_ < 0.4

# %%
# A row to predict has no error bar yet. Where its error is known, it can be given: here to ask how
# well rows that were held out are predicted.

train = np.arange(80) % 4 > 0
held_out = {}
for name, given in (("no error bars", None), ("error bars", errors)):
    options = {"noise": "constant", "random_state": 0}
    part = EvidenceMLPRegressor((5,), **options).fit(
        X[train], y[train], measurement_std=None if given is None else given[train]
    )
    density = part.log_predictive_density(
        X[~train], y[~train], measurement_std=None if given is None else given[~train]
    )
    held_out[name] = density.mean()
    print(f"{name:17s} log density per row held out: {held_out[name]:.2f}")
assert held_out["error bars"] > held_out["no error bars"] + 0.1
