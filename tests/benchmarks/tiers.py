"""What large networks gain from each form of their curvature, beside scikit-learn's network.

Test log density per row (nats), error, and processor seconds of one start on one core, for sizes on
both sides of the limits: dense matrices, their dual form, and structured ones. Regression is on a
generated function of 10 or 20 inputs, classification on scikit-learn's digits (1,437 training
rows). The peer is `MLPRegressor` or `MLPClassifier` with the same layers and early stopping, its
noise level that of the training residuals. Run with::

    python tests/benchmarks/tiers.py
    python tests/benchmarks/tiers.py --cases digits_32 rows_100000
"""

import argparse
from time import process_time

import _data  # noqa: F401, one thread
import numpy as np
from reporting import counted_warnings, print_table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor

N_TEST = 2000


def smooth(n, d, noise=0.2):
    """A function of all inputs, with ridges in several directions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + N_TEST, d))
    directions = rng.standard_normal((d, 30)) / np.sqrt(d)
    f = np.sin(2.0 * X @ directions) @ rng.standard_normal(30) / np.sqrt(15)
    return (
        X[:n],
        X[n:],
        (f + noise * rng.standard_normal(len(f)))[:n],
        f[n:] + (noise * rng.standard_normal(N_TEST)),
    )


def digits():
    """Training and test rows of the digits."""
    return train_test_split(*load_digits(return_X_y=True), train_size=1437, random_state=0)


CASES = {  # name: data, hidden layers
    "rows_100000": (lambda: smooth(100_000, 10), (100,)),
    "dense_2201": (lambda: smooth(20_000, 20), (100,)),
    "over_3000": (lambda: smooth(20_000, 20), (200,)),
    "over_8000": (lambda: smooth(20_000, 20), (500,)),
    "dual_4401": (lambda: smooth(1_000, 20), (200,)),
    "digits_16": (digits, (16,)),
    "digits_32": (digits, (32,)),
    "digits_64": (digits, (64,)),
    "digits_128": (digits, (128,)),
}


def of_ours(name):
    """One start of the evidence estimator."""
    data, sizes = CASES[name]
    X, X_test, y, y_test = data()
    classes = name.startswith("digits")
    kind = EvidenceMLPClassifier if classes else EvidenceMLPRegressor
    options = {} if classes else {"noise": "constant"}
    model = kind(sizes, n_restarts=1, random_state=0, **options)
    started = process_time()
    with counted_warnings() as messages:
        model.fit(X, y)
    seconds = process_time() - started
    row = {"log density": np.mean(model.log_predictive_density(X_test, y_test))}
    if classes:
        plain = model.predict_proba(X_test, moderated=False)
        own = plain[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)]
        row["not moderated"] = np.mean(np.log(np.maximum(own, 1e-300)))
        row["error"] = 1.0 - model.score(X_test, y_test)
    else:
        low, high = model.predict_interval(X_test).T
        row["not moderated"] = np.nan
        row["error"] = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
        row["coverage"] = np.mean((low < y_test) & (y_test < high))
    row |= {"log evidence": model.log_evidence_, "gamma": model.n_effective_weights_}
    return row | {"seconds": seconds, "warned": "; ".join(m[:60] for m in messages)}


def of_peer(name):
    """Scikit-learn's network of the same size."""
    data, sizes = CASES[name]
    X, X_test, y, y_test = data()
    classes = name.startswith("digits")
    kind = MLPClassifier if classes else MLPRegressor
    net = kind(hidden_layer_sizes=sizes, early_stopping=True, max_iter=1000, random_state=0)
    started = process_time()
    with counted_warnings():
        model = make_pipeline(StandardScaler(), net).fit(X, y)
    seconds = process_time() - started
    if classes:
        p = model.predict_proba(X_test)[np.arange(len(y_test)), y_test]
        density, error = np.mean(np.log(np.maximum(p, 1e-300))), 1.0 - model.score(X_test, y_test)
    else:
        variance = np.mean((model.predict(X) - y) ** 2)
        squares = np.mean((model.predict(X_test) - y_test) ** 2)
        density = -0.5 * (np.log(2 * np.pi * variance) + squares / variance)
        error = np.sqrt(squares)
    return {"peer density": density, "peer error": error, "peer seconds": seconds}


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    rows = []
    for name in parser.parse_args().cases:
        rows.append({"case": name} | of_ours(name) | of_peer(name))
        print_table(name, rows[-1:])


if __name__ == "__main__":
    main()
