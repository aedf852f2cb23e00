"""Joint posteriors of small problems, under every kind of noise."""

from dataclasses import replace

import numpy as np

from skbayesnn.inference.noise._input_dependent_noise import NoisePlan
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.posterior import (
    Gamma,
    Gaussian,
    Hyperpriors,
    InputDependentJoint,
    InputDependentStudentTJoint,
    JointPosterior,
    LogUniform,
    MeasuredJoint,
    StudentT,
    StudentTJoint,
)
from tests.tools import LIKELIHOODS, make_problem

RANGE = LogUniform(0.05, 20.0)
MIXED = RANGE, Gamma(1.5, 0.7, 0.02, 30.0)  # hyperpriors of both kinds
DEGREES = (2.5, 5.0, 20.0)
MEASURED = ["measured", "measured_shared"]
INDEPENDENT = [
    "student_t",
    "student_t_shared",
    "input_dependent",
    "input_dependent_two",
    "input_dependent_student_t",
    *MEASURED,
]
ALL_JOINTS = [*LIKELIHOODS, *INDEPENDENT]


def make_joint(
    name,
    hidden=(3,),
    prior="layer",
    integrate=True,
    known=True,
    fixed=False,
    seed=0,
    n=7,
    size=3,
    hyperpriors=(RANGE,),
    **options,
):
    """A joint posterior and some positions ``(size, dimension + n_conditions)``."""
    sources = {"input_dependent": "student_t", "input_dependent_two": "gaussian"}
    source = (sources | {"input_dependent_student_t": "student_t"}).get(name, name)
    posterior, _, hyper = make_problem(source, hidden, prior=prior, n=n, seed=seed, **options)
    rng = np.random.default_rng(seed + 1)
    alpha, beta = (np.ones(len(values), dtype=bool) for values in hyper)
    if fixed:
        alpha[-1] = beta[:1] = False
    kind, own = JointPosterior, {}
    if name.startswith("student_t"):
        kind, own = StudentTJoint, {"degrees_of_freedom": DEGREES}
    if name.startswith("input_dependent"):
        noise = Gaussian.per_output(posterior.network.n_outputs)
        network, groups = NoisePlan.build(posterior.network, (2,), "layer")
        kind, own = InputDependentJoint, {"noise_network": network, "noise_groups": groups}
        if name.endswith("student_t"):
            kind, own = InputDependentStudentTJoint, own | {"degrees_of_freedom": DEGREES}
            noise = StudentT.per_output(posterior.network.n_outputs)
        posterior = replace(posterior, likelihood=noise)
        further = np.ones(len(groups.names) - 1)
        alpha = np.append(alpha, further > 0)
        hyper = hyper._replace(alpha=np.append(hyper.alpha, further))
    if name in MEASURED:
        kind = MeasuredJoint
    information = np.exp(rng.normal(0.0, 2.0, len(alpha))) if known else np.zeros(len(alpha))
    n_free = len(alpha) + len(beta)
    priors = Hyperpriors.of((n_free * [*hyperpriors])[:n_free])  # in turns
    free = FreeHyperparameters(alpha, beta, priors)
    joint = kind(posterior, free, hyper, information, integrate, **own)
    q = rng.standard_normal((size, joint.dimension + joint.n_conditions))
    if joint.n_conditions:
        q[:, joint.dimension :][:, :n] = rng.gamma(2.0, 0.5, (size, n))
        q[:, joint.dimension + n] = np.resize(DEGREES, size)
    return joint, q
