"""
Classes from a table with strings and missing values
====================================================

A laboratory tells three kinds of rock apart by density, porosity, colour and
quarry. Colour and quarry are strings, and some values are missing. A pipeline
prepares the table. On rows that were left out, the class probabilities are far
better than those of logistic regression.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayesnn import EvidenceMLPClassifier

rng, n = np.random.default_rng(0), 200
kinds = {  # mean density (g/cm³) and porosity (%); some basalt has bubbles
    "basalt": (2.9, 5.0),
    "basalt with bubbles": (2.2, 25.0),
    "limestone": (2.6, 12.0),
    "sandstone": (2.4, 18.0),
}
kind = rng.choice(list(kinds), n)
means = np.array([kinds[name] for name in kind]).T
table = pd.DataFrame(
    {
        "density": means[0] + 0.1 * rng.standard_normal(n),
        "porosity": means[1] * rng.lognormal(0, 0.3, n),
        "colour": rng.choice(["grey", "yellow"], n),
        "quarry": rng.choice(["north", "south", "east"], n),
    }
)
rock = np.array([name.split()[0] for name in kind])
table.loc[(rock == "basalt") & (rng.random(n) < 0.5), "colour"] = "black"
table.loc[rng.random(n) < 0.1, "porosity"] = np.nan
table.loc[rng.random(n) < 0.1, "colour"] = None
print(table.assign(rock=rock).head())

# %%
# The pipeline
# ------------
# A missing number is replaced by the mean, and another column marks it. A
# missing string is a category. New rows may have unknown categories.

encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
prepare = make_column_transformer(
    (SimpleImputer(add_indicator=True), ["density", "porosity"]),
    (encoder, ["colour", "quarry"]),
)
models = {
    "EvidenceMLPClassifier": EvidenceMLPClassifier(random_state=0),
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
}
for name, model in models.items():
    pipe = make_pipeline(prepare, model)
    proba = cross_val_predict(pipe, table, rock, cv=4, method="predict_proba")
    right = np.mean(np.unique(rock)[proba.argmax(axis=1)] == rock)
    print(f"{name:22s} log loss {log_loss(rock, proba):.3f}, right {right:.0%}")

# %%
# One fit to all rows
# -------------------
# Class probabilities are averages over drawn networks, which differ by the
# standard deviations. The figure is for grey rocks with 12 % of pores.

model = make_pipeline(prepare, models["EvidenceMLPClassifier"])
print(model.fit(table, rock)[-1].evidence_report_)

rows = pd.DataFrame({"density": np.linspace(2.0, 3.2, 101), "porosity": 12.0})
rows = rows.assign(colour="grey", quarry="north")
proba = model.predict_proba(rows)
std = model[-1].predict_std(model[:-1].transform(rows))

plt.rcParams.update({"font.size": 9, "figure.figsize": (5, 3)})
fig, ax = plt.subplots(layout="constrained")
for kind, p, sd in zip(model.classes_, proba.T, std.T, strict=True):
    (line,) = ax.plot(rows["density"], p, label=kind)
    band = {"color": line.get_color(), "alpha": 0.2, "lw": 0}
    ax.fill_between(rows["density"], p - sd, p + sd, **band)
ax.set(xlabel="density (g/cm³)", ylabel="probability ± sd", ylim=(0, 1))
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
