"""Interface to the compiled core.

`_core` is built from ``_core.pyx`` and ``core.c`` when the package is installed with a C compiler.
Its functions implement methods of `Posterior`, `JointPosterior` and `BatchSteps`, which call them
where possible and use NumPy otherwise, with equal results to rounding. (Forces along trajectories
are mostly in single precision. So are misfits of classes and counts in moves between trajectories,
with errors of 1e-5 to 3e-4 nats. Energies of Metropolis tests of trajectories are in double
precision.) The environment variable ``SKBAYESNN_COMPILED`` names the set of instructions to use;
``0`` disables the core.
"""

import os
from dataclasses import replace

import numpy as np

try:
    from skbayesnn.posterior.kernels import _core
except ImportError:  # installed without a compiler
    _core = None

_WANTED = os.environ.get("SKBAYESNN_COMPILED", "")
if _WANTED == "0":
    _core = None
elif _WANTED and _core is not None:
    _core.use(_WANTED)


def instructions():
    """Set of instructions that the compiled core uses; ``None`` without it."""
    return None if _core is None else _core.in_use()


def compiled_model(posterior):
    """Compiled twin of a `Posterior`, or ``None``."""
    network, likelihood = posterior.network, posterior.likelihood
    if (
        _core is None
        or not vars(type(likelihood)).get("compiled")  # its own, not that of what it is made from
        or network.activation not in _core.ACTIVATIONS
        or len(network.layer_sizes) > _core.DEEPEST
        or np.ndim(posterior.y) != 2  # targets of many simulations at once
    ):
        return None
    return _core.Model(
        network, likelihood, likelihood.compiled_targets(posterior.targets()), posterior.X
    )


def compiled_joint(joint, posterior, noise_network=None):
    """Compiled twin of a `JointPosterior`, or ``None``, as where nothing moves.

    The posterior is that given the conditions of a position, with Gaussian noise, classes or
    counts; its ``known`` variances add to those of the noise.
    """
    model, noise = posterior.compiled, None
    plain = posterior.factors is None and posterior.groups.centred
    if noise_network is not None:
        noise = compiled_model(replace(posterior, network=noise_network))
        plain = plain and noise is not None
    if model is None or not plain or not joint.dimension:
        return None
    variances = posterior.known if posterior.likelihood.n_levels else None
    if not joint.integrated and (noise is not None or variances is not None):
        return None
    return _core.Joint(model, joint, joint.precision_map, noise, variances)
