"""Pipeline with the methods of its last step."""

from collections.abc import Sequence
from typing import Any

import sklearn.pipeline

from skbayesnn._docs import LinkToSite
from skbayesnn.estimators import EvidenceMLPRegressor
from skbayesnn.estimators._pipeline import delegated, final_step


def _delegated(method):
    """Delegate a method to the last step, if that has it."""
    return delegated(method, lambda pipeline: pipeline)


def _attribute(name, summary):
    """Delegate an attribute to the last step."""

    def get(pipeline):
        return getattr(final_step(pipeline), name)

    return property(get, doc=summary)


class Pipeline(LinkToSite, sklearn.pipeline.Pipeline):
    """Pipeline with the predictions and the evidence of its last step.

    `sklearn.pipeline.Pipeline` lacks methods such as ``predict_interval``. This pipeline adds the
    error bars, intervals, densities and drawn functions of its last step.

    Parameters
    ----------
    steps : list of tuple
        ``(name, estimator)`` of each step; the last one is an estimator of this package, or a
        pipeline that ends in one.
    transform_input : list of str, optional
        Parameter of scikit-learn's pipeline.
    memory : str or object, optional
        Cache of fitted transformers, as in scikit-learn.
    verbose : bool, default=False
        Print the time of each step.

    Attributes
    ----------
    log_evidence_, log_evidence_std_ : float
        Log evidence and its standard error of the last step, given the first steps.
    evidence_report_ : EvidenceReport
        Report of the last step.

    See Also
    --------
    skbayesnn.compose.make_pipeline : Names the steps by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.compose import Pipeline
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> y = X[:, 0] ** 2 + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> steps = [("powers", PolynomialFeatures(2)), ("linear", EvidenceMLPRegressor(()))]
    >>> pipeline = Pipeline(steps).fit(X, y)
    >>> pipeline.predict_std([[0.5]]).shape, pipeline.predict_interval([[0.5]]).shape
    ((1,), (1, 2))
    >>> pipeline.log_evidence_ == pipeline[-1].log_evidence_
    True
    """

    log_evidence_ = _attribute("log_evidence_", "Log evidence of the last step, in nats.")
    log_evidence_std_ = _attribute("log_evidence_std_", "Its standard error, in nats.")
    evidence_report_ = _attribute("evidence_report_", "`EvidenceReport` of the last step.")

    predict_distribution = _delegated(EvidenceMLPRegressor.predict_distribution)
    predict_std = _delegated(EvidenceMLPRegressor.predict_std)
    predict_output_cov = _delegated(EvidenceMLPRegressor.predict_output_cov)
    predict_interval = _delegated(EvidenceMLPRegressor.predict_interval)
    predict_quantiles = _delegated(EvidenceMLPRegressor.predict_quantiles)
    predict_expectation = _delegated(EvidenceMLPRegressor.predict_expectation)
    predictive_cdf = _delegated(EvidenceMLPRegressor.predictive_cdf)
    log_predictive_density = _delegated(EvidenceMLPRegressor.log_predictive_density)
    novelty = _delegated(EvidenceMLPRegressor.novelty)
    sample_y = _delegated(EvidenceMLPRegressor.sample_y)
    sample_prior = _delegated(EvidenceMLPRegressor.sample_prior)


def make_pipeline(
    *steps: Any,
    memory: Any = None,
    transform_input: Sequence[str] | None = None,
    verbose: bool = False,
) -> Any:
    """Make a `Pipeline` whose steps are named after their classes.

    Parameters
    ----------
    *steps : estimator
        Transformers, and an estimator of this package as the last one.
    memory : str or object, optional
        Cache of fitted transformers, as in scikit-learn.
    transform_input : list of str, optional
        Parameter of scikit-learn's pipeline.
    verbose : bool, default=False
        Print the time of each step.

    Returns
    -------
    Pipeline
        Pipeline, not fitted yet.

    Examples
    --------
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.compose import make_pipeline
    >>> list(make_pipeline(PolynomialFeatures(2), EvidenceMLPRegressor(())).named_steps)
    ['polynomialfeatures', 'evidencemlpregressor']
    """
    named = sklearn.pipeline.make_pipeline(*steps).steps
    return Pipeline(named, memory=memory, transform_input=transform_input, verbose=verbose)
