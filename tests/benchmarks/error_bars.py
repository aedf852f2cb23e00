"""How often error bars of the function hold the truth: networks with three hidden units, 40 rows.

The truth of each set is a network drawn from the prior with known precisions. Nominal 90 % error
bars, 1.645 standard deviations of what the weights leave open, are counted at 50 inputs::

    python tests/benchmarks/error_bars.py --sets 150
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

from skbayesnn import EvidenceMLPRegressor

NOMINAL = 1.645  # standard deviations of a central 90 %


def truth(rng, units=3):
    """A function drawn from the prior."""
    slope, bias = 2.0 * rng.standard_normal(units), 1.5 * rng.standard_normal(units)
    out, offset = 1.0 * rng.standard_normal(units), 0.5 * rng.standard_normal()
    return lambda x: np.tanh(np.multiply.outer(x, slope) + bias) @ out + offset


def one_set(seed, options):
    """Share of inputs where error bars hold the function, mean squared z, seconds."""
    rng = np.random.default_rng(seed)
    function = truth(rng)
    X = rng.uniform(-2, 2, (40, 1))
    y = function(X[:, 0]) + 0.2 * rng.standard_normal(40)
    grid = np.linspace(-2, 2, 50)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EvidenceMLPRegressor((3,), random_state=0, **options).fit(X, y)
    took = time.process_time() - began
    mean = model.predict(grid[:, None])
    sd = model.predict_std(grid[:, None], kind="epistemic")
    z = (function(grid) - mean) / sd
    return np.mean(np.abs(z) < NOMINAL), np.mean(z**2), np.mean(sd), took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--combine", nargs="+", default=["posterior", "tempered"])
    arguments = parser.parse_args()
    for combine in arguments.combine:
        options = {"combine": combine, "measure_evidence": combine == "posterior" or False}
        found = Parallel(n_jobs=arguments.jobs)(
            delayed(one_set)(seed, options) for seed in range(arguments.sets)
        )
        held, squares, sd, took = np.transpose(found)
        error = held.std(ddof=1) / np.sqrt(len(held))
        print(
            f"{combine:10s} {len(held)} sets: 90 % error bars hold {held.mean():.1%} +- {error:.1%}"
            f" (median mean square of z {np.median(squares):.2f}, mean sd {sd.mean():.3f}),"
            f" {np.median(took):.2f} CPU s per fit",
            flush=True,
        )


if __name__ == "__main__":
    main()
