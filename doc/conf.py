"""Configuration of the site: ``python -m sphinx -W doc build/site`` in the top folder builds it."""

import re
import sys
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the package beside this folder is the one that is described

import skbayesnn  # noqa: E402

project = "skbayesnn"
author = "skbayesnn developers"
copyright = f"skbayesnn developers, version {skbayesnn.__version__}"
version = release = skbayesnn.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
default_role = "py:obj"  # names in single backquotes are links where this site describes them
nitpicky = True  # but only names of this package must be found
nitpick_ignore_regex = [("py:.*", r"(?!skbayesnn).*")]

# -- Pages and docstrings

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
python_maximum_signature_line_length = 90
smartquotes = False
toc_object_entries_show_parents = "hide"
autosummary_generate = True
numpydoc_show_class_members = False
plot_formats = [("png", 200)]
plot_html_show_formats = False
plot_html_show_source_link = False

# -- Gallery: every script runs; those not named below come in alphabetical order at the star

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": "",
    "within_subsection_order": ExplicitOrder(
        [
            "quickstart.py",
            "plot_regression_1d.py",
            "plot_interpolation.py",
            "plot_occam_hill.py",
            "plot_robot_arm.py",
            "plot_single_neuron.py",
            "plot_robot_arm_sampling.py",
            "*",
            "plot_noise_models.py",
            "plot_information_gain.py",
            "plot_active_learning.py",
        ]
    ),
    "abort_on_example_error": False,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("skbayesnn",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
}

# -- Appearance

html_theme = "pydata_sphinx_theme"
html_title = "skbayesnn"
html_static_path = ["_static"]
html_css_files = ["skbayesnn.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "skbayesnn"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
html_sidebars = {"index": [], "changes": [], "notation": []}

# -- Where there is internet, links to other projects: ``-t online``

if "tags" in globals() and tags.has("online"):  # noqa: F821
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
linkcheck_timeout = 20


def without_foreign_references(app, what, name, obj, options, lines):
    """Inherited docstrings refer to pages of scikit-learn's site; their words are kept."""
    if not (getattr(obj, "__module__", None) or "").startswith("skbayesnn"):
        lines[:] = [re.sub(r":ref:`([^<`]*[^<` ])[^`]*`", r"\1", line) for line in lines]


def setup(app):
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", without_foreign_references)
