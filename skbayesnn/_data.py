"""Training rows in canonical form, and the standardisation of inputs and targets."""

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

RESOLUTION = 2.0**-30  # to which standardised training values are rounded, in standard deviations
LARGEST = 1e100  # largest training value; squares of predictions do not overflow
MAX_AS_GIVEN = 1e50  # largest value that is not standardised; its powers do not overflow
MAX_REPETITIONS = 1e15  # largest sum of the row weights
FARTHEST = 1e30  # largest standardised input; inputs beyond are clipped
SMALLEST = 1e-305  # least spread of a column that is not constant
QUARTILE = 0.6745  # of the standard normal distribution
TIMES_THE_MIDDLE = 10.0  # robust spreads from the median of far inputs, and least ratio of the sd
COMPARED = 2000  # most rows whose nearest neighbours are looked up
MAX_FAR = 0.1  # largest share of rows with far inputs; more are no exceptions


class Rows(NamedTuple):
    """Distinct rows with their weights."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    index: np.ndarray  # of the distinct row that each given row became; -1 for dropped ones
    shares: np.ndarray | None = None  # (n, k) of given rows in each of k rows that they became
    known: np.ndarray | None = None  # of every target: error, exposure or side of a limit

    @property
    def fingerprint(self):
        """Digest of inputs, targets, weights and known numbers, equal for equal training data."""
        arrays = self.X, self.y, self.weight, self.known
        digest = blake2b(digest_size=16)
        for array in arrays:
            digest.update(b"" if array is None else np.ascontiguousarray(array))
        return digest.hexdigest()

    def of_given(self, values):
        """Expand values of distinct rows to values of given rows, ``nan`` for dropped ones."""
        found = np.append(values, np.nan)[self.index]
        if self.shares is None:
            return found
        found = found.reshape(self.shares.shape)
        total = np.sum(np.where(self.shares > 0, self.shares * found, 0.0), axis=1)
        return np.where(np.all(np.isnan(found), axis=1), np.nan, total)


def canonical_rows(X, y, sample_weight, known=None):
    """Drop rows of zero weight, sort the rest, merge equal ones.

    The fit is then independent, to the last bit, of the order of the rows and of whether a row is
    repeated or weighted. Targets are ``(n, n_outputs)``, and so are ``known`` numbers, see `Rows`;
    rows are equal only if these are equal, too.
    """
    kept = np.flatnonzero(sample_weight > 0)
    columns = [X, y] if known is None else [X, y, known]
    table = np.hstack([*columns, sample_weight[:, None]])[kept]
    table += 0.0  # -0.0 becomes 0.0
    order = np.lexsort(table.T[::-1])
    table = table[order]
    is_new = np.r_[True, np.any(table[1:, :-1] != table[:-1, :-1], axis=1)]
    index = np.full(len(X), -1)
    index[kept[order]] = np.cumsum(is_new) - 1
    weight = np.add.reduceat(table[:, -1], np.flatnonzero(is_new))
    ends = np.cumsum([column.shape[1] for column in columns])
    parts = map(np.ascontiguousarray, np.split(table[is_new, :-1], ends[:-1], axis=1))
    return Rows(next(parts), next(parts), weight, index, known=next(parts, None))


def check_magnitudes(rows, standardize):
    """Raise ``ValueError`` for training values too large to compute with."""
    largest = LARGEST if standardize else MAX_AS_GIVEN
    for name, values in (("X", rows.X), ("y", rows.y)):
        found = np.max(_largest(values))
        if found > largest:
            advice = "" if standardize else ", or standardize=True"
            raise ValueError(
                f"{name} has values up to {found:.0e}, which would overflow. The largest allowed "
                f"is {largest:.0e}. Use other units{advice}."
            )
    total = np.sum(rows.weight / MAX_REPETITIONS)
    if total > 1.0:
        raise ValueError(
            f"sample_weight adds up to more than {MAX_REPETITIONS:.0e} rows. A weight counts "
            "repetitions of its row; give smaller ones."
        )


class Scaling(NamedTuple):
    """Scaling ``standardised = (value - shift) / scale``, column by column."""

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def none(cls, n_columns):
        """Make the identity scaling."""
        return cls(np.zeros(n_columns), np.ones(n_columns))

    @classmethod
    def standard(cls, values, weight):
        """Make the scaling by weighted mean and sd; constant columns keep scale 1."""
        total = weight.sum()
        origin = values[0]  # large offsets cancel exactly before anything is squared
        centred = values - origin  # the only copy
        mean = weight @ centred / total
        centred -= mean
        largest = _largest(centred)
        unit = np.where(largest > 0, largest, 1.0)  # squares neither overflow nor vanish
        centred /= unit
        scale = unit * np.sqrt(weight @ np.square(centred, out=centred) / total)
        rounding = 8 * np.finfo(float).eps * _largest(values)
        constant = ~(scale > np.maximum(rounding, SMALLEST))
        return cls(np.where(constant, origin, origin + mean), np.where(constant, 1.0, scale))

    def without_far_rows(self, values, weight):
        """Scale columns by their quartiles where few far rows make the standard deviation.

        Columns with more than half of their rows equal keep their scale.
        """
        low, middle, high = np.transpose(
            [  # column by column, as sorting takes several copies
                np.quantile(column, (0.25, 0.5, 0.75), weights=weight, method="inverted_cdf")
                for column in values.T
            ]
        )
        spread = 0.5 * high / QUARTILE - 0.5 * low / QUARTILE
        reach = TIMES_THE_MIDDLE * spread
        share = weight @ (np.abs(values - middle) > reach) / weight.sum()
        far = (spread > SMALLEST) & (self.scale > reach) & (share <= MAX_FAR)
        return Scaling(np.where(far, middle, self.shift), np.where(far, spread, self.scale))

    def transform(self, values):
        """Convert values to standardised units."""
        values = values - self.shift
        values /= self.scale
        return values

    def bounded(self, values):
        """Convert inputs to standardised units, clipped at `FARTHEST`."""
        with np.errstate(over="ignore"):
            values = self.transform(values)
            return np.clip(values, -FARTHEST, FARTHEST, out=values)

    def inverse(self, values):
        """Convert values back to the original units; columns are the last axis."""
        return values * self.scale + self.shift


def _largest(values):
    """Largest absolute values of columns."""
    return np.maximum(values.max(axis=0), -values.min(axis=0))


def standardised(values, weight, wanted=True, scaling=None, shifted=True, robust=False):
    """Standardise training values, and return their scaling.

    Values ``(n, n_columns)`` are rounded to `RESOLUTION`, so that rounding errors of the data, for
    example from a change of units, have no influence. Unless standardised values are ``wanted``,
    they stay unchanged. A ``scaling`` of earlier values is used again; ``robust``: few far rows do
    not decide the scale, see `Scaling.without_far_rows`.
    """
    if not wanted:
        return Scaling.none(values.shape[1]), values
    if scaling is None:
        scaling = Scaling.standard(values, weight)
        if robust:
            scaling = scaling.without_far_rows(values, weight)
        if not shifted:
            scaling = scaling._replace(shift=np.zeros_like(scaling.shift))
    values = scaling.transform(values)
    values /= RESOLUTION
    np.round(values, out=values)
    values *= RESOLUTION
    values += 0.0  # -0.0 becomes 0.0
    return scaling, values


def of_nearest(Z, values, rows):
    """Values of the nearest neighbours of some rows, other than these themselves."""
    first, second = KDTree(Z).query(Z[rows], k=2)[1].T  # equal rows may come in any order
    return values[np.where(first == rows, second, first)]
