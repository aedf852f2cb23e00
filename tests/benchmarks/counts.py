"""Counts: deviance of held-out counts beside Poisson regression and boosting, and limits.

    python tests/benchmarks/counts.py [part ...]

Parts: friedman, waves, dispersed (counts with exposures), limits. All by default. Deviances are
those of Poisson's law per row of 2,000 further rows; log probabilities are per row, too.
"""

import sys
import time
import warnings

import numpy as np
from reporting import mean_and_error, print_table
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor

SEEDS, N_TRAIN, N_TEST = range(5), 300, 2000


def friedman(X):
    """Friedman's function of five of eight inputs, as a log rate about 1."""
    smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return 0.15 * (smooth + 10 * X[:, 3] + 5 * X[:, 4]) - 1.0


def waves(X):
    """Two periods in the first of three inputs."""
    return 1.0 + np.sin(4 * np.pi * X[:, 0]) * X[:, 1]


PROBLEMS = {"friedman": (friedman, 8, 0.0), "waves": (waves, 3, 0.0), "dispersed": (waves, 3, 0.5)}


def draw(name, n, rng):
    """Inputs, counts, exposures and true means of counts."""
    log_rate, n_inputs, dispersion = PROBLEMS[name]
    X, exposure = rng.uniform(0, 1, (n, n_inputs)), rng.uniform(0.5, 3.0, n)
    mean = exposure * np.exp(log_rate(X))
    factor = rng.gamma(1 / dispersion, dispersion, n) if dispersion else 1.0
    return X, rng.poisson(mean * factor).astype(float), exposure, mean


def poisson_regression():
    grid = {"poissonregressor__alpha": np.logspace(-4, 1, 11)}
    model = make_pipeline(StandardScaler(), PoissonRegressor(max_iter=1000))
    return GridSearchCV(model, grid, cv=5)


def boosting():
    grid = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [4, 16], "solver__max_iter": [50, 200]}
    model = HistGradientBoostingRegressor(loss="poisson", min_samples_leaf=10, random_state=0)
    return GridSearchCV(model, grid, cv=5)


def rates(make, train, X):
    """Predicted rates of scikit-learn's models, fitted to rates weighted by exposures."""
    name = "poissonregressor__sample_weight" if make is poisson_regression else "sample_weight"
    model = make().fit(train[0], train[1] / train[2], **{name: train[2]})
    return np.maximum(model.predict(X), 1e-9)


def compare(name):
    """Deviance and log probability of held-out counts under several models."""
    found = {}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        train, (X, y, exposure, mean) = (draw(name, n, rng) for n in (N_TRAIN, N_TEST))

        def add(model, prediction, logs, begun, y=y):
            deviance = mean_poisson_deviance(y, prediction)
            seconds = time.process_time() - begun
            found.setdefault(model, []).append((deviance, np.mean(logs), seconds))

        add("truth", mean, stats.poisson.logpmf(y, mean), time.process_time())
        for model, make in (("PoissonRegressor", poisson_regression), ("boosting", boosting)):
            begun = time.process_time()
            prediction = exposure * rates(make, train, X)
            add(model, prediction, stats.poisson.logpmf(y, prediction), begun)
        for noise in ("poisson", "negative_binomial"):
            begun = time.process_time()
            model = EvidenceMLPRegressor(noise=noise, random_state=0)
            model.fit(train[0], train[1], exposure=train[2])
            at = model.predict_distribution(X, exposure=exposure)
            add(f"EvidenceMLP {noise}", at.mean(), at.logpmf(y), begun)
    rows = []
    for model, values in found.items():
        deviance, logs, seconds = np.transpose(values)
        row = {"model": model, "deviance": mean_and_error(deviance, 3)}
        row |= {"log probability": mean_and_error(logs, 3), "CPU s": float(np.mean(seconds))}
        rows.append(row)
    print_table(f"{name}, {N_TRAIN} rows, {len(SEEDS)} repetitions", rows)


def limits():
    """Error of the curve where a share of the targets lies below a limit of detection."""
    rows = []
    for share in (0.1, 0.3, 0.5):
        errors = {"limits": [], "left out": [], "limit as value": []}
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            X = rng.uniform(0, 1, (200, 2))
            truth = np.sin(2 * np.pi * X[:, 0]) + X[:, 1]
            y = truth + 0.2 * rng.standard_normal(200)
            limit = np.quantile(y, share)
            below, seen = y < limit, np.maximum(y, limit)
            options = {"noise": "constant", "random_state": 0, "measure_evidence": False}
            given = {
                "limits": (X, seen, np.where(below, -1, 0)),
                "left out": (X[~below], seen[~below]),
                "limit as value": (X, seen),
            }
            for name, (inputs, targets, *sides) in given.items():
                further = {"censored": sides[0]} if sides else {}
                model = EvidenceMLPRegressor((8,), **options).fit(inputs, targets, **further)
                errors[name].append(np.sqrt(np.mean((model.predict(X) - truth) ** 2)))
        texts = {name: mean_and_error(values, 3) for name, values in errors.items()}
        rows.append({"below": f"{share:.0%}"} | texts)
    print_table("RMS error of the curve, 200 rows, noise 0.2", rows)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in sys.argv[1:] or [*PROBLEMS, "limits"]:
            limits() if part == "limits" else compare(part)
