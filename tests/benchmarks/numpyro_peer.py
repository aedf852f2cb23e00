"""The Bayesian network of one hidden layer for NumPyro's NUTS, as `neighbours.py` samples it.

The network has tanh units and inputs standardised by the training rows. Its weights are normal
with mean 0 in three groups (hidden weights, hidden biases, output weights and biases), the log of
each group's standard deviation uniform between ln 1e-3 and ln 1e3; so are the noise levels of the
outputs in regression, whose targets are standardised too.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

LN_SD_RANGE = (np.log(1e-3), np.log(1e3))


def layer_shapes(n_inputs, hidden, n_outputs):
    """Shapes of the arrays of weights, and the group of each (0, 1, 2)."""
    return {
        "W1": ((n_inputs, hidden), 0),
        "b1": ((hidden,), 1),
        "W2": ((hidden, n_outputs), 2),
        "b2": ((n_outputs,), 2),
    }


def forward(weights, X):
    """Outputs of the network, of shape (n_rows, n_outputs)."""
    return jnp.tanh(X @ weights["W1"] + weights["b1"]) @ weights["W2"] + weights["b2"]


def model(X, y, hidden, regression):
    """NumPyro's description of the network."""
    n_outputs = y.shape[1] if regression else 1
    ln_sd = numpyro.sample("ln_sd", dist.Uniform(*LN_SD_RANGE).expand([3]).to_event(1))
    sd = jnp.exp(ln_sd)
    weights = {}
    for name, (shape, group) in layer_shapes(X.shape[1], hidden, n_outputs).items():
        prior = dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape))
        weights[name] = sd[group] * numpyro.sample(name, prior)
    outputs = forward(weights, X)
    if regression:
        prior = dist.Uniform(*LN_SD_RANGE).expand([n_outputs]).to_event(1)
        ln_noise = numpyro.sample("ln_noise", prior)
        numpyro.sample("y", dist.Normal(outputs, jnp.exp(ln_noise)).to_event(2), obs=y)
    else:
        numpyro.sample("y", dist.Bernoulli(logits=outputs[:, 0]).to_event(1), obs=y)


def test_outputs(draws, X_test, n_outputs, hidden):
    """Outputs on the test rows, of shape (n_chains, n_draws, n_rows * n_outputs)."""
    sd = jnp.exp(draws["ln_sd"])
    weights = {}
    for name, (shape, group) in layer_shapes(X_test.shape[1], hidden, n_outputs).items():
        factor = sd[..., group].reshape(sd.shape[:2] + (1,) * len(shape))
        weights[name] = factor * draws[name]
    one_chain = jax.vmap(forward, in_axes=(0, None))
    outputs = jnp.stack(
        [one_chain({k: w[c] for k, w in weights.items()}, X_test) for c in range(len(sd))]
    )
    return np.asarray(outputs, dtype=float).reshape(*outputs.shape[:2], -1)
