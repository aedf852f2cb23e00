r"""Many rows and large networks: density, error, coverage, processor seconds.

Default fits beside histogram boosting, on the first splits of public sets in the folder
`SKBAYESNN_DATA` and on rows that are made here. The log density of boosting in regression is that
of one noise level, the best one for the *test* rows.

One start of large networks beside scikit-learn's network of the same layers with early stopping,
whose noise level is that of the training residuals: regression of a generated function of 10 or 20
inputs, and scikit-learn's digits (1,437 training rows), for sizes on both sides of the limits of
dense matrices, their dual form, and structured ones.

    SKBAYESNN_DATA=... python tests/benchmarks/many_rows.py \
        --only power kin8nm elevators sines classes --csv many_rows.csv
    python tests/benchmarks/many_rows.py --only sines classes digits_32 rows_100000
"""

import argparse
from functools import partial
from typing import NamedTuple

import _data  # before numpy
import numpy as np
from reporting import print_table, timed_fit, write_csv
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor


def sines(n=20_000, n_features=10):
    """Thirty sines in random directions, and noise that grows along the first input."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((n_features, 30)) / n_features**0.5
    X = rng.standard_normal((n + 5000, n_features))
    f = np.sin(2.0 * X @ directions + rng.uniform(0, 6, 30)) @ rng.standard_normal(30) / 5.0
    y = f + 0.2 * np.exp(0.5 * X[:, 0]) * rng.standard_normal(len(X))
    return X[:n], y[:n], X[n:], y[n:]


def classes():
    """20,000 x 20, ten classes of two clusters each."""
    X, y = make_classification(
        24_000, 20, n_informative=12, n_redundant=4, n_classes=10, class_sep=1.2, random_state=0
    )
    return X[:20_000], y[:20_000], X[20_000:], y[20_000:]


def ridges(n, n_features, n_test=2000):
    """Thirty ridges in random directions, and noise of standard deviation 0.2."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_test, n_features))
    directions = rng.standard_normal((n_features, 30)) / np.sqrt(n_features)
    f = np.sin(2.0 * X @ directions) @ rng.standard_normal(30) / np.sqrt(15)
    y = f + 0.2 * rng.standard_normal(len(f))
    return X[:n], y[:n], X[n:], f[n:] + 0.2 * rng.standard_normal(n_test)


def digits():
    """Training and test rows of the digits."""
    rows = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(*rows, train_size=1437, random_state=0)
    return X, y, X_test, y_test


class Case(NamedTuple):
    """Data of a comparison; one start, and the neighbour is a network of the same layers."""

    rows: object
    classes: bool = False
    hidden: object = "auto"
    one_start: bool = False

    def model(self):
        """Our estimator."""
        kind = EvidenceMLPClassifier if self.classes else EvidenceMLPRegressor
        options = {"n_restarts": 1} if self.one_start else {}
        if self.one_start and not self.classes:
            options["noise"] = "constant"
        return kind(self.hidden, random_state=0, **options)

    def neighbour(self):
        """Scikit-learn's network with early stopping, or gradient boosting with defaults."""
        if self.one_start:
            kind = MLPClassifier if self.classes else MLPRegressor
            network = kind(self.hidden, early_stopping=True, max_iter=1000, random_state=0)
            return make_pipeline(StandardScaler(), network)
        kind = HistGradientBoostingClassifier if self.classes else HistGradientBoostingRegressor
        return kind(random_state=0)


PUBLIC = "power", "kin8nm", "elevators"
CASES = {name: Case(partial(_data.split, name)) for name in PUBLIC} | {
    "sines": Case(sines),
    "classes": Case(classes, classes=True),
    "rows_100000": Case(partial(ridges, 100_000, 10), hidden=(100,), one_start=True),
    "dense_2201": Case(partial(ridges, 20_000, 20), hidden=(100,), one_start=True),
    "over_3000": Case(partial(ridges, 20_000, 20), hidden=(200,), one_start=True),
    "over_8000": Case(partial(ridges, 20_000, 20), hidden=(500,), one_start=True),
    "dual_4401": Case(partial(ridges, 1000, 20), hidden=(200,), one_start=True),
}
CASES |= {f"digits_{n}": Case(digits, True, (n,), one_start=True) for n in (16, 32, 64, 128)}


def compare(name, case):
    """Our estimator and its neighbour, a dictionary for each."""
    X, y, X_test, y_test = case.rows()
    about = {"case": name, "task": "classes" if case.classes else "regression"}
    about |= {"rows": len(X), "inputs": X.shape[1]}
    model, seconds = timed_fit(case.model(), X, y)
    found = (of_classes if case.classes else of_regression)(model, X_test, y_test)
    chosen = f"{model.hidden_layer_sizes_} {getattr(model, 'noise_model_', '')}".strip()
    ours = about | {"model": "skbayesnn", "chosen": chosen} | found | {"seconds": seconds}
    other, seconds = timed_fit(case.neighbour(), X, y)
    if case.classes:
        density = -loss_of(other.predict_proba(X_test), y_test)
        error = 1 - other.score(X_test, y_test)
    else:
        squares = np.mean((other.predict(X_test) - y_test) ** 2)
        variance = np.mean((other.predict(X) - y) ** 2) if case.one_start else squares
        density = -0.5 * (np.log(2 * np.pi * variance) + squares / variance)
        error = np.sqrt(squares)
    theirs = about | {"model": "scikit-learn", "chosen": "", "log density": float(density)}
    theirs |= {"not moderated": "", "error": float(error), "inside": "", "seconds": seconds}
    return [ours, theirs]


def loss_of(probabilities, y):
    """Log loss in nats per row; classes are numbered from 0."""
    own = probabilities[np.arange(len(y)), y]
    return float(-np.mean(np.log(np.maximum(own, 1e-300))))


def of_regression(model, X, y):
    """Density, error and coverage."""
    low, high = model.predict_interval(X, coverage=0.95).T
    return {
        "log density": float(model.log_predictive_density(X, y).mean()),
        "not moderated": "",
        "error": float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
        "inside": float(np.mean((low <= y) & (y <= high))),
    }


def of_classes(model, X, y):
    """Log probability of the classes, moderated and not, and the share of wrong ones."""
    return {
        "log density": -loss_of(model.predict_proba(X), y),
        "not moderated": -loss_of(model.predict_proba(X, moderated=False), y),
        "error": float(1 - model.score(X, y)),
        "inside": "",
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--csv", help="file for the rows")
    given = parser.parse_args()
    rows = []
    for name in given.only:
        rows += compare(name, CASES[name])
        print_table(name, rows[-2:])
    if given.csv:
        write_csv(given.csv, rows)
