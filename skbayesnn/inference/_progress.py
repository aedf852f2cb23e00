"""Who is told how far a fit is, and how.

The order of calls::

    with progress.over("starts", works) as step:    a stage of countable steps
        step(text)                                  one of them is completed
"""

from contextlib import contextmanager
from time import monotonic

import numpy as np

from skbayesnn.inference._deadline import NEVER

LONG = 10.0  # seconds; a stage that takes longer is announced
TELLING = 1.0  # seconds after which the speed of the first steps tells that of the others


class Stage:
    """A part of a fit that consists of steps.

    Parameters
    ----------
    name : str
    depth : int
        1 for the parts of a fit, 2 for parts of their steps, and on.
    works : sequence of float
        What steps to come are expected to take, in any unit.
    is_open : bool, default=False
        Whether there may be more of them.

    Attributes
    ----------
    n_done : int

    Examples
    --------
    >>> from skbayesnn.inference import Stage
    >>> stage = Stage("starts", 1, [1.0, 1.0, 2.0])
    >>> stage.n_done = 2
    >>> bool(stage.left < 0.1)  # both took hardly any time
    True
    """

    def __init__(self, name, depth, works, is_open=False):
        self.name, self.depth, self.works, self.is_open = name, depth, works, is_open
        self.n_done, self.begun = 0, monotonic()
        self.announced = False
        self._work = np.concatenate([[0.0], np.cumsum(works)])

    @property
    def seconds(self):
        """Since it began."""
        return monotonic() - self.begun

    @property
    def left(self):
        """Seconds that steps to come will take at the speed of those before; ``nan``: unknown."""
        if self.n_done >= len(self._work) or not self._work[self.n_done] > 0.0:
            return np.nan
        done = self._work[self.n_done]
        return self.seconds * (self._work[-1] - done) / done


class Progress:
    """Whoever is told how far a fit is. This one is told and says nothing.

    Examples
    --------
    >>> from skbayesnn.inference import Progress
    >>> with Progress().over("starts", [1.0, 1.0]) as step:
    ...     step("the first one is completed")
    """

    listens = False  # whether forecasts and texts are worth their time

    def __init__(self):
        self._depth = 0

    @contextmanager
    def over(self, name, works=(), is_open=False, seconds=np.nan):
        """A stage; what is entered is called, with a text or without, after each of its steps.

        Parameters
        ----------
        name : str
        works : sequence of float
        is_open : bool, default=False
            See `Stage`.
        seconds : float
            That it is expected to take.
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
        """A stage begins; it is expected to take some seconds, or ``nan``."""

    def step(self, stage, text):
        """One of its steps is completed; ``text`` may be ``None``."""

    def end(self, stage):
        """It has ended."""

    def say(self, text):
        """Something that is no step."""


class Lines(Progress):
    """Prints a line per step.

    Parameters
    ----------
    verbose : int
        Up to which depth stages are told of.
    deadline : Deadline
        Of the fit.

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

    def begin(self, stage, seconds):
        """Announce a long stage."""
        self._announce(stage, seconds)
        stage.announced |= bool(np.isfinite(seconds))

    def step(self, stage, text):
        """Print the text, with the time so far and what is left."""
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
        """Print a text where the steps of another stage would be told of."""
        if self._depth < self._verbose:
            print(text, flush=True)

    def _announce(self, stage, seconds):
        """Say once that a stage takes long."""
        seconds = min(seconds, self._deadline.left + stage.seconds)
        if seconds > LONG and stage.depth <= self._verbose and not stage.announced:
            stage.announced = True
            least = "at least " if stage.is_open else ""
            words = f"{stage.name}: this will take {least}about {_rounded(seconds)}"
            print(words, flush=True)


def _rounded(seconds):
    """Words for a rough estimate."""
    if seconds < 100.0:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 100.0 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"


def reporter(verbose, deadline=NEVER):
    """Who tells the user how far a fit is: `Lines`, or with ``verbose=0`` nobody.

    Parameters
    ----------
    verbose : int
    deadline : Deadline
    """
    return Lines(verbose, deadline) if verbose else Progress()
