"""Deadlines of fits."""

from time import time
from typing import NamedTuple

import numpy as np

GRACE, LEAST_GRACE = 0.5, 1.0  # fraction of the time given, and seconds at least


class OutOfTime(Exception):
    """Exception raised where work is interrupted after the deadline."""


class Deadline(NamedTuple):
    """Time at which a fit is to end; never, by default.

    No new work starts after the deadline. A search for a minimum that the result needs may
    continue for a grace period of half the time given (one second at least), and is then
    interrupted.

    Attributes
    ----------
    at : float
        Deadline in seconds since the epoch, common to all machines that share the work.
    grace : float
        Length of the grace period in seconds.

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
        """Deadline a number of seconds from now; never if ``None``."""
        if seconds is None:
            return cls()
        return cls(time() + seconds, max(LEAST_GRACE, GRACE * seconds))

    @property
    def passed(self):
        """True if the deadline has passed."""
        return time() >= self.at

    @property
    def overdue(self):
        """True if the grace period has passed as well."""
        return time() >= self.at + self.grace

    @property
    def left(self):
        """Seconds until the deadline, not below zero; infinite if there is none."""
        return max(self.at - time(), 0.0)

    def with_grace(self):
        """Deadline at the end of the grace period."""
        return type(self)(self.at + self.grace)

    def part(self, share):
        """Deadline at which a share of the remaining time has passed."""
        return self if np.isinf(self.at) else self._replace(at=time() + share * self.left)


NEVER = Deadline()
