"""Class probabilities over two inputs."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier
from skbayesnn.displays import ModeratedBoundaryDisplay
from skbayesnn.displays._display import COLORS, rgb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 2)) * [1.0, 20.0]
LABELS = np.where(X[:, 0] + X[:, 1] / 20 + 0.5 * RNG.standard_normal(50) > 0, "yes", "no")


@cache
def fitted(engine="evidence"):
    if engine == "evidence":
        return EvidenceMLPClassifier((2,), n_restarts=1, random_state=0).fit(X, LABELS)
    few = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "evidence": False}
    return HMCMLPClassifier((2,), random_state=0, **few).fit(X, LABELS)


@pytest.mark.parametrize("engine", ["evidence", "sampling"])
def test_drawn_numbers_are_the_estimators(engine, readable):
    model = fitted(engine)
    display = ModeratedBoundaryDisplay.from_estimator(model, X, LABELS, grid_resolution=12)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_allclose(grid.min(axis=0), X.min(axis=0) - 0.2 * np.ptp(X, axis=0))
    assert_allclose(grid.max(axis=0), X.max(axis=0) + 0.2 * np.ptp(X, axis=0))
    for moderated, values in ((False, display.most_probable), (True, display.moderated)):
        expected = model.predict_proba(grid, moderated=moderated)[:, 1]
        assert_allclose(values.ravel(), expected)
    assert len(display.axes_) == 2
    readable(display)


def test_contours_lie_where_the_probability_has_their_level():
    display = ModeratedBoundaryDisplay.from_estimator(fitted(), X, levels=[0.25, 0.5])
    for contours, moderated in zip(display.contours_, (False, True), strict=True):
        assert_array_equal(contours.levels, [0.25, 0.5])
        for path, level in zip(contours.get_paths(), contours.levels, strict=True):
            p = fitted().predict_proba(path.vertices, moderated=moderated)[:, 1]
            assert_allclose(p, level, atol=0.01)


def test_points_are_marked_by_class():
    display = ModeratedBoundaryDisplay.from_estimator(fitted(), X, LABELS, class_of_interest="no")
    inside, outside = display.data_[:2]
    assert_array_equal(np.column_stack(inside.get_data()), X[LABELS == "no"])
    assert_array_equal(np.column_stack(outside.get_data()), X[LABELS == "yes"])
    assert [line.get_label() for line in display.data_[:2]] == ["no", "not no"]
    assert_allclose(
        display.moderated[0, 0],
        fitted().predict_proba([[display.xx0[0, 0], display.xx1[0, 0]]])[0, 0],
    )


def test_overlay_in_one_axes():
    _, ax = plt.subplots()
    display = ModeratedBoundaryDisplay.from_estimator(fitted(), X, LABELS, ax=ax)
    assert len(display.contours_) == 2
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["most probable", "moderated", "yes", "not yes"]


def test_flat_probabilities_draw_without_contours_or_warning(readable):
    xx0, xx1 = np.meshgrid(np.arange(4.0), np.arange(4.0))
    flat = np.full((4, 4), 0.5) + 1e-3 * xx0
    display = ModeratedBoundaryDisplay(xx0, xx1, flat, flat).plot(levels=[0.1, 0.9])
    assert all(len(np.concatenate(c.allsegs)) == 0 for c in display.contours_)
    readable(display)


def test_two_of_many_inputs_and_one_of_many_classes():
    iris = load_iris(as_frame=True)
    model = make_pipeline(StandardScaler(), EvidenceMLPClassifier((2,), n_restarts=1))
    model.set_params(evidencemlpclassifier__random_state=0).fit(iris.data, iris.target)
    names = iris.data.columns
    display = ModeratedBoundaryDisplay.from_estimator(
        model,
        iris.data,
        iris.target,
        features=(names[3], names[0]),
        class_of_interest=1,
        fixed={names[1]: 3.0},
        grid_resolution=5,
    )
    grid = pd.DataFrame(
        {
            names[0]: display.xx1.ravel(),
            names[1]: 3.0,
            names[2]: iris.data[names[2]].median(),
            names[3]: display.xx0.ravel(),
        }
    )
    assert_allclose(display.moderated.ravel(), model.predict_proba(grid)[:, 1])
    assert display.axes_[0].get_xlabel() == names[3]
    assert display.axes_[0].get_ylabel() == names[0]
    assert display.class_name == "class 1"


@pytest.mark.parametrize("one_axes", [False, True])
def test_regions_of_three_classes(one_axes, readable):
    noise = np.random.default_rng(7).standard_normal(50)
    y = np.digitize(X[:, 0] + 0.4 * noise, [-0.5, 0.5])
    names = np.array(["a", "b", "c"])[y]
    model = EvidenceMLPClassifier((2,), n_restarts=1, random_state=0).fit(X, names)
    ax = plt.subplots(layout="constrained")[1] if one_axes else None
    display = ModeratedBoundaryDisplay.from_estimator(model, X, names, grid_resolution=40, ax=ax)
    assert display.class_name == ("a", "b", "c")
    assert display.moderated.shape == display.most_probable.shape == (40, 40, 3)
    n_panels = 1 if one_axes else 2
    assert len(display.contours_) == len(display.data_) == 3 * n_panels
    for contours, k in zip(display.contours_[-3:], range(3), strict=True):
        for path in contours.get_paths():  # where the class is as probable as the best other one
            p = model.predict_proba(path.vertices)
            others = np.delete(p, k, axis=1).max(axis=1)
            assert_allclose(p[:, k], others, atol=0.02)
    for line, name in zip(display.data_[:3], "abc", strict=True):
        assert line.get_label() == name
        assert_array_equal(np.column_stack(line.get_data()), X[names == name])
    display.figure_.canvas.draw()
    (mesh,) = (c for c in display.axes_[-1].collections if hasattr(c, "get_coordinates"))
    shades = np.reshape(mesh.get_facecolor(), (40, 40, -1))[..., :3]
    of_class = [[1.0 - 0.75 * (1.0 - part) for part in rgb(color)] for color in COLORS[:3]]
    assert_allclose(shades, display.moderated @ of_class, atol=1e-6)
    if not one_axes:
        readable(display)


def test_points_of_an_unknown_class_are_refused():
    y = np.arange(50) % 3
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"does not know: \[7\]"):
        ModeratedBoundaryDisplay.from_estimator(model, X, np.where(y == 2, 7, y))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_classifiers_have_one_panel(n_classes, readable):
    y = np.arange(50) % n_classes
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    display = ModeratedBoundaryDisplay.from_estimator(model, X, y, grid_resolution=7)
    assert display.most_probable is None
    assert len(display.axes_) == 1
    assert display.axes_[0].get_title() == "LogisticRegression"
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    p = model.predict_proba(grid)
    expected = p[:, 1] if n_classes == 2 else p
    assert_allclose(display.moderated.reshape(expected.shape), expected)
    readable(display)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_of_interest": "maybe"}, "must be one of no, yes; got 'maybe'"),
        ({"features": (0, 0)}, "two different ones"),
        ({"features": (0, -2)}, "two different ones"),
        ({"features": (0,)}, "two different ones"),
        ({"features": (0, 2)}, "no feature 2"),
        ({"y": LABELS[:-1]}, "inconsistent"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ModeratedBoundaryDisplay.from_estimator(fitted(), X, **options)


def test_wrong_number_of_features():
    with pytest.raises(ValueError, match="3 features"):
        ModeratedBoundaryDisplay.from_estimator(fitted(), np.column_stack([X, X[:, 0]]))


def test_regressors_are_refused():
    model = EvidenceMLPRegressor((), random_state=0).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="needs a classifier"):
        ModeratedBoundaryDisplay.from_estimator(model, X)
