"""
Occam's hill for fixed basis functions
======================================

How many basis functions should a model have? In D. J. C. MacKay's study
(*Bayesian Methods for Adaptive Models*, PhD thesis, 1992, chapter 2; "Bayesian
interpolation", *Neural Computation* 4, 1992) the answer depends on their kind.
The evidence of polynomials has a maximum, because every degree adds freedom and
lowers the Occam factor. The evidence of radial basis functions rises to a
plateau: if there are enough of them, more functions change nothing. The points
are those of :ref:`sphx_glr_auto_examples_plot_interpolation.py`. That example
compares the best models and shows the evidence over the width of radial
functions and the order of splines.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.basis import LegendreFeatures, RadialBasisFeatures
from skbayesnn.displays import EvidenceDisplay
from skbayesnn.model_selection import EvidenceSearch

NOISE = 0.1


def truth(x):
    """The curve."""
    return 1.1 * (1 - x + 2 * x**2) * np.exp(-(x**2) / 2)


rng = np.random.default_rng(0)
X = rng.uniform(-5, 5, (40, 1))
y = truth(X[:, 0]) + NOISE * rng.standard_normal(40)
X_test = rng.uniform(X.min(), X.max(), (500, 1))
y_test = truth(X_test[:, 0]) + NOISE * rng.standard_normal(500)


def search(basis, name, values):
    """Fits with every value of a parameter of the basis."""
    model = make_pipeline(
        basis, EvidenceMLPRegressor((), noise="constant", standardize=False)
    )
    return EvidenceSearch(model, {name: list(values)}).fit(X, y)


# %%
# Polynomials
# -----------
# The pictures show the evidence for each degree, its terms, and the error on
# 500 new points. Each model has inferred its own weight decay rate and noise
# level.

DEGREES = range(2, 21)
legendre = search(LegendreFeatures(), "legendrefeatures__degree", DEGREES)
display = EvidenceDisplay.from_estimator(
    legendre, "legendrefeatures__degree", X_test, y_test
)
plt.show()

# %%
# The misfit improves up to the top of the hill, and hardly beyond. The Occam
# factor falls all the time. The degree of highest evidence has the smallest
# test error, or nearly.


def test_errors(found):
    """Root mean squared errors on new points."""
    return np.array(
        [
            np.sqrt(np.mean((m.predict(X_test) - y_test) ** 2))
            for m in found.estimators_
        ]
    )


evidence, errors = legendre.results_["log_evidence"], test_errors(legendre)
best = int(np.argmax(evidence))
print(
    f"degree {DEGREES[best]} has the highest evidence and the test error "
    f"{errors[best]:.3f}; "
    f"smallest test error {errors.min():.3f} at degree "
    f"{DEGREES[errors.argmin()]}; noise {NOISE}"
)

# %%
# Radial basis functions
# ----------------------
# Gaussian functions of width 0.7, evenly spaced over the range of the points.

CENTRES = [4, 6, 8, 10, 13, 16, 20, 30, 45, 60, 90]
radial = search(
    RadialBasisFeatures(width=0.7), "radialbasisfeatures__n_centers", CENTRES
)
radial_errors = test_errors(radial)
gamma = [model[-1].n_effective_weights_ for model in radial.estimators_]
prior_sd = [
    model[-1].weight_precisions_[0] ** -0.5 for model in radial.estimators_
]

# Okabe and Ito: safe for the colour-blind
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, axes = plt.subplots(
    2, 2, figsize=(7.1, 3.9), sharex=True, layout="constrained"
)
panels = [
    (radial.results_["log_evidence"], "log evidence (nats)", BLUE),
    (radial_errors, "test RMSE", BLUE),
    (gamma, "well determined, $\\gamma$", ORANGE),
    (prior_sd, "prior sd of the weights", GREEN),
]
for ax, (values, label, colour) in zip(axes.flat, panels, strict=True):
    ax.plot(CENTRES, values, "o-", color=colour, ms=4, lw=1.0)
    ax.set(xscale="log", ylabel=label)
    ax.spines[["top", "right"]].set_visible(False)
axes[1, 0].plot(CENTRES, [n + 1 for n in CENTRES], color="0.4", lw=0.8, ls="--")
axes[1, 0].text(6.5, 15, "all weights", color="0.3", fontsize=7, ha="center")
axes[1, 0].set_ylim(0, 22)
axes[1, 1].set(yscale="log", ylim=(0.1, 2))
axes[1, 1].set_yticks([0.1, 0.3, 1.0], ["0.1", "0.3", "1"])
for ax in axes[1]:
    ax.set_xlabel("number of basis functions")
    ax.set_xticks([4, 8, 16, 30, 60, 90], ["4", "8", "16", "30", "60", "90"])
    ax.minorticks_off()
plt.show()

# %%
# Too few functions leave gaps between them. From about sixteen functions on,
# neither the evidence nor the test error nor the number of well-determined
# weights changes. The weights become smaller as more functions add up. So you
# can use as many as you like: the prior defines the model, not the number of
# functions.

top = np.array(radial.results_["log_evidence"])
print(
    "log evidence:",
    ", ".join(
        f"{n}: {value:.1f}" for n, value in zip(CENTRES, top, strict=True)
    ),
)
