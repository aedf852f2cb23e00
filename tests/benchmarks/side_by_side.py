"""Our estimators, with their defaults, and their neighbours on the same data and splits.

The data are those of which published figures exist: yacht, energy, concrete, boston (20 splits of
Hernandez-Lobato & Adams 2015), airfoil (one split, targets standardised by the training rows),
Pima and the synthetic classes of Ripley (1996) and forensic glass (10 folds). Run with::

    SKBAYESNN_DATA=folder python tests/benchmarks/side_by_side.py --csv results.csv
    python tests/benchmarks/side_by_side.py --data yacht --models evidence boosting --splits 3

The folder holds ``yacht.npz``, ``energy.npz`` and so on: arrays ``X``, ``y`` and the rows of each
split in ``train_idx`` and ``test_idx``, or the number of each row's fold in ``fold``. Every fit
appends a row to the CSV file, and what the file already has is not run again; so a long comparison
can be made in several runs, which stop after ``--minutes``. Processor seconds are those of `fit` on
one BLAS thread. One process runs at a time.
"""

import os

_jax = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("XLA_FLAGS", _jax)

import argparse
import importlib
from pathlib import Path
from time import perf_counter, process_time

import _data  # before numpy
import numpy as np
from neighbours import CLASSIFIERS, PACKAGES, REGRESSORS
from reporting import append, begun, counted_warnings
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
KEY = ("data", "split", "model")


# --- data -----------------------------------------------------------------------------------------


def splits(name):
    """Training and test rows of each split: ``X, y, X_test, y_test``."""
    for X, y, X_test, y_test in _data.splits(FILES[name]):
        if name == "airfoil":
            shift, scale = y.mean(), y.std()
            y, y_test = (y - shift) / scale, (y_test - shift) / scale
        yield X, y, X_test, y_test


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
    done = {tuple(row[name] for name in KEY) for row in begun(path)}
    start = perf_counter()
    for name, index, model, rows in plan(args):
        if (name, str(index), model) in done:
            continue
        if perf_counter() - start > 60 * args.minutes:
            print("the time is over; the same command continues")
            return
        key = {"data": name, "split": index, "model": model}
        append(path, COLUMNS, key | measure(fits_of(name)[model], *rows))


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
    """Return True if a package that the model needs is missing; no fit is timed with its import."""
    try:
        for package in PACKAGES.get(model, ()):
            importlib.import_module(package)
    except ImportError:
        return True
    return False


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=list(FILES), default=list(FILES))
    names = list(REGRESSORS)
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--splits", type=int, default=20, help="at most, of each data set")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no fit begins later")
    parser.add_argument("--csv", type=Path, default=Path("side_by_side.csv"))
    args = parser.parse_args()
    for model in filter(absent, args.models):
        print(f"{model}: skipped; it needs", " and ".join(PACKAGES[model]))
    run(args, args.csv)


if __name__ == "__main__":
    main()
