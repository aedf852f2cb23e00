"""Six Gaussians: do moderated probabilities predict better than those of the best weights?

The problem of MacKay (1992, chapter 5): two classes, each a mixture of three round Gaussians in two
dimensions, 300 rows. The script counts the fits whose moderated probabilities have the lower
log loss on 5000 fresh rows. With ``--classes 3`` the same centres make three classes of two
Gaussians each, which tests the softmax; its moderation is also compared with Monte Carlo over draws
of the activations. Run with::

    python tests/benchmarks/six_gaussians.py
    python tests/benchmarks/six_gaussians.py --classes 3
    python tests/benchmarks/six_gaussians.py --fits 5 --n-restarts 1   # a quick look
"""

import argparse
from time import perf_counter

import numpy as np
from inside import parts_of, shares_of, standardised
from problems import CENTRES, THREE_CENTRES, class_probabilities, gaussian_classes
from reporting import counted_warnings, mean_and_error, print_table, write_csv


def log_loss(probabilities, y):
    """Mean minus log probability of the classes, in nats."""
    return -np.mean(np.log(probabilities[np.arange(len(y)), y]))


def softmax(activations):
    """Class probabilities of activations ``(..., n_classes)``."""
    shifted = np.exp(activations - activations.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def monte_carlo(model, X, n_draws, seed):
    """Mean class probabilities over draws of the activations, with standard errors.

    The Gaussians of the activations are no part of the public interface of the classifier.
    """
    rng = np.random.default_rng(seed)
    average, variance = 0.0, 0.0
    for share, part in zip(shares_of(model), parts_of(model), strict=True):
        (mean,), (covariance,) = part.moments(standardised(model, X))
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(mean.shape[1]))
        normal = rng.standard_normal((n_draws, *mean.shape))
        draws = mean + (root @ normal[..., None])[..., 0]
        if mean.shape[1] == 1:  # one activation, of the second class
            draws = np.concatenate([np.zeros_like(draws), draws], axis=-1)
        probabilities = softmax(draws)
        average = average + share * probabilities.mean(axis=0)
        variance = variance + share**2 * probabilities.var(axis=0) / n_draws
    return average, np.sqrt(variance)


def one_fit(index, args):
    """Fit one data set; a row of results."""
    from skbayesnn import EvidenceMLPClassifier

    centres = CENTRES if args.classes == 2 else THREE_CENTRES
    rng = np.random.default_rng([5, args.classes, index])
    X, y = gaussian_classes(args.rows, rng, centres)
    X_test, y_test = gaussian_classes(5000, rng, centres)
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
    row = {
        "fit": index,
        "units": width,
        "log loss moderated": log_loss(moderated, y_test),
        "log loss most probable": log_loss(best_weights, y_test),
        "log loss of the truth": log_loss(class_probabilities(X_test, centres), y_test),
        "error": float(np.mean(np.argmax(moderated, axis=1) != y_test)),
        "log evidence": float(model.log_evidence_),
        "warnings": len(messages),
        "seconds": perf_counter() - start,
    }
    if args.draws:
        exact, error = monte_carlo(model, X_test[:200], args.draws, index)
        difference = np.abs(moderated[:200] - exact)
        row["largest difference to Monte Carlo"] = float(difference.max())
        row["its standard error"] = float(error.ravel()[difference.argmax()])
    return row


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, choices=[2, 3], default=2)
    parser.add_argument("--fits", type=int, default=50)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 10, 12])
    parser.add_argument("--prior", default="layer")
    parser.add_argument("--n-restarts", type=int, default=3)
    parser.add_argument("--combine", default="best")
    parser.add_argument("--draws", type=int, default=20_000, help="Monte Carlo draws; 0: none")
    parser.add_argument("--csv", help="file for one line per fit")
    args = parser.parse_args()

    rows = [one_fit(index, args) for index in range(args.fits)]
    print_table(f"{args.classes} classes, {args.rows} rows", rows)
    gain = np.array([r["log loss most probable"] - r["log loss moderated"] for r in rows])
    print(f"\nmoderated outputs have the lower log loss in {np.sum(gain > 0)} of {len(gain)} fits")
    print(f"their mean gain is {mean_and_error(gain, 4)} nats per row")
    if args.draws:
        worst = max(rows, key=lambda r: r["largest difference to Monte Carlo"])
        print(
            "largest difference of a moderated probability to Monte Carlo: "
            f"{worst['largest difference to Monte Carlo']:.4f}"
            f" (standard error {worst['its standard error']:.4f})"
        )
    if args.csv:
        write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
