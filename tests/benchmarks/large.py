"""Fits of many rows: processor time, Hessians and peak memory.

Every row of the table is a fit in this process with one BLAS thread. Times are processor seconds,
so that other work on the machine hardly disturbs them. Peak memory is that of numpy's and Python's
own allocations (tracemalloc), in a second fit of three training steps.

    python tests/benchmarks/large.py --rows 1000 10000 100000 --hidden 8
    python tests/benchmarks/large.py --rows 100000 --profile
    python tests/benchmarks/large.py --rows 100000 --features 10 --hidden 8 --resident
    python tests/benchmarks/large.py --rows 1000000 --hidden 8 --resident

With ``--resident``: processor seconds of the fit and of predictions of all rows, with and without
error bars, and the resident memory of the whole process at its peak.
"""

import argparse
import cProfile
import pstats
import resource
import tracemalloc
import warnings
from collections import Counter
from contextlib import contextmanager, nullcontext
from time import process_time
from unittest.mock import patch

import numpy as np

from skbayesnn import EvidenceMLPRegressor, Solver
from skbayesnn._threads import one_blas_thread
from skbayesnn.inference import memory_of_search
from skbayesnn.posterior import Posterior


def make_rows(n_rows, n_features=8):
    """A smooth function of some inputs with noise of standard deviation 0.3."""
    rng = np.random.default_rng(0)
    teacher = rng.standard_normal((n_features, 4)) / 2.0
    X = rng.standard_normal((n_rows, n_features))
    f = np.tanh(X @ teacher) @ np.array([1.0, -1.0, 0.7, 0.5])
    return X, f + 0.3 * rng.standard_normal(n_rows)


@contextmanager
def counted_hessians():
    """Counter of Hessians by number of rows."""
    counts, original = Counter(), Posterior.expansion

    def counting(posterior, theta, *args, **kwargs):
        counts[len(posterior.X)] += int(np.prod(theta.shape[:-1]))
        return original(posterior, theta, *args, **kwargs)

    with patch.object(Posterior, "expansion", counting):
        yield counts


def measured(X, y, args):
    """One line of the table."""
    model = EvidenceMLPRegressor(
        tuple(args.hidden), n_restarts=args.restarts, random_state=args.seed, verbose=args.verbose
    )
    profile = cProfile.Profile(process_time) if args.profile else nullcontext()
    with counted_hessians() as counts:
        start = process_time()
        with profile:
            model.fit(X, y)
        seconds = process_time() - start
    if args.profile:
        statistics = pstats.Stats(profile).sort_stats("cumulative")
        statistics.print_stats("skbayesnn/(inference|estimators|predictive|posterior)", 25)
    return (
        f"| {len(X)} | {seconds:.1f} | {1e6 * seconds / len(X):.0f} | {model.n_iter_} | "
        f"{', '.join(f'{n} x {rows}' for rows, n in sorted(counts.items()))} | "
        f"{model.log_evidence_:.2f} |"
    )


def memory_line(X, y, args):
    """Estimated and measured memory of a short fit."""
    told = []

    def listening(*given):
        told.append(memory_of_search(*given))
        return told[-1]

    model = EvidenceMLPRegressor(
        tuple(args.hidden),
        n_restarts=args.restarts,
        random_state=args.seed,
        solver=Solver(max_iter=3),
    )
    with patch("skbayesnn.estimators._base.memory_of_search", listening):
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return f"| {len(X)} | {told[0] / 2**20:.0f} | {peak / 2**20:.0f} |"


def resident_line(X, y, args):
    """Times of a fit and of predictions, and the peak of the process so far."""
    seconds = []

    def timed(do):
        start = process_time()
        result = do()
        seconds.append(process_time() - start)
        return result

    model = EvidenceMLPRegressor(
        tuple(args.hidden), n_restarts=args.restarts, random_state=args.seed
    )
    timed(lambda: model.fit(X, y))
    timed(lambda: model.predict(X))
    timed(lambda: model.predict(X, return_std=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # of Linux: KiB
    times = " | ".join(f"{some:.2f}" for some in seconds)
    return f"| {len(X)} x {X.shape[1]} | {model.noise_model_} | {times} | {peak:.2f} |"


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--hidden", type=int, nargs="*", default=[16])
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--resident", action="store_true", help="instead: times and resident peak")
    parser.add_argument("--memory", action="store_true", help="also peak memory")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--verbose", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.resident:
        print("| rows | noise | fit s | predict s | with error bars s | resident GiB |")
        print("|---|---|---|---|---|---|")
        with one_blas_thread():
            for n_rows in args.rows:
                print(resident_line(*make_rows(n_rows, args.features), args), flush=True)
        return
    print("| rows | CPU s | CPU us per row | steps | Hessians x rows | log evidence |")
    print("|---|---|---|---|---|---|")
    with one_blas_thread():
        for n_rows in args.rows:
            X, y = make_rows(n_rows, args.features)
            print(measured(X, y, args), flush=True)
            if args.memory:
                print("| rows | estimate MiB | peak MiB |\n" + memory_line(X, y, args), flush=True)


if __name__ == "__main__":
    main()
