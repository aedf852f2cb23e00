"""A time at which work that can be broken off ends."""

from time import time
from typing import NamedTuple

import numpy as np


class Deadline(NamedTuple):
    """When a fit is to end; never, by default.

    Attributes
    ----------
    at : float
        In seconds since the epoch, which are the same on all machines that share the work.

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
        return cls() if seconds is None else cls(time() + seconds)

    @property
    def passed(self):
        """Whether there is no time left."""
        return time() >= self.at
