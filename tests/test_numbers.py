"""Every measured number in README and guide is one of the results in ``tests/benchmarks/results``.

In the pages a comment that readers do not see says where numbers come from:

* ``<!-- table: NAME -->`` before a table: its cells are those that a function in `TABLES` makes of
  the rows of a run.
* ``<!-- origin: NAME -->`` before a line: it says with which commit ``NAME.csv`` was made, and
  where, as the comments at the head of that file do.
* ``<!-- numbers ... -->`` after a paragraph or table: a line ``FIGURE : EXPRESSION`` for each
  number in it that needs a source. The expression, of the functions in `NAMES`, must round to the
  figure; ``code`` stands for a number in the code of the page, ``example`` for one that is made up.

Decimal numbers need a source, as do integers from 1,000 on (with a comma) and those that measure:
before ``%``, seconds, nats, times or errors, or as in ``19 of 20``. What is said in words without
a number has its test in `test_claims.py`. After a new run ``python -m tests.test_numbers`` puts
the new tables into the pages and prints which other numbers have to be changed by hand.
"""

import csv
import math
import re
import runpy
from collections import Counter
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

import skbayesnn.estimators.reports._comparison as comparison
import skbayesnn.estimators.reports._diagnostics as diagnostics
from skbayesnn.estimators.inputs._sequential import JOINED
from skbayesnn.estimators.reports._minimum import LARGEST_ERROR
from skbayesnn.estimators.reports._predictions import BY_CHANCE, COVERAGE, DIFFERENT, MUCH
from skbayesnn.inference import SIGNIFICANT, Limits, _chains_fit
from skbayesnn.inference.noise import _residual_tests
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from skbayesnn.inference.optimise import _batches
from skbayesnn.posterior import LogUniform
from skbayesnn.predictive._combination import TEMPERATURE

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "tests" / "benchmarks"
PAGES = [
    ROOT / "README.md",
    *(ROOT / "doc" / name for name in ("index.md", "contributing/measurements.md")),
    ROOT / "doc" / "contributing" / "limits.md",
]
PAGES += sorted((ROOT / "doc/guide").glob("*.md"))
FENCE = re.compile(r"^ *(`{3,}|:{3,})(.*?)\n(.*?)^ *\1 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!-- (table|numbers|origin):?(.*?)-->$", re.MULTILINE | re.DOTALL)
NOT_PROSE = re.compile(
    r"`[^`\n]+`|\$[^$]+\$|\]\([^)]*\)|Python 3\.11|\w+(?:-\w+)+ \d+(?:\.\d+)+|95 % interval"
)
NUMBER = r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?<!,)"
UNITS = r"(?:%|s\b|(?:processor )?seconds?\b|minutes?\b|nats?\b|times\b|errors?\b|MB\b"
UNITS += rf"|of {NUMBER})"
MEASURED = re.compile(rf"{NUMBER}(?:(?:,| to| and| or| ±)+ [-+]?{NUMBER})* ?{UNITS}")
NEEDS_SOURCE = re.compile(r"(?<![\w.,])(?:\d+\.\d+|\d{1,3}(?:,\d{3})+)(?![\w]|,\d)")
DIGITS = {"LL": 3, "RMSE": 3, "coverage": 3, "errors": 1, "error": 4, "log loss": 3, "fit_s": 1}
CLASSES = ("pima", "synthetic", "glass")
TRAINING_ROWS = {"glass": 198, "pima": 200, "synthetic": 250, "yacht": 277, "boston": 455}
TRAINING_ROWS |= {"energy": 691, "concrete": 927, "airfoil": 1202}
MANY_ROWS = {"power": "power plant", "sines": "thirty sines", "classes": "ten classes"}
TIERS = {  # inputs and hidden units, weights, and what stands for the Hessian
    "rows_100000": ("10, (100,)", "1,201", "Kronecker, batches"),
    "dense_2201": ("20, (100,)", "2,201", "Kronecker, batches"),
    "over_3000": ("20, (200,)", "4,401", "Kronecker, batches"),
    "over_8000": ("20, (500,)", "11,001", "Kronecker, batches"),
    "dual_4401": ("20, (200,)", "4,401", "dual"),
    "digits_16": ("digits, (16,)", "1,210", "Gauss-Newton, early stopping"),
    "digits_32": ("digits, (32,)", "2,410", "Kronecker, early stopping"),
    "digits_64": ("digits, (64,)", "4,810", "Kronecker, early stopping"),
    "digits_128": ("digits, (128,)", "9,610", "Kronecker, early stopping"),
}
SETS = ("yacht", "energy", "concrete", "boston", "airfoil")
MODELS = ("evidence", "evidence, constant noise", "evidence, (16,)", "hmc", "hmc, constant noise")
MODELS += ("hmc, noise of inputs", "gaussian process", "mlp grid", "boosting", "forest", "linear")
MODELS += ("nuts", "bde", "laplace")
FIRST_SPLITS = [model for model in MODELS if model not in ("evidence, (16,)", "hmc", "mlp grid")]


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


def values(data, model, column):
    """Scores of a model on every split of a set of the side-by-side comparison."""
    found = {
        row["split"]: float(row[column])
        for row in rows_of("side_by_side")
        if (row["data"], row["model"]) == (data, model)
    }
    assert found, f"no rows of {model} on {data}"
    return found


def mean(*which):
    """Over the splits."""
    return float(np.mean(list(values(*which).values())))


def standard_error(numbers):
    """Of a mean."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


def differences(data, column, first, second):
    """Of two models, split by split."""
    a, b = values(data, first, column), values(data, second, column)
    return [a[split] - b[split] for split in a.keys() & b.keys()]


def gain(*which):
    """Mean difference of two models over the splits that both have."""
    return float(np.mean(differences(*which)))


def gain_error(*which):
    """Its standard error."""
    return standard_error(differences(*which))


def gain_text(data, column="LL", second="evidence, constant noise"):
    """By how much the default differs from another model, with standard error."""
    which = data, column, "evidence", second
    return f"{gain(*which):.2f} ± {gain_error(*which):.2f}"


def lead(data):
    """By how much the log density of the default exceeds that of the best other estimator."""
    others = {row["model"] for row in rows_of("side_by_side") if row["data"] == data}
    others = [model for model in others if not model.startswith("evidence")]
    return min(gain(data, "LL", "evidence", model) for model in others)


def seconds(data, model):
    """Of a fit, mean over the splits."""
    if any((row["data"], row["model"]) == (data, model) for row in rows_of("side_by_side")):
        return mean(data, model, "fit_s")
    found = [r for r in rows_of("side_by_side_earlier") if (r["data"], r["model"]) == (data, model)]
    return float(found[0]["fit_s"].split()[0]) if found else math.nan


def span(numbers, digits=0):
    """From the smallest to the largest, those left out that were not measured."""
    numbers = [number for number in numbers if not math.isnan(number)]
    return f"{min(numbers):.{digits}f} to {max(numbers):.{digits}f}"


def showcase(model, column):
    """Mean over the splits of the README's example."""
    return float(np.mean([float(r[column]) for r in rows_of("showcase") if r["model"] == model]))


def showcase_lead():
    """By how much the error of the Gaussian process exceeds that of the default, by splits."""
    errors = {(r["model"], r["split"]): float(r["RMSE"]) for r in rows_of("showcase")}
    names, splits = ("GaussianProcessRegressor", "EvidenceMLPRegressor"), {s for _, s in errors}
    process, default = ([errors[name, split] for split in splits] for name in names)
    return with_error(np.subtract(process, default), 2)


def summary(script, quantity):
    """A number of a run of which only the summary was kept."""
    (row,) = (r for r in rows_of("summaries") if (r["script"], r["quantity"]) == (script, quantity))
    return row["value"]


def earlier(data, model, column):
    """A cell of the side-by-side lines that were measured earlier."""
    (row,) = (
        r for r in rows_of("side_by_side_earlier") if (r["data"], r["model"]) == (data, model)
    )
    return row[column]


# --- tables ---------------------------------------------------------------------------------------


def with_error(numbers, digits):
    """Mean and standard error as the tables have them."""
    if len(numbers) == 1:
        return f"{numbers[0]:.{digits}f}"
    return f"{np.mean(numbers):.{digits}f} ± {standard_error(numbers):.{digits}f}"


def side_by_side(data):
    """Lines of our runs, of earlier ones, and of published figures."""
    columns = ("errors", "error", "log loss") if data in CLASSES else ("LL", "RMSE", "coverage")
    lines = {}
    for model in dict.fromkeys(r["model"] for r in rows_of("side_by_side") if r["data"] == data):
        cells = [list(values(data, model, column).values()) for column in (*columns, "fit_s")]
        texts = map(with_error, cells, [DIGITS[column] for column in (*columns, "fit_s")])
        lines[model] = [model, str(len(cells[0])), *texts]
    for row in rows_of("side_by_side_earlier"):
        if row["data"] == data:
            line = [row[column] for column in ("model", "splits", *columns, "fit_s")]
            lines[row["model"]] = line
    ours = [lines[model] for model in MODELS if model in lines]
    theirs = [
        [f"*{source}*", "", *(str(line.get(column, "")) for column in columns), ""]
        for source, line in published()[data].items()
    ]
    return [["model", "splits", *columns, "fit, CPU s"], *ours, *theirs]


def errors():
    """By how much the error of the default differs from that of others."""
    names = {"gaussian process": "Gaussian process", "boosting": "boosting", "forest": "forest"}
    lines = [["data", *names.values()]]
    for data in SETS:
        found = [differences(data, "RMSE", "evidence", model) for model in names]
        lines.append([data, *(with_error(each, 2) for each in found)])
    return lines


def first_splits():
    """Log density or log loss of every model on the first split of every set."""
    sets = (*SETS, *CLASSES)
    lines = [["model", *(name.replace("pima", "Pima") for name in sets)]]
    for model in FIRST_SPLITS:
        line = [model]
        for data in sets:
            column, digits = ("log loss", 3) if data in CLASSES else ("LL", 2)
            found = [
                f"{float(r[column]):.{digits}f}"
                for r in rows_of("side_by_side")
                if (r["data"], r["model"], r["split"]) == (data, model, "0")
            ]
            found += [
                r["first"]
                for r in rows_of("side_by_side_earlier")
                if (r["data"], r["model"]) == (data, model)
            ]
            line.append(found[0] if found else "")
        lines.append(line)
    return lines


def showcase_table():
    """Error and seconds of every estimator, the smallest error first."""
    models = dict.fromkeys(row["model"] for row in rows_of("showcase"))
    lines = [(showcase(m, "RMSE"), m, showcase(m, "fit_s")) for m in models]
    texts = [
        [model, f"{error:.2f}", f"{seconds:.1f}" if seconds >= 0.1 else "< 0.1"]
        for error, model, seconds in sorted(lines)
    ]
    return [["estimator", "error", "seconds"], *texts]


@cache
def published():
    """Published figures by set and source."""
    return runpy.run_path(str(BENCHMARKS / "published.py"))["PUBLISHED"]


def origin(name):
    """A line on the code and the machine of a run."""
    found = lines_of(name)[1]
    if not found:
        return "*Measured before the commit was kept.*"
    runs = [row for row in rows_of(name) if "blas" in row] or [found]  # with several kernels
    kernels = ", ".join(dict.fromkeys(f"{run['core']} and {run['blas']}" for run in runs))
    return (
        f"*Commit {found['commit']}, package tree {found['package']}, {found['date']}, "
        f"{found['processor']} ({kernels}): `{found['command']}`*"
    )


def quality(name):
    """Means of every set, with standard errors from its splits."""
    lines = [["data", "rows", "inputs", "fits", "score", "error", "coverage", "CPU s", "MB"]]
    lines[0] += ["method", "mostly chosen"]
    for data in dict.fromkeys(row["set"] for row in rows_of(name)):
        fits = [row for row in rows_of(name) if row["set"] == data]
        cells = [data, fits[0]["rows"], fits[0]["inputs"], str(len(fits))]
        for column, digits in {"score": 3, "error": 4, "coverage": 3}.items():
            splits = {}
            for row in fits:
                splits.setdefault(row["split"], []).append(float(row[column] or np.nan))
            means = [np.mean(each) for each in splits.values()]
            cells.append("" if np.isnan(means[0]) else with_error(means, digits))
        cells += [
            f"{np.mean([float(row[c] or np.nan) for row in fits]):.{d}f}"
            for c, d in (("seconds", 1), ("memory", 0))
        ]
        cells.append(", ".join(sorted({row["method"] for row in fits})))
        chosen = Counter(f"{r['hidden']} {r['noise']}".strip().replace("_", " ") for r in fits)
        lines.append([*cells, chosen.most_common(1)[0][0]])
    return lines


def gaussian_beside_samples():
    """Ratios and differences of three data sets of each size, side by side."""
    heading = ["rows", "verdict", "error bars", "noise level", "means differ by (sd)"]
    lines = [[*heading, "log evidence differs by (nats)", "chains converged"]]
    everything = rows_of("gaussian_beside_samples")
    for size in dict.fromkeys(row["rows"] for row in everything):
        rows = [row for row in everything if row["rows"] == size]
        verdicts = dict.fromkeys(row["verdict"].partition(":")[0] for row in rows)
        texts = [
            ", ".join(f"{float(row[column]):.{digits}f}" for row in rows)
            for column, digits in {"error bars": 2, "noise": 2, "means differ by": 2}.items()
        ]
        gaps = ", ".join(f"{float(row['log evidence differs by']):.1f}" for row in rows)
        agree = [float(row["R-hat"]) <= diagnostics.LARGEST_R_HAT for row in rows]
        agree = ", ".join("yes" if each else "no" for each in agree)
        lines.append([size, " or ".join(verdicts), *texts, gaps, agree])
    return lines


def gaussian(column, extreme, *sizes):
    """Smallest or largest number of the table above, over some numbers of rows."""
    rows = rows_of("gaussian_beside_samples")
    return extreme(float(row[column]) for row in rows if not sizes or row["rows"] in sizes)


def default_seconds():
    """Seconds of default fits, a line per data set."""
    lines = [["data, training rows", "`EvidenceMLP...()`"]]
    for data, n_rows in TRAINING_ROWS.items():
        taken = seconds(data, "evidence")
        lines.append([f"{data}, {n_rows:,}", f"{taken:.{0 if taken > 9.95 else 1}f}"])
    for row in sorted(both("many_rows", "skbayesnn"), key=lambda row: int(row["rows"])):
        name = MANY_ROWS.get(row["case"], row["case"])
        lines.append([f"{name}, {int(row['rows']):,}", in_seconds(row)])
    return lines


def both(name, model):
    """Rows of our estimators, or of their neighbours, of the comparisons with many rows."""
    return [row for row in rows_of(name) if row["model"] == model]


def in_seconds(row):
    """Seconds of a fit, whole ones from one on."""
    seconds = float(row["seconds"])
    return f"{seconds:.{0 if seconds > 0.95 else 1}f}"


def density_and_error(row):
    """Cells of log density and error, the latter of classes a share."""
    error = float(row["error"])
    text = f"{100 * error:.1f} %" if row["task"] == "classes" else f"{error:#.3g}"
    return [f"{float(row['log density']):.2f}", text]


def many_rows():
    """Default fits beside boosting, a line per set."""
    lines = [["rows", "chosen", "log density", "error", "in 95 % intervals", "seconds"]]
    lines[0] += ["boosting: log density", "error", "seconds"]
    for ours, other in zip(
        both("many_rows", "skbayesnn"), both("many_rows", "scikit-learn"), strict=True
    ):
        size = f"{int(ours['rows']):,} x {ours['inputs']}"
        hidden, _, noise = ours["chosen"].partition(") ")
        noise = {"student_t": "Student-t", "input_dependent": "input-dependent"}.get(noise, noise)
        inside = f"{100 * float(ours['inside']):.1f} %" if ours["inside"] else ""
        line = [f"{MANY_ROWS.get(ours['case'], ours['case'])}, {size}"]
        line += [f"{hidden}), {noise} noise" if noise else hidden, *density_and_error(ours)]
        lines.append(
            [*line, inside, in_seconds(ours), *density_and_error(other), in_seconds(other)]
        )
    return lines


def tiers():
    """One start of large networks beside those of scikit-learn, a line per size."""
    lines = [["inputs, hidden units", "rows", "weights", "curvature", "log density", "error"]]
    lines[0] += ["seconds", "scikit-learn: log density", "error", "seconds"]
    for ours, other in zip(both("tiers", "skbayesnn"), both("tiers", "scikit-learn"), strict=True):
        size, weights, curvature = TIERS[ours["case"]]
        line = [size, f"{int(ours['rows']):,}", weights, curvature, *density_and_error(ours)]
        lines.append([*line, in_seconds(ours), *density_and_error(other), in_seconds(other)])
    return lines


def moderation():
    """Log losses of four kinds of class probabilities, a line per set."""
    columns = {"most probable": "most probable", "around the mode": "Gaussian around them"}
    columns |= {"closest": "closest Gaussian", "drawn": "drawn networks"}
    names = {"cancer": "breast cancer", "ripley_synth": "Ripley's synthetic classes"}
    names |= {"ripley_pima": "Pima diabetes", "ripley_fgl": "forensic glass"}
    lines = [["", *columns.values()]]
    for row in rows_of("moderation"):
        cells = [f"{float(row[column]):.3f}" for column in columns]
        lines.append([names.get(row["data"], row["data"]), *cells])
    return lines


def intervals():
    """Seconds of predictions, a line per model, but for those of counts."""
    columns = ("std", "interval", "median")
    rows = [
        row for row in rows_of("intervals") if not row["model"].endswith(("binomial", "poisson"))
    ]
    cells = [[row["model"], *(f"{float(row[c]):.2f}" for c in columns)] for row in rows]
    return [["model", *columns], *cells]


def sequential():
    """Losses of a network that learns in batches, a line per number of batches."""
    columns = {
        "one_fit": "one fit of all",
        "in_batches": "in batches",
        "first_batch": "first batch alone",
    }
    lines = [["batches", "rows in each", *columns.values()]]
    for n_batches in dict.fromkeys(row["batches"] for row in rows_of("sequential")):
        rows = [row for row in rows_of("sequential") if row["batches"] == n_batches]
        means = [f"{np.mean([float(row[column]) for row in rows]):.3f}" for column in columns]
        lines.append([n_batches, str(120 // int(n_batches)), *means])
    return lines


def optimisation():
    """Median simple regret of networks and of Gaussian processes, a line per function."""
    lines = [["function", "runs of each", "network", "Gaussian process"]]
    rows = rows_of("optimisation")
    for function in dict.fromkeys(row["function"] for row in rows):
        found = {model: [] for model in ("network", "gaussian process")}
        for row in rows:
            if row["function"] == function:
                found[row["model"]].append(float(row["regret"]))
        medians = [f"{np.median(regrets):.2g}" for regrets in found.values()]
        lines.append([function, str(len(found["network"])), *medians])
    return lines


TABLES = {
    "showcase": showcase_table,
    "optimisation": optimisation,
    "sequential": sequential,
    "default seconds": default_seconds,
    "intervals": intervals,
    "many_rows": many_rows,
    "moderation": moderation,
    "tiers": tiers,
    "errors": errors,
    "first splits": first_splits,
    "gaussian beside samples": gaussian_beside_samples,
    "quality quick": partial(quality, "quality_quick"),
    "quality full": partial(quality, "quality_full"),
} | {f"side_by_side {name}": partial(side_by_side, name) for name in (*SETS, *CLASSES)}
NAMES = {
    "LIMITS": Limits(),
    "LIMITS_OF_SD": LogUniform(),
    "SIGNIFICANT": SIGNIFICANT,
    "TEMPERATURE": TEMPERATURE,
    "DEGREES_OF_FREEDOM": DEGREES_OF_FREEDOM,
    "batches": _batches,
    "chains": _chains_fit,
    "residual_tests": _residual_tests,
    "LARGEST_ERROR": LARGEST_ERROR,
    "BY_CHANCE": BY_CHANCE,
    "COVERAGE": COVERAGE,
    "DIFFERENT": DIFFERENT,
    "MUCH": MUCH,
    "JOINED": JOINED,
    "comparison": comparison,
    "count": lambda name: len(rows_of(name)),
    "diagnostics": diagnostics,
    "earlier": earlier,
    "exp": math.exp,
    "gain": gain,
    "gaussian": gaussian,
    "max": max,
    "min": min,
    "gain_text": gain_text,
    "lead": lead,
    "mean": mean,
    "mean_coverage": lambda: 100 * np.mean([mean(s, "evidence", "coverage") for s in SETS]),
    "SETS": SETS,
    "CLASSES": CLASSES,
    "seconds": seconds,
    "showcase_lead": showcase_lead,
    "span": span,
    "summary": summary,
}


# --- pages ----------------------------------------------------------------------------------------


def figures_of(prose):
    """Numbers that need a source."""
    prose = " ".join(prose.split())
    measured = " ".join(match[0] for match in MEASURED.finditer(prose))
    return [*NEEDS_SOURCE.findall(prose), *re.findall(NUMBER, measured)]


def as_figure(result, figure):
    """A result with the digits of the figure in the text."""
    digits = len(figure.partition(".")[2])
    return (
        result if isinstance(result, str) else f"{result:{',' if ',' in figure else ''}.{digits}f}"
    )


def cells_of(block):
    """A Markdown table as lists of cells."""
    lines = [line for line in block.strip().split("\n") if not re.match(r"^ *\|[-| ]+\|$", line)]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def blocks_of(text):
    """``(block, made, numbers, code)``: paragraphs and tables with their comments.

    ``made`` is the kind and the name of what is made of results, or ``None``.
    """
    found, made = [], None
    code = "".join(match[0] for match in FENCE.finditer(text))
    for block in re.split(r"\n{2,}", FENCE.sub("", text)):
        comment = COMMENT.fullmatch(block.strip())
        if comment is None:
            found.append([block, made, "", code])
            made = None
        elif comment[1] == "numbers":
            found[-1][2] = comment[2].strip()
        else:
            made = comment[1], comment[2].strip()
    return found


def expected(made):
    """What the results make: the cells of a table, or a line on their origin."""
    kind, name = made
    return origin(name) if kind == "origin" else TABLES[name]()


def disagreements(block, made, numbers, code):
    """Statements of a block that the results contradict; ``code`` is that of its page."""
    if made is not None and made[0] == "origin":
        return [] if " ".join(block.split()) == expected(made) else [f"{expected(made)} is missing"]
    if made is not None:
        lines = cells_of(block)
        return [f"{a} is not {b}" for a, b in zip_longest(lines, expected(made)) if a != b]
    prose, problems, named = NOT_PROSE.sub("", block), [], set()
    for line in filter(None, numbers.split("\n")):
        figure, expression = (part.strip() for part in line.split(" : "))
        from_page = {"code": figure if figure in code else "missing", "example": figure}
        result = eval(expression, {**NAMES, **from_page})
        text = as_figure(result, figure)
        if text != figure:
            problems.append(f"{expression} is {text}, not {figure}")
        if figure not in " ".join(block.split()):
            problems.append(f"{figure} is not in the text")
        named |= set(re.findall(NUMBER, figure))
    problems += [f"{f} has no source" for f in dict.fromkeys(figures_of(prose)) if f not in named]
    return problems


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_are_those_of_the_results(page):
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    assert [problem for block in blocks for problem in disagreements(*block)] == []


def test_wrong_numbers_are_found():
    page = """
<!-- table: showcase -->

| estimator | error | seconds |
|---|---|---|
| EvidenceMLPRegressor | 0.07 | 5.0 |

<!-- origin: showcase -->

*Commit 12345678*

A threshold of 1.06, or of 0.12.

<!-- numbers
1.06 : diagnostics.LARGEST_R_HAT
-->

Nobody knows 0.3, but `0.4` is code.
"""
    table, made_at, thresholds, unknown = blocks_of(page)
    assert "0.07" in disagreements(*table)[0]
    assert "missing" in disagreements(*made_at)[0]
    assert disagreements(*thresholds) == [
        "diagnostics.LARGEST_R_HAT is 1.05, not 1.06",
        "0.12 has no source",
    ]
    assert disagreements(*unknown) == ["0.3 has no source"]


def rewrite(page):
    """Put the tables and origins of the present results into a page, and print what disagrees."""
    text = page.read_text(encoding="utf-8")
    for block, made, *rest in blocks_of(text):
        if made is None:
            for problem in disagreements(block, made, *rest):
                print(f"{page.name}: {problem}")
        else:
            marker = f"<!-- {made[0]}: {made[1]} -->\n\n"
            text = text.replace(marker + block, marker + written(expected(made)))
    page.write_text(text, encoding="utf-8")


def written(result):
    """A line, or cells as a Markdown table."""
    if isinstance(result, str):
        return result
    lines = [f"| {' | '.join(cells)} |" for cells in result]
    return "\n".join([lines[0], "|" + len(result[0]) * "---|", *lines[1:]])


if __name__ == "__main__":  # after a new run: python -m tests.test_numbers
    for each in PAGES:
        rewrite(each)
