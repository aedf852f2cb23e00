"""Configuration of the site: ``python -m sphinx -W doc build/site`` in the top folder builds it."""

import re
import sys
from itertools import chain
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the package beside this folder is the one that is described
sys.path.insert(0, str(HERE / "_extensions"))

import skbayesnn  # noqa: E402

project = "skbayesnn"
author = "skbayesnn developers"
copyright = f"skbayesnn developers, version {skbayesnn.__version__}"
version = release = skbayesnn.__version__

extensions = [
    "mathml",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_extensions", "_templates"]
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

# -- Gallery: every script runs, in this order

GALLERY = {
    "Start here": ["quickstart.py", "plot_regression_1d.py"],
    "Check and use error bars": [
        "plot_calibration.py",
        "plot_inverse_calibration.py",
        "plot_noise_models.py",
        "plot_moderated_outputs.py",
        "plot_reject_option.py",
        "plot_robot_arm.py",
        "plot_derivatives.py",
    ],
    "Choose a model": [
        "plot_occam_hill.py",
        "plot_robot_arm_units.py",
        "plot_classifier_evidence.py",
        "plot_model_averaging.py",
        "plot_interpolation.py",
        "plot_cluster.py",
    ],
    "Prepare and select inputs": [
        "plot_mixed_columns.py",
        "plot_class_table.py",
        "plot_measurement_errors.py",
        "plot_counts.py",
        "plot_error_ellipses.py",
        "plot_ard_feature_selection.py",
    ],
    "Decide where to measure next": [
        "plot_information_gain.py",
        "plot_active_learning.py",
        "plot_next_experiment.py",
        "plot_bayesian_optimisation.py",
    ],
    "Check a fit by sampling": [
        "plot_robot_arm_sampling.py",
        "plot_single_neuron.py",
        "plot_stochastic_dynamics.py",
        "plot_hyperparameter_ladder.py",
        "plot_arviz.py",
    ],
    "Understand the method": [
        "plot_prior_functions.py",
        "plot_choosing_alpha.py",
        "plot_sequential_learning.py",
        "plot_occam_hill_basis.py",
        "plot_sinusoid.py",
        "plot_laplace_approximation.py",
        "plot_neuron_posterior.py",
    ],
}
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": "",
    "within_subsection_order": ExplicitOrder(list(chain.from_iterable(GALLERY.values()))),
    "backreferences_dir": "api/backreferences",
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
    "doc_module": ("skbayesnn",),
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 448),
    "remove_config_comments": True,
    "write_computation_times": False,
}


def with_headings(app, docname, source):
    """A heading before the first thumbnail of every group of the gallery."""
    if docname != "auto_examples/index":
        return
    start = '.. raw:: html\n\n    <div class="sphx-glr-thumbcontainer"'
    pages = {scripts[0].removesuffix(".py"): title for title, scripts in GALLERY.items()}
    text, *thumbnails = source[0].split(start)
    for thumbnail in thumbnails:
        title = pages.get(re.search(r":doc:`/auto_examples/(\w+)`", thumbnail)[1])
        if title:
            text += f".. raw:: html\n\n    </div>\n\n{title}\n{'-' * len(title)}\n\n"
            text += '.. raw:: html\n\n    <div class="sphx-glr-thumbnails">\n\n'
        text += start + thumbnail
    source[0] = text


def with_folded_figures(app, docname, source):
    """Long code of a gallery page that draws and fits nothing opens at a click."""
    if not docname.startswith("auto_examples/"):
        return

    def folded(block):
        code = block[0]
        if "subplots(" not in code or ".fit(" in code or len(code.split("\n    ")) < 20:
            return code
        start, end = "<details><summary>Code of the figure</summary>", "</details>"
        return f".. raw:: html\n\n    {start}\n\n{code}\n.. raw:: html\n\n    {end}\n\n"

    source[0] = re.sub(
        r"^\.\. code-block:: Python\n(?:\n|    .*\n)+", folded, source[0], flags=re.M
    )


# -- Appearance

html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div.highlight-default pre, div.highlight-pycon pre, div.highlight-python pre"

html_theme = "pydata_sphinx_theme"
html_title = "skbayesnn: Bayesian neural networks for scikit-learn"
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
WIDE = ("index", "changes", "notation", "references", "from_the_texts")
html_sidebars = {page: [] for page in WIDE}

# -- Where there is internet, links to other projects: ``-t online``

if tags.has("online"):  # noqa: F821
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


def without_tuple_fields(app, what, name, obj, skip, options):
    """Fields of named tuples are described in the docstring of their class."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def without_last_blank_line(app, docname, source):
    """Doctests in Markdown need a blank line before the fence, readers do not."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app):
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", without_foreign_references)
    app.connect("autodoc-skip-member", without_tuple_fields)
    app.connect("source-read", with_headings)
    app.connect("source-read", with_folded_figures)
    app.connect("source-read", without_last_blank_line)
