"""Classifiers: evidence and time of small problems, and digits against scikit-learn.

The first table holds, for problems of up to a few hundred weights, the log evidence of every seed
and the median time; compare it between two versions of the library. The second fits 1437 of
scikit-learn's digits (64 inputs, 10 classes) and predicts the other 360: the last ones of the file,
written by other people, and a random choice. Run with::

    python tests/benchmarks/classification.py
    python tests/benchmarks/classification.py --parts digits --seeds 1
    python tests/benchmarks/classification.py --parts small --problems iris wine
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"

import argparse
from statistics import median
from time import perf_counter

import numpy as np
from problems import CENTRES, THREE_CENTRES, gaussian_classes
from reporting import counted_warnings, print_table, write_csv
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.neural_network import MLPClassifier

from skbayesnn import EvidenceMLPClassifier

RIPLEY_CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
N_TRAIN = 1437


def small_problems():
    """Names to ``(X, y)`` and the width of the hidden layer."""
    ripley = gaussian_classes(250, np.random.default_rng(0), RIPLEY_CENTRES, np.sqrt(0.03))
    return {
        "iris": (load_iris(return_X_y=True), 8),
        "wine": (load_wine(return_X_y=True), 8),
        "breast cancer": (load_breast_cancer(return_X_y=True), 8),
        "Ripley's two classes": (ripley, 8),
        "six Gaussians, 2 classes": (gaussian_classes(300, np.random.default_rng(1), CENTRES), 10),
        "six Gaussians, 3 classes": (
            gaussian_classes(300, np.random.default_rng(2), THREE_CENTRES),
            10,
        ),
    }


def small_rows(args):
    """One row per small problem."""
    rows = []
    for name, ((X, y), width) in small_problems().items():
        if args.problems and name not in args.problems:
            continue
        evidences, times = [], []
        for seed in range(args.seeds):
            model = EvidenceMLPClassifier((width,), n_restarts=args.n_restarts, random_state=seed)
            times.append(fit_time(model, X, y))
            evidences.append(model.log_evidence_)
        rows.append(
            {
                "problem": name,
                "log evidence": " ".join(f"{value:.2f}" for value in evidences),
                "best": float(np.max(evidences)),
                "median s": median(times),
            }
        )
    return rows


def fit_time(model, X, y):
    """Seconds of a fit."""
    with counted_warnings():
        start = perf_counter()
        model.fit(X, y)
        return perf_counter() - start


def digits_rows(args):
    """One row per split, seed and method."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    rows = []
    for split, chosen in (("last rows", np.arange(len(X))), ("random rows", order)):
        for seed in range(args.seeds):
            for name, model in (
                ("MLPClassifier, defaults", MLPClassifier(random_state=seed)),
                ("MLPClassifier, 32 units", MLPClassifier((32,), random_state=seed)),
                ("ours", EvidenceMLPClassifier((32,), n_restarts=1, random_state=seed)),
            ):
                train, test = chosen[:N_TRAIN], chosen[N_TRAIN:]
                seconds = fit_time(model, X[train], y[train])
                row = {"split": split, "seed": seed, "method": name, "s": seconds}
                rows.append(row | scores(model, X[test], y[test]))
    return rows


def scores(model, X, y):
    """Accuracy and log loss; for ours also the log loss of the most probable weights."""
    log_loss = -np.mean(np.log(model.predict_proba(X)[np.arange(len(y)), y]))
    row = {"accuracy": model.score(X, y), "log loss": float(log_loss)}
    if not isinstance(model, EvidenceMLPClassifier):
        return row | {"log loss most probable": "-", "log evidence": "-"}
    p = model.predict_proba(X, moderated=False)[np.arange(len(y)), y]
    return row | {
        "log loss most probable": float(-np.mean(np.log(p))),
        "log evidence": float(model.log_evidence_),
    }


PARTS = {
    "small": ("Small problems", small_rows),
    "digits": ("Digits: 1437 rows, 64 inputs, 10 classes, 32 hidden units", digits_rows),
}


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--problems", nargs="+", help="only these of the small ones")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-restarts", type=int, default=2, help="of the small problems")
    parser.add_argument("--csv", help="file for the rows of the last part")
    args = parser.parse_args()
    for part in args.parts:
        title, make = PARTS[part]
        rows = make(args)
        print_table(title, rows)
    if args.csv:
        write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
