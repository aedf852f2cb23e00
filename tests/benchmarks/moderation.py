"""Log loss of classifiers: most probable outputs, and three ways of moderating them.

Every problem is predicted with the most probable weights, with the Gaussian around them (MacKay
1992, section 5.2), with the Gaussian closest to the posterior, which the library uses where the
evidence is not measured, and with the networks that measuring draws. Six Gaussians (200 rows),
scikit-learn's iris, wine and breast cancer data with few training rows;
Ripley's synthetic and Pima data and the forensic glass where SKBAYESNN_DATA names their folder.
Run with::

    python tests/benchmarks/moderation.py
    SKBAYESNN_DATA=folder python tests/benchmarks/moderation.py --splits 3 --widths 0 8
"""

import argparse
import os
from itertools import islice
from unittest.mock import patch

import _data  # before numpy
import numpy as np
from problems import gaussian_classes
from reporting import counted_warnings, print_table, write_csv
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import StratifiedShuffleSplit

from skbayesnn import EvidenceMLPClassifier

BUNDLED = {"iris": (load_iris, 60), "wine": (load_wine, 60), "cancer": (load_breast_cancer, 200)}


def splits_of(name, n_splits):
    """Training and test rows of every split."""
    if name == "six Gaussians":
        for seed in range(n_splits):
            rng = np.random.default_rng(seed)
            yield *gaussian_classes(200, rng), *gaussian_classes(4000, rng)
        return
    if name not in BUNDLED:
        yield from islice(_data.splits(name), n_splits)
        return
    load, n_train = BUNDLED[name]
    X, y = load(return_X_y=True)
    parts = StratifiedShuffleSplit(n_splits, train_size=n_train, random_state=0)
    for train, test in parts.split(X, y):
        yield X[train], y[train], X[test], y[test]


def losses(X, y, X_test, y_test, width, n_restarts):
    """Log loss of the three sets of outputs, in nats per row."""

    def loss(model, moderated):
        codes = np.searchsorted(model.classes_, y_test)
        p = model.predict_proba(X_test, moderated=moderated)[np.arange(len(codes)), codes]
        return -np.mean(np.log(np.maximum(p, 1e-300)))

    sizes = (width,) if width else ()
    options = {"combine": "best", "method": "laplace", "random_state": 0}
    model = EvidenceMLPClassifier(sizes, n_restarts=n_restarts, **options)
    closest = loss(model.fit(X, y), True)
    most_probable = loss(model, False)
    with patch("skbayesnn.predictive._combination.closest_gaussian", lambda member, *given: member):
        around = loss(model.fit(X, y), True)
    drawn = model.set_params(combine="posterior", method="population").fit(X, y)
    return most_probable, around, closest, loss(drawn, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--widths", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--n-restarts", type=int, default=2)
    parser.add_argument("--csv", help="file for the rows")
    args = parser.parse_args()
    names = ["six Gaussians", *BUNDLED]
    if "SKBAYESNN_DATA" in os.environ:
        names += ["ripley_synth", "ripley_pima", "ripley_fgl"]
    rows = []
    for name in names:
        for width in args.widths:
            with counted_warnings():
                found = np.array(
                    [
                        losses(*split, width, args.n_restarts)
                        for split in splits_of(name, args.splits)
                    ]
                )
            mean = found.mean(axis=0)
            rows.append(
                {
                    "data": name,
                    "hidden units": width,
                    "splits": len(found),
                    "most probable": float(mean[0]),
                    "around the mode": float(mean[1]),
                    "closest": float(mean[2]),
                    "drawn": float(mean[3]),
                }
            )
    print_table("log loss, nats per row", rows)
    if args.csv:
        write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
