"""
Quick start: error bars and evidence on real data
=================================================

This example fits a network to 426 of the 569 images of breast tissue that come
with scikit-learn. It predicts the largest radius of the cell nuclei in the
other images from the means of ten features, with error bars. You need not tune
anything, and no validation set is held out. The weight decay rates and the
noise are inferred from the training rows.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

from skbayesnn import EvidenceMLPRegressor

cells = load_breast_cancer().data
X, y = cells[:, :10], cells[:, 20]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = EvidenceMLPRegressor(random_state=0).fit(X_train, y_train)
print(f"hidden layers: {model.hidden_layer_sizes_}")

# %%
# Every prediction comes with a standard deviation, in the units of ``y``.

mean, std = model.predict(X_test, return_std=True)
for row in range(5):
    print(
        f"image {row}: {mean[row]:5.2f} +- {std[row]:.2f}, measured "
        f"{y_test[row]:5.2f}"
    )

# %%
# The error bars should match the errors: about 95 % of the measurements lie in
# their intervals.

interval = model.predict_interval(X_test, coverage=0.95)
inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
linear = BayesianRidge().fit(X_train, y_train).predict(X_test)
print(
    f"test error (root mean square):  "
    f"{np.sqrt(np.mean((mean - y_test) ** 2)):.2f}"
)
print(
    f"test error of a linear model:   "
    f"{np.sqrt(np.mean((linear - y_test) ** 2)):.2f}"
)
print(
    f"median width of 95 % intervals: "
    f"{np.median(interval[:, 1] - interval[:, 0]):.2f}"
)
print(f"measurements inside:            {inside.sum()} of {len(inside)}")

# %%
# The report says how well left-out rows are predicted.

print(model.evidence_report_)

# %%
# The log evidence compares models on the training rows alone. For data of this
# size, Laplace's approximation has one. The report says whether you can trust
# it; ``print(laplace.evidence_report_.full())`` shows all its terms.

laplace = EvidenceMLPRegressor(method="laplace", random_state=0)
laplace.fit(X_train, y_train)
print(f"log evidence: {laplace.log_evidence_:.1f} nats")
print(laplace.evidence_report_)
