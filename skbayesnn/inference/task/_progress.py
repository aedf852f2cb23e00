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


class Stage:
    """Part of a fit that consists of steps.

    Parameters
    ----------
    depth : int
        Nesting depth: 1 for the parts of a fit, 2 for the parts of their steps, and so on.
    works : sequence of float
        Expected work of the steps to come, in any unit.
    is_open : bool, default=False
        Whether further steps may follow.
    """

    def __init__(self, name, depth, works, is_open=False):
        self.name, self.depth, self.works, self.is_open = name, depth, works, is_open
        self.n_done, self.begun = 0, monotonic()
        self.announced = False
        self._work = np.concatenate([[0.0], np.cumsum(works)])

    @property
    def seconds(self):
        """Seconds since the stage began."""
        return monotonic() - self.begun

    @property
    def left(self):
        """Seconds left, extrapolated from the steps completed so far; ``nan`` if unknown."""
        if self.n_done >= len(self._work) or not self._work[self.n_done] > 0.0:
            return np.nan
        done = self._work[self.n_done]
        return self.seconds * (self._work[-1] - done) / done


class Progress:
    """Receiver of progress reports; this base class discards them."""

    listens = False  # whether forecasts and texts are used, so that they are worth computing

    def __init__(self):
        self._depth = 0

    @contextmanager
    def over(self, name, works=(), is_open=False, seconds=np.nan):
        """Open a stage; the context yields a function to call after every step.

        Parameters
        ----------
        works : sequence of float
        seconds : float
            Expected duration of the stage.
        """
        self._depth += 1
        stage = Stage(name, self._depth, works, is_open)
        self.begin(stage, seconds)

        def step(text=None):
            stage.n_done += 1
            self.step(stage, text)

        try:
            yield step
        finally:
            self.end(stage)
            self._depth -= 1

    def begin(self, stage, seconds):
        """Report the beginning of a stage, with its expected seconds or ``nan``."""

    def step(self, stage, text):
        """Report a completed step; ``text`` may be ``None``."""

    def end(self, stage):
        """Report the end of a stage."""

    def say(self, text):
        """Report a text apart from any step."""


class Lines(Progress):
    """Progress reports printed as one line per step.

    With ``verbose=0`` nothing is printed, and the first long stage is logged.

    Parameters
    ----------
    verbose : int
        Largest depth of the stages that are reported.
    deadline : Deadline
        Deadline of the fit.

    Examples
    --------
    >>> from skbayesnn.inference import Lines
    >>> with Lines(verbose=1).over("starts", [1.0, 1.0]) as step:
    ...     step("start 1 of 2")
    start 1 of 2; 0 s so far
    """

    listens = True

    def __init__(self, verbose=1, deadline=NEVER):
        super().__init__()
        self._verbose, self._deadline, self._begun = int(verbose), deadline, monotonic()
        self._logged = False

    def begin(self, stage, seconds):
        """Announce a long stage."""
        self._announce(stage, seconds)
        stage.announced |= bool(np.isfinite(seconds))

    def step(self, stage, text):
        """Print the text, with the elapsed and the remaining time."""
        left = min(stage.left, self._deadline.left)  # may be nan
        if stage.n_done > 1 and stage.seconds > TELLING and stage.left > LONG:
            self._announce(stage, stage.seconds + stage.left)
        if text is None or stage.depth > self._verbose:
            return
        line = f"{text}; {monotonic() - self._begun:.0f} s so far"
        if left >= 1.0:
            line += f", about {left:.0f} s left for {stage.name}"
        print(line, flush=True)

    def say(self, text):
        """Print a text if the steps of a further stage would be reported."""
        if self._depth < self._verbose:
            print(text, flush=True)

    def _announce(self, stage, seconds):
        """Announce a long stage once."""
        seconds = min(seconds, self._deadline.left + stage.seconds)
        if not seconds > LONG or stage.depth > max(1, self._verbose) or stage.announced:
            return
        stage.announced = True
        least = "at least " if stage.is_open else ""
        words = f"{stage.name}: this will take {least}about {_rounded(seconds)}"
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
