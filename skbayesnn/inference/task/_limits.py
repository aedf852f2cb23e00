"""Problem sizes at which a fit changes its method."""

from typing import NamedTuple

NARROW = 8  # hidden units


class Limits(NamedTuple):
    """Thresholds between methods, with their reasons.

    Attributes
    ----------
    dense : int
        Weights up to which matrices of that size are formed. At this limit the six matrices of a
        step take 430 MB, and a Cholesky factorisation takes a third of a second.
    dense_work : float
        Rows times squared weights up to which Hessians of all rows are formed. One takes about a
        second there, a start some minutes.
    dual : float
        Ratio of weights to targets from which the dual form is faster than dense matrices (measured
        crossover, 100 to 1,000 targets). Where dense matrices are not formed the ratio is 1, as
        Kronecker factors would yield an effective number of parameters above the number of targets.
    dense_linear : int
        Weights up to which linear models with more weights than targets form dense matrices. The
        dual form is as exact for them, but for Student-t noise; the evidence is not evaluated along
        the precisions.
    dual_work : float
        Squared targets times weights up to which the dual form is used: a matrix takes a second.
    softmax_work : float
        Rows times squared weights from which networks with softmax outputs are trained by
        gradients, which then takes seconds less (measured on digits). For a close fit,
        the second derivatives of the network exceed the Gauss-Newton part, and Levenberg-Marquardt
        steps become very small.
    softmax_rows_per_weight : int
        Rows per weight from which these networks are trained on batches, if training ends early:
        as good there, and faster. With fewer, batches fit the noise (2,309 x 128, six classes:
        log loss 1.32 on batches, 1.17 by gradients).
    cheap_work : float
        Rows times squared weights up to which a fit can use hundreds of Hessians (each takes a
        tenth of a second).
    refined : int
        Weights times free precisions up to which precisions are refined by the gradient of the
        evidence, which needs a Hessian for each.
    profile_work : float
        Rows times squared weights times free precisions up to which the evidence is evaluated along
        precisions, which takes some hundred Hessians for each.
    sampled_seconds : float
        Predicted seconds up to which a fit samples the posterior by default, where there are few
        targets per weight.
    checked_seconds : float
        Limit of these seconds where there are many targets per weight, as sampling hardly changes
        predictions there.
    few_targets_per_weight : float
        Targets per weight below which Laplace's approximation is inaccurate, and posterior samples
        predict better (measured on sets of 80 to 700 rows).
    batch_rows : int
        Rows from which networks without dense matrices are trained on batches, and from which
        networks are compared by held-out log density.
    wide_rows : int
        Smaller number of rows from which this is so if there are many inputs, as Hessians of a
        network of `NARROW` hidden units then take long (``cheap_work``).
    batch_rows_per_weight : int
        With so many rows, but fewer than this per weight, training ends before the minimum.
        Laplace's approximation is wrong by several nats there, and Newton steps to the minimum take
        minutes without better predictions (measured on kin8nm). If Hessians take long
        (``cheap_work``), more rows per weight are required.
    batch_steps : int
        Number of steps of training on batches, which take some seconds.
    early_work : float
        Rows times squared weights up to which training with early stopping uses Levenberg-Marquardt
        steps, which reach a lower energy than batches: a step takes a tenth of a second.
    scan_work : float
        Rows times squared weights up to which linear models start at the best of a grid of
        precisions. This needs one factorisation of all rows (a tenth of a second).
    growth_weights : int
        Weights up to which networks are tried on many rows: a start takes a minute there.
    growth_work : float
        Rows times squared weights up to which wider networks than usual are tried: a start takes
        seconds there.
    moderation_work : float
        Rows times outputs times squared weights up to which the Gaussian closest to the posterior
        of all weights of a classifier is found, which needs about 25 curvatures. Larger
        classifiers use that of the output layer.

    Examples
    --------
    >>> from skbayesnn.inference import Limits
    >>> Limits(dense=0).dense  # of a test that wants structured curvature for a small network
    0
    """

    dense: int = 3000
    dense_work: float = 1e10
    dual: float = 2.0
    dense_linear: int = 600
    dual_work: float = 2e10
    softmax_work: float = 1e8
    softmax_rows_per_weight: int = 5
    cheap_work: float = 2e9
    refined: int = 5000
    profile_work: float = 1e9
    sampled_seconds: float = 10.0
    checked_seconds: float = 2.5
    few_targets_per_weight: float = 2.0
    batch_rows: int = 5000
    wide_rows: int = 1000
    batch_rows_per_weight: int = 50
    batch_steps: int = 30_000
    early_work: float = 4.5e9
    scan_work: float = 2e9
    growth_weights: int = 50_000
    growth_work: float = 1e9
    moderation_work: float = 1e10

    def many_rows(self, n_rows, n_features):
        """Return True if networks are compared by held-out rows, and large ones stop early.

        Parameters
        ----------
        n_rows, n_features : int
        """
        work = n_rows * (NARROW * (n_features + 2)) ** 2
        return n_rows >= self.batch_rows or (n_rows >= self.wide_rows and work > self.cheap_work)
