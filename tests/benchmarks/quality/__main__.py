"""How well default fits do: a run over many sets, and a comparison of two runs.

``run`` fits the sets of ``cases.toml``, each fit in its own process on one thread, and appends a
row per fit to a file. A run that was interrupted continues. The quick level takes some minutes, the
full level hours. Sets whose files are missing are left out::

    python tests/benchmarks/quality run --out quick.csv
    python tests/benchmarks/quality run --level full --data folder --out full.csv
    python tests/benchmarks/quality compare stored.csv quick.csv

``score`` is the mean log predictive density per test row in units of y, or log probability of its
class (1e-6 if it did not train); ``error`` the root mean squared error or share of wrong classes;
``coverage`` that of 95 % intervals; ``seconds`` those of the processor in ``fit``; ``memory`` the
peak of the process in MB. Runs with other kernels (``OPENBLAS_CORETYPE``, ``SKBAYESNN_COMPILED``)
may share a file.

``compare`` fails if the second file is worse by more than two standard errors, and by more than .02
on average over the sets or .1 on a single one. The errors include the spread over seeds, kernels
and splits.
"""

import argparse
import json
import multiprocessing
import resource  # Unix
import sys
import tomllib
from multiprocessing.pool import ThreadPool
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

import _data  # before numpy
import numpy as np
import reporting
import sets

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.metrics import interval_coverage

CASES = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))
KEY = ("set", "split", "seed", "core", "blas")
COLUMNS = (*KEY, "rows", "inputs", "classes", "score", "error", "coverage")
COLUMNS += ("seconds", "memory", "warnings", "method", "hidden", "noise")
UNIT = 2**20 if sys.platform == "darwin" else 2**10  # of memory, MB
ON_AVERAGE, ON_ONE_SET = 0.02, 0.1  # nats by which scores may fall


def one(name, split, seed, options):
    """Quality and cost of a fit, and what it has chosen."""
    case = CASES[name]
    make = getattr(sets, case["from"])
    X, y, X_test, y_test = make(name, split, **case.get("arguments", {}))
    classes = y.dtype.kind in "iu" and "options" not in case
    model = (EvidenceMLPClassifier if classes else EvidenceMLPRegressor)(random_state=seed)
    options = case.get("options", {}) | options
    model.set_params(**{key: options[key] for key in options.keys() & model.get_params().keys()})
    with reporting.counted_warnings() as messages:
        begin = process_time()
        model.fit(X, y)
        seconds = process_time() - begin
        score, error = (class_scores if classes else regression_scores)(model, X_test, y_test)
        intervals = None if classes else model.predict_interval(X_test, 0.95)
    return {
        "rows": len(y),
        "inputs": X.shape[1],
        "classes": len(np.unique(y)) if classes else "",
        "score": float(-score if classes else score),
        "error": float(error),
        "coverage": "" if classes else float(interval_coverage(y_test, intervals)),
        "seconds": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT,
        "warnings": len(messages),
        "method": model.method_ if hasattr(model, "method_") else type(model._result).__name__,
        "hidden": " ".join(map(str, model.hidden_layer_sizes_)) or "linear",
        "noise": getattr(model, "noise_model_", ""),
    }


def class_scores(model, X, y):
    """Log loss and share of wrong classes; a class that did not train has probability 1e-6."""
    n_classes = 1 + int(max(y.max(), model.classes_.max()))
    found = np.full((len(y), n_classes), 1e-6)
    found[:, model.classes_] = np.maximum(model.predict_proba(X), 1e-6)
    return -np.mean(np.log(found[np.arange(len(y)), y])), np.mean(model.predict(X) != y)


def regression_scores(model, X, y):
    """Log density per row and root mean squared error."""
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    return np.mean(model.log_predictive_density(X, y)), error


def run(path, level, only, jobs, options):
    """Append the fits that a file lacks."""
    here = reporting.origin()
    done = {tuple(row[key] for key in KEY) for row in reporting.begun(path)}
    kernels = here["core"], here["blas"]
    tasks = [task for task in plan(level, only) if (*map(str, task), *kernels) not in done]
    with ThreadPool(jobs) as pool:
        fits = pool.imap(lambda task: apart(task, options), tasks)
        for task, found in zip(tasks, fits, strict=True):
            row = dict(zip(KEY, (*task, *kernels), strict=True)) | found
            reporting.append(path, COLUMNS, row)


def plan(level, only):
    """Set, split and seed of every fit."""
    for name in only or CASES:
        case = CASES[name]
        of_file = case["from"] in ("published", "permuted")
        if not of_file or (_data.FOLDER / f"{name}.npz").exists():
            yield from ((name, *pair) for pair in np.ndindex(*case.get(level, (0, 0))))


def apart(task, options):
    """Fit in a process of its own; a fit that fails has no scores."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: sender.send(one(*task, options)))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return {"score": np.nan, "error": np.nan, "seconds": np.nan, "method": "failed"}
    finally:
        process.join()


def difference(stored, new):
    """Mean difference of scores over the splits and seeds of both, with its standard error.

    The error is the larger of two: that from the spread over seeds and kernels within splits, and
    that from the spread of the difference over splits. Arguments map split and seed to scores.
    """
    common = stored.keys() & new.keys()
    gains, squares, freedom = [], 0.0, 0
    for split in {split for split, _ in common}:
        cases = [case for case in common if case[0] == split]
        gains.append(np.mean([np.mean(new[case]) - np.mean(stored[case]) for case in cases]))
        for scores in (stored, new):
            values = np.concatenate([scores[case] for case in cases])
            squares, freedom = squares + np.var(values) * len(values), freedom + len(values) - 1
    errors = [2 * squares / freedom / len(common)] if freedom else []
    errors += [np.var(gains, ddof=1) / len(gains)] if len(gains) > 1 else []
    return float(np.mean(gains)), float(np.sqrt(max(errors, default=np.nan)))


def worse(what, gain, error, limit):
    """Reasons to fail: one or none."""
    significant = np.isnan(gain) or (gain < -limit and not gain >= -2 * error)
    return [f"{what}: {gain:.3f} ± {error:.3f}"] if significant else []


def compare(*paths):
    """Print all differences; the reasons why the second file is worse."""
    files, table, reasons = [reporting.read_csv(path)[0] for path in paths], [], []
    for name in dict.fromkeys(row["set"] for row in files[0]):
        both = [[row for row in rows if row["set"] == name] for rows in files]
        scores = {}, {}
        for found, rows in zip(scores, both, strict=True):
            for row in rows:
                found.setdefault((row["split"], row["seed"]), []).append(float(row["score"]))
        if not scores[0].keys() <= scores[1].keys():
            reasons.append(f"{name}: not all splits and seeds were measured")
            continue
        gain, error = difference(*scores)
        reasons += worse(name, gain, error, ON_ONE_SET)
        line = {"set": name, "score, difference": gain, "standard error": error}
        for column in ("score", "error", "seconds"):
            means = [np.mean([float(row[column]) for row in rows]) for rows in both]
            line[column] = " to ".join(f"{mean:.4g}" for mean in means)
        table.append(line)
    reporting.print_table("Second file beside the first", table)
    gain = np.mean([row["score, difference"] for row in table])
    error = np.sqrt(np.nansum([row["standard error"] ** 2 for row in table])) / len(table)
    print(f"\nmean of {len(table)} sets: {gain:.4f} ± {error:.4f}")
    return reasons + worse("mean", gain, error, ON_AVERAGE)


def main():
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="measure")
    runs.add_argument("--level", choices=("quick", "full"), default="quick")
    runs.add_argument("--out", type=Path, required=True, help="file of results")
    runs.add_argument("--data", default=_data.FOLDER, type=Path, help="folder; or SKBAYESNN_DATA")
    runs.add_argument("--only", nargs="+", choices=CASES, metavar="SET", help="no other sets")
    runs.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    runs.add_argument("--options", type=json.loads, default={}, help="of all estimators, JSON")
    both = commands.add_parser("compare", help="fail if the second file is worse")
    both.add_argument("files", nargs=2, type=Path)
    args = parser.parse_args()
    if args.command == "compare":
        sys.exit("\n".join(compare(*args.files)) or None)
    else:
        _data.FOLDER = args.data
        run(args.out, args.level, args.only, args.jobs, args.options)


if __name__ == "__main__":
    main()
