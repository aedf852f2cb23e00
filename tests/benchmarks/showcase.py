"""The first example of the README beside scikit-learn's models, on several splits.

The largest radius of the cell nuclei in an image of breast tissue from the means of ten features of
all of them (569 images of scikit-learn's bundled data). Errors are root mean squared, in units of
the data; seconds are those of the processor, on one BLAS thread. Run with::

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


def main():
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--csv", help="file for one line per fit")
    args = parser.parse_args()
    measured = load_breast_cancer().data
    X, y = measured[:, :10], measured[:, 20]
    table, fits = [], []
    for name in models():
        errors, seconds = [], []
        for seed in range(args.splits):
            X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
            model, took = timed_fit(models()[name], X_train, y_train)
            seconds.append(took)
            errors.append(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
            numbers = {"RMSE": float(errors[-1]), "fit_s": seconds[-1]}
            fits.append({"split": seed, "model": name, **numbers})
        table.append(
            {
                "model": name,
                "first split": errors[0],
                "error": mean_and_error(errors, 3),
                "CPU s": float(np.mean(seconds)),
            }
        )
    print_table("Largest radius of cell nuclei", table)
    if args.csv:
        write_csv(args.csv, fits)


if __name__ == "__main__":
    main()
