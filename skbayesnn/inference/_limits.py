"""Sizes at which a fit goes about things in another way."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Every threshold between methods, with its reason.

    Attributes
    ----------
    dense : int
        Weights up to which matrices of that size are formed: six of them, which a step needs, then
        take 430 MB, and a Cholesky factorisation takes a third of a second.
    dense_work : float
        Rows times squared weights up to which Hessians of all rows are formed. One takes about a
        second there, a start some minutes.
    dual : float
        Weights over targets from which the dual form is faster than dense matrices (measured
        crossover, 100 to 1,000 targets). Where these are not formed 1 is enough: Kronecker
        factors would find more well-determined weights than there are targets.
    dual_doubles : float
        Numbers that a matrix with a row for every target may hold: 1 GiB.
    softmax_work : float
        Rows times squared weights from which networks with softmax outputs are trained by
        gradients: where they fit closely, the second derivatives of the network outweigh the
        Gauss-Newton part, and damped steps creep (measured on digits).
    cheap_work : float
        Rows times squared weights up to which Hessians may be had by the hundred (a tenth of a
        second each).
    refined : int
        Weights times free precisions up to which precisions are refined on the gradient of the
        evidence, which takes a Hessian for each.
    profile_work : float
        Rows times squared weights up to which the evidence is evaluated along precisions, which
        takes some hundred Hessians for each.
    places : int
        Precisions at which a minimum predicts besides its own, where the evidence may be evaluated
        along them; each takes some Hessians, and memory as the minimum itself does.
    measured : int
        Weights up to which the evidence is measured by annealing without being asked.
    measured_work : float
        Rows times weights up to which it is: annealing takes some seconds there.
    batch_rows : int
        Rows from which networks without dense matrices are trained on batches of them, and from
        which networks are compared by rows that are held out.
    batch_rows_per_weight : int
        With fewer rows than this for each weight, and as many rows as said, dense matrices are not
        used: Laplace's approximation is nats off there, and Newton steps to the minimum take
        minutes without better predictions (measured on kin8nm). Where Hessians take long
        (``cheap_work``), more.
    batch_steps : int
        Steps of training on batches: some seconds.
    part_rows, part_rows_per_weight : int
        Rows on which training begins, at least, and for each weight: their minimum is within a few
        steps of that of all.
    part_worth : int
        Times as many rows from which beginning on a part pays.
    scan_work : float
        Rows times squared weights up to which linear models begin at the best of a grid of
        precisions, for which all rows are factored once (a tenth of a second).
    growth_weights : int
        Weights up to which networks are tried on many rows: a start takes a minute there.
    growth_work : float
        Rows times squared weights up to which wider networks than usual are tried: a start takes
        seconds there.
    moderation_work : float
        Rows times outputs times squared weights up to which the Gaussian closest to the posterior
        of all weights of a classifier is found; it takes some 25 curvatures. Beyond, that of the
        output layer.

    Examples
    --------
    >>> from skbayesnn.inference import Limits
    >>> Limits(dense=0).dense  # of a test that wants structured curvature for a small network
    0
    """

    dense: int = 3000
    dense_work: float = 1e10
    dual: float = 2.0
    dual_doubles: float = 2.0**27
    softmax_work: float = 1e9
    cheap_work: float = 2e9
    refined: int = 5000
    profile_work: float = 2e8
    places: int = 16
    measured: int = 128
    measured_work: float = 1e4
    batch_rows: int = 5000
    batch_rows_per_weight: int = 50
    batch_steps: int = 30_000
    part_rows: int = 10_000
    part_rows_per_weight: int = 20
    part_worth: int = 5
    scan_work: float = 2e9
    growth_weights: int = 50_000
    growth_work: float = 1e9
    moderation_work: float = 3e10
