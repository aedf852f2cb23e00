"""Intervals where inputs are missing: an imputer with indicators, and averages over imputations.

Two correlated inputs, of which one is missing in 30 % of the rows at random. Coverage of 95 %
intervals in new rows, complete ones and those with a gap, mean over ten data sets::

    python tests/benchmarks/missing_values.py
"""

import _data  # noqa: F401, one thread
import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.estimators import AveragedRegressor, predictive_distribution

N_SETS, N_DRAWS = 10, 20


def rows(rng, n):
    """Inputs, of which the second is sometimes missing, and targets with noise 0.1."""
    X = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], n)
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    X[rng.random(n) < 0.3, 1] = np.nan
    return X, y


def fitted(imputer, noise, X, y):
    """A pipeline with a small network."""
    options = {"n_restarts": 1, "method": "laplace", "random_state": 0}
    return make_pipeline(imputer, EvidenceMLPRegressor((4,), noise=noise, **options)).fit(X, y)


def with_indicators(noise, X, y):
    """A network that also sees in which rows the input is missing."""
    return fitted(SimpleImputer(add_indicator=True), noise, X, y)


def averaged(noise, X, y):
    """Several networks, each fitted to an imputation of its own."""
    imputers = [IterativeImputer(sample_posterior=True, random_state=i) for i in range(N_DRAWS)]
    models = [fitted(imputer, noise, X, y) for imputer in imputers]
    return AveragedRegressor(models, np.full(N_DRAWS, 1.0 / N_DRAWS))


def main():
    for make, noise in (
        (with_indicators, "auto"),
        (with_indicators, "constant"),
        (averaged, "constant"),
    ):
        held = []
        for seed in range(N_SETS):
            rng = np.random.default_rng(seed)
            (X, y), (X_new, y_new) = rows(rng, 200), rows(rng, 1000)
            low, high = predictive_distribution(make(noise, X, y), X_new).interval().T
            inside, gap = (low <= y_new) & (y_new <= high), np.isnan(X_new[:, 1])
            held.append([inside[~gap].mean(), inside[gap].mean()])
        mean, error = np.mean(held, axis=0), np.std(held, axis=0, ddof=1) / np.sqrt(N_SETS)
        print(
            f"{make.__name__}, noise={noise!r}: complete rows {mean[0]:.3f} ± {error[0]:.3f}, "
            f"rows with a gap {mean[1]:.3f} ± {error[1]:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
