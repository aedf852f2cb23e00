"""Forecasts of the time of default fits, beside the time that they take, in processor seconds.

A fit logs its forecast once, if it expects to take more than ten seconds. The ratio of both is to
be within a factor of two; without a forecast, the fit takes less than ten seconds, or hardly more.
Data are those of `many_rows.py`, and smooth, noisy and wide ones that are made here.

    SKBAYESNN_DATA=... python tests/benchmarks/forecasts.py
    python tests/benchmarks/forecasts.py --only "friedman 5,100" "classes 6,000 x 12"
"""

import argparse
import logging
import re
import time
from functools import partial

import _data  # before numpy
import many_rows
import numpy as np
from reporting import timed_fit

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, _progress


def made(n, n_features, noise):
    """Sum of a sine and a product of inputs, with noise of a standard deviation (at zero inputs).

    More than 20 inputs have small linear effects; noise above 0.5 grows along the first input.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * X[:, 20:].sum(axis=1)
    scale = noise * np.exp(0.3 * X[:, 0] * (noise > 0.5))
    return X, f + scale * rng.standard_normal(n)


CASES = {
    f"friedman {n:,}": partial(many_rows.friedman, n)
    for n in (1200, 2000, 4900, 5100, 6000, 20_000)
} | {
    "smooth 1,500 x 4": partial(made, 1500, 4, 0.1),
    "smooth 10,000 x 4": partial(made, 10_000, 4, 0.1),
    "noisy 3,000 x 8": partial(made, 3000, 8, 1.0),
    "noisy 8,000 x 8": partial(made, 8000, 8, 1.0),
    "wide 1,500 x 60": partial(made, 1500, 60, 0.3),
    "wide 6,000 x 60": partial(made, 6000, 60, 0.3),
    **{f"sines {n:,}": partial(many_rows.sines, n) for n in (5000, 10_000, 100_000)},
    "classes 1,500 x 8": partial(many_rows.made_classes, 1500, 8, 2),
    "classes 6,000 x 12": partial(many_rows.made_classes, 6000, 12, 3),
    "classes 12,000 x 15": partial(many_rows.made_classes, 12_000, 15, 5),
    **{name: partial(_data.split, name) for name in ("power", "kin8nm", "elevators")},
}


class Forecast(logging.Handler):
    """Receiver of the forecast of a fit: processor seconds before it, and seconds forecast."""

    def __init__(self):
        super().__init__()
        self.begun, self.told = time.process_time(), None

    def emit(self, record):
        """Read the forecast."""
        number, unit = re.search(r"about (\d+) (s|minutes)", record.getMessage()).groups()
        seconds = float(number) * (60.0 if unit == "minutes" else 1.0)
        self.told = time.process_time() - self.begun, seconds


def compare(name):
    """Print the line of the table of one case."""
    X, y = CASES[name]()[:2]
    kind = EvidenceMLPClassifier if name.startswith("classes") else EvidenceMLPRegressor
    forecast = Forecast()
    _progress.LOGGER.addHandler(forecast)
    model, seconds = timed_fit(kind(random_state=0), X, y)
    _progress.LOGGER.removeHandler(forecast)
    told = "| |" if forecast.told is None else "{:.1f} | {:.0f} |".format(*forecast.told)
    print(f"| {name} | {model.hidden_layer_sizes_} | {told} {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    _progress.monotonic = time.process_time  # forecasts are of elapsed time, on an idle machine
    _progress.LOGGER.propagate = False
    print("| data | chosen | told after | forecast | seconds |")
    print("|---|---|---|---|---|")
    for case in parser.parse_args().only:
        compare(case)
