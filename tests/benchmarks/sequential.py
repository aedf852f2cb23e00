"""Loss of a network that learns in batches, compared with one fit of all rows.

A sine of 120 rows with noise 0.1 and 6 hidden units, learnt in batches of equal size by
`partial_fit`: the Gaussian around one minimum stands for all earlier batches. Mean log density of
200 new targets (nats per row), for one fit of all rows, for the batches, and for a fit of the first
batch alone. Run with::

    python tests/benchmarks/sequential.py --csv tests/benchmarks/results/sequential.csv
"""

import argparse
import warnings

import numpy as np
from reporting import write_csv
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPRegressor

GRID = np.linspace(-3, 3, 200)[:, None]
N_ROWS, NOISE, UNITS = 120, 0.1, (6,)
FIELDS = "batches", "seed", "one_fit", "in_batches", "first_batch"


def targets(X, rng):
    """A sine with noise."""
    return np.sin(2 * X[:, 0]) + NOISE * rng.standard_normal(len(X))


def densities(n_batches, seed):
    """Log densities of new targets under the three models."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (N_ROWS, 1))
    y, new = targets(X, rng), targets(GRID, rng)
    options = {"random_state": 0, "noise": "constant", "method": "laplace"}
    batches = np.array_split(np.arange(N_ROWS), n_batches)
    one, first, model = (EvidenceMLPRegressor(UNITS, **options) for _ in range(3))
    one.fit(X, y)
    first.fit(X[batches[0]], y[batches[0]])
    for rows in batches:
        model.partial_fit(X[rows], y[rows])
    return [float(np.mean(m.log_predictive_density(GRID, new))) for m in (one, model, first)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[2, 3, 4, 6])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for n_batches in given.batches:
        found = [densities(n_batches, seed) for seed in range(given.seeds)]
        rows += [
            dict(zip(FIELDS, (n_batches, seed, *some), strict=True))
            for seed, some in enumerate(found)
        ]
        means = "  ".join(f"{value:7.3f}" for value in np.mean(found, axis=0))
        print(f"{n_batches} batches: one fit, in batches, first batch: {means}", flush=True)
    if given.csv:
        write_csv(given.csv, rows)


if __name__ == "__main__":
    main()
