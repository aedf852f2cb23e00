"""Processor seconds of methods of predictive distributions of many rows.

Fits of 100 rows of four inputs, with noise of three degrees of freedom, or counts: the default, and
networks of four units under several noise models, by evidence and by chains. Run with::

    python tests/benchmarks/intervals.py --rows 1000000 --models evidence --noise constant
"""

import argparse
import warnings
from time import process_time

import _data  # noqa: F401, one thread
import numpy as np
from reporting import print_table, write_csv

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor

MODELS = {"evidence": EvidenceMLPRegressor, "chains": HMCMLPRegressor}
COUNTS = ("poisson", "negative_binomial")
NOISE = ("constant", "input_dependent", "student_t", *COUNTS)


def seconds(call, X):
    """Processor seconds of a call."""
    begin = process_time()
    call(X)
    return round(process_time() - begin, 2)


def main():
    """Print a table of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--models", nargs="+", default=["default", *MODELS])
    parser.add_argument("--noise", nargs="+", default=NOISE, choices=NOISE)
    parser.add_argument("--csv", help="file for the rows")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, rows = np.random.default_rng(0), []
    X = rng.standard_normal((100, 4))
    y = np.tanh(1.5 * X[:, 0]) + 0.1 * rng.standard_t(3, 100)
    counts = rng.poisson(np.exp(2.0 + y) * rng.gamma(4.0, 0.25, 100))
    new = rng.standard_normal((args.rows, 4))
    models = {"default": EvidenceMLPRegressor(random_state=0)} if "default" in args.models else {}
    for name in args.models:
        for noise in args.noise if name in MODELS else ():
            models[f"{name}, {noise}"] = MODELS[name]((4,), noise=noise, random_state=0)
    for name, model in models.items():
        model.fit(X, counts if model.noise in COUNTS else y)
        at = model.predict_distribution(new)
        rows.append(
            {
                "model": name,
                "std": seconds(model.predict_std, new),
                "interval": seconds(model.predict_interval, new),
                "median": seconds(model.predict_quantiles, new),
                "cdf": seconds(at.cdf, counts.mean()),
                "entropy": seconds(lambda _, at=at: at.entropy(), new),
                "novelty": seconds(model.novelty, new),
            }
        )
    print_table(f"Processor seconds for {args.rows:,} rows", rows)
    if args.csv:
        write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
