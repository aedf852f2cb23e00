"""
Candidates and starts on a cluster
==================================

Searches and fits divide their work through joblib. A cluster takes it over with
one line, ``joblib.parallel_config("dask")``, and finds the same results to the
last bit. Here the cluster consists of two processes on this computer. Dask is
an optional dependency (``pip install "dask[distributed]"``).
"""

from importlib import import_module

import joblib
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster, get_task_stream

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.model_selection import EvidenceSearch

# %%
# Six models of one data set are compared by their evidence. ``n_jobs`` is the
# number of parts into which the work is divided. ``n_jobs=1`` of the model
# keeps a candidate together: by default its starts would be tasks of their own.

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (120, 3))
y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.2 * rng.standard_normal(120)
grid = {
    "hidden_layer_sizes": [(), (2,), (4,)],
    "prior": ["layer", "ard"],
}
model = EvidenceMLPRegressor(
    n_restarts=4,
    noise="constant",
    method="laplace",
    n_jobs=1,
    random_state=0,
)
search = EvidenceSearch(model, grid, n_jobs=6)

# %%
# The workers of the cluster are new processes that import this script. The
# ``if`` keeps them from running it themselves.

workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
if __name__ == "__main__":
    with (
        LocalCluster(**workers) as cluster,
        Client(cluster) as client,
        joblib.parallel_config("dask"),
        get_task_stream(client) as tasks,
    ):
        client.run(import_module, "skbayesnn")  # takes longer than a fit
        search.fit(X, y)  # every candidate is a task
        best = search.best_estimator_.set_params(n_jobs=4)
        best.fit(X, y)  # every start is a task

# %%
# The search in this process has equal results.

if __name__ == "__main__":
    log_evidence = search.results_["log_evidence"]
    mean, std = search.predict(X, return_std=True)

    search.set_params(n_jobs=1).fit(X, y)
    print(search.best_params_)
    print(np.array_equal(log_evidence, search.results_["log_evidence"]))
    print(np.array_equal([mean, std], search.predict(X, return_std=True)))

# %%
# The picture shows which worker was busy when. Each bar is a task: first the
# candidates of the search, then the starts of the best model. Candidates take
# different times, and a worker that is free takes the next one.

if __name__ == "__main__":
    spans = [
        (task["worker"], span["start"], span["stop"])
        for task in tasks.data
        for span in task["startstops"]
        if span["action"] == "compute"
    ]
    names = sorted({worker for worker, _, _ in spans})
    begun = min(start for _, start, _ in spans)

    fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
    for worker, start, stop in spans:
        ax.barh(
            names.index(worker), stop - start, left=start - begun, height=0.6
        )
    ax.set(
        xlabel="seconds since the first task began",
        yticks=[0, 1],
        yticklabels=["worker 1", "worker 2"],
    )

# %%
# Ray works in the same way, with three lines (``pip install ray``)::
#
#     from ray.util.joblib import register_ray
#
#     register_ray()
#     with joblib.parallel_config("ray"):
#         search.fit(X, y)
#
# To use the computers of a real cluster, start the workers there, connect with
# ``Client(address)`` or ``ray.init(address)``, and install the same versions on
# all of them.
