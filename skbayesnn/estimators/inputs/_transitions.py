"""Transitions of the chains: validation of a `Sampler`, and the plan of a classic one."""

import numbers

import numpy as np

from skbayesnn.estimators.inputs._parameters import count, integer, one_of, positive
from skbayesnn.samplers import Plan, random_walk

DTYPES = ("float32", "float64", np.float32, np.float64)
CLASSICS = {
    "hmc": Plan(n_steps=20),
    "langevin": Plan(n_steps=1),
    "stochastic_dynamics": Plan(n_steps=1, persistence=0.95, metropolis=False),
    "metropolis": Plan(n_steps=1, kernel=random_walk, target=0.25),
}
OF_THE_DYNAMICS = ("n_steps", "persistence")  # parameters that a random walk does not have


def check_transitions(sampler):
    """Raise ``ValueError`` or ``TypeError`` for an invalid parameter of a `Sampler`."""
    one_of(sampler, "kind", ("auto", *CLASSICS))
    if sampler.step_size is not None:
        positive(sampler, "step_size")
    if isinstance(sampler.n_steps, tuple | list):
        if len(sampler.n_steps) != 2:
            raise ValueError(
                "sampler.n_steps must be an integer or a pair (low, high) of the fewest and the "
                f"most steps, got {sampler.n_steps!r}."
            )
        low, high = sampler.n_steps
        count(high, "sampler.n_steps", count(low, "sampler.n_steps"))
    elif sampler.n_steps is not None:
        integer(sampler, "n_steps", 1)
    given = sampler.persistence
    if given is not None and not (isinstance(given, numbers.Real) and 0 <= given < 1):
        raise ValueError(
            "sampler.persistence must be None, or a number from 0 (fresh momenta) to less than 1; "
            f"got {given!r}."
        )
    if not sampler._thins_itself:
        integer(sampler, "thin", 1)
    if sampler.dtype not in DTYPES:
        raise ValueError(f"sampler.dtype must be float32 or float64, got {sampler.dtype!r}.")
    if sampler.kind == "auto" and _given(sampler):
        raise ValueError(
            "step_size, n_steps and persistence belong to the samplers 'hmc', 'langevin' and "
            "'stochastic_dynamics', step_size also to 'metropolis'; sampler='auto' tunes its own."
        )
    if sampler.kind == "metropolis" and _given(sampler).keys() & set(OF_THE_DYNAMICS):
        raise ValueError(
            "sampler='metropolis' has no n_steps and no persistence. For more steps between draws "
            "raise sampler.thin."
        )


def _given(sampler):
    """Given parameters of the transitions, by name."""
    given = {name: getattr(sampler, name) for name in ("step_size", *OF_THE_DYNAMICS)}
    if isinstance(sampler.n_steps, tuple | list):
        given["n_steps"] = tuple(map(int, sampler.n_steps))
    return {name: value for name, value in given.items() if value is not None}


def classic_plan(sampler):
    """Plan of the transitions of a classic sampler; ``None`` for the default one."""
    if sampler.kind == "auto":
        return None
    return CLASSICS[sampler.kind]._replace(**_given(sampler))
