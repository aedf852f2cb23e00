"""NumPyro's NUTS on the Bayesian network of one hidden layer, as a yardstick for samplers.

The network has tanh units and inputs standardised by the training rows. Its weights are normal
with mean 0 in three groups (hidden weights, hidden biases, output weights and biases), the log of
each group's standard deviation uniform between ln 1e-3 and ln 1e3; so are the noise levels of the
outputs in regression, whose targets are standardised too. Weights are sampled as ``sd * z`` unless
``--centred``.

Diagnostics are of the outputs on the test rows (logits, or standardised predictions), which do not
depend on the order or the signs of the units: rank-normalised split R-hat and bulk effective
sample size of Vehtari et al. (2021), in code of this file. Times are of all chains at once, one per
core. NumPyro compiles in every run (a cache makes that short after the first); JAX reports how long
that takes, and all times but ``wall_s`` are without it. ``cpu_s`` adds up the cores: half of it is
the time that two chains of equal length take on two idle cores. For clean CPU times give the first
seed twice and drop its first run, from which the time of compilation is subtracted. Run with::

    SKBAYESNN_DATA=folder python tests/benchmarks/numpyro_peer.py ripley_synth --out results.json
    python tests/benchmarks/numpyro_peer.py robot_arm --seeds 0

The folder holds ``ripley_synth.npz`` and ``ripley_pima.npz``: arrays ``X``, ``y``, ``train_idx``,
``test_idx``. NumPyro and its JAX are needed; skbayesnn is not.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS
from reporting import print_table
from robot_arm import training_set
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit, ndtri
from scipy.stats import rankdata

LN_SD_RANGE = (np.log(1e-3), np.log(1e3))
COLUMNS = 100  # outputs that are diagnosed at a time


# data ---------------------------------------------------------------------------------------------


def load(name, index):
    """A data set with inputs standardised by the training rows.

    Parameters
    ----------
    name : {"ripley_synth", "ripley_pima", "robot_arm"}
    index : int
        Number of the robot arm's training set.

    Returns
    -------
    dict
        ``X``, ``y``, ``X_test``, ``y_test`` and ``scale``: standard deviations of the targets
        (None for classes). Both `y` and `y_test` are standardised in regression; `y_test` is free
        of noise.
    """
    if name == "robot_arm":
        X, y, X_test, y_test = training_set(index)
        centre, scale = y.mean(axis=0), y.std(axis=0)
        y, y_test = (y - centre) / scale, (y_test - centre) / scale
    else:
        folder = os.environ.get("SKBAYESNN_DATA")
        if folder is None:
            sys.exit("the environment variable SKBAYESNN_DATA must name the folder of the data")
        with np.load(Path(folder) / f"{name}.npz") as file:
            train, test = file["train_idx"].ravel(), file["test_idx"].ravel()
            X, X_test = file["X"][train], file["X"][test]
            y, y_test = file["y"][train], file["y"][test]
        scale = None
    mean, sd = X.mean(axis=0), X.std(axis=0)
    X, X_test = (X - mean) / sd, (X_test - mean) / sd
    return {"X": X, "y": y, "X_test": X_test, "y_test": y_test, "scale": scale}


# model --------------------------------------------------------------------------------------------


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


def model(X, y, hidden, regression, centred):
    """NumPyro's description of the network."""
    n_outputs = y.shape[1] if regression else 1
    ln_sd = numpyro.sample("ln_sd", dist.Uniform(*LN_SD_RANGE).expand([3]).to_event(1))
    sd = jnp.exp(ln_sd)
    weights = {}
    for name, (shape, group) in layer_shapes(X.shape[1], hidden, n_outputs).items():
        prior_sd = sd[group] if centred else 1.0
        prior = dist.Normal(0.0, prior_sd).expand(shape).to_event(len(shape))
        drawn = numpyro.sample(name, prior)
        weights[name] = drawn if centred else sd[group] * drawn
    outputs = forward(weights, X)
    if regression:
        prior = dist.Uniform(*LN_SD_RANGE).expand([n_outputs]).to_event(1)
        ln_noise = numpyro.sample("ln_noise", prior)
        numpyro.sample("y", dist.Normal(outputs, jnp.exp(ln_noise)).to_event(2), obs=y)
    else:
        numpyro.sample("y", dist.Bernoulli(logits=outputs[:, 0]).to_event(1), obs=y)


def test_outputs(draws, X_test, n_outputs, hidden, centred):
    """Outputs on the test rows, of shape (n_chains, n_draws, n_rows * n_outputs)."""
    sd = jnp.exp(draws["ln_sd"])
    weights = {}
    for name, (shape, group) in layer_shapes(X_test.shape[1], hidden, n_outputs).items():
        factor = sd[..., group].reshape(sd.shape[:2] + (1,) * len(shape))
        weights[name] = draws[name] if centred else factor * draws[name]
    one_chain = jax.vmap(forward, in_axes=(0, None))
    outputs = jnp.stack(
        [one_chain({k: w[c] for k, w in weights.items()}, X_test) for c in range(len(sd))]
    )
    return np.asarray(outputs, dtype=float).reshape(*outputs.shape[:2], -1)


# diagnostics --------------------------------------------------------------------------------------


def diagnose(draws):
    """Convergence diagnostics of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_quantities)

    Returns
    -------
    rhat : ndarray of shape (n_quantities,)
        The larger of the rank-normalised split R-hat of the draws and of their distances from the
        median.
    bulk_ess : ndarray of shape (n_quantities,)
    """
    rhat, bulk_ess = [], []
    for start in range(0, draws.shape[2], COLUMNS):
        halves = split(draws[:, :, start : start + COLUMNS])
        scores = normal_scores(halves)
        folded = normal_scores(np.abs(halves - np.median(halves, axis=(0, 1))))
        rhat.append(np.maximum(gelman_rubin(scores), gelman_rubin(folded)))
        bulk_ess.append(effective_sample_size(scores))
    return np.concatenate(rhat), np.concatenate(bulk_ess)


def split(draws):
    """Every chain as two: its first and its second half."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def normal_scores(draws):
    """Normal quantiles of the ranks among all chains."""
    ranks = rankdata(draws.reshape(-1, draws.shape[2]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(draws.shape)


def variances(draws):
    """Mean variance within chains, and the estimate from within and between chains."""
    n_draws = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    return within, within * (n_draws - 1) / n_draws + between


def gelman_rubin(draws):
    """Potential scale reduction of chains that are split already."""
    within, total = variances(draws)
    return np.sqrt(total / within)


def effective_sample_size(draws):
    """Effective sample size of chains that are split already, by Geyer's monotone sequence."""
    n_chains, n_draws, n_quantities = draws.shape
    within, total = variances(draws)
    centred = draws - draws.mean(axis=1, keepdims=True)
    length = next_fast_len(2 * n_draws, real=True)
    spectrum = np.abs(rfft(centred, length, axis=1)) ** 2
    covariance = irfft(spectrum, length, axis=1)[:, :n_draws].mean(axis=0) / n_draws
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    even, odd = rho[0 : n_draws - 1 : 2], rho[1:n_draws:2]
    pairs = even + odd
    pairs[-1] = -1.0  # ends every sequence
    end = np.argmax(pairs < 0, axis=0)
    kept = np.arange(len(pairs))[:, None] < end
    tau = -1.0 + 2.0 * np.where(kept, np.minimum.accumulate(pairs, axis=0), 0.0).sum(axis=0)
    tau += np.maximum(even[end, np.arange(n_quantities)], 0.0)
    size = n_chains * n_draws
    return size / np.maximum(tau, 1.0 / np.log10(size))


def quality(outputs, data):
    """Test errors of the mean prediction over all chains and draws."""
    flat = outputs.reshape(-1, outputs.shape[2])
    if data["scale"] is None:
        p, y = expit(flat).mean(axis=0), data["y_test"]
        return {
            "log_loss": float(-np.mean(np.log(np.where(y == 1, p, 1 - p)))),
            "accuracy": float(np.mean((p > 0.5) == (y == 1))),
        }
    distance = (flat.mean(axis=0).reshape(data["y_test"].shape) - data["y_test"]) * data["scale"]
    return {"squared_distance": float(np.mean(np.sum(distance**2, axis=1)))}


# runs ---------------------------------------------------------------------------------------------


class Sampler:
    """NUTS with the settings of the command line."""

    def __init__(self, data, args):
        dtype = np.float32 if args.float32 else np.float64
        self.X, self.y = data["X"].astype(dtype), data["y"]
        self.regression = data["scale"] is not None
        if self.regression:
            self.y = self.y.astype(dtype)
        self.settings = (self.X, self.y, args.hidden, self.regression, args.centred)
        self.mcmc = MCMC(
            NUTS(
                lambda X, y: model(X, y, *self.settings[2:]),
                target_accept_prob=args.target_accept,
            ),
            num_warmup=args.warmup,
            num_samples=args.draws,
            num_chains=args.chains,
            chain_method="parallel",
            progress_bar=False,
        )
        self.compile_s = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event, seconds, **_):
        if event.startswith("/jax/core/compile/"):  # tracing, lowering and XLA itself
            self.compile_s += seconds

    def run(self, seed):
        """Draws by chain, and a dictionary of seconds and counts."""
        fields, report, phases = ("num_steps", "diverging", "accept_prob"), {}, {}
        key = jax.random.PRNGKey(seed)
        report["wall_s"] = 0.0
        for phase in ("warmup", "sampling"):
            self.compile_s, start, cpu_start = 0.0, perf_counter(), process_time()
            if phase == "warmup":
                self.mcmc.warmup(key, self.X, self.y, extra_fields=fields, collect_warmup=True)
            else:
                key = self.mcmc.post_warmup_state.rng_key
                self.mcmc.run(key, self.X, self.y, extra_fields=fields)
            draws = jax.device_get(self.mcmc.get_samples(group_by_chain=True))  # waits for the end
            seconds = perf_counter() - start
            report["wall_s"] += seconds
            report[f"{phase}_cpu_s"] = process_time() - cpu_start - self.compile_s
            report[f"{phase}_compile_s"] = self.compile_s
            report[f"{phase}_s"] = seconds - self.compile_s
            phases[phase] = jax.device_get(self.mcmc.get_extra_fields(group_by_chain=True))
        report["load_average"] = os.getloadavg()[0]  # near the number of chains, if undisturbed
        report["total_s"] = report["warmup_s"] + report["sampling_s"]
        report["cpu_s"] = report["warmup_cpu_s"] + report["sampling_cpu_s"]
        for phase, values in phases.items():
            steps = np.asarray(values["num_steps"], dtype=int)
            report[f"{phase}_leapfrog_steps"] = int(steps.sum())
            report[f"{phase}_steps_per_draw"] = steps.mean(axis=1).tolist()
            report[f"{phase}_full_trees"] = int(np.sum(steps >= 1023))
            report[f"{phase}_divergences"] = int(np.sum(values["diverging"]))
        report["leapfrog_steps"] = sum(report[f"{phase}_leapfrog_steps"] for phase in phases)
        cpu_s = report["cpu_s"]
        report["cpu_microseconds_per_leapfrog_step"] = 1e6 * cpu_s / report["leapfrog_steps"]
        report["accept_prob"] = np.mean(phases["sampling"]["accept_prob"], axis=1).tolist()
        step_size = np.asarray(self.mcmc.last_state.adapt_state.step_size)
        report["step_size"] = step_size.astype(float).tolist()
        return draws, report


def measure(sampler, data, seed, args):
    """One run and its diagnostics: a dictionary for the results."""
    draws, report = sampler.run(seed)
    n_outputs = data["y"].shape[1] if sampler.regression else 1
    X_test = data["X_test"].astype(sampler.X.dtype)
    outputs = test_outputs(draws, X_test, n_outputs, args.hidden, args.centred)
    rhat, ess = diagnose(outputs)
    report["rhat_max"] = float(rhat.max())
    report["rhat_median"] = float(np.median(rhat))
    report["rhat_above_1.01"] = float(np.mean(rhat > 1.01))
    for name, value in (("min", ess.min()), ("median", np.median(ess))):
        report[f"ess_{name}"] = float(value)
        report[f"ess_{name}_per_sampling_s"] = float(value / report["sampling_s"])
        report[f"ess_{name}_per_total_s"] = float(value / report["total_s"])
        report[f"ess_{name}_per_cpu_s"] = float(value / report["cpu_s"])
        steps = report["leapfrog_steps"]
        report[f"ess_{name}_per_1000_leapfrog_steps"] = float(1e3 * value / steps)
    report.update(quality(outputs, data))
    hyper = [draws["ln_sd"], draws["ln_noise"]] if sampler.regression else [draws["ln_sd"]]
    hyper = np.concatenate(hyper, axis=2).astype(float)
    rhat, ess = diagnose(hyper)
    report["ln_sd_mean"] = hyper.mean(axis=(0, 1)).tolist()
    report["ln_sd_sd"] = hyper.std(axis=(0, 1)).tolist()
    report["ln_sd_rhat"], report["ln_sd_ess"] = rhat.tolist(), ess.tolist()
    return report


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", choices=["ripley_synth", "ripley_pima", "robot_arm"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", type=int, default=0, help="the robot arm's training set (0)")
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--target-accept", type=float, default=0.8)
    parser.add_argument("--centred", action="store_true")
    parser.add_argument("--float32", action="store_true", help="NumPyro's default; ours is float64")
    parser.add_argument("--out", help="JSON file for the results")
    args = parser.parse_args()

    numpyro.set_platform("cpu")
    numpyro.set_host_device_count(args.chains)
    numpyro.enable_x64(not args.float32)
    with TemporaryDirectory() as cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        run_all(args)


def run_all(args):
    """Run every seed, print and write the results."""
    data = load(args.data, args.set)
    sampler = Sampler(data, args)
    results = {
        **vars(args),
        "rows": {"train": len(data["y"]), "test": len(data["y_test"])},
        "versions": {"numpyro": numpyro.__version__, "jax": jax.__version__},
        "runs": [],
    }
    for seed in args.seeds:
        report = {"seed": seed, **measure(sampler, data, seed, args)}
        results["runs"].append(report)
        print(json.dumps(report), flush=True)
        if args.out:
            Path(args.out).write_text(json.dumps(results, indent=1) + "\n")
    columns = "seed wall_s cpu_s total_s warmup_s sampling_s leapfrog_steps sampling_divergences"
    columns += " rhat_max ess_min ess_median ess_min_per_sampling_s ess_median_per_sampling_s"
    columns += " ess_min_per_total_s ess_median_per_total_s"
    columns += " squared_distance" if sampler.regression else " log_loss accuracy"
    rows = [{name: run[name] for name in columns.split()} for run in results["runs"]]
    print_table(f"{args.data}, {args.hidden} units, {args.chains} chains", rows)


if __name__ == "__main__":
    main()
