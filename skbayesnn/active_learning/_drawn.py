"""Expected information gains about classes from networks drawn from the posterior.

No Gaussian takes the place of the networks: the joint probabilities of classes at several rows are
averages of products over the networks, since classes are independent given a network.
"""

import numpy as np
from scipy.special import rel_entr

from skbayesnn.active_learning._linear import SMALLEST, averaged, drawn_information
from skbayesnn.network import row_blocks
from skbayesnn.predictive import class_probabilities

MOST_OUTCOMES = 128  # of measured rows that are told apart; more are represented by a sample


class DrawnCandidates:
    """Gains of standardised rows by drawn networks, as if classes at some rows had been measured.

    An outcome is a sequence of classes of the measured rows. Given each, the networks have other
    weights, by Bayes' theorem, and gains are averages over the outcomes (Kirsch, van Amersfoort &
    Gal 2019). If there are more than `MOST_OUTCOMES`, a systematic sample of this size takes their
    place after each measurement.
    """

    def __init__(self, question, ensemble, X, keep=0):
        self._question, self._ensemble, self._X = question, ensemble, X
        # of outcomes, and of the networks given each of them
        self._chances, self._weights = np.ones(1), ensemble.member_weights[None]
        points, self._interest = question.X_interest, None
        width = own = max(2, ensemble.n_outputs) * self._weights.size
        if points is not None:
            blocks = row_blocks(len(points), width)
            self._interest = np.concatenate(list(self._probabilities(points, blocks)), axis=1)
            width = max(width, len(points) * self._interest.shape[2] ** 2)
        self._rows = list(row_blocks(len(X), width))
        self._kept = list(self._probabilities(X, self._rows)) if len(X) * own <= keep else None

    def gains(self):
        """Gains of all rows: ``(n,)``, or ``(n, n_points)`` for the kind ``"marginal"``."""
        blocks = self._probabilities(self._X, self._rows) if self._kept is None else self._kept
        of_block = self._about_networks if self._interest is None else self._about_interest
        return np.concatenate([of_block(p) for p in blocks])

    def observe(self, row):
        """Update everything as if the class of a row had been measured."""
        (p,) = self._probabilities(self._X, [slice(row, row + 1)])
        weights = (self._weights[:, None] * p[:, 0].T).reshape(-1, len(p))
        given = weights.sum(axis=1)
        chances = np.repeat(self._chances, p.shape[2]) * given
        possible = np.flatnonzero(given > SMALLEST)
        if len(possible) > MOST_OUTCOMES:
            below = np.cumsum(chances[possible])
            even = (np.arange(MOST_OUTCOMES) + 0.5) * below[-1] / MOST_OUTCOMES
            sample, counts = np.unique(np.searchsorted(below, even), return_counts=True)
            possible, self._chances = possible[sample], counts / MOST_OUTCOMES
        else:
            self._chances = chances[possible]
        self._weights = weights[possible] / given[possible, None]

    def _probabilities(self, X, blocks):
        """Yield class probabilities of all networks at blocks of rows, ``(m, n, n_classes)``."""
        for rows in blocks:
            parts = [class_probabilities(part.outputs(X[rows])) for part in self._ensemble.parts]
            yield np.concatenate(parts)

    def _about_networks(self, p):
        """Mutual information of classes and networks, ``(n,)``, given the measured classes.

        ``H[E p] - E H[p]`` (Houlsby et al. 2011, equation 2) given each outcome, as relative
        entropies to one mean, which do not cancel.
        """
        mean = np.maximum(np.tensordot(self._ensemble.member_weights, p, 1), SMALLEST)
        given = (self._weights @ p.reshape(len(p), -1)).reshape(-1, *mean.shape)
        of_networks, of_outcomes = (np.sum(rel_entr(some, mean), axis=2) for some in (p, given))
        return np.maximum(self._chances @ (self._weights @ of_networks - of_outcomes), 0.0)

    def _about_interest(self, p):
        """Mutual information of the classes of a block of rows and those at points of interest."""
        pairs = zip(self._chances, self._weights, strict=True)
        marginal = sum(share * drawn_information(p, self._interest, w) for share, w in pairs)
        return averaged(marginal, self._question)
