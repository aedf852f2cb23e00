"""
Noisy inputs
============

An input that is set by hand is not exactly what the scale says. Where the
curve is steep, its error moves the target; where the curve is flat, it does
nothing. Given the size of this noise as ``input_std``, a network tells it from
the noise of the targets.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

INPUT_STD, NOISE = 0.15, 0.05
grid = np.linspace(-2, 2, 201)[:, None]


def signal(x):
    """A steep step between gentle slopes."""
    return np.tanh(4.0 * x) + 0.3 * x


def measure(n, seed):
    """Targets at inputs that differ from those that were set."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    true = X[:, 0] + INPUT_STD * rng.standard_normal(n)
    return X, signal(true) + NOISE * rng.standard_normal(n)


X, y = measure(150, seed=0)

# %%
# Two fits with one noise level each: that of the targets, which is truly 0.05.
# Without ``input_std`` it has to be large enough for the step.

options = {"noise": "constant", "measure_evidence": False, "random_state": 0}
models = {
    "exact inputs": EvidenceMLPRegressor((6,), **options).fit(X, y),
    "noisy inputs": EvidenceMLPRegressor(
        (6,), input_std=INPUT_STD, **options
    ).fit(X, y),
}
for name, model in models.items():
    print(
        f"{name}: noise sd {model.noise_std_:.3f}, "
        f"log evidence {model.log_evidence_:.1f}"
    )

# %%
# The bands hold 90 % of new targets, at inputs that are set in the same way.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, axes = plt.subplots(
    2, 1, figsize=(3.54, 4.4), sharex=True, layout="constrained"
)
for ax, name, colour in zip(axes, models, (ORANGE, BLUE), strict=True):
    low, high = models[name].predict_interval(grid, 0.9).T
    ax.plot(X[:, 0], y, ".", color=GREY, ms=3, label="data")
    style = {"color": colour, "alpha": 0.3, "lw": 0}
    ax.fill_between(grid[:, 0], low, high, label="90 % band", **style)
    ax.plot(grid, models[name].predict(grid), color=colour, lw=1.2)
    ax.plot(grid, signal(grid), "k--", lw=0.8, label="true function")
    ax.set(title=f"fitted with {name}", ylabel="target $y$")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")
axes[1].set(xlabel="input $x$", xlim=(-2, 2))
plt.show()

# %%
# What should be seen: with ``input_std`` the band is wide at the step only, and
# holds as many targets there as elsewhere. Without it the band is too wide
# where the curve is flat, and too narrow at the step.

X_new, y_new = measure(4000, seed=1)
steep = np.abs(X_new[:, 0]) < 0.35
held = {}
for name, model in models.items():
    low, high = model.predict_interval(X_new, 0.9).T
    inside = (low < y_new) & (y_new < high)
    held[name] = inside[steep].mean(), inside[~steep].mean()
    print(
        f"{name}: {held[name][0]:.0%} of the targets at the step, "
        f"{held[name][1]:.0%} elsewhere"
    )

# %%
# At an input that is known exactly the target varies less. ``input_std=0`` says
# so.

noisy, exact = (
    models["noisy inputs"].predict_std([[0.0]], input_std=std)[0]
    for std in (INPUT_STD, 0.0)
)
print(f"at x = 0: sd {noisy:.2f} at noisy inputs, {exact:.2f} at exact ones")
