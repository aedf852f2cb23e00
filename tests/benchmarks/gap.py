"""Error bars where data are missing: the middle third of an input left out of training.

Rows are sorted by one input after the other; the middle third is predicted from the rest, by both
engines (Foong et al. 2019, "In-between uncertainty in Bayesian neural networks", use the same
splits). Data sets are read from the folder that SKBAYESNN_DATA names::

    SKBAYESNN_DATA=folder python tests/benchmarks/gap.py --sets yacht boston --inputs 2
    SKBAYESNN_DATA=folder python tests/benchmarks/gap.py --no-sampling
"""

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor

SETS = "yacht", "boston", "concrete", "energy"


def splits(X, n_inputs):
    """Training and test rows, for each of the inputs that take most values."""
    values = [len(np.unique(column)) for column in X.T]
    for column in np.argsort(values, kind="stable")[::-1][:n_inputs]:
        order = np.argsort(X[:, column], kind="stable")
        first, last = len(X) // 3, 2 * len(X) // 3
        yield column, np.concatenate([order[:first], order[last:]]), order[first:last]


def judged(model, X, y, train, test):
    """Mean log density, share of rows in their 95 % intervals, seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[train], y[train])
    took = time.process_time() - began
    low, high = model.predict_interval(X[test], 0.95).T
    inside = np.mean((low <= y[test]) & (y[test] <= high))
    return np.mean(model.log_predictive_density(X[test], y[test])), inside, took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--inputs", type=int, default=2)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--no-sampling", action="store_true")
    parser.add_argument("--measure", action="store_true", help="measure all evidences")
    arguments = parser.parse_args()
    engines = {
        "evidence": EvidenceMLPRegressor(
            random_state=0, measure_evidence=arguments.measure or "auto"
        )
    }
    if not arguments.no_sampling:
        engines["sampling"] = HMCMLPRegressor(
            random_state=0, n_draws=arguments.draws, measure_evidence=False
        )
    for name in arguments.sets:
        data = np.load(Path(os.environ["SKBAYESNN_DATA"]) / f"{name}.npz", allow_pickle=True)
        X, y = data["X"], np.ravel(data["y"])
        for column, train, test in splits(X, arguments.inputs):
            for engine, model in engines.items():
                density, inside, took = judged(model, X, y, train, test)
                print(
                    f"{name:9s} input {column:2d} {engine:9s} log density {density:8.3f}, "
                    f"95 % intervals hold {inside:4.0%}, {took:6.1f} CPU s, "
                    f"{model.hidden_layer_sizes_} {getattr(model, 'noise_model_', '')}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
