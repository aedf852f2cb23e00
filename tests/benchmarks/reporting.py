"""Times of fits, and tables of results: rows are dictionaries with the same keys."""

import csv
import warnings
from contextlib import contextmanager
from time import process_time

import numpy as np


def print_table(title, rows):
    """Print rows as a Markdown table."""
    print(f"\n### {title}\n", flush=True)
    if not rows:
        print("(nothing was run)")
        return
    columns = list(rows[0])
    print("| " + " | ".join(columns) + " |")
    print("|" + "|".join("---" for _ in columns) + "|")
    for row in rows:
        print("| " + " | ".join(_text(row[column]) for column in columns) + " |", flush=True)


def write_csv(path, rows):
    """Write rows, with a header, to a file; numbers with six digits."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({name: six_digits(value) for name, value in row.items()} for row in rows)


def six_digits(value):
    """Round a float, leave anything else."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def mean_and_error(values, digits):
    """Mean of the finite values with its standard error, as text."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} +- {error:.{digits}f}"


def timed_fit(model, X, y):
    """Fit without warnings; the model, and processor seconds."""
    with warnings.catch_warnings(action="ignore"):
        start = process_time()
        return model.fit(X, y), process_time() - start


@contextmanager
def counted_warnings():
    """Silence warnings; yields a list that holds the messages afterwards."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield messages
        finally:
            messages += [f"{w.category.__name__}: {w.message}" for w in caught]


def _text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
