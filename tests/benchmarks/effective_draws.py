"""Effective draws of populations: how well the networks that an evidence fit draws give means.

The effective number of draws is the variance of the outputs under the posterior over the variance
of their means between seeds, so that regions count that a population misses. It is divided by the
processor seconds of a whole fit of one network of 8 units. Run with::

    python tests/benchmarks/effective_draws.py --seeds 20
"""

import argparse

import _data  # noqa: F401, one thread
import numpy as np
from reporting import print_table, timed_fit
from sklearn.datasets import load_iris, load_wine, make_friedman1

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from tests.tools import parts_of, standardised

HIDDEN = (8,)


def problems():
    """Names, inputs and targets of the problems, and whether these are classes."""
    rng = np.random.default_rng(0)
    rng.uniform(size=100)
    X = rng.standard_normal((80, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    yield "80 x 2, regression", X, f + 0.2 * rng.standard_normal(80), False
    yield "80 x 2, two classes", X, f + 0.5 * rng.standard_normal(80) > 1, True
    X, y = make_friedman1(200, 5, noise=1.0, random_state=0)
    yield "Friedman, 200 x 5", X, y, False
    yield "iris", *load_iris(return_X_y=True), True
    yield "wine", *load_wine(return_X_y=True), True


def fitted(model, X, y):
    """Posterior means and mean variance of the outputs, evidence and processor seconds."""
    model, seconds = timed_fit(model, X, y)
    f = parts_of(model)[0].outputs(standardised(model, X))
    f = f.reshape(-1, *f.shape[-2:])
    if f.shape[-1] > 1:  # a constant common to all activations has no effect
        f = f - f.mean(axis=-1, keepdims=True)
    return f.mean(axis=0).ravel(), np.mean(f.var(axis=0)), model.log_evidence_, seconds


def main():
    """Print a table of all problems."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    table = []
    for name, X, y, classes in problems():
        kind = EvidenceMLPClassifier if classes else EvidenceMLPRegressor
        options = (
            {"measure_evidence": True}
            if classes
            else {"noise": "constant", "measure_evidence": True}
        )
        runs = [fitted(kind(HIDDEN, random_state=s, **options), X, y) for s in range(args.seeds)]
        means, variances, evidences, seconds = zip(*runs, strict=True)
        effective = np.mean(variances) / np.mean(np.var(means, axis=0, ddof=1))
        row = {"problem": name, "effective": f"{effective:.0f}", "CPU s": f"{np.mean(seconds):.2f}"}
        row["per second"] = f"{effective / np.mean(seconds):.0f}"
        row["log evidence"] = f"{np.mean(evidences):.2f} +- {np.std(evidences, ddof=1):.2f}"
        table.append(row)
    print_table(f"Effective draws of networks of {HIDDEN}, {args.seeds} seeds", table)


if __name__ == "__main__":
    main()
