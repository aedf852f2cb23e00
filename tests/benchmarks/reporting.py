"""Times of fits, and tables of results: rows are dictionaries with the same keys.

Files of results begin with comments, ``# name: value``, which say where they come from, see
`origin`.
"""

import csv
import platform
import shutil
import subprocess
import sys
import warnings
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from time import process_time, strftime

import numpy as np
import scipy.linalg  # noqa: F401, whose library `origin` names
from threadpoolctl import threadpool_info

from skbayesnn.posterior import instructions

ROOT = Path(__file__).parents[2]


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
    """Write rows, with their origin and a header, to a file; numbers with six digits."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        write_origin(file)
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({name: six_digits(value) for name, value in row.items()} for row in rows)


def append(path, columns, row):
    """Add a row to a file, which gets its origin and a header first; the row is also printed."""
    new = not path.exists()
    with open(path, "a", newline="", encoding="utf-8") as file:
        if new:
            write_origin(file)
            csv.writer(file).writerow(columns)
        cells = [six_digits(row.get(name, "")) for name in columns]
        csv.writer(file).writerow(cells)
    print(*cells, flush=True)


def begun(path):
    """Rows of a file that a run continues, which the same state of the package must have begun."""
    if not path.exists():
        return []
    rows, there = read_csv(path)
    if there.get("package") != origin()["package"]:
        sys.exit(f"{path} was begun with another state of the package: name a new file")
    return rows


def write_origin(file):
    """Write where results come from, as comments."""
    file.writelines(f"# {name}: {value}\n" for name, value in origin().items())


def read_csv(path):
    """Rows of a file of results, as dictionaries of text, and where they come from."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = file.readlines()
    comments = [line[2:].strip().split(": ", 1) for line in lines if line.startswith("# ")]
    return list(csv.DictReader(lines[len(comments) :])), dict(comments)


def origin():
    """Code, machine, libraries and command of a run, as text.

    The package tree is that of the commit, with a mark if files have been changed since.
    """
    changed = " with changes" if _git("status", "--porcelain", "--", "skbayesnn") else ""
    packages = ("numpy", "scipy", "scikit-learn")
    return {
        "date": strftime("%Y-%m-%d"),
        "commit": _git("rev-parse", "--short=8", "HEAD") or "unknown",
        "package": (_git("rev-parse", "--short=8", "HEAD:skbayesnn") or "unknown") + changed,
        "processor": _processor(),
        "core": instructions() or "none",
        "blas": blas(),
        "versions": ", ".join(
            [f"python {platform.python_version()}"] + [f"{p} {version(p)}" for p in packages]
        ),
        "command": " ".join(["python", *(_relative(word) for word in sys.argv)]),
    }


def blas():
    """Kernels of the linear algebra libraries in use."""
    found = [each.get("architecture", each["internal_api"]) for each in threadpool_info()]
    return " ".join(dict.fromkeys(str(kernel) for kernel in found if kernel != "openmp"))


def _git(*arguments):
    """Answer of git, empty without it."""
    if shutil.which("git") is None:
        return ""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip()


def _processor():
    """Name of the processor, which Linux tells in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _relative(word):
    """Path relative to the repository; of one outside only the name."""
    path = Path(word)
    inside = path.is_absolute() and path.is_relative_to(ROOT)
    return str(path.relative_to(ROOT)) if inside else path.name if path.is_absolute() else word


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
