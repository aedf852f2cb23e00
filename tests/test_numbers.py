"""Tables of the pages are made from the results of benchmarks, in ``tests/benchmarks/results``.

A comment that readers do not see names what follows it: ``<!-- table: NAME -->`` one of `TABLES`,
``<!-- origin: NAME -->`` a line that says with which code, and where, ``NAME.csv`` was made. After
a new run ``python -m tests.test_numbers`` writes both into the pages.
"""

import csv
import re
import runpy
from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "tests" / "benchmarks"
MADE = re.compile(r"^(<!-- (table|origin): (.+) -->\n\n)((?:.+\n)*)", re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").glob("*/*.md"))]
PAGES = [page for page in PAGES if MADE.search(page.read_text(encoding="utf-8"))]

CLASSES = ("pima", "synthetic", "glass")
SETS = ("yacht", "energy", "concrete", "boston", "airfoil")
OTHERS = {"gaussian process": "Gaussian process", "boosting": "boosting", "forest": "forest"}
TIMED = {  # sets of the quality suite whose seconds the guide shows
    **{"ripley_fgl": "forensic glass", "ripley_pima": "Pima", "ripley_synth": "synthetic classes"},
    **{"yacht": "yacht", "boston": "boston", "energy": "energy", "concrete": "concrete"},
    **{"airfoil": "airfoil", "kin8nm": "kin8nm", "power": "power plant"},
    **{"elevators": "elevators", "mcycle": "motorcycle", "digits": "digits"},
}
MODELS = ("evidence", "gaussian process", "mlp grid", "boosting", "forest", "linear")
MODELS += ("nuts", "bde", "laplace")
FIRST_SPLITS = [model for model in MODELS if model != "mlp grid"]
DIGITS = {"LL": 3, "RMSE": 3, "coverage": 3, "errors": 1, "error": 4, "log loss": 3, "fit_s": 1}


# --- results --------------------------------------------------------------------------------------


@cache
def lines_of(name):
    """Lines of a file of results, and the comments at its head, which say where it comes from."""
    with open(BENCHMARKS / "results" / f"{name}.csv", newline="", encoding="utf-8") as file:
        lines = file.readlines()
    comments = [line[2:].strip().split(": ", 1) for line in lines if line.startswith("# ")]
    return lines[len(comments) :], dict(comments)


@cache
def rows_of(name):
    """Rows of a file of results, as dictionaries of text."""
    return tuple(csv.DictReader(lines_of(name)[0]))


def found(file, column, **where):
    """Numbers of a column in the rows in which others have these values; those missing are nan."""
    rows = (row for row in rows_of(file) if where.items() <= row.items())
    return np.array([float(row[column] or "nan") for row in rows])


def by_split(data, model, column):
    """Scores of a model on every split of a set of the side-by-side comparison."""
    rows = (r for r in rows_of("side_by_side") if (r["data"], r["model"]) == (data, model))
    return {row["split"]: float(row[column]) for row in rows}


def gains(data, column, other):
    """The default's scores minus those of another model, on the splits that both have."""
    ours, theirs = by_split(data, "evidence", column), by_split(data, other, column)
    return [ours[split] - theirs[split] for split in ours if split in theirs]


def earlier(data, model):
    """Lines of the side-by-side comparison that were measured earlier, at most one."""
    rows = rows_of("side_by_side_earlier")
    return [row for row in rows if (row["data"], row["model"]) == (data, model)]


def distinct(rows, column):
    """Values of a column in the order of the rows."""
    return dict.fromkeys(row[column] for row in rows)


def with_error(numbers, digits):
    """Mean and standard error, as text; empty without numbers."""
    n = len(numbers)
    error = f" ± {np.std(numbers, ddof=1) / n**0.5:.{digits}f}" if n > 1 else ""
    return f"{np.mean(numbers):.{digits}f}{error}" if n else ""


# --- tables ---------------------------------------------------------------------------------------


def showcase():
    """Error and seconds of every estimator, the smallest error first."""
    mean = {
        model: [np.mean(found("showcase", column, model=model)) for column in ("RMSE", "fit_s")]
        for model in distinct(rows_of("showcase"), "model")
    }
    ours, *others = sorted(mean, key=lambda model: model != "EvidenceMLPRegressor")
    differences = {
        model: found("showcase", "RMSE", model=model) - found("showcase", "RMSE", model=ours)
        for model in others
    }
    lines = [["estimator", "error", "larger by (paired)", "seconds"]]
    for model in sorted(mean, key=mean.get):
        error, seconds = mean[model]
        seconds = f"{seconds:.1f}" if seconds >= 0.1 else "< 0.1"
        paired = with_error(differences[model], 2) if model in differences else ""
        lines.append([model, f"{error:.2f}", paired, seconds])
    return lines


def quality(name):
    """Means of every set, with standard errors from its splits."""
    lines = [["data", "rows", "inputs", "fits", "score", "error", "coverage", "CPU s", "MB"]]
    lines[0] += ["method", "mostly chosen"]
    for data in distinct(rows_of(name), "set"):
        fits = [row for row in rows_of(name) if row["set"] == data]
        cells = [data, fits[0]["rows"], fits[0]["inputs"], str(len(fits))]
        for column, digits in {"score": 3, "error": 4, "coverage": 3}.items():
            splits = distinct(fits, "split")
            means = [np.mean(found(name, column, set=data, split=split)) for split in splits]
            cells.append("" if np.isnan(means[0]) else with_error(means, digits))
        for column, digits in {"seconds": 1, "memory": 0}.items():
            cells.append(f"{np.mean(found(name, column, set=data)):.{digits}f}")
        cells.append(", ".join(sorted(distinct(fits, "method"))))
        chosen = Counter(f"{r['hidden']} {r['noise']}".strip().replace("_", " ") for r in fits)
        lines.append([*cells, chosen.most_common(1)[0][0]])
    return lines


def side_by_side(data):
    """Lines of our runs, of earlier ones, and of published figures."""
    columns = ("errors", "error", "log loss") if data in CLASSES else ("LL", "RMSE", "coverage")
    lines = [["model", "splits", *columns, "fit, CPU s"]]
    for model in MODELS:
        scores = {c: list(by_split(data, model, c).values()) for c in (*columns, "fit_s")}
        if scores["fit_s"]:
            texts = [with_error(scores[column], DIGITS[column]) for column in scores]
            lines.append([model, str(len(scores["fit_s"])), *texts])
        else:
            lines += [[r[c] for c in ("model", "splits", *scores)] for r in earlier(data, model)]
    published = runpy.run_path(str(BENCHMARKS / "published.py"))["PUBLISHED"]
    for source, line in published[data].items():
        lines.append([f"*{source}*", "", *(line.get(column, "") for column in columns), ""])
    return lines


def first_splits():
    """Log density or log loss of every model on the first split of every set."""
    lines = [["model", *(name.replace("pima", "Pima") for name in (*SETS, *CLASSES))]]
    for model in FIRST_SPLITS:
        line = [model]
        for data in (*SETS, *CLASSES):
            column, digits = ("log loss", 3) if data in CLASSES else ("LL", 2)
            scores = by_split(data, model, column)
            texts = [f"{scores['0']:.{digits}f}"] if "0" in scores else []
            line += [*texts, *(row["first"] for row in earlier(data, model)), ""][:1]
        lines.append(line)
    return lines


def compared(column):
    """The default's scores minus those of other models, a line per set."""
    lines = [["data", *OTHERS.values()]]
    for data in SETS:
        lines.append([data, *(with_error(gains(data, column, model), 2) for model in OTHERS)])
    return lines


def coverage():
    """Shares of test rows in 95 % intervals, a line per set."""
    models = {"evidence": "default", **OTHERS}
    lines = [["data", *models.values()]]
    for data in SETS:
        shares = [[*by_split(data, model, "coverage").values()] for model in models]
        lines.append([data, *(f"{100 * np.mean(each):.1f} %" if each else "" for each in shares)])
    return lines


def default_seconds():
    """Seconds of default fits, a line per data set of the quality suite."""
    lines = [["data", "training rows", "inputs", "`EvidenceMLP...()`"]]
    rows = [row for row in rows_of("quality_full") if row["set"] in TIMED]
    for name in sorted(distinct(rows, "set"), key=lambda each: int(of_set(rows, each)[0]["rows"])):
        fits = of_set(rows, name)
        seconds = np.mean([float(row["seconds"]) for row in fits])
        size = f"{int(fits[0]['rows']):,}", fits[0]["inputs"]
        lines.append([TIMED[name], *size, f"{seconds:.{0 if seconds > 9.95 else 1}f}"])
    return lines


def of_set(rows, name):
    """Rows of one set of the quality suite."""
    return [row for row in rows if row["set"] == name]


def origin(name):
    """A line on the code and the machine of a run."""
    there = lines_of(name)[1]
    if not there:
        return "*Measured before the commit was kept.*"
    runs = [row for row in rows_of(name) if "blas" in row] or [there]  # with several kernels
    kernels = ", ".join(dict.fromkeys(f"{run['core']} and {run['blas']}" for run in runs))
    return (
        f"*Commit {there['commit']}, package tree {there['package']}, {there['date']}, "
        f"{there['processor']} ({kernels}): `{there['command']}`*"
    )


TABLES = {
    "showcase": showcase,
    "default seconds": default_seconds,
    "density": partial(compared, "LL"),
    "errors": partial(compared, "RMSE"),
    "coverage": coverage,
    "first splits": first_splits,
    "quality quick": partial(quality, "quality_quick"),
    "quality full": partial(quality, "quality_full"),
} | {f"side_by_side {name}": partial(side_by_side, name) for name in (*SETS, *CLASSES)}


# --- pages ----------------------------------------------------------------------------------------


def as_table(lines):
    """Cells as a Markdown table."""
    head, *rest = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|" + len(lines[0]) * "---|", *rest])


def with_results(text):
    """A page with the tables and origins of the kept results."""

    def made(match):
        comment, kind, name, _ = match.groups()
        return comment + (origin(name) if kind == "origin" else as_table(TABLES[name]())) + "\n"

    return MADE.sub(made, text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert text == with_results(text), "run python -m tests.test_numbers"


def test_other_numbers_are_replaced():
    page = "<!-- table: showcase -->\n\n| | error |\n|---|---|\n| forest | 0.0 |\n\nText.\n"
    right = with_results(page)
    assert "| forest | 0.0 |" not in right
    assert right.endswith(" |\n\nText.\n")
    assert with_results(right) == right


if __name__ == "__main__":  # after a new run: python -m tests.test_numbers
    for each in PAGES:
        each.write_text(with_results(each.read_text(encoding="utf-8")), encoding="utf-8")
