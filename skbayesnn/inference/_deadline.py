"""A time at which work that can be broken off ends."""

from time import time
from typing import NamedTuple

import numpy as np

GRACE, LEAST_GRACE = 0.5, 1.0  # of the time given, and seconds, in which what is begun may end


class OutOfTime(Exception):
    """The deadline has passed."""


class Deadline(NamedTuple):
    """When a fit is to end; never, by default.

    Nothing is begun after it. What a result cannot do without, the way to a minimum, may take half
    as long again (a second at least), then it is broken off as well.

    Attributes
    ----------
    at : float
        In seconds since the epoch, which are the same on all machines that share the work.
    grace : float
        Seconds after it.

    Examples
    --------
    >>> from skbayesnn.inference import Deadline
    >>> Deadline().passed, Deadline.after(0.0).passed, Deadline.after(0.0).overdue
    (False, True, False)
    """

    at: float = np.inf
    grace: float = 0.0

    @classmethod
    def after(cls, seconds):
        """So many seconds from now; ``None``: never."""
        if seconds is None:
            return cls()
        return cls(time() + seconds, max(LEAST_GRACE, GRACE * seconds))

    @property
    def passed(self):
        """Whether there is no time left."""
        return time() >= self.at

    @property
    def overdue(self):
        """Whether the time after it has passed, too."""
        return time() >= self.at + self.grace

    @property
    def left(self):
        """Seconds until then; infinite if never, and not below zero."""
        return max(self.at - time(), 0.0)

    def with_grace(self):
        """One that passes when this one is overdue."""
        return type(self)(self.at + self.grace)

    def part(self, share):
        """When this share of the time that is left has passed."""
        return self if np.isinf(self.at) else self._replace(at=time() + share * self.left)


NEVER = Deadline()
