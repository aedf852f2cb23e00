"""Descriptions of parameters and attributes that several functions or classes share.

Each is written once. A docstring holds what is special to a function or class, and `documented`
adds the rest, so that ``help`` is complete. `LinkToSite` links estimators to their pages.
"""

import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import metadata
from typing import Any, TypeVar

ORDER = "Parameters Attributes Returns Yields Raises See Also Notes References Examples"
HEADING = re.compile(r"\n\n([A-Z]\w+(?: \w+)?)\n-{3,}\n")  # of a section of numpydoc
SHARED = """Rows, targets and draws.

Parameters
----------
X : array-like of shape (n_samples, n_features)
    Inputs.
y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Targets.
y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Targets.
sample_weight : array-like of shape (n_samples,), optional
    Weight of each row: 2 equals repeating the row, 0 leaving it out.
measurement_std : float or array-like of shape (n_samples,), optional
    Known standard deviations of measurement errors at these rows, in units of y, which add to the
    noise; of shape (n_samples, n_outputs) if outputs differ. Errors of the training rows do not
    carry over to other rows. Densities need them if the model was fitted with ``noise=0``.
exposure : float or array-like of shape (n_samples,), optional
    Exposures of counts, which multiply the predicted rates; by default 1.
censored : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
    Targets of which only a limit is known: -1 if the value lies below ``y``, 1 if it lies above, 0
    where it was measured; the number 0 if all were. A limit has the probability of the values that
    it allows in place of a density.
n_samples : int, default=1
    Number of functions; each is drawn jointly over all rows.
random_state : int, RandomState instance or None, default=0
    Seed of the draws.
"""
FITTED = """Methods that fit.

Returns
-------
self : object
    The fitted estimator.
"""

Documented = TypeVar("Documented", bound=Callable[..., Any])


@cache
def address_of_site() -> str:
    """Address of the documentation in the metadata of the installed package, or ""."""
    urls = metadata("skbayesnn").get_all("Project-URL") or []
    return dict(url.split(", ", 1) for url in urls).get("Documentation", "")


class LinkToSite:
    """Mixin of estimators whose HTML representation links to the page of their class."""

    _doc_link_module = "skbayesnn"

    @property
    def _doc_link_template(self):
        package, module = type(self).__module__.split(".")[:2]
        name = type(self).__name__
        public = package if hasattr(sys.modules[package], name) else f"{package}.{module}"
        site = address_of_site()
        return f"{site}/api/generated/{public}.{name}.html" if site else ""


def documented(*texts: str) -> Callable[[Documented], Documented]:
    """Make a decorator that adds shared descriptions to docstrings.

    ``texts`` are numpydoc docstrings beside `SHARED`; the first one that has a description counts.
    A function, and every method of a class, gets its undescribed parameters, and what it returns
    and raises if the first text says so; a class gets all attributes and the first text's sources.
    """
    known = [_sections(text) for text in (SHARED, *texts[::-1])]
    parameters, attributes = (
        {name: entry for sections in known for name, entry in _entries(sections, title)}
        for title in ("Parameters", "Attributes")
    )
    results, sources = (
        {title: known[-1][title] for title in titles if title in known[-1]}
        for titles in (("Returns", "Raises"), ("References",))
    )

    def complete(item):
        if not inspect.isclass(item):
            item.__doc__ = _completed(item, parameters, {}, results)
            return item
        for member in vars(item).values():
            method = getattr(member, "fn", getattr(member, "__func__", member))
            if inspect.isfunction(method) and not method.__name__.startswith("_"):
                method.__doc__ = _completed(method, parameters, {}, results)
        item.__doc__ = _completed(item, parameters, attributes, sources)
        return item

    return complete


def _sections(text):
    """Split a docstring into a dict of its sections; the text above them has the name ""."""
    head, *rest = HEADING.split(inspect.cleandoc(text))
    return {"": head} | dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(sections, title):
    """List pairs of a name and the entry of a section that describes it, perhaps with others."""
    for entry in filter(None, re.split(r"\n(?=\S)", sections.get(title, "").strip())):
        for name in entry.split("\n")[0].split(" : ")[0].split(", "):
            yield name.lstrip("*"), entry.rstrip()


def _completed(item, parameters, attributes, results):
    """Docstring with the entries that it lacks, parameters in the order of the signature."""
    if not item.__doc__:
        return item.__doc__
    sections = _sections(item.__doc__)
    own = dict(_entries(sections, "Parameters"))
    names = [*inspect.signature(item).parameters, *own]  # a dataclass gets its signature later
    parameters = [some[name] for name in names if name in (some := parameters | own)]
    had = dict(_entries(sections, "Attributes"))
    more = [entry for name, entry in attributes.items() if name not in had]
    sections = results | sections
    sections["Parameters"] = "\n".join(dict.fromkeys(parameters))
    sections["Attributes"] = "\n".join(dict.fromkeys([*had.values(), *more]))
    complete = {title: sections[title] for title in sorted(sections, key=ORDER.find)}
    return (
        "\n\n".join(
            f"{title}\n{'-' * len(title)}\n{text.strip()}" if title else text
            for title, text in complete.items()
            if text
        )
        + "\n"
    )
