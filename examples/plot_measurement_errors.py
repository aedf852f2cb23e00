"""
Measurements with known error bars
==================================

Often every measurement has a known error bar. If you pass these to ``fit`` as
``measurement_std``, precise rows have more weight, and the noise level
describes only the remaining scatter.
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
# There are three fits: without error bars, with error bars and an additional
# inferred noise level, and with error bars alone. The additional noise in the
# data has standard deviation 0.3.


def make_model(**options):
    """Five hidden units; the evidence by Gaussian approximation."""
    options = {"method": "laplace", "random_state": 0} | options
    return EvidenceMLPRegressor((5,), **options)


models = {
    "no error bars": make_model(noise="constant").fit(X, y),
    "error bars": make_model().fit(X, y, measurement_std=errors),
    "error bars alone": make_model(noise=0).fit(X, y, measurement_std=errors),
}
rms = {}
for name, model in models.items():
    rms[name] = np.sqrt(np.mean((model.predict(grid) - signal(grid)) ** 2))
    print(
        f"{name:17s} log evidence {model.log_evidence_:7.1f}, "
        f"noise sd {model.noise_std_:.2f}, "
        f"rms error of the curve {rms[name]:.2f}"
    )

# %%
# The band shows the uncertainty of the function (the epistemic error bar),
# without the noise of a new measurement.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, axes = plt.subplots(
    2, 1, figsize=(3.54, 4.4), sharex=True, layout="constrained"
)
x, names = grid[:, 0], ("no error bars", "error bars")
for ax, name, colour in zip(axes, names, (ORANGE, BLUE), strict=True):
    mean = models[name].predict(grid)
    band = 2 * models[name].predict_std(grid, kind="epistemic")
    bars = errors if name == "error bars" else None
    style = {"fmt": ".", "color": GREY, "ms": 3, "elinewidth": 0.5}
    ax.errorbar(X[:, 0], y, bars, label="data", **style)
    style = {"color": colour, "alpha": 0.3, "lw": 0}
    ax.fill_between(x, mean - band, mean + band, label="two sd", **style)
    ax.plot(x, mean, color=colour, lw=1.2, label="mean")
    ax.plot(x, signal(grid), "k--", lw=0.8, label="true function")
    ax.set(title=f"fitted with {name}", ylabel="target $y$", ylim=(-2.5, 8.5))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")
axes[1].set(xlabel="input $x$", xlim=(0, 10))
plt.show()

# %%
# With error bars the curve follows the precise measurements, and its band is
# narrower by two fifths. Without an additional noise level the curve bends to
# meet precise rows, and the evidence is lower.

width = {
    name: model.predict_std(grid, kind="epistemic").mean()
    for name, model in models.items()
}
print({name: round(float(value), 2) for name, value in width.items()})

# %%
# A new row has no measurement error yet. If its error is known, pass it as
# well, here to judge the predictions of held-out rows.

train = np.arange(80) % 4 > 0
plain = make_model(noise="constant").fit(X[train], y[train])
measured = make_model().fit(X[train], y[train], measurement_std=errors[train])
held_out = {
    "no error bars": plain.log_predictive_density(X[~train], y[~train]),
    "error bars": measured.log_predictive_density(
        X[~train], y[~train], measurement_std=errors[~train]
    ),
}
for name, density in held_out.items():
    print(f"{name:17s} log density per held-out row: {density.mean():.2f}")
