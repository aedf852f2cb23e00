"""The release: versions, the source distribution, links that work on a package index."""

import inspect
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from email.message import Message
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from sklearn.base import BaseEstimator

import skbayesnn
from skbayesnn import EvidenceMLPRegressor, _docs, _versions
from skbayesnn.posterior import instructions

ROOT = Path(__file__).parents[1]
URL = "https://github.com/someone/skbayesnn"
RELEASED = ("CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
FOLDERS = ("doc", "examples", "skbayesnn", "tests")
MODULES = (
    "skbayesnn.basis",
    "skbayesnn.compose",
    "skbayesnn.estimators",
    "skbayesnn.model_selection",
    "skbayesnn",  # the last name of a class is that of its page
)
MADE = re.compile(r"__pycache__|\.(so|pyd|pyc)$|doc/(auto_examples|api/generated)|/_core\.c$")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def field(text, name):
    return re.search(rf'^{name}: "?(.*?)"?$', text, re.M)[1]


@pytest.fixture
def prepare():
    path = ROOT / "doc" / "contributing" / "prepare_release.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture
def copied(tmp_path):
    """The repository without what is made from it."""
    for name in RELEASED:
        shutil.copy(ROOT / name, tmp_path / name)
    for name in FOLDERS:
        ignore = shutil.ignore_patterns(
            "__pycache__", "*.so", "*.pyd", "generated", "auto_examples"
        )
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    return tmp_path


def test_one_version():
    given = project()["version"]
    assert given == version("skbayesnn")
    assert field((ROOT / "CITATION.cff").read_text("utf-8"), "version") == given
    newest = re.search(
        r"^## (\S+) \((.+)\)$", (ROOT / "doc" / "changes.md").read_text("utf-8"), re.M
    )
    assert newest[1] == given


def test_addresses_are_everywhere_or_nowhere():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert ("urls" in project()) == ("repository-code:" in citation)


def test_a_copy_is_prepared_for_a_package_index(prepare, copied):
    prepare.prepare(copied, f"{URL}/")
    urls = tomllib.loads((copied / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert (
        urls["Source"]
        == URL
        == field((copied / "CITATION.cff").read_text("utf-8"), "repository-code")
    )
    assert urls["Documentation"] == "https://someone.github.io/skbayesnn"
    before, after = ((root / "README.md").read_text("utf-8") for root in (ROOT, copied))
    links = re.findall(r"\]\(([^)\s]+)\)", before)
    there = re.findall(r"\]\(([^)\s]+)\)", after)
    assert len(there) == len(links)
    tag = f"v{project()['version']}"
    for old, new in zip(links, there, strict=True):
        if old.startswith(("https:", "#")):
            assert new == old
            continue
        kind = "raw" if old.endswith((".png", ".svg")) else "blob"
        assert new == f"{URL}/{kind}/{tag}/{old}"
        assert (ROOT / old.partition("#")[0]).exists()
    with pytest.raises(SystemExit, match="URLs already"):
        prepare.prepare(copied, URL)


@pytest.mark.parametrize("url", ["skbayesnn", "https://github.com/someone", "http://a.b/c/d"])
def test_only_addresses_of_repositories(prepare, copied, url):
    with pytest.raises(SystemExit, match="not the address"):
        prepare.prepare(copied, url)


def test_other_links_are_left_alone(prepare):
    text = "[a](https://x.org/a) [b](#b) [c](mailto:a@b) [d](d.md#e) ![f](g/h.png) [i](../j)"
    assert prepare.absolute(text, URL, "v1") == (
        f"[a](https://x.org/a) [b](#b) [c](mailto:a@b) [d]({URL}/blob/v1/d.md#e) "
        f"![f]({URL}/raw/v1/g/h.png) [i]({URL}/blob/v1/../j)"
    )


def test_the_html_of_estimators_links_to_their_pages(monkeypatch):
    estimators = {
        getattr(module, name): f"{module.__name__}.{name}"
        for module in map(import_module, MODULES)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
        and issubclass(getattr(module, name), BaseEstimator)
    }
    assert len(estimators) > 15
    for address in ("https://someone.github.io/skbayesnn", ""):
        metadata = Message()
        metadata["Project-URL"] = f"Source, {URL}"
        if address:
            metadata["Project-URL"] = f"Documentation, {address}"
        monkeypatch.setattr(_docs, "metadata", lambda name, metadata=metadata: metadata)
        _docs.address_of_site.cache_clear()
        for estimator, name in estimators.items():
            link = estimator.__new__(estimator)._get_doc_link()
            assert link == (f"{address}/api/generated/{name}.html" if address else "")
        assert ("skbayesnn.EvidenceMLPRegressor.html" in EvidenceMLPRegressor()._repr_html_()) == (
            address != ""
        )
    _docs.address_of_site.cache_clear()


@pytest.mark.parametrize("core", ["avx2", None])
def test_versions_say_which_core_is_in_use(monkeypatch, capsys, core):
    monkeypatch.setattr(_versions, "instructions", lambda: core)
    skbayesnn.show_versions()
    shown = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert shown["compiled core"] == (core or _versions.NO_CORE)
    assert {name: shown[name] for name in ("skbayesnn", "numpy", "scipy")} == {
        name: version(name) for name in ("skbayesnn", "numpy", "scipy")
    }
    assert any(name.lower().startswith(("openblas", "mkl", "blis", "accelerate")) for name in shown)


def test_modules_for_users_are_imported_on_first_use():
    code = (
        "import sys, skbayesnn; assert 'skbayesnn.metrics' not in sys.modules;"
        "skbayesnn.metrics.sobol_indices; skbayesnn.displays.PredictiveDisplay;"
        "assert 'matplotlib' not in sys.modules; print(*dir(skbayesnn))"
    )
    names = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    offered = names.stdout.split()
    assert set(skbayesnn.__all__) <= set(offered)
    assert {"metrics", "displays", "model_selection"} <= set(offered)
    assert not {"inference", "network", "posterior", "samplers"} & set(offered)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = skbayesnn.nothing


@pytest.mark.parametrize("kind", ["msvc", "unix"])
def test_on_windows_the_core_is_compiled_by_clang(monkeypatch, kind):
    dist = pytest.importorskip("setuptools").Distribution()
    setup = runpy.run_path(str(ROOT / "setup.py"))
    monkeypatch.setattr("shutil.which", lambda name: f"C:/LLVM/bin/{name}.exe")
    command = setup["BuildCore"](dist)
    command.extensions, begun = [], []
    command.compiler = SimpleNamespace(
        compiler_type=kind, cc="cl.exe", initialize=lambda: begun.append(kind)
    )
    command.build_extensions()
    assert command.compiler.cc == ("C:/LLVM/bin/clang-cl.exe" if kind == "msvc" else "cl.exe")
    assert begun == (["msvc"] if kind == "msvc" else [])


def test_a_wheel_passes_only_with_the_compiled_core(monkeypatch):
    if instructions() is None:
        pytest.skip("needs the compiled core")
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    name, option, code = shlex.split(tools["cibuildwheel"]["test-command"])
    assert (name, option) == ("python", "-c")
    exec(code)
    monkeypatch.setattr("skbayesnn.posterior.instructions", lambda: None)
    with pytest.raises(AssertionError):
        exec(code)


@pytest.mark.slow
def test_source_distribution_has_all_it_needs(copied):
    """To compile, to test, and to build the site."""
    setuptools = pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("Cython")
    assert setuptools
    build = "import setuptools.build_meta as b; b.build_sdist('made')"
    subprocess.run([sys.executable, "-c", build], cwd=copied, check=True, capture_output=True)
    (archive,) = (copied / "made").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    wanted = {str(path.relative_to(ROOT).as_posix()) for path in files}
    wanted = {name for name in wanted if not MADE.search(name)} | set(RELEASED)
    assert wanted - names == set()
    assert not [name for name in names if MADE.search(name)]
