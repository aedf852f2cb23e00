"""Six Gaussians: do moderated probabilities predict better than those of the best weights?

The problem of MacKay (1992, chapter 5): two classes, each a mixture of three round Gaussians in two
dimensions, 300 rows. The script counts the fits whose moderated probabilities have the lower
log loss on 5000 fresh rows. Run with::

    python tests/benchmarks/six_gaussians.py
    python tests/benchmarks/six_gaussians.py --fits 5 --n-restarts 1   # a quick look
"""

import argparse
from time import perf_counter

import numpy as np
from problems import class_probabilities, gaussian_classes
from reporting import counted_warnings, mean_and_error, print_table

from skbayesnn import EvidenceMLPClassifier


def log_loss(probabilities, y):
    """Mean minus log probability of the classes, in nats."""
    return -np.mean(np.log(probabilities[np.arange(len(y)), y]))


def one_fit(index, args):
    """Fit one data set; a row of results."""
    rng = np.random.default_rng([5, 2, index])
    X, y = gaussian_classes(args.rows, rng)
    X_test, y_test = gaussian_classes(5000, rng)
    width = args.widths[index % len(args.widths)]
    start = perf_counter()
    with counted_warnings() as messages:
        model = EvidenceMLPClassifier(
            (width,),
            prior=args.prior,
            n_restarts=args.n_restarts,
            combine=args.combine,
            random_state=index,
        ).fit(X, y)
        moderated = model.predict_proba(X_test)
        best_weights = model.predict_proba(X_test, moderated=False)
    return {
        "fit": index,
        "units": width,
        "log loss moderated": log_loss(moderated, y_test),
        "log loss most probable": log_loss(best_weights, y_test),
        "log loss of the truth": log_loss(class_probabilities(X_test), y_test),
        "error": float(np.mean(np.argmax(moderated, axis=1) != y_test)),
        "log evidence": float(model.log_evidence_),
        "warnings": len(messages),
        "seconds": perf_counter() - start,
    }


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=50)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 10, 12])
    parser.add_argument("--prior", default="layer")
    parser.add_argument("--n-restarts", type=int, default=3)
    parser.add_argument("--combine", default="best")
    args = parser.parse_args()

    rows = [one_fit(index, args) for index in range(args.fits)]
    print_table(f"{args.rows} rows", rows)
    gain = np.array([r["log loss most probable"] - r["log loss moderated"] for r in rows])
    print(f"\nmoderated outputs have the lower log loss in {np.sum(gain > 0)} of {len(gain)} fits")
    print(f"their mean gain is {mean_and_error(gain, 4)} nats per row")


if __name__ == "__main__":
    main()
