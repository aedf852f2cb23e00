"""
Quickstart: error bars and evidence on the diabetes data
========================================================

Fits a network to 331 of the 442 patients in scikit-learn's diabetes data and predicts the
progression of the disease, with error bars, for the other 111. Nothing is tuned and no validation
set is held out: the weight decay rates and the noise level are inferred from the training rows.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from skbayesnn import EvidenceMLPRegressor

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = EvidenceMLPRegressor(random_state=0).fit(X_train, y_train)

# %%
# Every prediction comes with a standard deviation, in the units of ``y``.

mean, std = model.predict(X_test, return_std=True)
for row in range(5):
    print(f"patient {row}: {mean[row]:4.0f} +- {std[row]:2.0f}, measured {y_test[row]:3.0f}")

# %%
# The error bars should match the errors: about 95 % of the measurements lie in their intervals.

interval = model.predict_interval(X_test, coverage=0.95)
inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
print(f"test error (root mean square): {np.sqrt(np.mean((mean - y_test) ** 2)):.1f}")
print(f"test error of the mean of y:   {np.sqrt(np.mean((y_train.mean() - y_test) ** 2)):.1f}")
print(f"mean width of 95 % intervals:  {np.mean(interval[:, 1] - interval[:, 0]):.0f}")
print(f"measurements inside:           {inside.sum()} of {len(inside)}")

# %%
# The log evidence compares models on the training rows alone; the report shows what it is made of.

print(f"log evidence: {model.log_evidence_:.1f} nats")
print(model.evidence_report_)
