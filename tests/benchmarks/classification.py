"""Classifiers: evidence and time of small problems, and digits against scikit-learn.

The first table holds, for problems of up to a few hundred weights, the log evidence of every seed
and the median time; compare it between two versions of the library. The second fits 1437 of
scikit-learn's digits (64 inputs, 10 classes) and predicts the other 360: the last ones of the file,
written by other people, and random choices. The third holds, for networks of that problem on a
grid of fixed precisions, the Gauss-Newton evidence (without symmetries and Occam factors) and the
test log loss of the most probable weights; beside it stand the precisions that a fit infers. Run
with::

    python tests/benchmarks/classification.py
    python tests/benchmarks/classification.py --parts precisions
    python tests/benchmarks/classification.py --parts digits --seeds 1
    python tests/benchmarks/classification.py --parts small --problems iris wine
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"

import argparse
from statistics import median
from time import process_time

import numpy as np
from problems import CENTRES, THREE_CENTRES, gaussian_classes
from reporting import counted_warnings, print_table, write_csv
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier
from skbayesnn.inference import Method, Problem
from skbayesnn.inference.evidence._evidence import log_evidence_fixed
from skbayesnn.network import outputs
from skbayesnn.posterior import Categorical, Hyperparameters
from skbayesnn.predictive import class_probabilities

RIPLEY_CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
N_TRAIN = 1437
HIDDEN, BIASES, OUTPUT = (1.0, 3.0, 10.0, 30.0, 100.0), 3.0, (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)


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
    """CPU seconds of a fit."""
    with counted_warnings():
        start = process_time()
        model.fit(X, y)
        return process_time() - start


def digits_rows(args):
    """One row per split, seed and method."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    rows = []
    splits = {"last rows": np.arange(len(X)), "random rows": order}
    for split in range(args.splits):
        parts = train_test_split(np.arange(len(X)), train_size=N_TRAIN, random_state=split)
        splits[f"train_test_split, random_state={split}"] = np.concatenate(parts)
    for split, chosen in splits.items():
        for seed in range(args.seeds):
            for name, model in (
                ("MLPClassifier, defaults", MLPClassifier(random_state=seed)),
                ("MLPClassifier, 32 units", MLPClassifier((32,), random_state=seed)),
                ("ours", EvidenceMLPClassifier((32,), n_restarts=1, random_state=seed)),
                ("ours, defaults", EvidenceMLPClassifier(random_state=seed)),
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


def precision_rows(args):
    """One row per width and output precision: evidence / log loss for each hidden precision."""
    X, X_test, y, y_test = train_test_split(
        *load_digits(return_X_y=True), train_size=N_TRAIN, random_state=0
    )
    scaler, n, rows = StandardScaler().fit(X), np.arange(len(y_test)), []
    problem = Problem(scaler.transform(X), np.eye(10)[y], np.ones(len(X)), Categorical())
    for width in args.widths:
        posterior, settings = problem.posed((width,))
        sd = np.full(posterior.network.n_weights, X.shape[1] ** -0.5)
        theta = posterior.groups.start(np.random.default_rng(0), sd)
        method = Method.choose(posterior, settings)
        for output in OUTPUT:
            row = {"width": width, "output": output}
            for hidden in HIDDEN:
                hyper = Hyperparameters(np.array([hidden, BIASES, output]), np.ones(0))
                theta = most_probable(posterior, theta, hyper)
                point = method.gauss_newton(posterior, theta, hyper)
                given = point.energies, point.precision.log_det
                evidence = log_evidence_fixed(posterior, hyper, *given)
                p = class_probabilities(outputs(posterior.network, theta, scaler.transform(X_test)))
                loss = -np.mean(np.log(p[n, y_test]))
                row[f"hidden {hidden:g}"] = f"{evidence:.0f} / {loss:.3f}"
            rows.append(row)
        model = EvidenceMLPClassifier((width,), n_restarts=1, combine="best", random_state=0)
        fit_time(model, X, y)
        print(width, "inferred", model.weight_precisions_.round(2), scores(model, X_test, y_test))
    return rows


def most_probable(posterior, theta, hyper):
    """Weights of least energy near some others."""

    def energy(w):
        energies, gradient = posterior.energies_and_gradient(w, hyper)
        return float(energies.total(hyper)), gradient

    options = {"maxcor": 20, "maxiter": 1000, "ftol": 1e-6, "gtol": 1e-9}
    return minimize(energy, theta, jac=True, method="L-BFGS-B", options=options).x


PARTS = {
    "small": ("Small problems", small_rows),
    "digits": ("Digits: 1437 rows, 64 inputs, 10 classes, 32 hidden units", digits_rows),
    "precisions": ("Digits: Gauss-Newton log evidence / log loss, by precisions", precision_rows),
}


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--problems", nargs="+", help="only these of the small ones")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=4, help="further ones of the digits")
    parser.add_argument("--n-restarts", type=int, default=2, help="of the small problems")
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 16, 32], help="precisions")
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
