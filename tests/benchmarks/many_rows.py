"""Many rows or many inputs, beside a rival: density, error, coverage, processor seconds.

Regression on the first splits of sets with published results (`SKBAYESNN_DATA` names the folder),
and on rows that are made here; classes are made here. The rival of many rows is boosting with
defaults, that of many inputs a linear model whose penalty is chosen by cross-validation. The log
density of rivals in regression is that of one noise level, the best one for the *test* rows.

    SKBAYESNN_DATA=... python tests/benchmarks/many_rows.py
    python tests/benchmarks/many_rows.py --only sines classes
    python tests/benchmarks/many_rows.py --only spectra friedman5100 --max-time 100
    python tests/benchmarks/many_rows.py --slope 1000 10000 100000 1000000
"""

import argparse
import os
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import process_time
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def generated(n, n_test=5000):
    """Regression with 10 inputs: a sum of sines, with constant noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_test, 10))
    f = np.sin(X[:, 0] + X[:, 1]) + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] * X[:, 4] + X[:, 5]
    y = f + 0.3 * rng.standard_normal(len(X))
    return X[:n], y[:n], X[n:], y[n:]


def generated_classes(n, n_features, n_classes, n_informative=10, sep=1.0, n_test=4000):
    """Classes of two clusters each."""
    given = {"n_informative": n_informative, "n_redundant": 0, "class_sep": sep}
    X, y = make_classification(n + n_test, n_features, n_classes=n_classes, **given, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


def friedman(n):
    """Friedman's function of five inputs, with fifteen others."""
    X, y = make_friedman1(n + 5000, 20, noise=1.0, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


def outliers(n, n_features):
    """Smooth function of many inputs; a tenth of the targets has ten times the noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 2000, n_features))
    f = X @ rng.standard_normal(n_features) / n_features**0.5 + np.tanh(2.0 * X[:, 0] * X[:, 1])
    noise = 0.2 * np.where(rng.random(len(X)) < 0.1, 10.0, 1.0) * rng.standard_normal(len(X))
    y = f + noise
    return X[:n], y[:n], X[n:], y[n:]


def spectra(n, n_features, classes=False):
    """Smooth curves of ten components; targets are linear in three of them."""
    rng = np.random.default_rng(0)
    parts = np.cumsum(rng.standard_normal((10, n_features)), axis=1) / n_features**0.5
    scores = rng.standard_normal((n + 1000, 10))
    X = scores @ parts + 0.05 * rng.standard_normal((len(scores), n_features))
    y = scores[:, 0] + scores[:, 3] - scores[:, 6] + 0.3 * rng.standard_normal(len(X))
    y = (y > 0).astype(int) if classes else y
    return X[:n], y[:n], X[n:], y[n:]


def few_relevant(n, n_features):
    """Targets that are linear in five of many independent inputs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 2000, n_features))
    y = X[:, :5] @ np.array([2.0, -1.5, 1.0, 1.0, 0.5]) + rng.standard_normal(len(X))
    return X[:n], y[:n], X[n:], y[n:]


def many_labels(n, n_features, n_classes):
    """Noisy prototypes, one for each class."""
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.standard_normal((n_classes, n_features))
    y = rng.integers(n_classes, size=2 * n)
    X = centres[y] + rng.standard_normal((2 * n, n_features))
    return X[:n], y[:n], X[n:], y[n:]


def boosting(classes):
    """Gradient boosting with defaults."""
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(random_state=0)


def penalised(classes):
    """Linear model whose penalty is chosen by cross-validation."""
    penalties = np.logspace(-2, 6, 33)
    kind = LogisticRegressionCV(max_iter=2000) if classes else RidgeCV(penalties)
    return make_pipeline(StandardScaler(), kind)


class Case(NamedTuple):
    """Data of a comparison, the options of the estimator, and its rival."""

    rows: object
    options: Mapping = MappingProxyType({})
    rival: object = boosting
    classes: bool = False


CASES = {
    "power": Case(partial(first_split, "power")),
    "kin8nm": Case(partial(first_split, "kin8nm")),
    "elevators": Case(elevators),
    "sines": Case(sines),
    "classes": Case(classes, classes=True),
    "generated": Case(partial(generated, 5000)),
    "generated classes": Case(partial(generated_classes, 5000, 10, 3), classes=True),
    **{f"friedman{n}": Case(partial(friedman, n)) for n in (2000, 4900, 5100, 6000)},
    "linear classes": Case(
        partial(generated_classes, 600, 810, 10, 100, 3.0),
        {"hidden_layer_sizes": ()},
        penalised,
        True,
    ),
    "gas": Case(partial(generated_classes, 2309, 128, 6, 20, 1.5), {}, boosting, True),
    "outliers": Case(
        partial(outliers, 3000, 440), {"hidden_layer_sizes": (20,), "noise": "student_t"}, penalised
    ),
    "spectra": Case(partial(spectra, 40, 2000), {}, penalised),
    "spectra classes": Case(partial(spectra, 40, 2000, True), {}, penalised, True),
    "ard": Case(partial(few_relevant, 200, 200), {"prior": "ard"}, penalised),
    "many labels": Case(partial(many_labels, 6000, 4, 300), {}, penalised, True),
}


def compare(name, case, options):
    """Print the lines of the table of one case."""
    X, y, X_test, y_test = case.rows()
    kind = EvidenceMLPClassifier if case.classes else EvidenceMLPRegressor
    start = process_time()
    model = kind(random_state=0, **case.options, **options).fit(X, y)
    line = class_line if case.classes else regression_line
    line(name, model, process_time() - start, X_test, y_test)
    start = process_time()
    rival = case.rival(case.classes).fit(X, y)
    seconds = process_time() - start
    if case.classes:
        loss, wrong = log_loss(y_test, rival.predict_proba(X_test)), 1 - rival.score(X_test, y_test)
        found = f"-{loss:.3f} | {100 * wrong:.1f} %"
    else:
        rms = np.sqrt(np.mean((rival.predict(X_test) - y_test) ** 2))
        found = f"{-0.5 * np.log(2 * np.pi * np.e * rms**2):.3f} | {rms:.4f}"
    print(f"| {name} | {case.rival.__name__} | {found} | | {seconds:.1f} |", flush=True)


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
    parser.add_argument("--restarts", type=int)
    parser.add_argument("--max-time", type=float)
    given = parser.parse_args()
    with one_blas_thread():
        if given.slope:
            slope(given.slope, tuple(given.hidden))
        else:
            print("| rows | chosen | log density | error | in 95 % | seconds |")
            print("|---|---|---|---|---|---|")
            wanted = {"n_restarts": given.restarts, "max_time": given.max_time}
            wanted = {key: value for key, value in wanted.items() if value is not None}
            warnings.simplefilter("ignore")
            for name in given.only:
                compare(name, CASES[name], wanted)
