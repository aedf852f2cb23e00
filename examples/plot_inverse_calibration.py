"""
Calibrate an instrument, and measure unknown samples
====================================================

A photometer reads 72 standards of known concentration. Its response levels off
at high concentrations, and its noise grows with the reading. Which
concentration has an unknown sample? The calibration curve is used
backwards. The error bars contain the noise of the reading and the uncertainty
of the curve, and are wide where the curve is flat.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

rng = np.random.default_rng(0)


def measure(concentration):
    """Readings of a photometer that saturates."""
    signal = 1.5 * concentration / (concentration + 4)
    return signal + (0.005 + 0.01 * signal) * rng.standard_normal(len(signal))


standards = np.repeat(np.geomspace(0.2, 20.0, 24), 3)  # mg/l
readings = measure(standards)

# %%
# From concentration to reading
# -----------------------------
# The standards are exact and the readings noisy, so the model predicts readings
# from concentrations, not the reverse. The logarithm of the concentration makes
# the standards equally spaced. The noise may depend on the concentration.

inputs = np.log(standards)[:, None]
model = EvidenceMLPRegressor(random_state=0).fit(inputs, readings)
print(model.evidence_report_.predictions)

# %%
# From reading to concentration
# -----------------------------
# Bayes' theorem: the probability of a concentration is in proportion to its
# prior probability, here uniform in the logarithm over the range of the
# standards, times the predictive density of the reading.

grid = np.linspace(np.log(0.2), np.log(20.0), 201)
curve = model.predict_distribution(grid[:, None])


def concentrations(reading):
    """Median and 95 % interval of the concentration (mg/l), and its density."""
    density = curve.pdf(np.full(len(grid), reading))
    cumulative = (np.cumsum(density) - density / 2) / np.sum(density)
    quantiles = np.interp([0.5, 0.025, 0.975], cumulative, grid)
    return np.exp(quantiles), density / (np.sum(density) * (grid[1] - grid[0]))


samples = np.array([0.5, 2.5, 12.0])
found = [concentrations(reading) for reading in measure(samples)]
for sample, ((middle, low, high), _) in zip(samples, found, strict=True):
    print(f"true {sample:.1f}: {middle:.2f}, 95 % in {low:.2f} ... {high:.2f}")

# %%
# Are the bars right? Of many unknown samples, 95 % should lie inside.

unknown = np.exp(rng.uniform(np.log(0.3), np.log(15.0), 200))
bounds = np.array([concentrations(y)[0][1:] for y in measure(unknown)])
inside = (bounds[:, 0] < unknown) & (unknown < bounds[:, 1])
print(f"in 95 % intervals: {inside.mean():.0%} of 200 samples")

# %%
# Near the ends of the standards the prior cuts intervals off; there measure
# more standards. The mean of repeated readings is a reading of smaller noise.

plt.rcParams.update({"font.size": 9, "figure.figsize": (5, 4.6)})
fig, (ax, below) = plt.subplots(2, 1, sharex=True, layout="constrained")
ax.fill_between(np.exp(grid), *curve.interval(0.95).T, alpha=0.25, lw=0)
ax.plot(np.exp(grid), curve.mean(), label="calibration curve, 95 % of readings")
ax.plot(standards, readings, "ok", ms=2.5, label="standards")
ax.set(ylabel="reading", xscale="log")
ax.legend(frameon=False)
for sample, (_, density) in zip(samples, found, strict=True):
    (line,) = below.plot(np.exp(grid), density)
    below.axvline(sample, color=line.get_color(), lw=0.8, ls="--")
below.set(xlabel="concentration (mg/l); true ones dashed", ylabel="density")
plt.show()
