"""Many rows, beside histogram boosting: density, error, coverage, processor seconds.

Regression on the first splits of sets with published results (`SKBAYESNN_DATA` names the folder),
and on rows that are made here; classes are made here. The log density of boosting in regression is
that of one noise level, the best one for the *test* rows.

    SKBAYESNN_DATA=... python tests/benchmarks/many_rows.py
    python tests/benchmarks/many_rows.py --only sines classes
    python tests/benchmarks/many_rows.py --slope 1000 10000 100000 1000000
"""

import argparse
import warnings
from functools import partial
from time import process_time
from typing import NamedTuple

import _data  # before numpy
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

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


def boosting(classes):
    """Gradient boosting with defaults."""
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(random_state=0)


class Case(NamedTuple):
    """Data of a comparison."""

    rows: object
    classes: bool = False


CASES = {
    "power": Case(partial(_data.split, "power")),
    "kin8nm": Case(partial(_data.split, "kin8nm")),
    "elevators": Case(partial(_data.split, "elevators")),
    "sines": Case(sines),
    "classes": Case(classes, classes=True),
}


def compare(name, case):
    """Print the lines of the table of one case."""
    X, y, X_test, y_test = case.rows()
    kind = EvidenceMLPClassifier if case.classes else EvidenceMLPRegressor
    start = process_time()
    model = kind(random_state=0).fit(X, y)
    line = class_line if case.classes else regression_line
    line(name, model, process_time() - start, X_test, y_test)
    start = process_time()
    boosted = boosting(case.classes).fit(X, y)
    seconds = process_time() - start
    if case.classes:
        loss, wrong = (
            log_loss(y_test, boosted.predict_proba(X_test)),
            1 - boosted.score(X_test, y_test),
        )
        found = f"-{loss:.3f} | {100 * wrong:.1f} %"
    else:
        rms = np.sqrt(np.mean((boosted.predict(X_test) - y_test) ** 2))
        found = f"{-0.5 * np.log(2 * np.pi * np.e * rms**2):.3f} | {rms:.4f}"
    print(f"| {name} | boosting | {found} | | {seconds:.1f} |", flush=True)


def regression_line(name, model, seconds, X, y):
    """Print density, error and coverage."""
    low, high = model.predict_interval(X, coverage=0.95).T
    rms = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    density = model.log_predictive_density(X, y).mean()
    inside = np.mean((low <= y) & (y <= high))
    print(
        f"| {name} | {model.hidden_layer_sizes_}, {model.noise_model_} | {density:.3f} | "
        f"{rms:.4f} | {100 * inside:.1f} % | {seconds:.1f} |",
        flush=True,
    )


def class_line(name, model, seconds, X, y):
    """Print log losses, moderated and not, and the share of wrong classes."""
    plain = log_loss(y, model.predict_proba(X, moderated=False))
    loss, wrong = log_loss(y, model.predict_proba(X)), 1 - model.score(X, y)
    print(
        f"| {name} | {model.hidden_layer_sizes_} | -{loss:.3f} (not moderated -{plain:.3f}) | "
        f"{100 * wrong:.1f} % | | {seconds:.1f} |",
        flush=True,
    )


def slope(sizes, hidden):
    """Seconds of one start by rows at a fixed size, and the slope of their logarithms."""
    seconds = []
    for n in sizes:
        X, y, *_ = sines(n)
        model = EvidenceMLPRegressor(hidden, noise="constant", n_restarts=1, random_state=0)
        start = process_time()
        model.fit(X, y)
        seconds.append(process_time() - start)
        print(f"{n} rows, {hidden}: {seconds[-1]:.1f} s", flush=True)
    print(f"slope {np.polyfit(np.log(sizes), np.log(seconds), 1)[0]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--slope", type=int, nargs="+")
    parser.add_argument("--hidden", type=int, nargs="+", default=[8])
    given = parser.parse_args()
    if given.slope:
        slope(given.slope, tuple(given.hidden))
    else:
        print("| rows | chosen | log density | error | in 95 % | seconds |")
        print("|---|---|---|---|---|---|")
        warnings.simplefilter("ignore")
        for name in given.only:
            compare(name, CASES[name])
