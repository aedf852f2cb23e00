"""
Choosing the weight decay and the noise level
=============================================

How strong should weight decay be? D. J. C. MacKay (*Bayesian Methods for
Adaptive Models*, PhD thesis, 1992, chapter 2, figures 2.4 and 2.5; "Bayesian
interpolation", *Neural Computation* 4, 1992) interpolates noisy points by sixty
radial basis functions. Their weights have a Gaussian prior of precision
``alpha``, the weight decay rate. The evidence of ``alpha`` needs no test data.
At its maximum, twice the weight penalty equals the number of well-determined
weights, and the test error is almost as small as possible. The data here are
new.
"""

# sphinx_gallery_thumbnail_number = 4

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.basis import RadialBasisFeatures

NOISE = 0.2
# some values of alpha are far too small or too large
warnings.simplefilter("ignore", ConvergenceWarning)


def truth(x):
    """The curve."""
    return 1.1 * (1 - x + 2 * x**2) * np.exp(-(x**2) / 2)


def measure(n_rows, seed):
    """Noisy points of the curve."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5, 5, (n_rows, 1))
    return x, truth(x[:, 0]) + NOISE * rng.standard_normal(n_rows)


X, y = measure(40, 3)


def fit(alpha="auto", noise="auto"):
    """The model with these values, or with inferred ones, and the basis in
    front of it.
    """
    model = EvidenceMLPRegressor(
        (),
        prior=Prior("single", precision=alpha),
        noise=noise,
        standardize=False,
    )
    return make_pipeline(RadialBasisFeatures(60, width=0.7), model).fit(X, y)


# %%
# Too flexible, too stiff
# -----------------------
# First the noise level has its true value. The pictures show three weight decay
# rates; the evidence has chosen the middle one. The bands are two standard
# deviations of the curve.

chosen = fit(noise=NOISE)
best = chosen[-1].weight_precisions_[0]
# Okabe and Ito
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
grid = np.linspace(-5, 5, 401)[:, None]
fig, axes = plt.subplots(
    3, 1, figsize=(3.54, 4.4), sharex=True, layout="constrained"
)
cases = [
    (1e-4 * best, "too small"),
    (best, "highest evidence"),
    (1e3 * best, "too large"),
]
for ax, (alpha, name) in zip(axes, cases, strict=True):
    model = fit(alpha, NOISE)
    mean = model.predict(grid)
    sd = model[-1].predict_std(model[:-1].transform(grid), kind="epistemic")
    ax.fill_between(
        grid[:, 0], mean - 2 * sd, mean + 2 * sd, color=BLUE, alpha=0.25, lw=0
    )
    ax.plot(grid[:, 0], mean, color=BLUE, lw=1.2, label="most probable curve")
    ax.plot(
        grid[:, 0],
        truth(grid[:, 0]),
        color="black",
        lw=0.7,
        ls=(0, (4, 2)),
        label="true curve",
    )
    ax.plot(X[:, 0], y, "o", color="black", ms=2.0, mew=0, label="data")
    ax.text(
        0.98,
        0.95,
        f"alpha = {alpha:.2g}: {name}",
        ha="right",
        va="top",
        transform=ax.transAxes,
    )
    ax.set(xlim=(-5, 5), ylim=(-1.6, 3.9), ylabel="$y$")
    ax.spines[["top", "right"]].set_visible(False)
axes[-1].set_xlabel("$x$")
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=3,
    frameon=False,
)
plt.show()

# %%
# The evidence of the weight decay rate
# -------------------------------------
# The report of a fit has the terms of its evidence. The misfit grows with
# ``alpha``, because the weights can no longer follow the points. The Occam
# factor, the fraction of the prior volume that the data leave, grows too. The
# evidence is highest where the two balance. The lowest panel shows the errors
# on two further sets of points.

alphas = np.geomspace(1e-4, 1e3, 36)
fits = [fit(alpha, NOISE) for alpha in alphas]
reports = [model[-1].evidence_report_ for model in fits]
weights = [
    np.append(model[-1].coefs_[0], model[-1].intercepts_[0]) for model in fits
]
evidence = np.array([report.log_evidence for report in reports])
misfit = np.array([report.misfit for report in reports])
penalty = -0.5 * alphas * np.array([w @ w for w in weights])
occam = (
    np.array([report.weight_prior + report.log_det for report in reports])
    - penalty
)
gamma = np.array([model[-1].n_effective_weights_ for model in fits])
tests = [measure(200, seed) for seed in (1, 2)]
errors = [
    np.array(
        [
            np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2))
            for model in fits
        ]
    )
    for X_new, y_new in tests
]

fig, axes = plt.subplots(
    3, 1, figsize=(3.54, 6.0), sharex=True, layout="constrained"
)
above, middle, below = axes
constant = evidence[0] - (misfit + penalty + occam)[0]
for values, colour, style, name in [
    (evidence - constant, "black", "-", "log evidence"),
    (misfit, BLUE, "--", "misfit $-\\beta E_D$"),
    (penalty, ORANGE, ":", "weight penalty $-\\alpha E_W$"),
    (occam, GREEN, "-.", "log Occam factor"),
]:
    above.plot(alphas, values, color=colour, ls=style, lw=1.2, label=name)
above.set(ylim=(-110, 5), ylabel="nats (up to a constant)")
above.legend(
    loc="lower center", frameon=False, bbox_to_anchor=(0.5, 1.0), ncols=2
)
middle.plot(
    alphas, gamma, color=BLUE, lw=1.2, label="well determined, $\\gamma$"
)
middle.plot(
    alphas, -2 * penalty, color=ORANGE, ls="--", lw=1.2, label="$2\\alpha E_W$"
)
middle.set(ylim=(0, 42), ylabel="number of weights")
middle.legend(loc="upper left", bbox_to_anchor=(0.0, 0.95), frameon=False)
for error, colour, style, name in zip(
    errors, (GREEN, PURPLE), ("-", "--"), "AB", strict=True
):
    below.plot(
        alphas, error, color=colour, ls=style, lw=1.2, label=f"test set {name}"
    )
    below.plot(alphas[error.argmin()], error.min(), "o", color=colour, ms=4)
below.axhline(NOISE, color="0.4", lw=0.8)
below.text(alphas[0], NOISE, "noise", va="bottom", color="0.3", fontsize=7)
below.set(
    xscale="log",
    ylim=(0.18, 0.46),
    xlabel="weight decay rate alpha",
    ylabel="test error, rms",
)
below.legend(loc="upper left", frameon=False)
for ax in axes:
    ax.axvline(best, color="0.75", lw=0.8, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The maximum of the evidence (grey line) lies where the two curves of the
# middle panel cross, ``gamma = 2 alpha E_W`` (equations 2.22-2.24 of the
# thesis): the inferred ``alpha`` satisfies it. The errors on the two test sets
# are smallest at different values of ``alpha``. At the value that the evidence
# chooses they are hardly larger.

w = np.append(chosen[-1].coefs_[0], chosen[-1].intercepts_[0])
print(
    f"alpha: {best:.3g} inferred, {alphas[evidence.argmax()]:.3g} best of the "
    "grid"
)
print(
    f"gamma {chosen[-1].n_effective_weights_:.3f}, 2 alpha E_W "
    f"{best * w @ w:.3f}"
)
for (X_new, y_new), error, name in zip(tests, errors, "AB", strict=True):
    here = np.sqrt(np.mean((chosen.predict(X_new) - y_new) ** 2))
    print(
        f"test set {name}: error {here:.3f} there; smallest {error.min():.3f}, "
        "at alpha = "
        f"{alphas[error.argmin()]:.2g}"
    )

# %%
# Which weights are well determined
# ---------------------------------
# The data determine some directions in the space of the weights, whose
# eigenvalue ``lambda`` of the data's Hessian is larger than ``alpha``, and
# leave the others to the prior. Each counts ``lambda / (lambda + alpha)``; the
# sum is ``gamma``. The eigenvalues and these shares are in ``posterior_``. It
# has the Hessian with the prior's part, in units of the prior: its eigenvalues
# are ``1 + lambda / alpha``.

posterior = chosen[-1].posterior_[0]
eigenvalues = best * (posterior.eigenvalues - 1)
fig, ax = plt.subplots(figsize=(3.54, 2.0), layout="constrained")
rank = np.arange(1, len(eigenvalues) + 1)
ax.plot(rank, eigenvalues, "o", color=BLUE, ms=3)
ax.axhline(best, color=ORANGE, lw=1.2)
ax.text(1, best, "alpha", va="bottom", color=ORANGE)
ax.set(
    yscale="log",
    xlim=(0, 26.5),
    ylim=(1e-5, 1e6),
    xlabel="direction",
    ylabel="eigenvalue of $\\beta B$",
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

print(
    f"sum of lambda / (lambda + alpha): {posterior.gamma.sum():.3f} "
    f"of {len(w)} weights"
)
gamma = chosen[-1].n_effective_weights_

# %%
# The noise level as well
# -----------------------
# With both unknown, the evidence is a hill over their plane. Its top is where
# both conditions hold, ``2 alpha E_W = gamma`` and ``2 beta E_D = N - gamma``:
# the estimate of the noise takes into account that the well-determined weights
# have reduced the misfit.

both = fit()
levels, coarse = np.geomspace(0.1, 0.5, 25), np.geomspace(0.1, 1e3, 25)
plane = np.array(
    [
        [fit(alpha, level)[-1].log_evidence_ for alpha in coarse]
        for level in levels
    ]
)
residual = y - both.predict(X)
naive = np.sqrt(np.mean(residual**2))
fig, ax = plt.subplots(figsize=(3.54, 2.7), layout="constrained")
drawn = ax.contour(
    coarse,
    levels,
    plane - plane.max(),
    [-20, -10, -5, -2, -0.5],
    colors=BLUE,
    linewidths=0.8,
    linestyles="-",
)
ax.clabel(drawn, fmt="%g", fontsize=7, inline_spacing=1)
ax.set_title("log evidence, from its top (nats)")
ax.plot(
    both[-1].weight_precisions_,
    both[-1].noise_std_,
    "*",
    color=ORANGE,
    ms=10,
    mec="black",
)
ax.axhline(NOISE, color="0.4", lw=0.8, ls="--")
label = {"color": "0.3", "fontsize": 7, "ha": "right"}
ax.text(coarse[-1], NOISE, "true noise ", va="bottom", **label)
ax.axhline(naive, color="0.4", lw=0.8, ls=":")
ax.text(coarse[-1], naive, "rms residual ", va="top", **label)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="weight decay rate alpha",
    ylabel="noise sd (units of $y$)",
)
ax.set_yticks([0.1, 0.2, 0.3, 0.5], ["0.1", "0.2", "0.3", "0.5"])
ax.minorticks_off()
plt.show()

# %%
# The result of one fit (star) is the top of the hill. The residuals alone would
# underestimate the noise.

gamma_both = both[-1].n_effective_weights_
print(
    f"noise sd: true {NOISE}, inferred {both[-1].noise_std_:.3f}, rms residual "
    f"{naive:.3f}; "
    f"{gamma_both:.1f} of {len(w)} weights well determined by {len(X)} points"
)
