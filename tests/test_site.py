"""Links outside the site, and the site's list of public names, without a build."""

import ast
import re
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from tests.tools import exported, public_modules

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
# what Sphinx does not see, which checks links and references of the site
PAGES = sorted([ROOT / "README.md", *(ROOT / ".github").rglob("*.md")])
FENCE = re.compile(r"^ *(`{3,}|:{3,})(.*?)\n(.*?)^ *\1 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INCLUDE = re.compile(r"\{literalinclude\} (\S+)\n *:pyobject: (?:\w+\.)?(\w+)")
API = ("api", "contributing/reference")


def anchors(text):
    """Anchors of the headings."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_there(page, target):
    """Return True if the file and the heading of a link exist."""
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if re.match(r"\w+:", target):
        return True  # for ``-b linkcheck``
    return path.exists() and (not anchor or anchor in anchors(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    targets = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [target for target in targets if not is_there(page, target)] == []


def test_included_objects_exist():
    for page in (ROOT / "doc").rglob("*.md"):
        for path, name in INCLUDE.findall(page.read_text(encoding="utf-8")):
            source = (page.parent / path).read_text(encoding="utf-8")
            assert re.search(rf"\b(class|def) {name}\b", source), (page.name, path, name)


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
        f"{module.__name__}.{name}" for module in public_modules() for name in exported(module)
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
