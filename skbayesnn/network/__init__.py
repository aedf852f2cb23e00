"""Multilayer perceptrons as functions of a flat weight vector, and their exact derivatives.

This package does not depend on targets, noise or priors.
"""

from skbayesnn.network._curvature import hessian, hessian_width
from skbayesnn.network._network import (
    ACTIVATIONS,
    BLOCK_DOUBLES,
    Network,
    forward,
    of_networks,
    outputs,
    row_blocks,
    with_constant,
)
from skbayesnn.network._products import (
    curvature_product,
    hidden_gradient,
    input_jacobian,
    input_tangents,
    jacobian,
    jacobian_vector,
    kronecker_factors,
    mixed_jacobian,
    output_covariances,
    sensitivities,
    vector_jacobian,
)
