"""Evidence fits of a curve beside samples from the same posterior, over the number of rows.

One input, 4 hidden units (13 weights): ratios of error bars and of noise levels, distance of
predictive means in predictive standard deviations, difference of log evidences. Run with::

    python tests/benchmarks/gaussian_beside_samples.py --rows 10 20 40 --sets 0
"""

import argparse

import _data  # noqa: F401, one thread
import numpy as np
from reporting import counted_warnings, print_table, write_csv

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor


def compared(n_rows, index):
    """One evidence fit and its sampler; a row of the table."""
    rng = np.random.default_rng(index)
    X = rng.uniform(-3, 3, (n_rows, 1))
    y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(n_rows)
    with counted_warnings():
        options = {"combine": "best", "method": "laplace", "random_state": index}
        fitted = EvidenceMLPRegressor((4,), **options).fit(X, y)
        sampler = HMCMLPRegressor.from_evidence(fitted, random_state=index).fit(X, y)
    found = sampler.comparison_
    bars, noise = (found.quantities[k] for k in ("typical error bar (weights)", "noise sd"))
    return {
        "rows": n_rows,
        "set": index,
        "verdict": fitted.evidence_report_.minima[0].verdict,
        "R-hat": sampler.diagnostics_.r_hat,
        "error bars": bars[0] / bars[1],
        "noise": noise[0] / noise[1],
        "means differ by": found.shift,
        "log evidence differs by": fitted.log_evidence_ - sampler.log_evidence_,
        "its standard error": sampler.log_evidence_std_,
        "adequate": str(found.adequate),
    }


def main():
    """Print a row for every set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[10, 20, 40, 80])
    parser.add_argument("--sets", nargs="+", type=int, default=[0, 1, 2], help="seeds of curves")
    parser.add_argument("--csv", help="file for the rows")
    args = parser.parse_args()
    rows = [compared(n_rows, index) for n_rows in args.rows for index in args.sets]
    print_table("Evidence fits over samples, 13 weights", rows)
    if args.csv:
        write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
