"""Active learning: chosen measurements against random ones, as learning curves.

The next measurements come from a pool of inputs: random ones, those with the largest error bars
(total gain, with updates inside a batch), or those that tell most about the region of interest
(MacKay 1992, equation 4.13), which is smaller than the pool. The error is that of the predictions
there, root mean squared. All strategies start from the same rows and get the same noise::

    python tests/benchmarks/active_learning.py --problems curve --repetitions 3
"""

import argparse

import numpy as np
from problems import robot_arm
from reporting import counted_warnings, print_table

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning import select

STRATEGIES = ("random", "error bar", "mean marginal")
SIZES = {"curve": (12, 3, 42), "robot arm": (30, 10, 110)}  # first rows, batch, last rows
N_INTEREST = 100
NOISE = 0.05


def curve(rng):
    """A smooth function of one input on [-4, 4], wanted between 0 and 2."""
    pool = rng.uniform(-4.0, 4.0, (300, 1))
    noise = NOISE * rng.standard_normal((300, 1))
    wanted = rng.uniform(0.0, 2.0, (N_INTEREST, 1))

    def truth(X):
        return np.tanh(2.0 * (X + 2.0)) + np.exp(-((X - 1.2) ** 2) / 0.3) - 0.3 * X

    return pool, truth(pool) + noise, wanted, truth(wanted)


def arm(rng):
    """The robot arm; angles in a box, wanted in one of the two training regions of the texts."""
    pool = np.column_stack([rng.uniform(-2.6, 2.6, 600), rng.uniform(0.0, 3.6, 600)])
    noise = NOISE * rng.standard_normal((600, 2))
    wanted = robot_arm(N_INTEREST, rng)[0]
    wanted[:, 0] = np.abs(wanted[:, 0])
    return pool, hand(pool) + noise, wanted, hand(wanted)


def hand(X):
    """Position of the hand."""
    both = X[:, 0] + X[:, 1]
    return np.column_stack(
        [2.0 * np.cos(X[:, 0]) + 1.3 * np.cos(both), 2.0 * np.sin(X[:, 0]) + 1.3 * np.sin(both)]
    )


def make_model(problem, n_restarts, seed):
    """The regressor of a problem; the noise of the instrument is known."""
    width = 8 if problem == "curve" else 10
    return EvidenceMLPRegressor((width,), noise=NOISE, n_restarts=n_restarts, random_state=seed)


def choose(strategy, model, pool, free, n, wanted, rng):
    """Rows of the pool to measure next, out of the free ones."""
    if strategy == "random":
        return rng.choice(free, n, replace=False)
    interest = wanted[:N_INTEREST] if strategy == "mean marginal" else None
    return free[select(model, pool[free], n, interest)]


def learn(problem, strategy, index, args):
    """One learning curve: a row of results per fit."""
    rng = np.random.default_rng([1992, index])
    pool, y, wanted, exact = (curve if problem == "curve" else arm)(rng)
    first, batch, last = SIZES[problem]
    measured = rng.permutation(len(pool))[:first]
    rows = []
    while True:
        with counted_warnings():
            model = make_model(problem, args.n_restarts, index).fit(pool[measured], y[measured])
            predicted = model.predict(wanted).reshape(exact.shape)
        rows.append(
            {
                "problem": problem,
                "strategy": strategy,
                "n": len(measured),
                "error": float(np.sqrt(np.mean(np.sum((predicted - exact) ** 2, axis=1)))),
            }
        )
        if len(measured) >= last:
            return rows
        free = np.setdiff1d(np.arange(len(pool)), measured)
        new = choose(strategy, model, pool, free, batch, wanted, rng)
        measured = np.concatenate([measured, new])


def rows_needed(rows):
    """Rows after which a strategy's mean error stays below random choice's final one.

    Also between the numbers of rows that were tried, by interpolating the logarithm of the error.
    """
    numbers = np.array(sorted({r["n"] for r in rows}))
    logs = {}
    for strategy in STRATEGIES:
        own = [
            [r["error"] for r in rows if (r["strategy"], r["n"]) == (strategy, n)] for n in numbers
        ]
        logs[strategy] = np.log(np.mean(own, axis=1))
    goal, table = logs["random"][-1], []
    for strategy in STRATEGIES:
        above = np.flatnonzero(logs[strategy] > goal)
        first = above[-1] + 1 if len(above) else 0
        line = {"strategy": strategy, "rows": "-", "share": "-", "share, interpolated": "-"}
        if first < len(numbers):
            between = numbers[first]
            if first:
                pair = slice(first - 1, first + 1)
                between = np.interp(-goal, -logs[strategy][pair], numbers[pair])
            line["rows"] = numbers[first]
            line["share"] = f"{numbers[first] / numbers[-1]:.0%}"
            line["share, interpolated"] = f"{between / numbers[-1]:.0%}"
        table.append(line)
    return table


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--problems", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--n-restarts", type=int, default=2)
    args = parser.parse_args()

    for problem in args.problems:
        rows = []
        for index in range(args.repetitions):
            for strategy in STRATEGIES:
                rows += learn(problem, strategy, index, args)
        print_table(f"{problem}: rows until random choice's final error", rows_needed(rows))


if __name__ == "__main__":
    main()
