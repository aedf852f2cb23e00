"""Fits to generated targets of which a share is grossly wrong.

The signal has a standard deviation of 0.78, other noise one of 0.05. Targets are off by 0.3 to 1
times a size, up or down. For default fits, fits that choose their size with Student-t noise, and
small networks by Laplace's approximation: the root mean squared error of the signal at 500 other
inputs, the noise model, and processor seconds of the fit. Run with::

    python tests/benchmarks/outliers.py
    python tests/benchmarks/outliers.py --rows 100 1000 --shares 0.3 --seeds 0 1 2
"""

import argparse
import itertools

import _data  # noqa: F401, one thread
import numpy as np
from reporting import timed_fit

from skbayesnn import EvidenceMLPRegressor

FITS = {
    "default": lambda: EvidenceMLPRegressor(random_state=0),
    "student_t": lambda: EvidenceMLPRegressor(noise="student_t", random_state=0),
    "laplace": lambda: EvidenceMLPRegressor(
        (4,), noise="student_t", method="laplace", random_state=0
    ),
}
N_TEST = 500


def signal(X):
    """A smooth function on the unit square."""
    return np.sin(5 * X[:, 0]) + X[:, 1] ** 2


def generated(n_rows, share, size, seed):
    """Training inputs and targets, and inputs to predict."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rows, 2))
    y = signal(X) + 0.05 * rng.standard_normal(n_rows)
    wrong = rng.choice(n_rows, round(share * n_rows), replace=False)
    sign = rng.choice([-1, 1], len(wrong))
    y[wrong] += size * rng.uniform(0.3, 1, len(wrong)) * sign
    return X, y, rng.uniform(0, 1, (N_TEST, 2))


def main():
    """Print a line for each fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000, 6000])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.15, 0.3])
    parser.add_argument("--sizes", type=float, nargs="+", default=[30.0, 1000.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--fits", nargs="+", choices=FITS, default=list(FITS))
    given = parser.parse_args()
    print(f"{'rows':>6} {'share':>5} {'size':>6} seed {'fit':10} {'error':>8} {'s':>6} noise")
    for task in itertools.product(given.rows, given.shares, given.sizes, given.seeds):
        X, y, X_test = generated(*task)
        for name in given.fits:
            model, seconds = timed_fit(FITS[name](), X, y)
            error = np.sqrt(np.mean((model.predict(X_test) - signal(X_test)) ** 2))
            numbers = "{:6d} {:5.2f} {:6.0f} {:4d}".format(*task)
            chosen = model.noise_model_
            print(f"{numbers} {name:10} {error:8.4f} {seconds:6.1f} {chosen}", flush=True)


if __name__ == "__main__":
    main()
