"""The arrows of the architecture: which part of the package may import which."""

import ast
import runpy
from itertools import chain
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "skbayesnn"

# Each row may import the rows above it; parts of one row do not know each other.
ROWS = [
    ["_data", "_docs", "_progress", "_threads", "_typing", "network", "samplers"],
    ["posterior"],
    ["inference", "_versions"],
    ["predictive"],
    ["estimators"],
    ["metrics", "basis", "compose"],
    ["model_selection", "active_learning", "displays"],
]
# A folder may import the folders before it; modules beside the folders may import all of them.
FOLDERS = {
    "posterior": ["kernels", "priors", "likelihoods", "joint"],
    "inference": [
        *("task", "curvature", "optimise", "evidence"),
        *("minima", "noise", "sampling", "choice"),
    ],
    "estimators": ["inputs", "reports", "predictions", "tasks"],
}
MAX_FILES = 15  # of a folder, without compiled ones
ALLOWED = {
    part: {part, *chain.from_iterable(ROWS[:row])}
    for row, parts in enumerate(ROWS)
    for part in parts
}


def imported_modules(source, module, is_package):
    """Absolute names of everything a module of the package imports from the package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")
                above = above[: len(above) - node.level + is_package]
                base = ".".join([*above, *filter(None, [node.module])])
            # in ``from skbayesnn import network`` the part is the imported name itself
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "skbayesnn")


def violations(files):
    """Forbidden imports in ``{path below the package: source}``, as readable lines."""
    found = []
    for path, source in files.items():
        parts = ["skbayesnn", *Path(path).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        if module == "skbayesnn":
            continue  # the package's front door may import everything
        part = parts[1]
        if part not in ALLOWED:
            found.append(f"{path}: '{part}' has no place in the architecture")
            continue
        for name in imported_modules(source, module, is_package):
            target = [*name.split("."), "the whole package"][1]
            if target not in ALLOWED[part]:
                found.append(f"{path}: '{part}' must not import '{target}'")
    return found


def test_imports_follow_the_arrows():
    files = {str(p.relative_to(PACKAGE)): p.read_text() for p in PACKAGE.rglob("*.py")}
    assert len(files) > 20
    assert violations(files) == []


def violations_in_folders(files):
    """Imports from a later folder of the same part, as readable lines."""
    found = []
    for path, source in files.items():
        part, folder, *rest = [*Path(path).parts, ""]
        order = FOLDERS.get(part, [])
        if not rest[:-1] or folder not in order:
            continue
        module = ".".join(["skbayesnn", *Path(path).with_suffix("").parts])
        for name in imported_modules(source, module, is_package=False):
            _, other, target, *_ = [*name.split("."), "", ""]
            if other == part and target in order[order.index(folder) + 1 :]:
                found.append(f"{path}: '{folder}' must not import '{target}'")
            if other == part and target not in order and target != "_posterior":
                found.append(f"{path}: '{folder}' must not import the whole of '{part}'")
    return found


def test_folders_follow_their_order():
    files = {str(p.relative_to(PACKAGE)): p.read_text() for p in PACKAGE.rglob("*.py")}
    assert violations_in_folders(files) == []


def test_no_folder_has_many_files():
    for folder in [PACKAGE, *(p for p in PACKAGE.rglob("*") if (p / "__init__.py").exists())]:
        names = [p for p in folder.iterdir() if p.suffix in (".py", ".pyx", ".c", ".h")]
        assert len([p for p in names if p.name != "_core.c"]) <= MAX_FILES, folder


@pytest.mark.docs
def test_the_picture_shows_the_rows():
    folder = PACKAGE.parent / "doc" / "images"
    script = runpy.run_path(str(folder / "architecture.py"))
    assert script["rows"]() == ROWS
    message = "the architecture has changed: run python doc/images/architecture.py"
    assert script["draw"](ROWS) == (folder / "architecture.svg").read_text(), message


FORBIDDEN = [
    ("network/_network.py", "from skbayesnn._data import Rows"),
    ("network/deep/_er.py", "from ...inference._steps import find_mode"),
    ("samplers/_dynamics.py", "import skbayesnn"),
    ("_data.py", "from . import network"),
    ("inference/_steps.py", "def f():\n    import numpy, skbayesnn.predictive._noise as noise"),
    ("helpers/_misc.py", "import numpy"),
]
FORBIDDEN_IN_FOLDERS = [
    ("inference/task/_problem.py", "from skbayesnn.inference.minima._search import fits"),
    ("inference/noise/_input_dependent_noise.py", "from skbayesnn.inference import Limits"),
]


def test_planted_violations_are_found():
    for path, source in FORBIDDEN:
        assert len(violations({path: source})) == 1, source
    for path, source in FORBIDDEN_IN_FOLDERS:
        assert len(violations_in_folders({path: source})) == 1, source
