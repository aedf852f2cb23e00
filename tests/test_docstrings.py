"""Public names have numpydoc docstrings that agree with their signatures; users', examples."""

import doctest
import inspect
import re

import pytest
from numpydoc.validate import validate

from skbayesnn._docs import documented
from tests.tools import exported, public_modules

pytestmark = pytest.mark.docs

OFF = {
    "ES01",  # an extended summary is not always needed
    "EX01",  # nor an example of every method; those of classes and functions are tested here
    "RT02",  # a returned value may have a name ("self : object", as in scikit-learn)
    "SA01",  # nor "See Also"
    "SA04",  # whose items may stand without a description
    "SS05",  # the summary may be a noun phrase that names what is returned
    "SS06",  # it may take two lines
}
# The packages that estimators are built from: what is documented must be right, but a parameter
# whose meaning is clear from the class or the module need not be repeated at every function, and
# examples are given where they show something.
BUILDING_BLOCKS = {
    f"skbayesnn.{name}" for name in ("inference", "network", "posterior", "predictive", "samplers")
}
OFF_IN_BUILDING_BLOCKS = {"PR01", "PR04", "PR07", "RT01", "RT03", "YD01"}


def public_members(cls):
    """Names of the public methods and properties that this package wrote for a class."""
    for owner in cls.__mro__:
        if not owner.__module__.startswith("skbayesnn"):
            continue
        for name, value in vars(owner).items():
            written = inspect.isroutine(value) or isinstance(value, property)
            routing = name.startswith("set_") and name.endswith("_request")  # scikit-learn's
            if written and not routing and not name.startswith("_") and not inherited(cls, name):
                yield name


def inherited(cls, name):
    """Return True if a method has its docstring from a parent."""
    owners = [owner for owner in cls.__mro__ if name in vars(owner)]
    return not vars(owners[0])[name].__doc__ and bool(inspect.getdoc(getattr(cls, name)))


def public_items():
    """Every public class and function by its dotted import name."""
    items = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in public_modules()
        for name in exported(module)
    }
    return {
        name: item
        for name, item in items.items()
        if inspect.isclass(item) or inspect.isroutine(item)
    }


def public_names():
    """Dotted import names of `public_items`, classes with their members."""
    names = []
    for name, item in public_items().items():
        names.append(name)
        if inspect.isclass(item):
            names += [f"{name}.{member}" for member in dict.fromkeys(public_members(item))]
    return names


def n_statements(item, name):
    """Number of statements in the examples of a docstring."""
    found = doctest.DocTestFinder(recurse=False).find(item, name, module=False, globs={})
    return sum(len(test.examples) for test in found)


def problems(item, off=OFF):
    """Errors that numpydoc finds in a name or a documented object, but for the codes in `off`."""
    return [f"{code}: {message}" for code, message in validate(item)["errors"] if code not in off]


@pytest.mark.parametrize("module", sorted({name.split(".")[1] for name in public_names()}))
def test_docstrings(module):
    found = {}
    for name in public_names():
        if name.split(".")[1] == module:
            off = OFF | OFF_IN_BUILDING_BLOCKS if is_building_block(name) else OFF
            found[name] = problems(name, off)
    assert {name: some for name, some in found.items() if some} == {}


def is_building_block(name):
    return ".".join(name.split(".")[:2]) in BUILDING_BLOCKS


def test_examples():
    names = {name: item for name, item in public_items().items() if not is_building_block(name)}
    assert [name for name, item in names.items() if n_statements(item, name) < 2] == []  # an import


def test_underlines_have_lines_of_their_own():
    docstrings = {name: inspect.getdoc(item) for name, item in public_items().items()}
    assert [name for name, text in docstrings.items() if re.search(r"\w -{4,}", text)] == []


def test_names_are_collected():
    names = public_names()
    assert "skbayesnn.EvidenceMLPRegressor" in names
    assert "skbayesnn.EvidenceMLPRegressor.fit" in names
    assert "skbayesnn.network.Network.layers" in names
    assert not [name for name in names if name.endswith((".get_params", "_request"))]


def test_shared_descriptions_are_added():
    class Pair:
        """Pair.

        Examples
        --------
        >>> Pair()
        """

        def swap(self, X, times, random_state=0):
            """Swap columns.

            Parameters
            ----------
            times : int
                How often.
            """

    documented("Pairs.\n\nAttributes\n----------\nn_ : int\n    Number.")(Pair)
    order = [Pair.swap.__doc__.index(f"{name} : ") for name in ("X", "times", "random_state")]
    assert order == sorted(order)
    assert Pair.__doc__.index("n_ : int\n    Number.") < Pair.__doc__.index("Examples")
