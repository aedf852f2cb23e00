"""Links and references of README and site, and the site's list of public names, without a build."""

import ast
import re
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from tests.tools import public_modules

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "doc").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
)
FENCE = re.compile(r"^ *(`{3,}|:{3,})(.*?)\n(.*?)^ *\1 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROLE = re.compile(r"\{([\w:]+)\}`([^`]+)`")
API_ROLES = {"attr", "class", "data", "exc", "func", "meth", "mod", "obj", "py:obj"}
API = ("api", "contributing/reference")
FILE_DIRECTIVES = {"{figure}", "{image}", "{include}", "{literalinclude}"}


def without_code(text):
    """Prose, in which nothing but links and roles looks like them."""
    return re.sub(r"(\{[\w:]+\}`[^`]+`)|`[^`\n]+`", r"\1", FENCE.sub("", text))


def anchors(text):
    """What headings and labels can be linked by."""
    prose = FENCE.sub("", text)
    headings = re.findall(r"^#+ +(.+?) *$", prose, re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {*slugs, *re.findall(r"^\(([\w-]+)\)=$", prose, re.MULTILINE)}


def is_page(path):
    """Whether a page, as a file with its suffix, is there or will be made from an example."""
    if path.parent == ROOT / "doc" / "auto_examples":
        name = {"index": "GALLERY_HEADER.rst"}.get(path.stem, f"{path.stem}.py")
        return (ROOT / "examples" / name).is_file()
    return path.is_file()


def bad_link(page, target):
    """What is wrong with a link, or nothing."""
    if re.match(r"\w+:", target):
        return None  # for ``-b linkcheck``
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not (is_page(path) or path.is_dir()):
        return f"no file {name}"
    if anchor and anchor not in anchors(path.read_text(encoding="utf-8")):
        return f"no heading {target}"
    return None


def bad_role(role, content, labels):
    """What is wrong with a cross-reference, or nothing."""
    name = re.sub(r".*<(.+)>$", r"\1", content).lstrip("~!")
    if role in API_ROLES and name.startswith("skbayesnn"):
        return None if is_public(name) else f"no public name {name}"
    if role == "ref":
        example = re.fullmatch(r"sphx_glr_auto_examples_(.+\.py)", name)
        there = (ROOT / "examples" / example[1]).is_file() if example else name in labels
        return None if there else f"no label {name}"
    return None


def is_public(name):
    """Whether a dotted name starts at a public module and leads to something."""
    module = next(
        (m for m in reversed(list(public_modules())) if f"{name}.".startswith(f"{m.__name__}.")),
        None,
    )
    if module is None:
        return False
    item = module
    for part in name.removeprefix(module.__name__).split(".")[1:]:
        if part.startswith("_") or not hasattr(item, part):
            return part in described(item)
        item = getattr(item, part)
    return True


def described(item):
    """Attributes that the docstring of a class lists; they exist after fitting."""
    return re.findall(r"\w+_", str(item.__doc__))


def problems(page, text, labels=()):
    """Broken links, references, entries of tables of contents and included files of a page."""
    prose = without_code(text)
    found = [bad_link(page, target) for target in LINK.findall(prose)]
    found += [bad_role(role, content, labels) for role, content in ROLE.findall(prose)]
    for _, head, body in FENCE.findall(text):
        directive, _, argument = head.strip().partition(" ")
        if directive == "{toctree}":
            entries = [line for line in body.split("\n") if line and not line.startswith(":")]
            missing = [e for e in entries if not is_page(page.parent / f"{e}.md")]
            found += [f"no page {entry}" for entry in missing]
        if directive in FILE_DIRECTIVES:
            found += bad_file(page.parent / argument, argument, body)
    return [problem for problem in found if problem]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    labels = set().union(*(anchors(other.read_text(encoding="utf-8")) for other in PAGES))
    assert not problems(page, page.read_text(encoding="utf-8"), labels)


def bad_file(path, name, body):
    """What is wrong with an included file and with the part of it that options choose."""
    if not path.is_file():
        return [f"no file {name}"]
    options = dict(re.findall(r"^:([\w-]+): +(.+)$", body, re.MULTILINE))
    text = path.read_text(encoding="utf-8") if options else ""
    if "pyobject" in options:
        node = ast.parse(text)
        for name in options["pyobject"].split("."):
            node = next((n for n in node.body if getattr(n, "name", None) == name), None)
            if node is None:
                return [f"no object {options['pyobject']}"]
        text = ast.get_source_segment(text, node)
    wanted = [options[key].strip("\"'") for key in ("start-at", "end-before") if key in options]
    return [f"no line {line}" for line in wanted if line not in text]


def test_broken_links_are_found():
    text = """
[good](#sampling), [good](api/index.md#estimators), [good](https://example.org), `[code](x.md)`
{class}`~skbayesnn.HMCMLPRegressor`, {attr}`skbayesnn.HMCMLPRegressor.diagnostics_`
{ref}`text <sphx_glr_auto_examples_quickstart.py>`

[bad](#another), [bad](api/index.md#estimator), [bad](missing.md)
{class}`~skbayesnn.HMCRegressor`, {func}`skbayesnn._data.missing`
{ref}`sphx_glr_auto_examples_x.py`

```{toctree}
:hidden:

api/index
missing
```

```{literalinclude} ../README.md
```

```{literalinclude} ../MISSING.md
```

```{literalinclude} ../skbayesnn/_data.py
:pyobject: Scaling.missing
```

```{literalinclude} ../skbayesnn/_data.py
:pyobject: Scaling
:start-at: "class Scaling"
:end-before: "missing line"
```
"""
    assert problems(ROOT / "doc" / "notation.md", text) == [
        "no heading #another",
        "no heading api/index.md#estimator",
        "no file missing.md",
        "no public name skbayesnn.HMCRegressor",
        "no public name skbayesnn._data.missing",
        "no label sphx_glr_auto_examples_x.py",
        "no page missing",
        "no file ../MISSING.md",
        "no object Scaling.missing",
        "no line missing line",
    ]


def listed_names():
    """Dotted names that the pages of the API list."""
    names = []
    for page in chain(*((ROOT / "doc" / name).glob("*.md") for name in API)):
        module = None
        for line in page.read_text(encoding="utf-8").split("\n"):
            if match := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
                module = match[1]
            elif match := re.match(r"(?:   |\.\. data:: )(\w+)$", line):
                names.append(f"{module}.{match[1]}")
    return names


def test_api_lists_every_public_name_once():
    listed = listed_names()
    expected = {
        f"{module.__name__}.{name}" for module in public_modules() for name in module.__all__
    }
    of_estimators = {f"skbayesnn.estimators.{name}" for name in import_module("skbayesnn").__all__}
    assert set(listed) == expected - of_estimators  # these are listed as names of ``skbayesnn``
    assert len(listed) == len(set(listed))


def test_every_example_has_a_place_in_the_gallery():
    tree = ast.parse((ROOT / "doc" / "conf.py").read_text(encoding="utf-8"))
    groups = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "GALLERY"
    )
    listed = sorted(name for names in groups.values() for name in names)
    assert listed == sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_assert_nothing(path):
    """The site is built with other versions and machines; tests check results."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
