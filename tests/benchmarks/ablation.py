"""Gain of one mechanism of the evidence fits: a frozen set of fits by Laplace's approximation.

For each fit the log evidence, the log density per test row, the error (share of wrong classes, or
root mean squared error over the standard deviation of the targets) and processor seconds; then the
same of some default fits, which are sampled; then Laplace's evidence of the problems of
``evidence_truth.py``, with its distance to their references as the error. Switch off a mechanism in
the code, run again under another name, and compare the two in the file of results::

    SKBAYESNN_DATA=folder python tests/benchmarks/ablation.py --variant spread --to new.csv
    python tests/benchmarks/ablation.py --compare new.csv
"""

import argparse
import csv
import warnings
from pathlib import Path
from time import process_time

import _data  # before numpy
import numpy as np
from evidence_truth import PROBLEMS, estimator, references

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor

COLUMNS = ("variant", "fit", "evidence", "log density", "error", "seconds")
FITS = {  # name: set, split, most training rows, options
    "mcycle": ("mcycle", 0, None, {}),
    "mcycle, second split": ("mcycle", 1, None, {}),
    "servo": ("wilson_servo", 0, None, {}),
    "servo, second split": ("wilson_servo", 1, None, {}),
    "servo, inputs": ("wilson_servo", 2, None, {"noise": "input_dependent"}),
    "autompg": ("wilson_autompg", 0, None, {}),
    "autompg, Student-t": ("wilson_autompg", 1, None, {"noise": "student_t"}),
    "slump": ("wilson_concreteslump", 0, None, {}),
    "slump, ARD": ("wilson_concreteslump", 1, None, {"prior": "ard"}),
    "yacht": ("yacht", 0, None, {}),
    "boston": ("boston", 0, None, {}),
    "energy": ("energy", 0, 300, {}),
    "kin8nm, 1,500 rows": ("kin8nm", 0, 1500, {"hidden_layer_sizes": (8,), "noise": "constant"}),
    "outliers, 1 input": ("outliers", 1, 300, {}),
    "outliers, 3 inputs": ("outliers", 3, 500, {}),
    "pima": ("ripley_pima", 0, None, {}),
    "synthetic": ("ripley_synth", 0, None, {}),
    "seeds": ("cls_seeds", 0, None, {}),
    "blood": ("cls_blood", 0, None, {}),
    "ionosphere": ("cls_ionosphere", 0, None, {}),
    "glass": ("ripley_fgl", 0, None, {}),
}
DEFAULTS = ("mcycle", "slump", "pima")


def outliers(n_features, n_rows, n_test=500):
    """Waves with a tenth of the training rows far off."""
    rng = np.random.default_rng(n_features)
    X = rng.uniform(-2, 2, (n_rows + n_test, n_features))
    f = np.sin(2 * X[:, 0]) * (X[:, 1] + np.cos(3 * X[:, 2]) if n_features > 1 else 1.0)
    y = f + 0.1 * rng.standard_normal(len(f))
    y[:n_rows] += np.where(rng.random(n_rows) < 0.1, 2.0, 0.0) * rng.standard_normal(n_rows)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def rows_of(name, split, most):
    """Training and test rows of a split."""
    if name == "outliers":
        return outliers(split, most)
    X, y, X_test, y_test = _data.split(name, split)
    return X[:most], y[:most], X_test, y_test


def scored(model, X, y, X_test, y_test):
    """Log evidence, log density per test row, error and processor seconds."""
    begun = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        seconds = process_time() - begun
        density = np.mean(model.log_predictive_density(X_test, y_test))
        score = model.score(X_test, y_test)
    error = 1.0 - score if hasattr(model, "classes_") else np.sqrt(1.0 - score)
    return model.log_evidence_, density, error, seconds


def fit_of(name, **options):
    """Scores of one of the `FITS`."""
    data, split, most, own = FITS[name]
    rows = rows_of(data, split, most)
    whole = rows[1].dtype.kind in "iuUSO" and len(np.unique(rows[1])) < 10
    kind = EvidenceMLPClassifier if whole else EvidenceMLPRegressor
    return scored(kind(random_state=0, **own, **options), *rows)


def truth_of(name):
    """Scores of a problem with a known evidence."""
    model, X, y = estimator(name, method="laplace")
    evidence, _, _, seconds = scored(model, X, y, X, y)
    return evidence, np.nan, abs(evidence - references()[name][0]), seconds


def jobs():
    """Pairs of name and function for all fits."""
    laplace = {"method": "laplace"}
    yield from ((name, lambda name=name: fit_of(name, **laplace)) for name in FITS)
    yield from ((f"{name}, default", lambda name=name: fit_of(name)) for name in DEFAULTS)
    yield from ((f"truth: {name}", lambda name=name: truth_of(name)) for name in PROBLEMS)


def run(variant, path, chosen=""):
    """Append a line for each fit whose name contains ``chosen``."""
    for name, job in jobs():
        if chosen in name:
            line = [variant, name, *(f"{value:.4f}" for value in job())]
            new = not path.exists()
            with path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([COLUMNS, line] if new else [line])


def compared(path, kind, first="everything"):
    """Median or mean losses of each variant against the first one, over fits of a kind.

    Returns
    -------
    dict
        By variant: gains of ``first`` in nats of evidence, nats per test row, per cent of error,
        and the share of all seconds that it takes more.
    """
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if is_of(row["fit"], kind)]
    found = {}
    for row in rows:
        found.setdefault(row["variant"], {})[row["fit"]] = [float(row[key]) for key in COLUMNS[2:]]
    gains = {}
    for variant, some in found.items():
        names = [name for name in some if name in found[first]]
        mine, other = (np.array([of[name] for name in names]) for of in (found[first], some))
        if kind == "truth":  # nats nearer to the truth; a missing evidence counts as 10 nats off
            error = np.nan_to_num(np.minimum(other - mine, 10.0)[:, 2], nan=10.0)
            gains[variant] = np.mean(error), np.nan, np.nan
        else:
            density = np.mean((mine - other)[:, 1])
            error = 100.0 * np.mean(np.log((other[:, 2] + 1e-3) / (mine[:, 2] + 1e-3)))
            gains[variant] = np.nanmean((mine - other)[:, 0]), density, error
        gains[variant] += (1.0 - other[:, 3].sum() / mine[:, 3].sum(),)
    return gains


def is_of(fit, kind):
    """Return True if a fit is by Laplace's approximation, a default, or of known truth."""
    found = "truth" if fit.startswith("truth") else "default" if "default" in fit else "laplace"
    return found == kind


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variant", default="everything")
    parser.add_argument("--to", type=Path, default=Path("ablation.csv"))
    parser.add_argument("--fits", default="", help="part of the names of the fits to run")
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    if options.compare is None:
        run(options.variant, options.to, options.fits)
        return
    for kind in ("laplace", "default", "truth"):
        print(f"{kind}: gains in evidence, log density, error (%), and share of the time")
        for variant, gains in compared(options.compare, kind).items():
            print(f"  {variant:28s}" + "".join(f"{gain:10.4f}" for gain in gains))


if __name__ == "__main__":
    main()
