"""Published figures for the data of `side_by_side.py`, each with its source.

Log densities (LL) are nats per row in units of the targets, on the 20 splits of Hernandez-Lobato &
Adams (2015), or an approximation of the authors to them; those of airfoil are for standardised
targets. The papers differ in what they average and in the errors they give.

PBP: Hernandez-Lobato & Adams (2015). MC dropout: rerun by Mukhoti, Stenetorp & Gal (2018). Deep
ensembles: Lakshminarayanan, Pritzel & Blundell (2017). NGBoost: Duan et al. (2020). Deep evidential
regression: Amini et al. (2020). DUN, an ensemble of them: Antoran, Allingham & Hernandez-Lobato
(2020). HMC: Bui et al. (2016), quoted from memory. Wasserstein evidential regression: the paper is
not on record here. Airfoil: the benchmark of sklearn-contrib-bde, on 10 cores. Ripley's data and
forensic glass: discriminants, logistic regression and nearest neighbours were recomputed on the
same rows; the figures of Gaussian processes and NUTS are on record without their settings.
"""

METHODS = (
    "PBP (2015)",
    "MC dropout (2018)",
    "deep ensembles (2017)",
    "NGBoost (2020)",
    "deep evidential (2020)",
    "Wasserstein evidential",
    "DUN ensemble (2020)",
    "HMC (2016)",
)

UCI = {  # LL and RMSE of each method
    "boston": "-2.57/3.01 -2.40/2.90 -2.41/3.28 -2.43/2.94 -2.35/3.06 -2.47/2.78 -2.45/2.84 "
    "-2.27/2.76",
    "concrete": "-3.16/5.67 -2.94/4.83 -3.06/6.03 -3.04/5.06 -3.01/5.85 -2.83/4.15 -2.89/4.55 "
    "-2.72/4.12",
    "energy": "-2.04/1.80 -1.21/0.54 -1.38/2.09 -0.60/0.46 -1.39/2.06 -0.53/0.42 -1.30/0.51 "
    "-0.93/0.48",
    "yacht": "-1.63/1.02 -1.25/0.67 -1.18/1.58 -0.20/0.50 -1.03/1.57 -0.16/0.48 -2.44/1.43 "
    "-1.62/0.56",
}

PUBLISHED = {
    name: {
        method: dict(zip(("LL", "RMSE"), pair.split("/"), strict=True))
        for method, pair in zip(METHODS, pairs.split(), strict=True)
    }
    for name, pairs in UCI.items()
} | {
    "airfoil": {
        "Bayesian deep ensemble, 240 s": {"LL": "0.913", "RMSE": "0.1215"},
        "TabPFN v2": {"LL": "0.934", "RMSE": "0.1359"},
        "CatBoost": {"LL": "-0.148", "RMSE": "0.239"},
        "XGBoost": {"RMSE": "0.2025"},
        "deep ensemble": {"LL": "-0.176", "RMSE": "0.365"},
    },
    "pima": {
        "linear discriminant": {"errors": "67"},
        "logistic regression": {"errors": "66"},
        "Gaussian processes": {"errors": "about 64"},
        "NUTS": {"log loss": "0.438"},
    },
    "synthetic": {
        "best possible": {"error": "about 0.08"},
        "NUTS": {"error": "0.099", "log loss": "0.225"},
        "quadratic discriminant": {"error": "0.102"},
        "linear discriminant": {"error": "0.108"},
        "logistic regression": {"error": "0.114"},
        "nearest neighbour": {"error": "0.150"},
    },
    "glass": {"nearest neighbour": {"error": "0.238"}},
}
