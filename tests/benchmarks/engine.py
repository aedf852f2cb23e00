"""Fits over all estimators, sizes and noise models, frozen before the engine was rebuilt.

Each case is fitted once with a fixed seed; its evidence, its test log density and processor seconds
go into a CSV file. With ``--against`` the same cases are read from an earlier file and the
differences are printed: log evidences in nats, densities in nats per row, seconds as ratios. Run
with::

    python tests/benchmarks/engine.py --write tests/benchmarks/results/engine.csv
    python tests/benchmarks/engine.py --against tests/benchmarks/results/engine.csv
    python tests/benchmarks/engine.py --cases sine_tanh iris_linear
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported

import argparse
import csv
from time import process_time

import numpy as np
from problems import THREE_CENTRES, gaussian_classes, robot_arm
from reporting import counted_warnings, print_table, write_csv
from sklearn import datasets
from sklearn.model_selection import train_test_split

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Prior,
)

N_TEST = 500


# --- data -----------------------------------------------------------------------------------------


def sine(n, seed=0):
    """One input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n + N_TEST, 1))
    return X, np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(len(X)), n


def friedman(n):
    """Five inputs that matter and five that do not."""
    X, y = datasets.make_friedman1(n + N_TEST, noise=1.0, random_state=1)
    return X, y, n


def outliers(n, n_outputs=1):
    """Noise with heavy tails."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (n + N_TEST, 2))
    f = np.column_stack([np.sin(2 * X[:, 0]) + 0.5 * X[:, 1], X[:, 0] * X[:, 1]])[:, :n_outputs]
    y = f + 0.1 * rng.standard_t(2.5, f.shape)
    return X, y[:, 0] if n_outputs == 1 else y, n


def uneven(n, n_outputs=1):
    """Noise that grows with the input."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (n + N_TEST, 1))
    f = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 0])])[:, :n_outputs]
    y = f + np.exp(0.8 * X - 2.0) * rng.standard_normal(f.shape)
    return X, y[:, 0] if n_outputs == 1 else y, n


def arm(n):
    """Two outputs."""
    return *robot_arm(n + N_TEST, np.random.default_rng(5)), n


def wide(n, d):
    """More weights than the dense Hessian is meant for."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n + N_TEST, d))
    return X, np.tanh(X[:, 0] + X[:, 1]) + 0.1 * rng.standard_normal(len(X)), n


def classes(n, **options):
    """Two inputs, overlapping mixtures of Gaussians."""
    return *gaussian_classes(n + N_TEST, np.random.default_rng(7), **options), n


def bundled(name, n):
    """Rows of a data set of scikit-learn, some of them for training."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=n, random_state=0)
    return np.vstack([X, X_test]), np.concatenate([y, y_test]), n


# --- cases ----------------------------------------------------------------------------------------

R, C, HR, HC = (
    EvidenceMLPRegressor,
    EvidenceMLPClassifier,
    HMCMLPRegressor,
    HMCMLPClassifier,
)
ONE = {"noise": "constant"}
SHORT = {"n_warmup": 80, "n_draws": 150}
CASES = {  # name: estimator, hidden layers, other parameters, data, arguments
    "diabetes_linear": (R, (), ONE, bundled, ("diabetes", 300)),
    "diabetes_ard": (R, (4,), ONE | {"prior": "ard"}, bundled, ("diabetes", 300)),
    "sine_tanh": (R, (8,), ONE, sine, (40,)),
    "sine_relu": (R, (8,), ONE | {"activation": "relu"}, sine, (40,)),
    "sine_default": (R, "auto", {}, sine, (60, 2)),
    "sine_wide": (R, (30,), ONE, sine, (40,)),
    "sine_stacking": (R, (4,), ONE | {"combine": "stacking"}, sine, (40, 1)),
    "friedman": (R, (8,), ONE, friedman, (300,)),
    "friedman_single": (R, (8,), ONE | {"prior": "single"}, friedman, (300,)),
    "friedman_deep": (R, (4, 4), ONE, friedman, (300,)),
    "friedman_gauss_newton": (R, (8,), ONE | {"solver": "gauss_newton"}, friedman, (300,)),
    "friedman_fixed": (
        R,
        (8,),
        ONE | {"noise": 1.0, "prior": Prior(precision={"output": 0.5})},
        friedman,
        (300,),
    ),
    "friedman_default": (R, "auto", {}, friedman, (300,)),
    "arm": (R, (16,), ONE | {"n_restarts": 3}, arm, (200,)),
    "arm_shared": (R, (6,), {"noise": "shared"}, arm, (200,)),
    "student_t": (R, (6,), {"noise": "student_t"}, outliers, (100,)),
    "student_t_two": (R, (4,), {"noise": "student_t", "n_restarts": 2}, outliers, (100, 2)),
    "uneven": (R, (4,), {"noise": "input_dependent"}, uneven, (120,)),
    "uneven_two": (R, (4,), {"noise": "input_dependent", "n_restarts": 2}, uneven, (100, 2)),
    "uneven_default": (R, "auto", {}, uneven, (120,)),
    "dual": (R, (100,), ONE | {"n_restarts": 1}, wide, (200, 32)),
    "iris_linear": (C, (), {}, bundled, ("iris", 100)),
    "iris_default": (C, "auto", {}, bundled, ("iris", 100)),
    "two_classes": (C, (6,), {}, classes, (200,)),
    "three_classes": (C, (4,), {}, classes, (150,)),
    "cancer": (C, (2,), {"n_restarts": 2}, bundled, ("breast_cancer", 300)),
    "digits": (C, (16,), {"n_restarts": 1}, bundled, ("digits", 1000)),
    "sampled_sine": (HR, (3,), SHORT, sine, (60, 2)),
    "sampled_student_t": (
        HR,
        (3,),
        SHORT | {"noise": "student_t", "measure_evidence": False},
        outliers,
        (80,),
    ),
    "sampled_uneven": (
        HR,
        (3,),
        SHORT | {"noise": "input_dependent", "measure_evidence": False},
        uneven,
        (80,),
    ),
    "sampled_classes": (HC, (4,), SHORT, classes, (120,)),
    "sampled_wine": (HC, (), SHORT | {"measure_evidence": False}, bundled, ("wine", 100)),
}
DATA_OPTIONS = {"three_classes": {"centres": THREE_CENTRES}}


def run(name):
    """One row of the table."""
    estimator, sizes, options, data, arguments = CASES[name]
    X, y, n = data(*arguments, **DATA_OPTIONS.get(name, {}))
    model = estimator(sizes, random_state=0, **options)
    started = process_time()
    with counted_warnings() as messages:
        model.fit(X[:n], y[:n])
    seconds = process_time() - started
    density = model.log_predictive_density(X[n:], y[n:])
    return {
        "case": name,
        "log_evidence": float(model.log_evidence_),
        "log_density": float(np.mean(density)),
        "sizes": "x".join(map(str, model.hidden_layer_sizes_)) or "linear",
        "networks": len(model.networks_),
        "warnings": len(messages),
        "seconds": seconds,
    }


def compared(new, old):
    """A row beside the same case of an earlier run."""
    return {
        "case": new["case"],
        "sizes": new["sizes"] if new["sizes"] == old["sizes"] else f"{old['sizes']}>{new['sizes']}",
        "log_evidence": new["log_evidence"],
        "its change": new["log_evidence"] - float(old["log_evidence"]),
        "log_density": new["log_density"],
        "change": new["log_density"] - float(old["log_density"]),
        "seconds": new["seconds"],
        "ratio": new["seconds"] / float(old["seconds"]),
    }


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--against", metavar="FILE")
    given = parser.parse_args()
    rows = []
    for name in given.cases:
        rows.append(run(name))
        print(rows[-1], flush=True)
    if given.write:
        write_csv(given.write, rows)
    if given.against:
        with open(given.against, newline="") as file:
            old = {row["case"]: row for row in csv.DictReader(file)}
        rows = [compared(row, old[row["case"]]) for row in rows if row["case"] in old]
        print_table("Changes", rows)
        print(
            f"\nall seconds: {sum(r['seconds'] for r in rows):.1f}, before "
            f"{sum(float(old[r['case']]['seconds']) for r in rows):.1f}"
        )


if __name__ == "__main__":
    main()
