"""Fixed basis functions as scikit-learn transformers (MacKay 1992, chapter 2).

In front of an estimator without a hidden layer they give MacKay's linear interpolation models,
whose evidence can be compared with the evidence of networks on the same data::

    make_pipeline(
        RadialBasisFeatures(60), EvidenceMLPRegressor(hidden_layer_sizes=(), standardize=False)
    )

``standardize=False`` matters: the prior gives all weights one precision, so that the relative sizes
of the features are part of the model and must not be standardised. The constant function is the
intercept of the estimator. Targets far from order 1 should be rescaled beforehand, because the
prior standard deviations of weights and noise are sought between 0.001 and 1000.
"""

from skbayesnn.basis._features import HermiteFunctionFeatures, LegendreFeatures, RadialBasisFeatures

__all__ = [
    "HermiteFunctionFeatures",
    "LegendreFeatures",
    "RadialBasisFeatures",
]
