"""Sequential learning: the posterior of one fit is the prior of the next."""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbayesnn._data import Scaling
from skbayesnn.estimators.inputs._parameters import thawed
from skbayesnn.inference import learnt
from skbayesnn.network import Network
from skbayesnn.posterior import WeightGroups

KEPT = ("n_features_in_", "feature_names_in_", "classes_", "n_outputs_")
LEARNT = 1.5  # least effective number of parameters, output bias included, of a fit that learns
MAX_WAITING = 500  # most rows that are kept while they determine no weights
JOINED = 200  # most rows that are kept although they determine weights: a fit takes a second
FAR = 3.0  # standard deviations from the mean of the first batches
MANY_FAR, MIN_FAR = 0.25, 5  # share and number of rows that far away that cause a warning


class Waiting(NamedTuple):
    """Rows of the batches seen so far, which are fitted again together with the next one.

    ``rows`` are those of `BayesianMLP._check_rows`; ``attributes`` describe their form; ``reason``
    is a reason to wait besides their small number.
    """

    rows: tuple
    attributes: dict
    reason: str | None

    @classmethod
    def of(cls, estimator, rows):
        """Keep a single row, or rows of a fit that settles no scaling, network or precisions.

        Few rows settle nothing if precisions are inferred: batches may be in some order, and show
        a part of the function each. ``None`` if all is settled.
        """
        if not estimator.__sklearn_is_fitted__():
            reason = "a single row determines no precisions"
            return cls(rows, _row_attributes(estimator), reason)
        free, y = bool(np.any(estimator._result.posed.settings.free.alpha)), rows[1]
        if np.any(np.ptp(y, axis=0) == 0) and (free or estimator.standardize):
            target = "class" if is_classifier(estimator) else "value of a target"
            reason = f"the batches so far hold only one {target}"
        elif free and len(y) <= MAX_WAITING and estimator.n_effective_weights_ < LEARNT:
            reason = "the inputs explain nothing of the targets so far"
        elif free and len(y) <= JOINED:
            reason = None
        else:
            return None
        return cls(rows, _row_attributes(estimator), reason)

    def joined(self, rows):
        """Join the rows with those of the next batch."""
        most = max((self.rows, rows), key=len)
        padded = [
            (*some, *(np.zeros_like(some[1]) for _ in most[len(some) :]))
            for some in (self.rows, rows)
        ]  # rows without known errors have errors of 0
        return tuple(np.concatenate(pair) for pair in zip(*padded, strict=True))

    @property
    def warning(self):
        """Warning with the reason, or ``None``."""
        if self.reason is None:
            return None
        return ConvergenceWarning(
            f"Scaling and precisions are not settled: {self.reason}. The {len(self.rows[0])} "
            "rows so far are kept, and fitted together with the next batch."
        )


class Earlier(NamedTuple):
    """Result of an earlier fit, which becomes the prior of the next, with its units.

    The first three fields are those of `learnt`. Later batches use the scalings of the first one
    again. ``attributes`` describe the form of rows, and ``log_evidences`` are those of every batch
    that ``partial_fit`` has seen. ``factor`` is the ``precision`` of the `Prior`, a factor of the
    precision that was learnt, with its hyperprior.
    """

    network: Network
    groups: WeightGroups
    noise: tuple | None
    X_scaling: Scaling
    y_scaling: Scaling
    standardize: bool
    attributes: dict
    log_evidences: tuple
    factor: object = "auto"
    hyperprior: dict | None = None

    @classmethod
    def of(cls, fitted):
        """Extract the result of a fitted evidence estimator."""
        fit = fitted._laplace.fit
        n_weights, most = len(fit.best.theta), fit.posed.settings.limits.dense
        if n_weights > most:
            raise ValueError(
                f"A posterior that is to be a prior needs its whole precision matrix, which is "
                f"formed for up to {most} weights; this network has {n_weights}."
            )
        known = learnt(fit)
        if known is None:
            raise ValueError(
                "The posterior of the earlier data cannot be a prior: its precision matrix is not "
                "numerically positive definite. Use more rows at first, or stronger priors."
            )
        return cls(
            *known,
            fitted._X_scaling,
            fitted._y_scaling,
            fitted.standardize,
            _row_attributes(fitted),
            tuple(vars(fitted).get("batch_log_evidences_", (fitted.log_evidence_,))),
        )

    def warning(self, X, y):
        """Warning about a batch of standardised rows far from the earlier ones, or ``None``."""
        if not self.standardize:
            return None
        for name, values in (("X", X), ("y", y)):
            far = np.max(np.abs(values), axis=1) > FAR
            if far.mean() > MANY_FAR and far.sum() >= MIN_FAR:
                return ConvergenceWarning(
                    f"{100 * far.mean():.0f} % of the rows of this batch have a value of {name} "
                    f"more than {FAR:g} standard deviations from the mean of the first batches, "
                    "which have set scaling and network. Shuffle rows before they are divided into "
                    "batches, or fit all rows at once."
                )
        return None

    def check(self, estimator, hidden_layer_sizes=None):
        """Raise ``ValueError`` unless an estimator has the same network, in the same units."""
        for name, known in (
            ("activation", self.network.activation),
            ("fit_intercept", self.network.output_bias),
            ("standardize", self.standardize),
        ):
            given = getattr(estimator, name)
            if given != known:
                raise ValueError(f"The prior was learnt with {name}={known!r}; got {given!r}.")
        sizes = self.network.hidden_layer_sizes
        if hidden_layer_sizes not in (None, "auto", sizes):
            raise ValueError(
                f"The prior was learnt by a network with hidden layers {sizes} (after pruning); "
                f"give hidden_layer_sizes={sizes} or 'auto', not {hidden_layer_sizes}."
            )


def _row_attributes(fitted):
    """Fitted attributes that describe the form of rows."""
    return {name: getattr(fitted, name) for name in KEPT if hasattr(fitted, name)}


def earlier_of_prior(estimator, hidden_layer_sizes):
    """Extract the result of the evidence estimator given as ``prior``; ``None`` without one."""
    prior = estimator._prior
    if not isinstance(prior.kind, BaseEstimator):
        return None
    given = thawed(prior.kind)
    of_evidence = hasattr(given, "combine") and hasattr(given, "partial_fit")
    if not of_evidence or is_classifier(given) != is_classifier(estimator):
        raise ValueError(
            f"prior must be an evidence estimator of the same task if it is an estimator; got "
            f"{given!r}."
        )
    check_is_fitted(
        given,
        msg="The estimator given as prior is not fitted. `clone`, and what uses it, unfits it "
        "unless it is wrapped: prior=sklearn.frozen.FrozenEstimator(fitted).",
    )
    earlier = Earlier.of(given)
    earlier.check(estimator, hidden_layer_sizes)
    return earlier._replace(log_evidences=(), factor=prior.precision, hyperprior=prior.hyperprior)
