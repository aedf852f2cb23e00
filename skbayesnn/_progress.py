"""Time of a fit: its deadline, and reports of its progress."""

import logging
from contextlib import contextmanager
from time import monotonic, time
from typing import NamedTuple

import numpy as np

GRACE, MIN_GRACE = 0.3, 1.0  # fraction of the time given, and seconds at least
# seconds; longer fits and stages are announced, longer stages also at their start if verbose
LONG, SHORT = 10.0, 2.0
# fraction of a stage after which the time its steps took counts as much as the forecast
FORECAST_SHARE = 0.2
OPEN = 1.5  # factor of the time left where further networks or noise models are likely
EXTRAPOLATED_AFTER = 1.0  # seconds after which the speed of the first steps is extrapolated
LOGGER = logging.getLogger("skbayesnn")


class OutOfTime(Exception):
    """Exception raised where work is interrupted after the deadline."""


class Deadline(NamedTuple):
    """Time at which a fit is to end; never, by default.

    No new work starts after the deadline. A search for a minimum that the result needs may
    continue for a grace period of a third of the time given (one second at least), and is then
    interrupted, so that the fit ends within half as much time again.
    """

    # deadline in seconds since the epoch, common to all machines that share the work
    at: float = np.inf
    grace: float = 0.0  # length of the grace period in seconds

    @classmethod
    def after(cls, seconds):
        """Deadline a number of seconds from now; never if ``None``."""
        if seconds is None:
            return cls()
        return cls(time() + seconds, max(MIN_GRACE, GRACE * seconds))

    @property
    def passed(self):
        """True if the deadline has passed."""
        return time() >= self.at

    @property
    def left(self):
        """Seconds until the deadline, not below zero; infinite if there is none."""
        return max(self.at - time(), 0.0)

    def part(self, share):
        """Deadline at which a share of the remaining time has passed."""
        return self if np.isinf(self.at) else self._replace(at=time() + share * self.left)


NEVER = Deadline()


class Progress:
    """Progress reports of a fit, printed as one line per step.

    ``verbose`` is the largest depth of the stages that are reported: 1 for the parts of a fit, 2
    for the parts of their steps, and so on. With 0 nothing is printed, and a long fit is logged
    once, as soon as a stage of it shows that. By default nobody listens.
    """

    def __init__(self, verbose=None, deadline=NEVER):
        self.listens = verbose is not None  # whether forecasts and texts are worth computing
        self.depth = 0  # of the stage that is open
        self._verbose, self._deadline, self._begun = int(verbose or 0), deadline, monotonic()
        self._logged, self._later = False, []

    @property
    def elapsed(self):
        """Seconds since the fit began."""
        return monotonic() - self._begun

    @contextmanager
    def before(self, later):
        """Add to forecasts what ``later()`` expects for all that follows, in seconds."""
        self._later.append(later)
        try:
            yield
        finally:
            self._later.pop()

    @contextmanager
    def stage(self, name, works=(), is_open=False, seconds=np.nan):
        """Open a stage; the context yields a function to call after every step, with a text.

        The steps to come have expected ``works``, in any unit; if it ``is_open``, further steps may
        follow. The whole stage is expected to take some seconds.
        """
        self.depth += 1
        depth, begun, n_done = self.depth, monotonic(), 0
        work = np.append(0.0, np.cumsum(works))
        announced = self._announce(name, 0.0, seconds, is_open)

        def step(text=None):
            nonlocal n_done, announced
            n_done += 1
            spent, left = monotonic() - begun, 0.0 if 0 < len(work) - 1 <= n_done else np.nan
            if n_done < len(work) and work[n_done] > 0.0:  # extrapolated from the steps so far
                share = work[n_done] / work[-1]
                pace = spent / share
                if np.isfinite(seconds):
                    pace = (spent + FORECAST_SHARE * seconds) / (share + FORECAST_SHARE)
                left = pace * (1.0 - share)
            if not announced and n_done > 1 and spent > EXTRAPOLATED_AFTER:
                announced = self._announce(name, spent, left, is_open)
            if text is None or depth > self._verbose:
                return
            line = f"{text}; {self.elapsed:.0f} s so far"
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

    def _announce(self, name, spent, left, is_open):
        """Announce a stage, or log the forecast of the fit, if it is long; return whether it is."""
        # without output any stage may show a long fit
        if not self.listens or self._logged or self.depth > self._verbose > 0 or np.isnan(left):
            return False
        is_part = is_open or self.depth > 1
        if not self._verbose:
            name, spent = "fit", self.elapsed
            if is_part and spent < LONG:  # its time depends on the size that is to be chosen
                return False
            left += sum(later() for later in self._later)
        least = SHORT if self._verbose and spent == 0.0 else LONG
        if left == 0.0 or spent + min(left, self._deadline.left) <= least:
            return False
        seconds = spent + min(OPEN * left if is_part else left, self._deadline.left)
        words = f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60:.0f} minutes"
        words = f"{name}: this will take about {words}"
        if self._verbose:
            print(words, flush=True)
        else:
            self._logged = True
            LOGGER.warning("%s (verbose=1 reports more, max_time sets a limit)", words)
        return True
