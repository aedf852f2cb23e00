"""A time at which work that can be broken off ends."""

from time import monotonic
from typing import NamedTuple

import numpy as np


class Deadline(NamedTuple):
    """When a fit is to end; never, by default.

    Attributes
    ----------
    at : float
        Seconds of the clock that all processes of a machine share.

    Examples
    --------
    >>> from skbayesnn.inference import Deadline
    >>> Deadline().passed, Deadline.after(0.0).passed
    (False, True)
    """

    at: float = np.inf

    @classmethod
    def after(cls, seconds):
        """So many seconds from now; ``None``: never."""
        return cls() if seconds is None else cls(monotonic() + seconds)

    @property
    def passed(self):
        """Whether there is no time left."""
        return monotonic() >= self.at
