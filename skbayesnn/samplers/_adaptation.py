"""Adaptation of step sizes during warm-up by dual averaging."""

from typing import NamedTuple

import numpy as np


class StepSize(NamedTuple):
    """State of dual averaging, one step size per chain (Hoffman & Gelman 2014, section 3.2).

    Attributes
    ----------
    centre : ndarray of shape (n_chains,)
        Value ``mu`` to which ``ln eps`` is shrunk at first.
    log_step, log_average, error : ndarray of shape (n_chains,)
    count : int
    """

    centre: np.ndarray
    log_step: np.ndarray
    log_average: np.ndarray
    error: np.ndarray
    count: int

    @classmethod
    def start(cls, step_size):
        """Begin around the given step sizes ``(n_chains,)``."""
        log_step = np.log(step_size)
        zero = np.zeros_like(log_step)
        return cls(log_step + np.log(2.0), log_step, log_step.copy(), zero, 0)

    @property
    def current(self):
        """Step sizes of the next transition."""
        return np.exp(self.log_step)

    @property
    def average(self):
        """Averaged step sizes, for use after the adaptation."""
        return np.exp(self.log_average)

    def averaging(self, log_step):
        """Replace the averages of all chains by a given value."""
        return self._replace(log_average=np.full_like(self.log_average, log_step))

    def updated(self, acceptance, target):
        """Update the state after a transition with the given acceptance probabilities."""
        count = self.count + 1
        rate = 1.0 / (count + 10.0)
        error = (1.0 - rate) * self.error + rate * (target - acceptance)
        log_step = self.centre - np.sqrt(count) / 0.05 * error
        share = count**-0.75
        log_average = share * log_step + (1.0 - share) * self.log_average
        return StepSize(self.centre, log_step, log_average, error, count)
