"""Defaults on many rows, beside gradient boosting: density, error, coverage, processor seconds.

Regression on the first splits of sets with published results (`SKBAYESNN_DATA` names the folder),
and on rows that are made here; classes are made here. Boosting has defaults; its log density is
that of one noise level, the best one for the *test* rows.

    SKBAYESNN_DATA=... python tests/benchmarks/many_rows.py
    python tests/benchmarks/many_rows.py --only sines classes
    python tests/benchmarks/many_rows.py --slope 1000 10000 100000 1000000
"""

import argparse
import os
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn._threads import one_blas_thread

FOLDER = Path(os.environ.get("SKBAYESNN_DATA", "."))


def first_split(name):
    """First published split of a set: power (8,611 x 4) or kin8nm (7,373 x 8)."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=True) as data:
        X, y, train, test = data["X"], data["y"], data["train_idx"][0], data["test_idx"][0]
    return X[train], y[train], X[test], y[test]


def elevators():
    """14,940 x 18."""
    with np.load(FOLDER / "elevators.npz", allow_pickle=True) as data:
        X, y, test = data["X"], data["y"], data["test_mask"][:, 0]
    return X[~test], y[~test], X[test], y[test]


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


def regression_line(name, X, y, X_test, y_test, options):
    """Of the table, with the line of boosting."""
    start = process_time()
    model = EvidenceMLPRegressor(random_state=0, **options).fit(X, y)
    seconds = process_time() - start
    low, high = model.predict_interval(X_test, coverage=0.95).T
    rms = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    density = model.log_predictive_density(X_test, y_test).mean()
    inside = np.mean((low <= y_test) & (y_test <= high))
    print(
        f"| {name} | {model.hidden_layer_sizes_}, {model.noise_model_} | {density:.3f} | "
        f"{rms:.4f} | {100 * inside:.1f} % | {seconds:.0f} |",
        flush=True,
    )
    start = process_time()
    rival = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    seconds = process_time() - start
    rms = np.sqrt(np.mean((rival.predict(X_test) - y_test) ** 2))
    density = -0.5 * np.log(2 * np.pi * np.e * rms**2)
    print(f"| {name} | boosting | {density:.3f} | {rms:.4f} | | {seconds:.0f} |", flush=True)


def class_line(name, X, y, X_test, y_test, options):
    """Of the table: log losses, moderated and not, and shares of wrong classes."""
    start = process_time()
    model = EvidenceMLPClassifier(random_state=0, **options).fit(X, y)
    seconds = process_time() - start
    plain = log_loss(y_test, model.predict_proba(X_test, moderated=False))
    loss, wrong = log_loss(y_test, model.predict_proba(X_test)), 1 - model.score(X_test, y_test)
    print(
        f"| {name} | {model.hidden_layer_sizes_} | -{loss:.3f} (not moderated -{plain:.3f}) | "
        f"{100 * wrong:.1f} % | | {seconds:.0f} |",
        flush=True,
    )
    start = process_time()
    rival = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    seconds = process_time() - start
    loss, wrong = log_loss(y_test, rival.predict_proba(X_test)), 1 - rival.score(X_test, y_test)
    line = f"| {name} | boosting | -{loss:.3f} | {100 * wrong:.1f} % | | {seconds:.0f} |"
    print(line, flush=True)


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
    sets = {
        "power": partial(first_split, "power"),
        "kin8nm": partial(first_split, "kin8nm"),
        "elevators": elevators,
        "sines": sines,
        "classes": classes,
    }
    parser.add_argument("--only", nargs="+", choices=sets, default=list(sets))
    parser.add_argument("--slope", type=int, nargs="+")
    parser.add_argument("--hidden", type=int, nargs="+", default=[8])
    parser.add_argument("--restarts", type=int)
    given = parser.parse_args()
    with one_blas_thread():
        if given.slope:
            slope(given.slope, tuple(given.hidden))
        else:
            print("| rows | chosen | log density | error | in 95 % | seconds |")
            print("|---|---|---|---|---|---|")
            chosen = {} if given.restarts is None else {"n_restarts": given.restarts}
            for name in given.only:
                line = class_line if name == "classes" else regression_line
                line(name, *sets[name](), chosen)
