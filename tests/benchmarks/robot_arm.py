"""Robot arm: test error against the peers, and the evidence against the number of hidden units.

The problem is that of MacKay (1992, section 3.4): 200 training rows, two inputs, two outputs, noise
of standard deviation 0.05 on each. The error is 0.0050 (the noise) plus the mean squared distance
of the predictions from the noise-free targets on 1000 fresh rows. Every method sees the same
training sets, so that differences between methods are paired.

Run with::

    python tests/benchmarks/robot_arm.py
    python tests/benchmarks/robot_arm.py --sets 2 --widths 8 16 --skip-peers   # a quick look

To use one thread, put ``OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1`` before the command.
"""

import argparse
from itertools import product
from time import perf_counter

import numpy as np
from problems import robot_arm, robot_arm_error
from reporting import counted_warnings, mean_and_error, print_table, write_csv

GRID = {"alpha": (1e-4, 1e-3, 1e-2, 1e-1), "hidden_layer_sizes": ((8,), (16,), (32,), (64,))}


def training_set(index):
    """The training set of this number, with its own 1000 test rows."""
    rng = np.random.default_rng([1992, index])
    return *robot_arm(200, rng), *robot_arm(1000, rng, noise=0.0)


def run(name, index, make_model):
    """Fit one model to one training set; a row of results."""
    X, y, X_test, y_test = training_set(index)
    start = perf_counter()
    with counted_warnings() as messages:
        model = make_model(index).fit(X, y)
        predicted = model.predict(X_test)
    seconds = perf_counter() - start
    noise = getattr(model, "noise_std_", np.nan)
    row = {
        "method": name,
        "set": index,
        "error": robot_arm_error(predicted, y_test),
        "log_evidence": float(getattr(model, "log_evidence_", np.nan)),
        "noise": float(np.sqrt(np.mean(np.square(noise)))),
        "seconds": seconds,
        "warnings": len(messages),
    }
    print(f"{name}, set {index}: error {row['error']:.5f}, {seconds:.1f} s", flush=True)
    return row


def ours(width, prior, n_restarts, combine):
    """Maker of our regressor."""
    from skbayesnn import EvidenceMLPRegressor

    def make(seed):
        return EvidenceMLPRegressor(
            (width,), prior=prior, n_restarts=n_restarts, combine=combine, random_state=seed
        )

    return make


def gaussian_process(seed):
    """Gaussian process with one length scale per input and 5 starts."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF([1.0, 1.0]) + WhiteKernel(0.01)
    return GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=4, random_state=seed
    )


def grid_search(activation):
    """Maker of `MLPRegressor` with its grid search over weight decay and width."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def make(seed):
        network = MLPRegressor(
            activation=activation, solver="lbfgs", max_iter=2000, random_state=seed
        )
        grid = {f"mlpregressor__{key}": values for key, values in GRID.items()}
        folds = KFold(5, shuffle=True, random_state=seed)
        return GridSearchCV(make_pipeline(StandardScaler(), network), grid, cv=folds)

    return make


def highest_evidence(rows, prior, combine, args):
    """For every training set the row of the width with the highest log evidence."""
    chosen = []
    for index in range(args.sets):
        names = {our_name(width, prior, combine) for width in args.widths}
        candidates = [r for r in rows if r["set"] == index and r["method"] in names]
        trusted = [r for r in candidates if np.isfinite(r["log_evidence"])]
        if trusted:
            best = max(trusted, key=lambda r: r["log_evidence"])
            seconds = sum(r["seconds"] for r in candidates)
            name = our_name("width by evidence", prior, combine)
            chosen.append({**best, "method": name, "seconds": seconds})
    return chosen


def our_name(width, prior, combine):
    """Name of one of our configurations: number of hidden units, prior, combination."""
    return f"ours, {width}, {prior}, {combine}"


def summary(rows, references):
    """One line per method: means with standard errors, and paired differences to the references."""
    table = []
    errors = {(r["method"], r["set"]): r["error"] for r in rows}
    for name in dict.fromkeys(r["method"] for r in rows):
        own = [r for r in rows if r["method"] == name]
        line = {
            "method": name,
            "error": mean_and_error([r["error"] for r in own], 5),
        }
        for reference in references:
            pairs = [
                r["error"] - errors[reference, r["set"]]
                for r in own
                if (reference, r["set"]) in errors
            ]
            differs = pairs and name != reference
            line[f"minus {reference}"] = mean_and_error(pairs, 5) if differs else "-"
        line["log evidence"] = mean_and_error([r["log_evidence"] for r in own], 1)
        line["noise"] = mean_and_error([r["noise"] for r in own], 4)
        line["seconds"] = float(np.median([r["seconds"] for r in own]))
        line["fits that warned"] = sum(r["warnings"] > 0 for r in own)
        table.append(line)
    return table


def compare(args):
    """Rows of every method on every training set."""
    makers = {}
    if not args.skip_ours:
        for prior, combine, width in product(args.priors, args.combine, args.widths):
            name = our_name(width, prior, combine)
            makers[name] = ours(width, prior, args.n_restarts, combine)
    if not args.skip_peers:
        makers["GP"] = gaussian_process
        makers["MLP relu grid"] = grid_search("relu")
        makers["MLP tanh grid"] = grid_search("tanh")
    rows = [run(name, i, make) for i in range(args.sets) for name, make in makers.items()]
    for prior, combine in product(args.priors, args.combine):
        rows += highest_evidence(rows, prior, combine, args)
    return rows


def evidence_by_width(args):
    """Rows of our regressor for 4 to 24 hidden units and both priors."""
    return [
        run(our_name(width, prior, "best"), i, ours(width, prior, args.n_restarts, "best"))
        for prior in args.priors
        for width in args.evidence_widths
        for i in range(args.evidence_sets)
    ]


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10, help="training sets (10)")
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 10, 12, 16])
    parser.add_argument("--n-restarts", type=int, default=10)
    parser.add_argument("--combine", nargs="+", default=["best", "stacking"])
    parser.add_argument("--priors", nargs="+", default=["single", "layer"])
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--skip-ours", action="store_true")
    parser.add_argument("--evidence-sets", type=int, default=3, help="0: leave this part out")
    parser.add_argument("--evidence-widths", type=int, nargs="+", default=list(range(4, 25)))
    parser.add_argument("--csv", help="file for one line per fit")
    args = parser.parse_args()

    rows = compare(args) if args.sets else []
    print_table(
        f"Error on {args.sets} training sets, {args.n_restarts} starts",
        summary(rows, ["GP", "MLP relu grid", "MLP tanh grid"]),
    )
    more = [] if args.skip_ours or not args.evidence_sets else evidence_by_width(args)
    if more:
        print_table(f"Evidence by width on {args.evidence_sets} training sets", summary(more, []))
    if args.csv and rows + more:
        write_csv(args.csv, rows + more)


if __name__ == "__main__":
    main()
