"""Types of the public interface, in one place."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
RandomState: TypeAlias = int | np.random.RandomState | None
LayerSizes: TypeAlias = Sequence[int] | int | str  # a string: "auto"
Estimator: TypeAlias = Any  # scikit-learn's own are not typed
Axes: TypeAlias = Any  # matplotlib's; it is not needed to import this package
