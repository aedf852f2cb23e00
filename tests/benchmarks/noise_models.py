"""Noise models on data of known truth: recovered noise levels, choice by evidence, outliers.

python tests/benchmarks/noise_models.py [levels] [constant] [outliers]
"""

import sys

import _data  # noqa: F401, one thread
import numpy as np
from reporting import print_table

from skbayesnn import EvidenceMLPRegressor

N_LEVELS, N_CONSTANT, N_OUTLIERS = 50, 20, 20


def network(noise="constant"):
    return EvidenceMLPRegressor((8,), noise=noise, n_restarts=3, random_state=0)


def rows_of(seed, n, noise):
    """A sine with noise of a standard deviation that is a function of the inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(1.5 * X[:, 0]) + noise(X) * rng.standard_normal(n), rng


def known_noise(X):
    """From 0.05 to 0.5 across the range."""
    return 0.05 * 10 ** ((X[:, 0] + 3) / 6)


def levels():
    """Log ratio of found to true noise sd over the central 90 % of the range."""
    grid = np.linspace(-2.7, 2.7, 55)[:, None]
    ratios = []
    for seed in range(N_LEVELS):
        X, y, _ = rows_of(seed, 200, known_noise)
        model = network("input_dependent").fit(X, y)
        ratios.append(np.log(model.predict_std(grid, kind="aleatoric") / known_noise(grid)))
    ratios = np.array(ratios)
    means = ratios.mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    row = {
        "mean log ratio": f"{means.mean():+.3f} +- {error:.3f}",
        "rms ratio - 1": f"{np.sqrt(np.mean(np.expm1(ratios) ** 2)):.3f}",
        "within 20 %": f"{np.mean(np.abs(np.expm1(ratios)) < 0.2):.0%} of the points",
    }
    print_table(f"Noise sd from 0.05 to 0.5, 200 rows, {N_LEVELS} data sets", [row])


def constant():
    """How often the evidence prefers constant noise where it is constant."""
    gaps, chosen = [], []
    for seed in range(N_CONSTANT):
        X, y, _ = rows_of(1000 + seed, 150, lambda X: 0.2)
        both = [network(noise).fit(X, y) for noise in ("constant", "input_dependent")]
        gaps.append(both[0].log_evidence_ - both[1].log_evidence_)
        chosen.append(network("auto").fit(X, y).noise_model_)
    row = {
        "data sets": N_CONSTANT,
        "constant over input_dependent": sum(gap > 0 for gap in gaps),
        "chosen by default": chosen.count("constant"),
        "median gap (nats)": f"{np.median(gaps):.2f}",
    }
    print_table("Constant noise", [row])


def outliers(n=300):
    """Error of the means with 5 % outliers of 10 to 50 noise sd, and without."""
    grid = np.linspace(-3, 3, 200)[:, None]
    truth = np.sin(1.5 * grid[:, 0])
    errors = {name: [] for name in ("clean", "student_t", "constant")}
    for seed in range(N_OUTLIERS):
        X, y, rng = rows_of(2000 + seed, n, lambda X: 0.1)
        far = rng.permutation(n)[: n // 20]
        spoilt = y.copy()
        spoilt[far] += rng.choice([-1, 1], len(far)) * rng.uniform(1, 5, len(far))
        fits = {
            "clean": network().fit(X, y),
            "student_t": network("student_t").fit(X, spoilt),
            "constant": network().fit(X, spoilt),
        }
        for name, model in fits.items():
            errors[name].append(np.mean((model.predict(grid) - truth) ** 2))
    rows = [{"fit": k, "rms error of the mean": np.sqrt(np.mean(v))} for k, v in errors.items()]
    print_table(f"5 % outliers, {n} rows, {N_OUTLIERS} data sets", rows)


PARTS = {"levels": levels, "constant": constant, "outliers": outliers}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
