"""Our estimators, with their defaults, and their neighbours on the same data and splits.

The data are those of which published figures exist: yacht, energy, concrete, boston (20 splits of
Hernandez-Lobato & Adams 2015), airfoil (one split, targets standardised by the training rows),
Pima and the synthetic classes of Ripley (1996) and forensic glass (10 folds). Run with::

    SKBAYESNN_DATA=folder python tests/benchmarks/side_by_side.py --csv results.csv
    python tests/benchmarks/side_by_side.py --data yacht --models evidence boosting --splits 3
    python tests/benchmarks/side_by_side.py --splits 0 --markdown tables.md

The folder holds ``yacht.npz``, ``energy.npz`` and so on: arrays ``X``, ``y`` and the rows of each
split in ``train_idx`` and ``test_idx``, or the number of each row's fold in ``fold``. Every fit
appends a row to the CSV file, and what the file already has is not run again; so a long comparison
can be made in several runs, which stop after ``--minutes``. ``--splits 0`` only prints the tables.
Processor seconds are those of `fit` on one BLAS thread, and ratios of time are to the first model
on the same splits. One process runs at a time.
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"
_jax = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("XLA_FLAGS", _jax)

import argparse
import csv
import importlib
import sys
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from neighbours import CLASSIFIERS, PACKAGES, REGRESSORS
from published import PUBLISHED
from reporting import counted_warnings, mean_and_error, print_table
from sklearn.metrics import log_loss

from skbayesnn.metrics import interval_coverage

FILES = {name: name for name in ("yacht", "energy", "concrete", "boston", "airfoil")} | {
    "pima": "ripley_pima",
    "synthetic": "ripley_synth",
    "glass": "ripley_fgl",
}
CLASSES = ("pima", "synthetic", "glass")
QUALITY = {"regression": ("LL", "RMSE", "coverage"), "classes": ("errors", "error", "log loss")}
COLUMNS = ("data", "split", "model", "n_train", "n_test", *QUALITY["regression"])
COLUMNS += (*QUALITY["classes"], "fit_s", "predict_s", "warnings")
DIGITS = {"LL": 3, "RMSE": 3, "coverage": 3, "errors": 1, "error": 4, "log loss": 3}
KEY = ("data", "split", "model")


# --- data -----------------------------------------------------------------------------------------


def splits(name):
    """Training and test rows of each split: ``X, y, X_test, y_test``."""
    folder = os.environ.get("SKBAYESNN_DATA")
    if folder is None:
        sys.exit("the environment variable SKBAYESNN_DATA must name the folder of the data")
    with np.load(Path(folder) / f"{FILES[name]}.npz") as file:
        X, y = file["X"].astype(float), file["y"]
        if "fold" in file:
            pairs = [np.nonzero(file["fold"] != k)[0] for k in np.unique(file["fold"])]
            pairs = [(train, np.setdiff1d(np.arange(len(y)), train)) for train in pairs]
        else:
            both = np.atleast_2d(file["train_idx"]), np.atleast_2d(file["test_idx"])
            pairs = zip(*both, strict=True)
        for train, test in pairs:
            target = y if name in CLASSES else y.astype(float)
            if name == "airfoil":
                target = (target - target[train].mean()) / target[train].std()
            yield X[train], target[train], X[test], target[test]


# --- runs -----------------------------------------------------------------------------------------


def measure(fit, X, y, X_test, y_test):
    """Quality and times of one model on one split."""
    with counted_warnings() as messages:
        start = process_time()
        predict = fit(X, y)
        middle = process_time()
        quality = (score if y.dtype.kind == "f" else score_classes)(predict(X_test), y, y_test)
        end = process_time()
    return quality | {
        "n_train": len(y),
        "n_test": len(y_test),
        "fit_s": middle - start,
        "predict_s": end - middle,
        "warnings": len(messages),
    }


def score(forecast, _, y):
    """Log density per row, error and coverage in units of `y`."""
    return {
        "LL": np.mean(forecast.log_density(y)),
        "RMSE": np.sqrt(np.mean((forecast.mean - y) ** 2)),
        "coverage": interval_coverage(y, forecast.interval),
    }


def score_classes(probabilities, y_train, y):
    """Number of errors and log loss in nats."""
    classes = np.unique(y_train)
    errors = int(np.sum(classes[probabilities.argmax(axis=1)] != y))
    return {
        "errors": errors,
        "error": errors / len(y),
        "log loss": log_loss(y, probabilities, labels=classes),
    }


def run(args, path):
    """Append what is missing to the file, until the time is over."""
    done = {tuple(row[name] for name in KEY) for row in read(path)}
    start = perf_counter()
    for name, index, model, rows in plan(args):
        if (name, str(index), model) in done:
            continue
        if perf_counter() - start > 60 * args.minutes:
            print("the time is over; the same command continues")
            return
        key = {"data": name, "split": index, "model": model}
        append(path, key | measure(fits_of(name)[model], *rows))


def plan(args):
    """Data set, number of the split, model and rows of every fit that was asked for."""
    models = [model for model in args.models if not absent(model)]
    for name in args.data:
        for index, rows in zip(range(args.splits), splits(name), strict=False):
            for model in models:
                two_classes_only = model == "nuts"
                if model in fits_of(name) and not (two_classes_only and name == "glass"):
                    yield name, index, model, rows


def fits_of(name):
    """The models for a data set."""
    return CLASSIFIERS if name in CLASSES else REGRESSORS


def absent(model):
    """Whether a package that the model needs is not installed; no fit is timed with its import."""
    try:
        for package in PACKAGES.get(model, ()):
            importlib.import_module(package)
    except ImportError:
        return True
    return False


def read(path):
    """Rows of the file, all values as text."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def append(path, row):
    """One more row, which is also printed."""
    first = not path.exists()
    row = {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()}
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if first:
            writer.writeheader()
        writer.writerow(row)
    print(row, flush=True)


# --- tables ---------------------------------------------------------------------------------------


def tables(path):
    """One table per data set, the published figures below the measured."""
    everything = read(path)
    for name in FILES:
        rows = [row for row in everything if row["data"] == name]
        if rows:
            sizes = f"{rows[0]['n_train']} training and {rows[0]['n_test']} test rows"
            print_table(f"{name}, {sizes}", measured(name, rows) + published(name))


def measured(name, rows):
    """A line of the table for each model."""
    by_model = {
        model: [row for row in rows if row["model"] == model]
        for model in REGRESSORS
        if any(row["model"] == model for row in rows)
    }
    seconds = {
        model: {row["split"]: float(row["fit_s"]) for row in chosen}
        for model, chosen in by_model.items()
    }
    reference, *_ = seconds.values()
    lines = []
    for model, chosen in by_model.items():
        line = dict(zip(heading(name), [model, len(chosen)], strict=False))
        for column in quality(name):
            line[column] = mean_and_error([row[column] for row in chosen], DIGITS[column])
        line["fit, CPU s"] = mean_and_error(list(seconds[model].values()), 1)
        lines.append(line | {"time ratio": ratio(seconds[model], reference)})
    return lines


def published(name):
    """Lines of the same columns for published figures."""
    blank = dict.fromkeys(heading(name), "")
    return [blank | {"model": f"*{source}*"} | line for source, line in PUBLISHED[name].items()]


def heading(name):
    """Columns of the table of a data set."""
    return ("model", "splits", *quality(name), "fit, CPU s", "time ratio")


def quality(name):
    """Measures of quality of a data set."""
    return QUALITY["classes" if name in CLASSES else "regression"]


def ratio(seconds, reference):
    """Time over that of the reference on the splits that both have."""
    common = seconds.keys() & reference.keys()
    if not common:
        return "-"
    return f"{sum(seconds[k] for k in common) / sum(reference[k] for k in common):.2f}"


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=list(FILES), default=list(FILES))
    names = list(REGRESSORS)
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--splits", type=int, default=20, help="at most, of each data set")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no fit begins later")
    parser.add_argument("--csv", type=Path, default=Path("side_by_side.csv"))
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    args = parser.parse_args()
    for model in filter(absent, args.models):
        print(f"{model}: skipped; it needs", " and ".join(PACKAGES[model]))
    run(args, args.csv)
    tables(args.csv)
    if args.markdown:
        with open(args.markdown, "w") as file, redirect_stdout(file):
            tables(args.csv)


if __name__ == "__main__":
    main()
