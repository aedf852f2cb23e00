"""Test problems of the texts, shared by the scripts of this folder."""

import numpy as np


def robot_arm(n_rows, rng, noise=0.05):
    """Joint angles and positions of a two-joint arm (MacKay 1992, section 3.4; Neal 1992).

    Returns
    -------
    X : ndarray of shape (n_rows, 2)
    y : ndarray of shape (n_rows, 2)
        With Gaussian noise of standard deviation `noise`.
    """
    x1 = rng.uniform(0.453, 1.932, n_rows) * rng.choice([-1.0, 1.0], n_rows)
    x2 = rng.uniform(0.534, 3.142, n_rows)
    t1 = 2.0 * np.cos(x1) + 1.3 * np.cos(x1 + x2)
    t2 = 2.0 * np.sin(x1) + 1.3 * np.sin(x1 + x2)
    y = np.column_stack([t1, t2])
    return np.column_stack([x1, x2]), y + noise * rng.standard_normal(y.shape)


CENTRES = np.array(
    [[[-2.4, 0.6], [0.2, -1.6], [1.8, 1.9]], [[-0.6, 1.5], [2.2, -0.4], [-1.9, -1.6]]]
)
WIDTH = 0.75  # for which the best possible error is 13.5 %


def gaussian_classes(n_rows, rng):
    """Classes of equal probability, each a mixture of round Gaussians (MacKay 1992, chapter 5).

    Returns
    -------
    X : ndarray of shape (n_rows, 2)
    y : ndarray of int, shape (n_rows,)
    """
    y = rng.integers(len(CENTRES), size=n_rows)
    centre = CENTRES[y, rng.integers(CENTRES.shape[1], size=n_rows)]
    return centre + WIDTH * rng.standard_normal((n_rows, 2)), y
