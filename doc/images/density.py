"""Difference of log density between default fits and other models, of the kept results."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

MODELS = {"gaussian process": "o", "boosting": "s", "forest": "^"}
SETS = ["airfoil", "boston", "concrete", "energy", "yacht"]

path = Path("../../tests/benchmarks/results/side_by_side.csv")  # run in this folder
found = {}
lines = path.read_text(encoding="utf-8").splitlines()
for row in csv.DictReader(line for line in lines if not line.startswith("#")):
    found[row["data"], row["model"], row["split"]] = row["LL"]
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
for k, (model, marker) in enumerate(MODELS.items()):
    for y, data in enumerate(SETS):
        gains = [
            float(found[data, "evidence", split]) - float(value)
            for (name, other, split), value in found.items()
            if (name, other) == (data, model)
        ]
        error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
        axes.errorbar(
            np.mean(gains),
            y + 0.15 * (1 - k),
            xerr=error,
            fmt=marker,
            color=f"C{k}",
            label=model.replace("gaussian", "Gaussian") if y == 0 else None,
        )
axes.axvline(0.0, color="0.6", linewidth=1)
axes.set_yticks(range(len(SETS)), SETS)
axes.set_xlabel("log density of the default minus that of the other model, nats per row")
axes.legend()
