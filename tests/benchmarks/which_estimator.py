"""What fits of the four estimators cost, and where the Gaussian approximation can be trusted.

cost
    Time and memory of default fits, over rows and hidden units.
gaussian
    Evidence fits of a curve of one input with 4 hidden units (13 weights) beside samples from the
    same posterior, over the number of rows: ratios of error bars and of noise levels, distance of
    predictive means in predictive standard deviations, difference of log evidences.

Every fit of ``cost`` runs in a process of its own, with one BLAS thread and ``n_jobs`` at its
default of one process. Processor seconds are those of the fit alone, and change little if the
machine has other work; wall seconds are there to compare. Memory is what the fit added to the peak
of the process, which before it holds Python, the libraries and the data. A fit that needs more
processor time than ``--limit`` is stopped and shown as such, and wider networks on so many rows are
not tried then. Run with::

    python tests/benchmarks/which_estimator.py
    python tests/benchmarks/which_estimator.py --estimators HMCMLPRegressor --rows 200 --limit 60
    python tests/benchmarks/which_estimator.py --parts gaussian --curve-rows 10 20 40 --sets 0

Targets of ``cost`` are a smooth function of the first four inputs, with Gaussian noise or, as two
classes, drawn with the probability that it gives; further inputs are irrelevant. The last column is
what the fit says of itself: the verdict on the best minimum, or R-hat.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
from time import perf_counter, process_time

import numpy as np
from reporting import counted_warnings, print_table, write_csv

import skbayesnn
from skbayesnn._threads import blas_threads

LIBRARIES = ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in LIBRARIES}
ESTIMATORS = (
    "EvidenceMLPRegressor",
    "EvidenceMLPClassifier",
    "HMCMLPRegressor",
    "HMCMLPClassifier",
)


def problem(n_rows, n_features, classes):
    """Rows and targets; at least four features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    f = np.sin(X[:, 0]) * X[:, 1] + np.tanh(X[:, 2] + X[:, 3])
    if classes:
        return X, (rng.uniform(size=n_rows) < 1.0 / (1.0 + np.exp(-3.0 * f))).astype(int)
    return X, f + 0.1 * rng.standard_normal(n_rows)


def peak_megabytes():
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def fit_here(name, n_rows, n_features, width, options):
    """Fit in this process; print seconds, megabytes and what the fit says, separated by tabs."""
    X, y = problem(n_rows, n_features, name.endswith("Classifier"))
    model = getattr(skbayesnn, name)((width,), random_state=0, **options)
    before = peak_megabytes()
    with counted_warnings():
        wall, cpu = perf_counter(), process_time()
        model.fit(X, y)
        wall, cpu = perf_counter() - wall, process_time() - cpu
    memory = peak_megabytes() - before
    print(cpu, wall, memory, says_of(model), sep="\t")


def says_of(model):
    """The verdict on the best minimum, or R-hat."""
    if hasattr(model, "evidence_report_"):
        return model.evidence_report_.minima[0].verdict
    return f"R-hat {model.diagnostics_.r_hat:.2f}"


def row_of(args, name, n_rows, width):
    """Fit in another process; a row of the table, and whether the fit was finished."""
    row = {
        "estimator": name,
        "rows": n_rows,
        "inputs": args.features,
        "hidden units": width,
        "weights": (args.features + 2) * width + 1,
        "processor s": f"over {args.limit}",
        "wall s": "-",
        "memory MB": "-",
        "the fit says": "-",
    }
    command = [sys.executable, __file__, "--child", name, "--rows", str(n_rows)]
    command += ["--widths", str(width), "--features", str(args.features)]
    command += ["--limit", str(args.limit)]
    if args.restarts is not None and name.startswith("Evidence"):
        command += ["--restarts", str(args.restarts)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == -signal.SIGXCPU:
        return row, False
    if done.returncode:
        raise RuntimeError(done.stderr)
    cpu, wall, memory, says = done.stdout.strip().split("\t")
    row["processor s"], row["wall s"], row["memory MB"] = float(cpu), float(wall), float(memory)
    row["the fit says"] = says
    return row, True


def cost(args):
    """Rows of the table of costs."""
    rows = []
    for name in args.estimators:
        for n_rows in args.rows:
            for width in args.widths:
                row, finished = row_of(args, name, n_rows, width)
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
                if not finished:
                    break
    return rows


def gaussian_beside_samples(n_rows, index):
    """One evidence fit and its sampler; a row of the table."""
    rng = np.random.default_rng(index)
    X = rng.uniform(-3, 3, (n_rows, 1))
    y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(n_rows)
    with counted_warnings():
        options = {"combine": "best", "measure_evidence": False, "random_state": index}
        fitted = skbayesnn.EvidenceMLPRegressor((4,), **options).fit(X, y)
        sampler = skbayesnn.HMCMLPRegressor.from_evidence(fitted, random_state=index).fit(X, y)
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
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--parts", nargs="+", choices=["cost", "gaussian"], default=["cost", "gaussian"]
    )
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=ESTIMATORS)
    parser.add_argument(
        "--rows", nargs="+", type=int, default=[20, 200, 2000, 20_000, 100_000], help="in each fit"
    )
    parser.add_argument("--widths", nargs="+", type=int, default=[4, 16, 64])
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--limit", type=int, default=240, help="processor seconds of one fit")
    parser.add_argument("--restarts", type=int, help="n_restarts instead of its default")
    parser.add_argument("--curve-rows", nargs="+", type=int, default=[10, 20, 40, 80, 160])
    parser.add_argument("--sets", nargs="+", type=int, default=[0, 1, 2], help="seeds of curves")
    parser.add_argument("--csv", help="file for the rows; one part only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        resource.setrlimit(resource.RLIMIT_CPU, (args.limit, args.limit + 5))
        options = {} if args.restarts is None else {"n_restarts": args.restarts}
        fit_here(args.child, args.rows[0], args.features, args.widths[0], options)
        return
    if "cost" in args.parts:
        rows = cost(args)
        print_table("Default fits of the four estimators, one BLAS thread", rows)
    if "gaussian" in args.parts:
        with blas_threads(1):
            rows = [
                gaussian_beside_samples(n_rows, index)
                for n_rows in args.curve_rows
                for index in args.sets
            ]
        print_table("Evidence fits over samples, 13 weights", rows)
    if args.csv:
        write_csv(args.csv, [_shortened(row) for row in rows])


def _shortened(row):
    """Numbers with four digits."""
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}


if __name__ == "__main__":
    main()
