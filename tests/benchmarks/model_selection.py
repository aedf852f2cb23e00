"""Choosing by evidence, measured on rows that were not used for it.

Three tables:

occam
    Robot arm (MacKay 1992, section 3.4): evidence against test error over many fits of 4 to 20
    hidden units, for two priors; Spearman's correlation (his figures 3.11 and 3.12).
search
    `EvidenceSearch` against `GridSearchCV` with 5 folds over 8 widths and 2 priors: processor time
    of one core, and the test log density of the chosen model.
mlp
    The same `EvidenceSearch`, default noise, against what a user of scikit-learn does: a grid of 4
    sizes and 4 penalties for `MLPRegressor` in 5 folds, on Friedman's data of 100 and 500 rows.

Run with::

    SKBAYESNN_DATA=folder python tests/benchmarks/model_selection.py
    python tests/benchmarks/model_selection.py --parts occam

``SKBAYESNN_DATA`` names the folder with ``yacht.npz``, ``energy.npz``, ``concrete.npz`` and
``boston.npz`` (arrays ``X``, ``y``, ``train_idx`` and ``test_idx``).
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported

import argparse
from pathlib import Path
from time import process_time

import numpy as np
from problems import robot_arm, robot_arm_error
from reporting import counted_warnings, print_table
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.model_selection import EvidenceSearch

SETS = ("yacht", "energy", "concrete", "boston")
GRID = {"hidden_layer_sizes": [(n,) for n in range(2, 17, 2)], "prior": ["single", "layer"]}


def split(name, index):
    """Training and test rows of a published split, or of a random tenth of the diabetes data."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        splitter = ShuffleSplit(index + 1, test_size=0.1, random_state=0)
        train, test = list(splitter.split(X))[index]
    else:
        with np.load(Path(os.environ["SKBAYESNN_DATA"]) / f"{name}.npz", allow_pickle=True) as file:
            X, y = file["X"], file["y"]
            train, test = (file[key][index] for key in ("train_idx", "test_idx"))
    return X[train], y[train], X[test], y[test]


def log_density(model, X, y):
    """Mean log predictive density, nats per row."""
    return float(np.mean(model.log_predictive_density(X, y)))


def occam_rows(args):
    """Correlation between evidence and test error, per prior."""
    rng = np.random.default_rng([1992, 0])
    (X, y), (X_test, y_test) = robot_arm(200, rng), robot_arm(1000, rng, noise=0.0)
    rows = []
    for prior in ("layer", "single"):
        evidences, errors = [], []
        for width in range(4, 21):
            for seed in range(4):
                with counted_warnings():
                    model = EvidenceMLPRegressor(
                        (width,), prior=prior, noise="shared", n_restarts=1, random_state=seed
                    ).fit(X, y)
                evidences.append(model.log_evidence_)
                errors.append(robot_arm_error(model.predict(X_test), y_test))
        known = np.isfinite(evidences)
        correlation = spearmanr(np.array(evidences)[known], -np.array(errors)[known])
        rows.append(
            {
                "prior": prior,
                "fits": len(errors),
                "with evidence": int(known.sum()),
                "Spearman": float(correlation.statistic),
                "best evidence": float(np.nanmax(evidences)),
                "error there": float(errors[np.nanargmax(evidences)]),
                "least error": float(np.min(errors)),
            }
        )
    return rows


def search_rows(args):
    """Both searches on the same splits."""
    rows = []
    for name in ("diabetes", "concrete"):
        for index in range(args.splits):
            X, y, X_test, y_test = split(name, index)
            model = EvidenceMLPRegressor(n_restarts=args.n_restarts, random_state=index)
            searches = {
                "evidence": EvidenceSearch(model, GRID),
                "folds": GridSearchCV(model, GRID, scoring=log_density, cv=5),
            }
            row = {"data": name, "split": index}
            for label, search in searches.items():
                start = process_time()
                with counted_warnings():
                    search.fit(X, y)
                row[f"{label} s"] = process_time() - start
                row[f"{label} LL"] = log_density(search.best_estimator_, X_test, y_test)
                sizes = search.best_params_["hidden_layer_sizes"]
                row[f"{label} choice"] = f"{sizes[0]} {search.best_params_['prior']}"
            row["ratio"] = row["folds s"] / row["evidence s"]
            print(row, flush=True)
            rows.append(row)
    return rows


def mlp_rows(args):
    """Times and test errors of both searches."""
    rows, grid = [], {"mlpregressor__hidden_layer_sizes": [(4,), (8,), (16,), (32,)]}
    grid["mlpregressor__alpha"] = [1e-4, 1e-2, 1.0, 10.0]
    network = make_pipeline(StandardScaler(), MLPRegressor(solver="lbfgs", max_iter=2000))
    for n in (100, 500):
        for seed in range(args.splits):
            X, y = make_friedman1(n + 1000, noise=1.0, random_state=seed)
            ours = EvidenceMLPRegressor(n_restarts=args.n_restarts, random_state=seed)
            searches = {
                "evidence": EvidenceSearch(ours, GRID),
                "mlp": GridSearchCV(clone(network), grid, cv=5),
            }
            row = {"rows": n, "seed": seed}
            for label, search in searches.items():
                start = process_time()
                with counted_warnings():
                    search.fit(X[:n], y[:n])
                row[f"{label} s"] = process_time() - start
                row[f"{label} RMSE"] = root_mean_squared_error(y[n:], search.predict(X[n:]))
            row["ratio"] = row["mlp s"] / row["evidence s"]
            print(row, flush=True)
            rows.append(row)
    return rows


PARTS = {"occam": occam_rows, "search": search_rows, "mlp": mlp_rows}


def main():
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--n-restarts", type=int, default=1, help="of the searches")
    args = parser.parse_args()
    for part in args.parts:
        print_table(part, PARTS[part](args))


if __name__ == "__main__":
    main()
