"""Effective draws of populations: how well the networks that an evidence fit draws give means.

The effective number of draws is the variance of the outputs under the posterior over the variance
of their means between seeds, so that regions count that a population misses. It is divided by the
processor seconds of a whole fit of one network of 8 units. Run with::

    python tests/benchmarks/effective_draws.py --seeds 20
"""

import argparse

import _data  # noqa: F401, one thread
import numpy as np
from ablation_sampling import rows
from reporting import print_table, timed_fit
from sklearn.datasets import load_wine

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from tests.tools import parts_of, standardised

HIDDEN = (8,)


def problems():
    """Names, inputs, targets and estimators of the problems."""
    classes = EvidenceMLPClassifier(HIDDEN, method="population")
    numbers = EvidenceMLPRegressor(HIDDEN, noise="constant", method="population")
    models = {"regression": numbers, "binary": classes, "friedman": numbers, "iris": classes}
    for name, model in models.items():
        yield name, *rows(name)[:2], model
    yield "wine", *load_wine(return_X_y=True), classes


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
    for name, X, y, model in problems():
        runs = [fitted(model.set_params(random_state=s), X, y) for s in range(args.seeds)]
        means, variances, evidences, seconds = zip(*runs, strict=True)
        effective = np.mean(variances) / np.mean(np.var(means, axis=0, ddof=1))
        row = {"problem": name, "effective": f"{effective:.0f}", "CPU s": f"{np.mean(seconds):.2f}"}
        row["per second"] = f"{effective / np.mean(seconds):.0f}"
        row["log evidence"] = f"{np.mean(evidences):.2f} +- {np.std(evidences, ddof=1):.2f}"
        table.append(row)
    print_table(f"Effective draws of networks of {HIDDEN}, {args.seeds} seeds", table)


if __name__ == "__main__":
    main()
