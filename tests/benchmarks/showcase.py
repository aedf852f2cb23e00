"""The first example of the README beside scikit-learn's models, on several splits.

The largest radius of the cell nuclei in an image of breast tissue from the means of ten features of
all of them (569 images of scikit-learn's bundled data). Errors are root mean squared, in units of
the data; log densities are means over the test targets, in nats; seconds are those of the
processor, on one BLAS thread. Run with::

    python tests/benchmarks/showcase.py --splits 10 --csv tests/benchmarks/results/showcase.csv
"""

import argparse

import _data  # noqa: F401, one thread
import numpy as np
from reporting import mean_and_error, print_table, timed_fit, write_csv
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.metrics import log_density_scorer

TREES = "RandomForestRegressor", "HistGradientBoostingRegressor"


def models():
    """Name and a new model of each kind, with defaults where there are any."""
    kernel = ConstantKernel() * RBF(np.ones(10)) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    return {
        "EvidenceMLPRegressor": EvidenceMLPRegressor(random_state=0),
        "GaussianProcessRegressor": make_pipeline(StandardScaler(), process),
        "BayesianRidge": BayesianRidge(),
        "RandomForestRegressor": RandomForestRegressor(random_state=0),
        "HistGradientBoostingRegressor": HistGradientBoostingRegressor(random_state=0),
    }


def scores(name, split):
    """Test scores and seconds of one fit; no log density without a predictive distribution."""
    measured = load_breast_cancer().data
    X, y = measured[:, :10], measured[:, 20]
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=split)
    model, took = timed_fit(models()[name], X_train, y_train)
    trees = name in TREES
    return {
        "split": split,
        "model": name,
        "RMSE": float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))),
        "LL": np.nan if trees else log_density_scorer(model, X_test, y_test),
        "fit_s": took,
    }


def main():
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--csv", help="file for one line per fit")
    args = parser.parse_args()
    table, fits = [], []
    for name in models():
        found = [scores(name, split) for split in range(args.splits)]
        fits += found
        table.append(
            {
                "model": name,
                "error": mean_and_error([fit["RMSE"] for fit in found], 3),
                "log density": mean_and_error([fit["LL"] for fit in found], 3),
                "CPU s": float(np.mean([fit["fit_s"] for fit in found])),
            }
        )
    print_table("Largest radius of cell nuclei", table)
    if args.csv:
        write_csv(args.csv, fits)


if __name__ == "__main__":
    main()
