"""
Are the error bars right?
=========================

Good error bars are as short as they can be while the measurements still lie
inside. This example predicts the content of flavanoids in 178 wines from twelve
other measurements, and checks the error bars by cross-validation.

The errors are a fifth smaller than those of linear regression and no larger
than those of a Gaussian process. The intervals contain as many measurements as
they should.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold, train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import CalibrationDisplay

wines = load_wine(as_frame=True).data
X, y = wines.drop(columns="flavanoids"), wines["flavanoids"].to_numpy()
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# Fit and predict
# ---------------
# Inputs need no scaling beforehand. ``predict`` can return the standard
# deviation of every prediction in the units of ``y``. It includes the
# uncertainty of the weights and the noise.

model = EvidenceMLPRegressor(random_state=0).fit(X_train, y_train)
mean, std = model.predict(X_test, return_std=True)
for row in range(5):
    print(
        f"predicted {mean[row]:4.1f} ± {std[row]:.1f}, measured "
        f"{y_test[row]:4.1f}"
    )

# %%
# In the picture the bars are intervals that should contain 95 % of the
# measurements.

# Okabe and Ito
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.45"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
interval = model.predict_interval(X_test, coverage=0.95)
inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
fig, ax = plt.subplots(figsize=(3.54, 3.3), layout="constrained")
ax.plot([0, 4.2], [0, 4.2], color="0.3", lw=0.8)
for rows, colour, marker, label in (
    (inside, BLUE, "o", "measured inside"),
    (~inside, ORANGE, "s", "measured outside"),
):
    bars = np.abs(interval[rows] - mean[rows, None]).T
    ax.errorbar(
        y_test[rows],
        mean[rows],
        bars,
        fmt=marker,
        ms=3,
        lw=0.7,
        color=colour,
        label=label,
    )
ax.set(
    xlabel="measured flavanoids",
    ylabel="predicted, with 95 % interval",
    xlim=(0, 4.2),
)
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What was inferred
# -----------------
# The report shows how well left-out rows are predicted, the noise, what
# predicts, and the inferred precisions of the weights.

print(model.evidence_report_.full())

# %%
# Each training row, predicted from the others
# --------------------------------------------
# A fit also predicts each of its training rows from all others, without
# refits. The curve shows how many measurements lie inside intervals of every
# probability. The histogram is that of the predictive probabilities of values
# below the measured one: flat if the error bars are right.

CalibrationDisplay.from_estimator(model)
plt.show()

# %%
# Cross-validation
# ----------------
# In five folds, a model predicts every wine that it was not trained on. Three
# other estimators do the same: a Gaussian process, Bayesian linear regression,
# and scikit-learn's network with its default settings. scikit-learn's network
# has no error bars, so it gets the standard deviation of its training
# residuals.

gaussian_process = GaussianProcessRegressor(
    ConstantKernel() * RBF(3.0) + WhiteKernel(0.5), normalize_y=True
)
estimators = {
    "EvidenceMLPRegressor": EvidenceMLPRegressor(random_state=0),
    "GaussianProcessRegressor": make_pipeline(
        StandardScaler(), gaussian_process
    ),
    "BayesianRidge": make_pipeline(StandardScaler(), BayesianRidge()),
    "MLPRegressor": make_pipeline(
        StandardScaler(), MLPRegressor(max_iter=3000, random_state=0)
    ),
}
ours = "EvidenceMLPRegressor"
folds = list(KFold(5, shuffle=True, random_state=0).split(X))
mean, density, cdf, inside = (
    {name: np.empty(len(y)) for name in estimators} for _ in range(4)
)
for name, estimator in estimators.items():
    for train, test in folds:
        estimator.fit(X.iloc[train], y[train])
        rows, truth = X.iloc[test], y[test]
        if name == ours:
            mean[name][test] = estimator.predict(rows)
            density[name][test] = estimator.log_predictive_density(rows, truth)
            at = estimator.predict_distribution(rows)
            cdf[name][test] = at.cdf(truth)
            continue
        if name == "MLPRegressor":
            found = estimator.predict(rows)
            spread = np.std(y[train] - estimator.predict(X.iloc[train]))
        else:
            found, spread = estimator.predict(rows, return_std=True)
        mean[name][test] = found
        density[name][test] = norm.logpdf(truth, found, spread)
        cdf[name][test] = norm.cdf(truth, found, spread)

# %%
# The log density of the measured values under the predictions rewards short
# error bars that contain the targets. The last column shows how much lower it
# is than for the network, per wine, with its standard error.

rmse = {name: np.sqrt(np.mean((mean[name] - y) ** 2)) for name in estimators}
coverage = {
    name: np.mean(np.abs(2 * cdf[name] - 1) <= 0.95) for name in estimators
}
heading = (
    f"{'rms error':>10s}{'in 95 % interval':>18s}{'log density less by':>24s}"
)
print(" " * 26 + heading)
for name in estimators:
    less = density[ours] - density[name]
    error = less.std(ddof=1) / np.sqrt(len(y))
    text = "" if name == ours else f"{less.mean():.2f} ± {error:.2f} nats"
    print(f"{name:26s}{rmse[name]:10.2f}{coverage[name]:18.0%}{text:>24s}")

# %%
# The display now shows the predictions of the five folds. Curves inside the
# bands are consistent with perfect calibration. Here wide intervals contain as
# many measurements as they should, and narrow ones slightly more.

CalibrationDisplay.from_pit(cdf[ours])
plt.show()
print(f"in 50 % intervals: {np.mean(np.abs(2 * cdf[ours] - 1) <= 0.5):.0%}")
