"""Activation functions of the hidden units, with their first two derivatives."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr


class Activation(NamedTuple):
    """Hidden-unit non-linearity ``z = phi(a)``.

    Attributes
    ----------
    derivatives : callable
        ``derivatives(a, order)`` returns the tuple ``(phi(a), phi'(a), phi''(a))`` cut to
        ``order + 1`` entries, each of the shape of ``a``.
    odd : bool
        Whether ``phi(-a) = -phi(a)``: then a unit whose weights all change sign computes the
        same function, which doubles the number of equivalent minima (MacKay 1992, section 3.2).
    linear : bool
        Whether ``phi`` is linear: then hidden units can be rotated into each other freely.
    """

    derivatives: Callable
    odd: bool = False
    linear: bool = False


def _identity(a, order):
    return (a, np.ones_like(a), np.zeros_like(a))[: order + 1]


def _tanh(a, order):
    z = np.tanh(a)
    if order == 0:
        return (z,)
    slope = z * z
    np.subtract(1.0, slope, out=slope)
    if order == 1:
        return z, slope
    return z, slope, -2.0 * z * slope


def _logistic(a, order):
    z = expit(a)
    if order == 0:
        return (z,)
    slope = z * (1.0 - z)
    return (z, slope, slope * (1.0 - 2.0 * z))[: order + 1]


def _relu(a, order):
    slope = (a > 0).astype(a.dtype)
    return (a * slope, slope, np.zeros_like(a))[: order + 1]


def _silu(a, order):
    """Activation ``a sigmoid(a)``, also called swish (Elfwing, Uchibe & Doya 2018)."""
    s = expit(a)
    z = a * s
    if order == 0:
        return (z,)
    slope = s + z * (1.0 - s)
    bend = s * (1.0 - s) * (2.0 + a * (1.0 - 2.0 * s))
    return (z, slope, bend)[: order + 1]


def _gelu(a, order):
    """Activation ``a Phi(a)`` with the normal cdf ``Phi`` (Hendrycks & Gimpel 2016)."""
    cdf = ndtr(a)
    if order == 0:
        return (a * cdf,)
    pdf = np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi)
    return (a * cdf, cdf + a * pdf, pdf * (2.0 - a * a))[: order + 1]


ACTIVATIONS = {
    "identity": Activation(_identity, odd=True, linear=True),
    "tanh": Activation(_tanh, odd=True),
    "logistic": Activation(_logistic),
    "relu": Activation(_relu),
    "silu": Activation(_silu),
    "gelu": Activation(_gelu),
}
