"""Noise models: motorcycle data, recovered noise levels, choice by evidence, outliers, time.

    python tests/benchmarks/noise_models.py [part ...]

Parts: motorcycle (needs ``mcycle.npz`` with arrays ``X`` and ``y`` in the folder named by the
environment variable SKBAYESNN_DATA), levels, constant, trend (needs the data of `side_by_side.py`
in that folder), outliers, tails, time, inputs, sampling (which takes data like those of
the motorcycle where there are none). All by default.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from reporting import counted_warnings, print_table
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor

N_LEVELS, N_CONSTANT, N_OUTLIERS = 50, 20, 20


def network(noise="constant", hidden=(8,), n_restarts=5, **options):
    return EvidenceMLPRegressor(
        hidden, noise=noise, n_restarts=n_restarts, random_state=0, **options
    )


def gaussian_process():
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
    return GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=4, random_state=0
    )


# --- motorcycle ----------------------------------------------------------------------------------


def held_out_density(make, X, y, standardise=False):
    """Log predictive density of every row by 10-fold cross-validation."""
    result = np.empty(len(y))
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        shift, scale = X[train].mean(), X[train].std()
        A, B = ((X - shift) / scale if standardise else X)[train], None
        B = ((X - shift) / scale if standardise else X)[test]
        model = make().fit(A, y[train])
        if hasattr(model, "log_predictive_density"):
            result[test] = model.log_predictive_density(B, y[test])
        else:
            mean, std = model.predict(B, return_std=True)
            result[test] = norm.logpdf(y[test], mean, std)
    return result


def motorcycle(folder="noise_models_figures"):
    """Density of held-out rows in nats per row, and a picture."""
    data = np.load(Path(os.environ["SKBAYESNN_DATA"]) / "mcycle.npz")
    X, y = data["X"], data["y"]
    makers = {
        "Gaussian process": gaussian_process,
        "constant": network,
        "student_t": lambda: network("student_t"),
        "input_dependent": lambda: network("input_dependent"),
        "auto": lambda: network("auto"),
    }
    densities = {
        name: held_out_density(make, X, y, name.startswith("Gaussian"))
        for name, make in makers.items()
    }
    rows = []
    for name, density in densities.items():
        gain = densities["input_dependent"] - density
        rows.append(
            {
                "model": name,
                "log density per row": f"{density.mean():.3f}",
                "input_dependent gains": f"{gain.mean():.3f} +- {gain.std() / len(y) ** 0.5:.3f}",
                "worst row": f"{density.min():.1f}",
            }
        )
    print_table("Motorcycle, 10-fold cross-validation", rows)
    for noise in ("constant", "student_t", "input_dependent"):
        print(noise, "log evidence", round(network(noise).fit(X, y).log_evidence_, 1))
    draw_motorcycle(X, y, Path(folder))


def draw_motorcycle(X, y, folder):
    import matplotlib.pyplot as plt

    folder.mkdir(exist_ok=True)
    grid = np.linspace(X.min() - 2, X.max() + 4, 300)[:, None]
    fig, axes = plt.subplots(
        2, 1, figsize=(4.5, 5.0), sharex=True, sharey=True, layout="constrained"
    )
    for ax, noise in zip(axes, ("constant", "input_dependent"), strict=True):
        model = network(noise).fit(X, y)
        mean, std = model.predict(grid), model.predict_std(grid, kind="epistemic")
        low, high = model.predict_interval(grid, 0.95).T
        ax.fill_between(grid[:, 0], low, high, color="#56B4E9", alpha=0.4, lw=0, label="95 %")
        band = (mean - 2 * std, mean + 2 * std)
        ax.fill_between(grid[:, 0], *band, color="#0072B2", alpha=0.5, lw=0, label="mean ± 2 sd")
        ax.plot(grid[:, 0], mean, color="#0072B2", lw=1.2)
        ax.plot(X[:, 0], y, "k.", ms=3)
        ax.set(ylabel="acceleration (g)", title=f'noise="{noise}"')
    axes[1].set(xlabel="time after impact (ms)")
    axes[0].legend(frameon=False, loc="lower right")
    fig.savefig(folder / "motorcycle.png", dpi=150)
    print("picture:", folder / "motorcycle.png")


# --- noise levels that are known -----------------------------------------------------------------


def known_noise(X):
    """From 0.05 to 0.5 across the range."""
    return 0.05 * 10 ** ((X[:, 0] + 3) / 6)


def rows_of_known_noise(seed, n=200):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    truth = np.sin(1.5 * X[:, 0])
    return X, truth + known_noise(X) * rng.standard_normal(n), truth


def by_maximum_likelihood(X, y, hidden=8, seed=0):
    """Noise sd as a function of x: a network each for mean and log sd, likelihood alone."""
    rng = np.random.default_rng(seed)
    shapes = [(1, hidden), (hidden,), (hidden,), ()] * 2
    sizes = [int(np.prod(shape)) for shape in shapes]

    def functions(theta, x):
        parts = np.split(theta, np.cumsum(sizes)[:-1])
        out = []
        for i in (0, 4):
            W, b, v, c = (
                part.reshape(s) for part, s in zip(parts[i : i + 4], shapes, strict=False)
            )
            hidden_units = np.tanh(x @ W + b)
            out.append((hidden_units, hidden_units @ v + c, v))
        return out

    def objective(theta):
        (z, f, v), (u, h, w) = functions(theta, X)
        r = f - y
        precision = np.exp(h)
        value = 0.5 * np.sum(precision * r**2 - h)
        gradient = []
        for units, delta, out in ((z, precision * r, v), (u, 0.5 * (precision * r**2 - 1), w)):
            back = delta[:, None] * out * (1 - units**2)
            gradient += [X.T @ back, back.sum(0), units.T @ delta, delta.sum()]
        return value, np.concatenate([np.ravel(part) for part in gradient])

    start = rng.standard_normal(sum(sizes))
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return lambda x: np.exp(-0.5 * functions(found.x, x)[1][1])


def levels():
    """Log ratio of found to true noise sd over the central 90 % of the range."""
    grid = np.linspace(-2.7, 2.7, 55)[:, None]
    truth = np.log(known_noise(grid))
    ratios = {"input_dependent": [], "maximum likelihood": []}
    for seed in range(N_LEVELS):
        X, y, _ = rows_of_known_noise(seed)
        model = network("input_dependent", n_restarts=3).fit(X, y)
        found = model.predict_std(grid, kind="aleatoric")
        ratios["input_dependent"].append(np.log(found) - truth)
        sd = by_maximum_likelihood(X, y, seed=seed)(grid)
        ratios["maximum likelihood"].append(np.log(sd) - truth)
    rows = []
    for name, values in ratios.items():
        values = np.array(values)
        means = values.mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(len(means))
        largest = np.max(np.abs(np.expm1(values)), axis=1)
        rows.append(
            {
                "noise": name,
                "mean log ratio": f"{means.mean():+.3f} +- {error:.3f}",
                "rms ratio - 1": f"{np.sqrt(np.mean(np.expm1(values) ** 2)):.3f}",
                "median largest deviation": f"{np.median(largest):.2f}",
                "within 20 %": f"{np.mean(np.abs(np.expm1(values)) < 0.2):.0%} of the points",
                "median curve": f"{np.max(np.abs(np.expm1(np.median(values, 0)))):.1%} off at most",
            }
        )
    print_table(f"Noise sd from 0.05 to 0.5, 200 rows, {N_LEVELS} data sets", rows)


# --- constant noise, outliers, time --------------------------------------------------------------


def constant():
    """How often the evidence prefers constant noise where it is constant."""
    gaps, chosen = [], []
    for seed in range(N_CONSTANT):
        rng = np.random.default_rng(1000 + seed)
        X = rng.uniform(-3, 3, (150, 1))
        y = np.sin(1.5 * X[:, 0]) + 0.2 * rng.standard_normal(150)
        model = network("auto", n_restarts=3).fit(X, y)
        evidences = model.noise_log_evidences_
        chosen.append(model.noise_model_)
        gaps.append(evidences["constant"] - evidences["input_dependent"])
    rows = [
        {
            "data sets": N_CONSTANT,
            "constant over input_dependent": sum(gap > 0 for gap in gaps),
            "chosen among all three": chosen.count("constant"),
            "median gap (nats)": f"{np.median(gaps):.2f}",
            "smallest, largest": f"{min(gaps):.2f}, {max(gaps):.2f}",
        }
    ]
    print_table("Constant noise", rows)


def outliers(n=300):
    """Error of the means with 5 % outliers of 10 to 50 noise sd, and without."""
    grid = np.linspace(-3, 3, 200)[:, None]
    truth = np.sin(1.5 * grid[:, 0])
    errors = {name: [] for name in ("clean", "rest", "student_t", "constant")}
    for seed in range(N_OUTLIERS):
        rng = np.random.default_rng(2000 + seed)
        X = rng.uniform(-3, 3, (n, 1))
        y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(n)
        far = rng.permutation(n)[: n // 20]
        spoilt = y.copy()
        spoilt[far] += rng.choice([-1, 1], len(far)) * rng.uniform(1, 5, len(far))
        rest = np.setdiff1d(np.arange(n), far)
        fits = {
            "clean": network(n_restarts=3).fit(X, y),
            "rest": network(n_restarts=3).fit(X[rest], y[rest]),
            "student_t": network("student_t", n_restarts=3).fit(X, spoilt),
            "constant": network(n_restarts=3).fit(X, spoilt),
        }
        for name, model in fits.items():
            errors[name].append(np.mean((model.predict(grid) - truth) ** 2))
    rows = []
    for name, squares in errors.items():
        new_targets = np.sqrt(0.1**2 + np.mean(squares))
        rows.append(
            {
                "fit": name,
                "rms error of the mean": f"{np.sqrt(np.mean(squares)):.4f}",
                "of new targets": f"{new_targets:.4f}",
                "over clean": f"{new_targets / np.sqrt(0.1**2 + np.mean(errors['clean'])):.3f}",
            }
        )
    print_table(f"5 % outliers, {n} rows, {N_OUTLIERS} data sets", rows)


CURVES = {
    "one input": (1, lambda X: np.sin(3 * X[:, 0]) + 0.5 * X[:, 0]),
    "two inputs": (2, lambda X: np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2),
    "three inputs": (3, lambda X: np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]),
}
LAWS = {
    "Student-t, 2 degrees": lambda rng, n: 0.1 * rng.standard_t(2, n),
    "Gaussian": lambda rng, n: 0.15 * rng.standard_normal(n),
}


def tails(n=100, n_seeds=4, n_test=1000):
    """Defaults where noise has heavy tails and where it has not: log density and error."""
    rows = []
    for law, noise in LAWS.items():
        for curve, (n_inputs, f) in CURVES.items():
            for seed in range(n_seeds):
                rng = np.random.default_rng(seed)
                X = rng.uniform(-2, 2, (n, n_inputs))
                y = f(X) + noise(rng, n)
                X_test = rng.uniform(-2, 2, (n_test, n_inputs))
                y_test = f(X_test) + noise(rng, n_test)
                start = time.process_time()
                with counted_warnings():
                    model = EvidenceMLPRegressor(random_state=0).fit(X, y)
                seconds = time.process_time() - start
                density = model.log_predictive_density(X_test, y_test).mean()
                error = np.sqrt(np.mean((model.predict(X_test) - f(X_test)) ** 2))
                rows.append((law, curve, model.noise_model_, density, error, seconds))
    table = []
    for law in LAWS:
        some = [row for row in rows if row[0] == law]
        density, error, seconds = np.mean([row[3:] for row in some], axis=0)
        chosen = sum(row[2] == "student_t" for row in some)
        line = {"noise": law, "sets": len(some), "Student-t chosen": chosen}
        table.append(line | {"log density": density, "error": error, "CPU s": seconds})
    print_table("heavy tails, defaults", table)


def trend():
    """The p values in the reports of default fits to the first official splits."""
    from side_by_side import splits

    rows = []
    for name in ("yacht", "energy", "concrete", "boston"):
        X, y, *_ = next(splits(name))
        report = EvidenceMLPRegressor(random_state=0).fit(X, y).evidence_report_
        rows.append({"data": name} | {n: f"{p:.0e}" for n, p in report.noise_p_values.items()})
    print_table("P values under constant noise, first split", rows)


def times():
    """Processor time of fits over that with constant noise, the best of two each."""
    rows = []
    for n, hidden in ((150, (8,)), (1000, (16,))):
        X, y, _ = rows_of_known_noise(0, n)
        seconds = {}
        for noise in ("constant", "student_t", "input_dependent", "auto"):
            runs = []
            for _ in range(2):
                start = time.process_time()
                network(noise, hidden).fit(X, y)
                runs.append(time.process_time() - start)
            seconds[noise] = min(runs)
        base = seconds["constant"]
        ratios = {noise: f"{value / base:.1f}" for noise, value in seconds.items()}
        rows.append({"rows": n, "hidden units": hidden[0], "constant (s)": f"{base:.2f}"} | ratios)
    print_table("Processor time over that of constant noise, 5 restarts", rows)


# --- sampling ------------------------------------------------------------------------------------


def motorcycle_like():
    """The data, or 133 rows with a curve and noise levels like theirs."""
    folder = os.environ.get("SKBAYESNN_DATA")
    if folder:
        data = np.load(Path(folder) / "mcycle.npz")
        return data["X"], data["y"]
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(2.0, 58.0, (133, 1)), axis=0)
    x = X[:, 0]
    truth = -130.0 * np.exp(-0.5 * ((x - 21.0) / 4.0) ** 2)
    truth += 55.0 * np.exp(-0.5 * ((x - 32.0) / 5.0) ** 2)
    sd = 2.0 + 22.0 / (1.0 + np.exp(-(x - 16.0)))
    return X, truth + sd * rng.standard_normal(133)


def line_with_outliers(n=200):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 1))
    y = 0.5 * X[:, 0] + 0.1 * rng.standard_normal(n)
    y[: n // 20] += rng.choice([-1, 1], n // 20) * rng.uniform(1, 5, n // 20)
    return X, y


def sampling():
    """Processor time, convergence and held-out density (a quarter of the rows) of the sampler."""
    problems = {"motorcycle": (motorcycle_like(), (8,)), "line": (line_with_outliers(), ())}
    rows = []
    for problem, ((X, y), hidden) in problems.items():
        test = np.random.default_rng(1).permutation(len(y)) < len(y) // 4
        for noise in ("constant", "student_t", "input_dependent"):
            sampler = HMCMLPRegressor(hidden, noise=noise, measure_evidence=False, random_state=0)
            start = time.process_time()
            sampler.fit(X[~test], y[~test])
            seconds = time.process_time() - start
            evidence = network(noise, hidden).fit(X[~test], y[~test])
            if noise == "constant":
                base = seconds
            found = sampler.diagnostics_
            density = [m.log_predictive_density(X[test], y[test]) for m in (sampler, evidence)]
            rows.append(
                {
                    "data": problem,
                    "noise": noise,
                    "time": f"{seconds:.0f} s, {seconds / base:.1f} x",
                    "leapfrog steps": found.n_gradients,
                    "R-hat": f"{found.r_hat:.3f}",
                    "ESS bulk, median": f"{found.bulk_ess:.0f}, {found.median_bulk_ess:.0f}",
                    "of precisions": f"{min(found.hyper_ess.values()):.0f}",
                    "density": f"{density[0].mean():.3f}",
                    "by evidence": f"{density[1].mean():.3f}",
                }
            )
            print(rows[-1], flush=True)
    print_table("Sampling, 4 chains of 150 + 500", rows)


PARTS = {
    "motorcycle": motorcycle,
    "levels": levels,
    "constant": constant,
    "trend": trend,
    "outliers": outliers,
    "tails": tails,
    "time": times,
    "sampling": sampling,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        with counted_warnings() as messages:
            PARTS[part]()
        if messages:
            print(f"{len(messages)} warnings, the first: {messages[0]}")
