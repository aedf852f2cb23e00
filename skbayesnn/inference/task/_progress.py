"""Progress reports of a fit.

The order of calls::

    with progress.over("starts", works) as step:    begins a stage of countable steps
        step(text)                                  reports a completed step
"""

import logging
from contextlib import contextmanager
from time import monotonic

import numpy as np

from skbayesnn.inference.task._deadline import NEVER

LONG = 10.0  # seconds; a stage that takes longer is announced
TELLING = 1.0  # seconds after which the speed of the first steps is extrapolated
LOGGER = logging.getLogger("skbayesnn")


class Progress:
    """Progress reports of a fit, printed as one line per step.

    Parameters
    ----------
    verbose : int, optional
        Largest depth of the stages that are reported: 1 for the parts of a fit, 2 for the parts of
        their steps, and so on. With 0 nothing is printed, and the first long stage is logged. By
        default nobody listens.
    deadline : Deadline
        Deadline of the fit.

    Examples
    --------
    >>> from skbayesnn.inference import Progress
    >>> with Progress(verbose=1).over("starts", [1.0, 1.0]) as step:
    ...     step("start 1 of 2")
    start 1 of 2; 0 s so far
    """

    def __init__(self, verbose=None, deadline=NEVER):
        self.listens = verbose is not None  # whether forecasts and texts are worth computing
        self.depth = 0  # of the stage that is open
        self._verbose, self._deadline, self._begun = int(verbose or 0), deadline, monotonic()
        self._logged = False

    @contextmanager
    def over(self, name, works=(), is_open=False, seconds=np.nan):
        """Open a stage; the context yields a function to call after every step, with a text.

        Parameters
        ----------
        name : str
        works : sequence of float
            Expected work of the steps to come, in any unit.
        is_open : bool
            Whether further steps may follow.
        seconds : float
            Expected duration of the stage.
        """
        self.depth += 1
        depth, begun, n_done = self.depth, monotonic(), 0
        work, announced = np.append(0.0, np.cumsum(works)), bool(np.isfinite(seconds))
        self._announce(name, min(seconds, self._deadline.left), is_open)

        def step(text=None):
            nonlocal n_done, announced
            n_done += 1
            seconds, left = monotonic() - begun, np.nan
            if n_done < len(work) and work[n_done] > 0.0:  # extrapolated from the steps so far
                left = seconds * (work[-1] - work[n_done]) / work[n_done]
            if not announced and n_done > 1 and seconds > TELLING and left > LONG:
                announced = True
                self._announce(name, seconds + min(left, self._deadline.left), is_open)
            if text is None or depth > self._verbose:
                return
            line = f"{text}; {monotonic() - self._begun:.0f} s so far"
            left = min(left, self._deadline.left)  # may be nan
            if left >= 1.0:
                line += f", about {left:.0f} s left for {name}"
            print(line, flush=True)

        try:
            yield step
        finally:
            self.depth -= 1

    def say(self, text):
        """Print a text if the steps of a further stage would be reported."""
        if self.depth < self._verbose:
            print(text, flush=True)

    def _announce(self, name, seconds, is_open):
        """Announce a stage if it is long."""
        if not (self.listens and seconds > LONG and self.depth <= max(1, self._verbose)):
            return
        least = "at least " if is_open else ""
        words = f"{name}: this will take {least}about {_rounded(seconds)}"
        if self._verbose:
            print(words, flush=True)
        elif not self._logged:
            self._logged = True
            LOGGER.warning("%s (verbose=1 reports more, max_time sets a limit)", words)


def _rounded(seconds):
    """Format a duration as a rough estimate."""
    if seconds < 100.0:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 100.0 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
