"""Pipeline with the methods of its last step."""

from collections.abc import Sequence
from functools import wraps
from typing import Any

import sklearn.pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skbayesnn._docs import LinkToSite, documented
from skbayesnn.estimators import EvidenceMLPRegressor
from skbayesnn.estimators._pipeline import final_step, predictor


def delegated(method: Any, of_inputs: bool = False) -> Any:
    """Delegate a method of a `Delegating` object to its `predictor`, available if that has it."""

    def has_it(meta):
        # derivatives ``of_inputs`` are those of the model, which a pipeline does not pass on
        if of_inputs and isinstance(meta._asked, sklearn.pipeline.Pipeline):
            raise AttributeError(
                "Derivatives exist by the inputs of the last step of a pipeline: "
                f"pipeline[-1].{method.__name__}(pipeline[:-1].transform(X))."
            )
        return hasattr(final_step(meta._asked), method.__name__)

    @wraps(method)
    def call(self, X, *args, **kwargs):
        check_is_fitted(self)
        model, X = predictor(self, X)
        return getattr(model, method.__name__)(X, *args, **kwargs)

    return available_if(has_it)(call)


class Delegating:
    """Mixin of pipelines and searches: predictions of the model inside, if it has them."""

    @property
    def _asked(self):
        """Pipeline or model, perhaps before the fit, that has the methods."""
        return self

    predict_distribution = delegated(EvidenceMLPRegressor.predict_distribution)
    predict_std = delegated(EvidenceMLPRegressor.predict_std)
    predict_output_cov = delegated(EvidenceMLPRegressor.predict_output_cov)
    predict_interval = delegated(EvidenceMLPRegressor.predict_interval)
    predict_quantiles = delegated(EvidenceMLPRegressor.predict_quantiles)
    log_predictive_density = delegated(EvidenceMLPRegressor.log_predictive_density)
    predict_gradient = delegated(EvidenceMLPRegressor.predict_gradient, of_inputs=True)
    sample_gradient = delegated(EvidenceMLPRegressor.sample_gradient, of_inputs=True)
    novelty = delegated(EvidenceMLPRegressor.novelty)
    sample_y = delegated(EvidenceMLPRegressor.sample_y)
    sample_prior = delegated(EvidenceMLPRegressor.sample_prior)


def _attribute(name, summary):
    def get(pipeline):
        return getattr(final_step(pipeline), name)

    return property(get, doc=summary)


class Pipeline(LinkToSite, Delegating, sklearn.pipeline.Pipeline):
    """Pipeline with the predictions and the evidence of its last step.

    `sklearn.pipeline.Pipeline` lacks methods such as ``predict_interval``. This pipeline adds the
    error bars, intervals, densities and drawn functions of its last step. Derivatives are by the
    inputs of the last step: ``pipeline[-1].predict_gradient(pipeline[:-1].transform(X))``.

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
    log_evidence_std_ = _attribute("log_evidence_std_", "Standard error of the log evidence.")
    evidence_report_ = _attribute("evidence_report_", "`EvidenceReport` of the last step.")


@documented(Pipeline.__doc__ or "")
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
