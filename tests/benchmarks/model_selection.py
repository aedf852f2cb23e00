"""Choosing and averaging by evidence, measured on rows that were not used for it.

The part ``search`` compares `EvidenceSearch` with `GridSearchCV` (5 folds) over 8 widths and 2
priors: processor time, and the test log density of the chosen model. ``stacking`` compares the mean
test log density, in nats per row, of minima combined by stacking with that of the best one::

    SKBAYESNN_DATA=folder python tests/benchmarks/model_selection.py --parts stacking --splits 20

The folder holds ``yacht.npz``, ``energy.npz``, ``concrete.npz`` and ``boston.npz``.
"""

import argparse

import _data  # before numpy
import numpy as np
from reporting import counted_warnings, mean_and_error, print_table, timed_fit
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.model_selection import EvidenceSearch

SETS = ("yacht", "energy", "concrete", "boston")
GRID = {"hidden_layer_sizes": [(n,) for n in range(2, 17, 2)], "prior": ["single", "layer"]}


def split(name, index):
    """Training and test rows of a published split, or of a random tenth of the diabetes data."""
    if name != "diabetes":
        return _data.split(name, index)
    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, random_state=index)
    return X, y, X_test, y_test


def log_density(model, X, y):
    """Mean log predictive density, nats per row."""
    return float(np.mean(model.log_predictive_density(X, y)))


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
                _, row[f"{label} s"] = timed_fit(search, X, y)
                row[f"{label} LL"] = log_density(search.best_estimator_, X_test, y_test)
                sizes = search.best_params_["hidden_layer_sizes"]
                row[f"{label} choice"] = f"{sizes[0]} {search.best_params_['prior']}"
            row["ratio"] = row["folds s"] / row["evidence s"]
            print(row, flush=True)
            rows.append(row)
    return rows


def stacking_rows(args):
    """Gain of stacking on the splits of every set, by Laplace's approximation."""
    rows = []
    for name in SETS:
        gains = []
        for index in range(args.splits):
            X, y, X_test, y_test = split(name, index)
            found = {}
            for combine in ("best", "stacking"):
                options = {"method": "laplace", "random_state": index}
                with counted_warnings():
                    model = EvidenceMLPRegressor((16,), combine=combine, **options).fit(X, y)
                found[combine] = log_density(model, X_test, y_test)
            gains.append(found["stacking"] - found["best"])
        rows.append({"data": name, "stacking - best": mean_and_error(gains, 3)})
    return rows


PARTS = {"search": search_rows, "stacking": stacking_rows}


def main():
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--n-restarts", type=int, default=1, help="of the searches")
    args = parser.parse_args()
    for part in args.parts:
        print_table(part, PARTS[part](args))


if __name__ == "__main__":
    main()
