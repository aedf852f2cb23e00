"""The public interface has types, which can be resolved and allow the defaults."""

import inspect
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

import skbayesnn
from tests.test_docstrings import is_building_block, public_items, public_members


def public_functions():
    """Functions, constructors and methods of public classes, by dotted name."""
    found = {}
    for name, item in public_items().items():
        if is_building_block(name):
            continue
        if not inspect.isclass(item):
            found[name] = item
            continue
        names = ["__init__"] if "__init__" in vars(item) else []
        for member in [*names, *dict.fromkeys(public_members(item))]:
            function = inspect.getattr_static(item, member)
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function):
                found[f"{name}.{member}"] = function
    return found


FUNCTIONS = public_functions()


def allows(hint, value):
    """Return True if a default value fits a type, as far as simple types say."""
    if get_origin(hint) in (Union, UnionType):
        return any(allows(part, value) for part in get_args(hint))
    if hint is Any or value is None:
        return hint in (NoneType, Any)
    if isinstance(hint, type) and isinstance(value, bool | int | float | str):
        return isinstance(value, hint) or (hint is float and isinstance(value, int))
    return True


@pytest.mark.parametrize("module", sorted({name.split(".")[1] for name in FUNCTIONS}))
def test_everything_has_a_type(module):
    for name, function in FUNCTIONS.items():
        if name.split(".")[1] == module:
            check_types(name, function)


def check_types(name, function):
    hints = get_type_hints(inspect.unwrap(function))
    parameters = inspect.signature(function).parameters.values()
    missing = [p.name for p in parameters if p.name not in ("self", "cls") and p.name not in hints]
    assert missing == [], name
    assert "return" in hints, name
    for p in parameters:
        if p.default is not p.empty and p.name in hints:
            assert allows(hints[p.name], p.default), p.name


def test_type_checkers_are_told():
    assert (Path(skbayesnn.__file__).parent / "py.typed").is_file()
