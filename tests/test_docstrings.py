"""Every public name has a numpydoc docstring that agrees with its signature."""

import importlib
import inspect
import pkgutil

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import skbayesnn

OFF = {
    "ES01",  # an extended summary is not always needed
    "EX01",  # nor an example
    "RT02",  # a returned value may have a name ("self : object", as in scikit-learn)
    "SA01",  # nor "See Also"
    "SA04",  # whose items may stand without a description
    "SS05",  # the summary may be a noun phrase that names what is returned
    "SS06",  # it may take two lines
}
# The packages that estimators are built from: what is documented must be right, but a parameter
# whose meaning is clear from the class or the module need not be repeated at every function.
BUILDING_BLOCKS = {
    f"skbayesnn.{name}" for name in ("inference", "network", "posterior", "predictive", "samplers")
}
OFF_IN_BUILDING_BLOCKS = {"PR01", "PR04", "PR07", "RT01", "RT03", "YD01"}


def public_modules():
    """`skbayesnn`, and its modules and subpackages whose name has no leading underscore."""
    yield skbayesnn
    for module in pkgutil.walk_packages(skbayesnn.__path__, "skbayesnn."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def public_members(cls):
    """Names of the public methods and properties that this package wrote for a class."""
    for owner in cls.__mro__:
        if not owner.__module__.startswith("skbayesnn"):
            continue
        for name, value in vars(owner).items():
            written = inspect.isroutine(value) or isinstance(value, property)
            routing = name.startswith("set_") and name.endswith("_request")  # scikit-learn's
            if written and not routing and not name.startswith("_"):
                yield name


def public_names():
    """Dotted import names of everything in ``__all__``, classes with their members."""
    names = []
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            item = getattr(module, name)
            if not (inspect.isclass(item) or inspect.isroutine(item)):
                continue
            names.append(f"{module.__name__}.{name}")
            if inspect.isclass(item):
                members = dict.fromkeys(public_members(item))
                names += [f"{module.__name__}.{name}.{member}" for member in members]
    return names


def problems(item, off=OFF):
    """What numpydoc finds wrong with a name or a documented object, without the codes in `off`."""
    return [f"{code}: {message}" for code, message in validate(item)["errors"] if code not in off]


@pytest.mark.parametrize("name", public_names())
def test_docstring(name):
    module = ".".join(name.split(".")[:2])
    off = OFF | OFF_IN_BUILDING_BLOCKS if module in BUILDING_BLOCKS else OFF
    assert not problems(name, off)


def test_names_are_collected():
    names = public_names()
    assert "skbayesnn.EvidenceMLPRegressor" in names
    assert "skbayesnn.EvidenceMLPRegressor.fit" in names
    assert "skbayesnn.network.Network.n_weights" in names
    assert not [name for name in names if name.endswith((".get_params", "_request"))]


def test_missing_parameter_is_found():
    def halve(value, times):
        """Halve a value.

        Parameters
        ----------
        value : float
            What to halve.

        Returns
        -------
        float
            The result.
        """
        return value / 2**times

    assert problems(get_doc_object(halve)) == ["PR01: Parameters {'times'} not documented"]
